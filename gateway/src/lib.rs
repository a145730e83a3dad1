//! Trunkline: one MCP endpoint in front of many MCP servers.
//!
//! Every client request becomes one `Call`; whatever comes back is one `Reply`; era and transport exist only at the two edges.

pub mod protocol;

pub mod call;

pub mod upstream;

pub mod lifecycle;
pub mod signals;

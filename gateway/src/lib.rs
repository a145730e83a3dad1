//! Trunkline: one MCP endpoint in front of many MCP servers.
pub mod cli;
pub mod config;
pub mod downstream;
pub mod policy;
pub mod router;
pub mod telemetry;
pub mod upstream;

//! The messages of every MCP revision, without I/O.
//!
//! The crate parses, validates, translates and writes messages. Its main items are [`frame::Frame`] (one JSON-RPC message),
//! [`revision::Revision`] (a dated protocol version) and [`translate`] (payloads of one revision in the form of another).
//!
//! Invariants:
//!
//! - The crate uses no task, no socket and no clock, so every test is a function from bytes to bytes.
//! - A frame is parsed once and shallowly. Arguments and results stay raw JSON and are never decoded into a tree.
//! - Translation between equal revisions returns the same bytes.
//! - Input of a peer never causes a panic.

/// Capabilities that a peer declares, and the features that they allow.
pub mod capabilities;
/// JSON-RPC frames over raw JSON.
pub mod frame;
/// Byte forms of frames: lines, server-sent events and WebSocket messages.
pub mod framing;
/// The `Mcp-*` headers of requests and of tool arguments.
pub mod http;
/// A validating parser for raw JSON that builds no tree and does not recurse.
pub mod json;
/// The `_meta` object of a request: hop-by-hop members are taken out, all others pass.
pub mod meta;
/// Members of parameters and results that the gateway reads: questions, tasks, chunks.
pub mod payload;
/// The dated protocol versions and their eras.
pub mod revision;
/// Counts of work, in builds with debug assertions.
pub mod steps;
/// Translation of payloads between revisions.
pub mod translate;
/// Objects of raw JSON, their canonical form and the spelling of their keys.
pub mod value;

//! The `Mcp-*` headers: of a frame, and of a tool's arguments.

// The `Mcp-*` headers of modern HTTP: made from a frame, and checked against a frame.
pub mod headers;
// `Mcp-Param-*`: the tool arguments that a schema wants mirrored in headers, compiled once per tool.
pub mod param_headers;

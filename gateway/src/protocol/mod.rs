//! Pure MCP: bytes in, bytes out. No task, no socket, no clock.

// What a peer has declared, and what that allows.
pub mod capabilities;
// JSON-RPC frames over raw JSON: parsed once and shallowly, written by splicing.
pub mod frame;
// What carries frames as bytes: lines, server-sent events, and room for large messages.
pub mod framing;
// The `Mcp-*` headers: of a frame, and of a tool's arguments.
pub mod http;
// The dated protocol versions, their eras, and the one dialect before them.
pub mod revision;
// Values of raw JSON: the members that the gateway acts on, one form to compare by, the spellings of keys.
pub mod value;
// Walks raw JSON without building a tree: validates strictly, one pass, no recursion, no decoding.
pub mod json;
// The `_meta` of a request: what belongs to one hop is taken out, everything else goes end to end.
pub mod meta;
// What stands in parameters and results beside the payload of a call: questions, tasks, chunks.
pub mod payload;
// The one translator: a payload of one revision in the words of another.
pub mod translate;

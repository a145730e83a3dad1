//! Pure MCP: bytes in, bytes out. No task, no socket, no clock.

pub mod beyond;
pub mod canonical;
pub mod capability;
pub mod error;
pub mod frame;
pub mod headers;
pub mod input;
pub mod json;
pub mod lines;
pub mod meta;
pub mod method;
pub mod need;
pub mod object;
pub mod param_headers;
pub mod revision;
pub mod sse;
pub mod translate;

pub use frame::{Frame, Id};
pub use method::Method;
pub use object::Object;
pub use param_headers::ParamHeaders;
pub use revision::{Era, Revision};

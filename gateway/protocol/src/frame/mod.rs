//! JSON-RPC as it is on the wire: messages, methods, errors.

// A frame over raw JSON: parsed once and shallowly, written by splicing.
pub mod message;
// JSON-RPC error codes, and the error object read and written.
pub mod rpc_error;
// The methods that the gateway knows by name; every other one is carried as text.
mod method;
// The digits of a number, without an allocation.
mod decimal;

pub use decimal::Decimal;
pub use method::Method;

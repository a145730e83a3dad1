//! A call under way: its reply is read into frames for the client.

// A call under way: its reply read step by step into frames for the client.
mod call;
// Legacy calls over HTTP outlive their connections: a lost stream cancels nothing.
mod detached;
// The retry of a stateless client's call: what its state leads back to, and what its answers do there.
pub(crate) mod retry;

pub(crate) use call::RunningCall;
pub(crate) use detached::DetachedCall;

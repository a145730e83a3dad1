//! What answers calls: a plain function from `Call` to `Reply`.

use super::call::Call;
use super::reply::Reply;
use std::sync::Arc;

/// Answers calls.
///
/// Taking a call never waits: routing and enqueueing happen here, in the order in which a client's frames are read;
/// waiting happens in the [`Reply`]. So there is no readiness to poll and no future to box, and a layer of the chain is a
/// `tower::Layer` over `Handle`.
pub trait Handle: Send + Sync + 'static {
    /// Takes the call.
    fn handle(&self, call: Call) -> Reply;
}

/// The chain as the client edge is handed it; it does not know what stands behind.
pub type Handler = Arc<dyn Handle>;

impl<H: Handle + ?Sized> Handle for Arc<H> {
    fn handle(&self, call: Call) -> Reply {
        (**self).handle(call)
    }
}

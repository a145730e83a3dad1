//! What every transport towards clients shares: the handler behind it, who we say we are, the task level.

use crate::call::{Call, Handler, Reply};
use crate::lifecycle::Tasks;
use crate::protocol::json;
use bytes::Bytes;
use std::time::Duration;

/// The part of the client edge that is the same for every transport.
pub(super) struct Edge {
    /// Answers calls.
    handler: Handler,
    /// Our name and version, raw: `serverInfo`.
    pub(super) identity: Bytes,
    /// The level that ends with the face.
    pub(super) tasks: Tasks,
    /// How long calls may go on once the level was told to end.
    grace: Duration,
}

impl Edge {
    pub(super) fn new(handler: Handler, name: &str, grace: Duration, tasks: Tasks) -> Self {
        let identity = format!("{{\"name\":{},\"version\":\"{}\"}}", json::quote(name), env!("CARGO_PKG_VERSION"));
        Self { handler, identity: identity.into(), tasks, grace }
    }

    /// Hands a call over.
    pub(super) fn call(&self, call: Call) -> Reply {
        self.handler.handle(call)
    }

    /// Resolves when calls may go on no longer: the level was told to end and the grace time is over.
    pub(super) async fn over(&self) {
        self.tasks.ending().await;
        tokio::time::sleep(self.grace).await;
    }
}

//! What every transport towards clients shares: the handler behind it, who we say we are, the task level.

use super::config::{Config, Questions};
use super::label::Label;
use super::parked::Parked;
use super::quota::Quota;
use super::states::States;
use crate::call::{Call, Handler, Reply};
use crate::lifecycle::Tasks;
use crate::protocol::json;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// The part of the client edge that is the same for every transport.
pub(super) struct Edge {
    /// Answers calls.
    handler: Handler,
    /// Our name and version, raw: `serverInfo`.
    pub(super) identity: Bytes,
    /// The level that ends with the face.
    pub(super) tasks: Tasks,
    /// What questions to clients are held to.
    pub(super) questions: Questions,
    /// Whether questions say who asks.
    pub(super) label: Label,
    /// The calls that wait for an answer of their client.
    pub(super) quota: Arc<Quota>,
    /// What waits for the retries of stateless clients.
    pub(super) parked: Arc<Parked>,
    /// What they carry for us until then.
    pub(super) states: States,
    /// How long calls may go on once the level was told to end.
    grace: Duration,
}

impl Edge {
    pub(super) fn new(handler: Handler, config: &Config, tasks: Tasks) -> Self {
        let name = json::quote(&config.name);
        Self {
            handler,
            identity: format!("{{\"name\":{name},\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION")).into(),
            tasks,
            questions: config.questions.clone(),
            label: Label(config.questions.names_upstream),
            quota: Quota::new(&config.questions),
            parked: Arc::new(Parked::new()),
            states: States::new(config),
            grace: config.shutdown_grace,
        }
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

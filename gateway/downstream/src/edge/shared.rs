//! What every transport towards clients shares: the handler behind it, who we say we are, the task level.

use crate::call::reply::Reply;
use crate::call::{Call, Handler};
use crate::config::{Config, Questions};
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::parking::parked::Parked;
use crate::parking::{ParkingQuota, SealedStates};
use crate::protocol::json;
use crate::response::Label;
use crate::runtime::Tasks;
use crate::runtime::timer::Timers;
use bytes::Bytes;
use std::sync::Arc;

/// The part of the client edge that is the same for every transport.
pub(crate) struct Edge {
    /// Answers calls.
    handler: Handler,
    /// Our name and version, raw: `serverInfo`.
    pub(crate) identity: Bytes,
    /// The level that ends with the face.
    pub(crate) tasks: Tasks,
    /// What questions to clients are held to.
    pub(crate) questions: Questions,
    /// Whether questions say who asks.
    pub(crate) label: Label,
    /// The calls that wait for an answer of their client.
    pub(crate) quota: ParkingQuota,
    /// What waits for the retries of stateless clients.
    pub(crate) parked: Arc<Parked>,
    /// What they carry for us until then.
    pub(crate) states: SealedStates,
    /// Told to end when calls may go on no longer: what still runs has its last word then.
    cut: Tasks,
    /// What all peers together may make the gateway keep.
    pub(crate) budget: Budget,
    /// Where it is counted who finds no room.
    pub(crate) refusals: Refusals,
    /// Those of its calls.
    pub(crate) timers: Arc<Timers>,
}

impl Edge {
    pub(crate) fn new(
        handler: Handler,
        config: &Config,
        (tasks, cut): (Tasks, Tasks),
        (budget, refusals): (&Budget, &Refusals),
    ) -> Self {
        let name = json::quote(&config.name);
        Self {
            handler,
            identity: format!("{{\"name\":{name},\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION")).into(),
            tasks,
            questions: config.questions.clone(),
            label: Label(config.questions.names_upstream),
            quota: ParkingQuota::new(&config.questions),
            parked: Arc::new(Parked::new()),
            states: SealedStates::new(config),
            cut,
            budget: budget.clone(),
            refusals: refusals.clone(),
            timers: Arc::default(),
        }
    }

    /// Hands a call over.
    pub(crate) fn call(&self, call: Call) -> Reply {
        self.handler.handle(call)
    }

    /// Told to end when calls may go on no longer.
    pub(crate) fn cut(&self) -> Tasks {
        self.cut.clone()
    }

    /// Resolves when calls may go on no longer: the grace time of the end is over.
    pub(crate) async fn over(&self) {
        self.cut.ending().await;
    }

    /// Whether calls may go on no longer.
    pub(crate) fn is_over(&self) -> bool {
        self.cut.is_ending()
    }
}

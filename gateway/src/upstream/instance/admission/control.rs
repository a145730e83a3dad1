//! The part of an instance that decides whether a call may go out now.

use super::demand::Demand;
use super::gate::{Gate, Retired};
use super::sessions::CallSessions;
use crate::health::Traffic;
use crate::metrics;
use crate::peer::Peer;
use crate::runtime::timer::Timers;
use crate::transport::exchange::ConcurrencyLimit;
use crate::transport::exchange::Lost;
use crate::upstream::config::Config;
use arc_swap::ArcSwapOption;
use std::sync::Arc;

/// How calls get at the peer of one instance, and what is counted of them.
pub(crate) struct Admission {
    pub(crate) gate: Gate,
    /// The places that calls take while they are under way.
    places: Arc<ConcurrencyLimit>,
    /// What the instance is needed for.
    pub(crate) demand: Arc<Demand>,
    /// The sessions beside the primary one, where the upstream has sessions.
    pub(crate) sessions: CallSessions,
    /// How much the instance has to do.
    pub(crate) traffic: Arc<Traffic>,
    /// How much the instance of the other era has to do, which ends with this one; none while there is none.
    pub(crate) second: ArcSwapOption<Traffic>,
    /// The timers of its calls.
    pub(crate) timers: Arc<Timers>,
}

impl Admission {
    pub(crate) fn new(config: &Config, traffic: Arc<Traffic>, metrics: &metrics::Upstream) -> Self {
        let places = ConcurrencyLimit::new(config.max_concurrency, traffic.clone(), metrics);
        Self::of(config, traffic, places)
    }

    /// Of the instance of the other era: its calls take the same places.
    pub(crate) fn beside(&self, config: &Config, traffic: Arc<Traffic>) -> Self {
        let places = self.places.beside(traffic.clone());
        Self::of(config, traffic, places)
    }

    /// Of a session of a client's own: its calls are those of this instance, and wait at a gate of their own while it is opened.
    pub(crate) fn of_session(&self, config: &Config) -> Self {
        Self {
            gate: Gate::new(ConcurrencyLimit::enough(), config.queue),
            places: self.places.clone(),
            demand: Demand::new(None),
            sessions: CallSessions::default(),
            traffic: self.traffic.clone(),
            second: ArcSwapOption::empty(),
            timers: self.timers.clone(),
        }
    }

    fn of(config: &Config, traffic: Arc<Traffic>, places: Arc<ConcurrencyLimit>) -> Self {
        Self {
            gate: Gate::new(places.clone(), config.queue),
            places,
            demand: Demand::new(config.idle_stop),
            sessions: CallSessions::default(),
            traffic,
            second: ArcSwapOption::empty(),
            timers: Arc::default(),
        }
    }

    /// How many calls the upstream has, in both eras.
    pub(crate) fn in_flight(&self) -> usize {
        self.traffic.in_flight() + self.second.load().as_ref().map_or(0, |second| second.in_flight())
    }

    /// Gives up a peer where a loss says that it is of no more use. The supervisor acts on it.
    pub(crate) fn retire_if_gone(&self, peer: &Arc<Peer>, lost: &Lost) {
        let why = match lost {
            Lost::Session(why) => Retired::Session(why.clone()),
            Lost::Unsent(why) => Retired::Unreachable(why.clone()),
            // It leads back to this gateway: that is found out when it is met again.
            lost if lost.leads_back() => Retired::Unreachable(lost.text().clone()),
            _ => return,
        };
        self.sessions.retire(peer, &why);
        self.gate.retire(peer, why);
    }
}

//! The table of the legacy clients' sessions: bounded, bound to principals, swept.

use super::config;
use super::handshake::Asks;
use super::label::Label;
use super::peer::Who;
use super::session::Session;
use crate::call::Principal;
use crate::signals;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dashmap::DashMap;
use metrics::Gauge;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// When the table is full, a session that was idle for so long makes room.
const SPARE_AFTER: Duration = Duration::from_secs(60);

/// The table.
pub(super) struct Sessions {
    table: DashMap<Arc<str>, Arc<Session>>,
    count: AtomicUsize,
    config: config::Session,
    label: Label,
    gauge: Gauge,
}

/// The table is full, and nobody in it is idle.
#[derive(Debug)]
pub(super) struct Full;

impl Sessions {
    pub(super) fn new(config: config::Session, label: Label) -> Self {
        let (table, count) = (DashMap::new(), AtomicUsize::new(0));
        Self { table, count, config, label, gauge: signals::sessions("http") }
    }

    /// Opens a session with an id that cannot be guessed.
    pub(super) fn create(&self, who: Who, asks: Asks) -> Result<Arc<Session>, Full> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= self.config.max && !self.spare() {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(Full);
        }
        let id: Arc<str> = new_id().into();
        let session = Arc::new(Session::new(id.clone(), who, asks, self.label, self.config.resume_buffer));
        self.table.insert(id, session.clone());
        self.show();
        Ok(session)
    }

    /// The session of an id, where it is the principal's own. Whose it is otherwise cannot be told from the answer.
    pub(super) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.table.get(id)?;
        (session.caller.principal == *principal).then(|| session.clone())
    }

    /// Ends a session.
    pub(super) fn remove(&self, id: &str) {
        if let Some((_, session)) = self.table.remove(id) {
            self.count.fetch_sub(1, Ordering::Relaxed);
            self.show();
            session.end();
        }
    }

    /// Ends the sessions that were idle for too long, and what streams of the others nobody came back for.
    pub(super) fn sweep(&self) {
        let mut gone = Vec::new();
        for session in &self.table {
            session.streams.expire();
            if session.idle().is_some_and(|idle| idle >= self.config.idle_timeout) {
                gone.push(session.id.clone());
            }
        }
        for id in gone {
            self.remove(&id);
            signals::evicted("idle").increment(1);
        }
    }

    /// How long the sweeper may rest.
    pub(super) fn sweep_interval(&self) -> Duration {
        (self.config.idle_timeout / 4).clamp(Duration::from_millis(100), Duration::from_secs(30))
    }

    /// Ends the longest idle session; whether there was one.
    fn spare(&self) -> bool {
        let idle = self.table.iter().filter_map(|s| Some((s.idle().filter(|idle| *idle > SPARE_AFTER)?, s.id.clone())));
        let Some((_, id)) = idle.max_by_key(|(idle, _)| *idle) else { return false };
        self.remove(&id);
        signals::evicted("cap").increment(1);
        true
    }

    fn show(&self) {
        self.gauge.set(self.count.load(Ordering::Relaxed) as f64);
    }
}

/// 192 random bits in visible ASCII.
fn new_id() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system's random source does not fail once it has worked");
    URL_SAFE_NO_PAD.encode(bytes)
}

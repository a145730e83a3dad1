//! The table of sessions with a handshake upstream over HTTP beside its primary one: one for each set of what callers declare.

use super::gate::{Gate, Retired};
use crate::call::share::{Part, Share, SharePermit, Shares};
use crate::peer::Peer;
use crate::protocol::capabilities::beyond::Declared;
use crate::runtime::Tasks;
use crate::transport::exchange::ConcurrencyLimit;
use crate::transport::http::HttpClient;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many sets have a session of their own, of one client alone half as many; whoever has another one is served by the primary.
const SETS_MAX: usize = 16;
/// A session without a call for so long is closed.
pub(crate) const IDLE: Duration = Duration::from_secs(5 * 60);

/// The call sessions of one upstream.
pub(crate) struct CallSessions {
    open: Mutex<Vec<Arc<CallSession>>>,
    places: Arc<Shares>,
    /// How the upstream is reached and where sessions live, once its supervisor has said so.
    way: Mutex<Option<(Arc<HttpClient>, Tasks)>>,
    /// The upstream bears no second session: the primary one is for all.
    is_refused: AtomicBool,
}

/// The session of one set. Calls wait at its gate while it is opened, each set's in their order.
pub(crate) struct CallSession {
    pub(crate) set: Declared,
    pub(crate) gate: Gate,
    /// Of the client that was first served by it.
    _place: SharePermit,
    used: Mutex<Instant>,
}

/// A session as it is found.
pub(crate) enum Found {
    Open(Arc<CallSession>),
    /// It was not there: somebody has to keep it, with this wire, at this level.
    New(Arc<CallSession>, Arc<HttpClient>, Tasks),
}

impl Default for CallSessions {
    fn default() -> Self {
        let places = Shares::new(SETS_MAX, Part::OfFree);
        Self { open: Mutex::default(), places, way: Mutex::default(), is_refused: AtomicBool::new(false) }
    }
}

impl CallSessions {
    /// From now on sessions are opened like this.
    pub(crate) fn reach(&self, wire: &Arc<HttpClient>, tasks: &Tasks) {
        *self.way() = Some((wire.clone(), tasks.clone()));
    }

    /// How sessions are opened, once the supervisor has said so.
    pub(crate) fn way_in(&self) -> Option<(Arc<HttpClient>, Tasks)> {
        self.way().clone()
    }

    /// From now on none is opened: what it was reached by is kept for nobody.
    pub(crate) fn unreach(&self) {
        *self.way() = None;
    }

    /// The upstream was met anew: it may bear now what it refused.
    pub(crate) fn renew(&self) {
        self.is_refused.store(false, Ordering::Relaxed);
    }

    /// The upstream bears no second session; whether that is news.
    pub(crate) fn refuse(&self) -> bool {
        !self.is_refused.swap(true, Ordering::Relaxed)
    }

    /// The session of a set, which is in use from now, and at which so many calls may wait; `None` where the primary one serves it.
    pub(crate) fn find(&self, set: Declared, queue_max: usize, share: &Share) -> Option<Found> {
        if self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        let mut open = self.lock();
        if let Some(session) = open.iter().find(|session| session.set == set) {
            // Under the lock under which it would be closed for having been idle.
            *session.used() = Instant::now();
            return Some(Found::Open(session.clone()));
        }
        let (wire, tasks) = self.way().clone()?;
        let place = self.places.take(share)?;
        let gate = Gate::new(ConcurrencyLimit::enough(), queue_max);
        let session = Arc::new(CallSession { set, gate, _place: place, used: Mutex::new(Instant::now()) });
        open.push(session.clone());
        Some(Found::New(session, wire, tasks))
    }

    /// Gives a session's peer up, where it is one.
    pub(crate) fn retire(&self, peer: &Arc<Peer>, why: &Retired) {
        if !peer.link.is_pipe() {
            self.lock().iter().for_each(|session| session.gate.retire(peer, why.clone()));
        }
    }

    /// It is not found any more.
    pub(crate) fn remove(&self, session: &Arc<CallSession>) {
        self.lock().retain(|open| !Arc::ptr_eq(open, session));
    }

    /// As [`Self::remove`], where it was without a call for long; if not, until when it will have been.
    pub(crate) fn remove_idle(&self, session: &Arc<CallSession>, is_busy: impl Fn() -> bool) -> Result<(), Instant> {
        let (mut open, mut used) = (self.lock(), session.used());
        if is_busy() {
            *used = Instant::now();
        }
        if *used + IDLE > Instant::now() {
            return Err(*used + IDLE);
        }
        open.retain(|open| !Arc::ptr_eq(open, session));
        Ok(())
    }

    fn way(&self) -> MutexGuard<'_, Option<(Arc<HttpClient>, Tasks)>> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<CallSession>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallSession {
    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

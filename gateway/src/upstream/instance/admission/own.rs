//! The table of sessions with a handshake upstream over HTTP that clients have to themselves: one for each handshake session, and one for
//! each principal and set of capabilities of stateless clients. Bounded; what was idle longest makes room.

// The clients whose sessions made room for others.
mod evicted;
// How it went to open a session.
mod tries;

use super::kept::KeptSessions;
use crate::call::caller::{ClientSession, Principal};
use crate::call::share::Share;
use crate::health::{Cause, CauseCode};
use crate::memory::StandingCharge;
use crate::memory::budget::Spent;
use crate::peer::loss::{Loss, OwedWord};
use crate::protocol::capabilities::beyond::Declared;
use crate::runtime::Keyed;
use crate::transport::http::HttpSession;
use crate::upstream::config::Config;
use arc_swap::ArcSwapOption;
use evicted::Evicted;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tries::Tries;

/// Calls of different sessions seldom meet at one lock.
const SHARDS: usize = 16;

/// Whom a session belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum OwnKey {
    /// A handshake session, by its number.
    Session(u64),
    /// The stateless clients of a principal that declare this.
    Principal(Principal, Declared),
}

/// The sessions of one upstream that clients have to themselves; `I` is what stands for the upstream in one of them.
pub(crate) struct OwnSessions<I> {
    most: usize,
    idle: Duration,
    /// Whether principals are told apart: then none takes the last quarter.
    has_parts: AtomicBool,
    shards: Vec<Mutex<Shard<I>>>,
    keys: Keyed,
    room: Mutex<Room>,
    /// Counts what may lead a client elsewhere.
    moves: watch::Sender<u64>,
    /// The upstream bears no second session: its one client has the session of the gateway's own.
    is_refused: AtomicBool,
    /// One was opened since the upstream was met.
    has_opened: AtomicBool,
    begun: Instant,
    /// Where the ids that outlive a restart are kept, and the upstream's place there.
    pub(crate) kept: OnceLock<(Arc<KeptSessions>, Arc<str>)>,
}

type Shard<I> = HashMap<OwnKey, Arc<OwnSession<I>>, Keyed>;

/// What is open, by whom it belongs to.
#[derive(Default)]
struct Room {
    open: usize,
    shares: HashMap<Share, usize>,
    /// The ids of the handshake sessions that have one.
    sessions: HashSet<Arc<str>>,
    evicted: Evicted,
}

/// One session, from the first call that needs it to its end. It may be opened several times meanwhile.
pub(crate) struct OwnSession<I> {
    key: OwnKey,
    pub(crate) tenant: Option<Arc<ClientSession>>,
    /// What its handshake declares.
    pub(crate) set: Declared,
    pub(crate) instance: Arc<I>,
    share: Share,
    /// The session as it is open now.
    pub(crate) http: ArcSwapOption<HttpSession>,
    /// When a call came last, in milliseconds since the table was made.
    used: AtomicU64,
    /// It ends, since another one needs its room.
    pub(crate) evicted: CancellationToken,
    /// A call waits for it.
    pub(crate) called: Notify,
    /// It could not be opened, and calls are refused until one tries again.
    is_shut: AtomicBool,
    /// The lists that its client sees are those that were read in it.
    has_lists: AtomicBool,
    /// Whether something lasting is wanted of it, as of a subscription.
    is_held: fn(&I) -> bool,
    pub(crate) tries: Tries,
    /// Counts it among what its client keeps.
    _counted: StandingCharge,
    /// What its client lost with the one that it had before.
    pub(crate) owed: OwedWord,
}

impl<I> OwnSessions<I> {
    pub(crate) fn new(config: &Config) -> Self {
        let keys = Keyed::default();
        Self {
            most: config.max_sessions,
            idle: config.instance_idle,
            has_parts: AtomicBool::new(config.principals > 1),
            shards: (0..SHARDS).map(|_| Mutex::new(HashMap::with_hasher(keys.clone()))).collect(),
            keys,
            room: Mutex::default(),
            moves: watch::Sender::new(0),
            is_refused: AtomicBool::new(false),
            has_opened: AtomicBool::new(false),
            begun: Instant::now(),
            kept: OnceLock::new(),
        }
    }

    /// The session of a client, which is in use from now.
    pub(crate) fn find(&self, key: &OwnKey) -> Option<Arc<OwnSession<I>>> {
        let shard = self.shard(key);
        let session = shard.get(key)?;
        // Under the lock under which it would be ended for having been idle.
        session.used.store(self.now(), Ordering::Relaxed);
        Some(session.clone())
    }

    /// The same, where it is only looked at.
    pub(crate) fn get(&self, key: &OwnKey) -> Option<Arc<OwnSession<I>>> {
        self.shard(key).get(key).cloned()
    }

    /// Makes the session of a client, which was counted, after an idle one was ended where there are too many; says whether it was not
    /// there. The error says why none may be made.
    pub(crate) fn open(
        &self,
        key: &OwnKey,
        share: &Share,
        (count, make): (impl FnOnce() -> Result<StandingCharge, Spent>, impl FnOnce(StandingCharge) -> OwnSession<I>),
    ) -> Result<(Arc<OwnSession<I>>, bool), Cause> {
        let mut room = self.room();
        if let Some(session) = self.find(key) {
            return Ok((session, false));
        }
        let counted = count().map_err(|spent| {
            let said = format!("busy: no memory for one more session with it: {spent}");
            Cause::new(CauseCode::MemoryFull, said).advise("try again later, or raise `server.memory_limit`")
        })?;
        self.make_room(&mut room, share)?;
        let session = Arc::new(make(counted));
        session.used.store(self.now(), Ordering::Relaxed);
        if matches!(key, OwnKey::Session(number) if room.evicted.take(*number)) {
            session.owed.owe(Loss::MadeRoom);
        }
        room.add(&session);
        self.shard(key).insert(key.clone(), session.clone());
        Ok((session, true))
    }

    /// Sees to it that there is room for one more of this share.
    fn make_room(&self, room: &mut Room, share: &Share) -> Result<(), Cause> {
        let own = room.shares.get(share).copied().unwrap_or_default();
        let has_part = !self.has_parts() || own == 0 || own < 3 * self.most.saturating_sub(room.open);
        if room.open < self.most && has_part {
            return Ok(());
        }
        // Who has its part already makes room itself.
        let gives = |one: &OwnSession<I>| has_part || one.share == *share;
        // One that could not be opened keeps nothing for its client.
        let is_idle = |one: &OwnSession<I>| one.is_shut() || one.is_idle(self.now(), self.idle);
        let idle = || {
            let given = self.all().into_iter().filter(|one| gives(one) && is_idle(one));
            given.min_by_key(|one| (!one.is_shut(), one.used()))
        };
        while let Some(one) = idle() {
            let mut shard = self.shard(&one.key);
            // A call may have found it meanwhile.
            if is_idle(&one) && shard.remove(&one.key).is_some() {
                room.remove(&one);
                // What was never open has kept nothing. Stateless clients count on none: theirs ends all the same.
                if let OwnKey::Session(number) = one.key
                    && (one.http.load().is_some() || one.owed.is_owed())
                {
                    room.evicted.note(number);
                }
                one.evicted.cancel();
                return Ok(());
            }
        }
        let (most, seconds) = (self.most, self.idle.as_secs_f32());
        let said = format!(
            "busy: {} sessions with it are open (`max_sessions` = {most}), and none has been idle for {seconds} s (`instance_idle`)",
            room.open
        );
        Err(Cause::new(CauseCode::QueueFull, said).advise("try again later, or raise `max_sessions`"))
    }

    /// It is not found any more. Says whether it was.
    pub(crate) fn remove(&self, session: &Arc<OwnSession<I>>) -> bool {
        let mut room = self.room();
        let mut shard = self.shard(&session.key);
        let is_there = shard.get(&session.key).is_some_and(|one| Arc::ptr_eq(one, session));
        if is_there {
            shard.remove(&session.key);
            room.remove(session);
        }
        is_there
    }

    /// As [`Self::remove`], where no call came for so long; if not, when it is to be looked at again.
    pub(crate) fn remove_idle(&self, session: &Arc<OwnSession<I>>) -> Result<(), Instant> {
        let mut room = self.room();
        let mut shard = self.shard(&session.key);
        if !session.is_idle(self.now(), self.idle) {
            let until = self.begun + Duration::from_millis(session.used()) + self.idle;
            return Err(until.max(Instant::now() + self.idle / 8));
        }
        if shard.get(&session.key).is_some_and(|one| Arc::ptr_eq(one, session)) {
            shard.remove(&session.key);
            room.remove(session);
        }
        Ok(())
    }

    /// All there are.
    pub(crate) fn all(&self) -> Vec<Arc<OwnSession<I>>> {
        self.shards.iter().flat_map(|shard| lock(shard).values().cloned().collect::<Vec<_>>()).collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.room().open
    }

    /// Whether a handshake session has one.
    pub(crate) fn has_session(&self, id: &str) -> bool {
        self.room().sessions.contains(id)
    }

    /// The upstream was met anew: it may bear now what it refused.
    pub(crate) fn renew(&self) {
        self.is_refused.store(false, Ordering::Relaxed);
        self.has_opened.store(false, Ordering::Relaxed);
    }

    /// Several principals call from now on, or one. What the upstream bears for one only, several do not share.
    pub(crate) fn tell_apart(&self, has_parts: bool) {
        if !self.has_parts.swap(has_parts, Ordering::Relaxed) && has_parts {
            self.is_refused.store(false, Ordering::Relaxed);
        }
    }

    /// Whether several principals call.
    pub(crate) fn has_parts(&self) -> bool {
        self.has_parts.load(Ordering::Relaxed)
    }

    /// The upstream bears none beside the gateway's own.
    pub(crate) fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Whether it bears none.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// One was opened.
    pub(crate) fn opened(&self) {
        self.has_opened.store(true, Ordering::Relaxed);
    }

    /// Whether one was, since the upstream was met.
    pub(crate) fn has_opened(&self) -> bool {
        self.has_opened.load(Ordering::Relaxed)
    }

    /// Counts what may lead a client elsewhere.
    pub(crate) fn moves(&self) -> &watch::Sender<u64> {
        &self.moves
    }

    /// A client may have been led elsewhere.
    pub(crate) fn moved(&self) {
        self.moves.send_modify(|count| *count += 1);
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    fn shard(&self, key: &OwnKey) -> MutexGuard<'_, Shard<I>> {
        lock(&self.shards[(self.keys.hash_one(key) >> 32) as usize % SHARDS])
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Room {
    fn add<I>(&mut self, session: &OwnSession<I>) {
        self.open += 1;
        *self.shares.entry(session.share.clone()).or_default() += 1;
        self.sessions.extend(session.tenant.iter().map(|tenant| tenant.id().clone()));
    }

    fn remove<I>(&mut self, session: &OwnSession<I>) {
        self.open -= 1;
        if let Some(count) = self.shares.get_mut(&session.share) {
            *count -= 1;
            if *count == 0 {
                self.shares.remove(&session.share);
            }
        }
        session.tenant.iter().for_each(|tenant| _ = self.sessions.remove(tenant.id()));
    }
}

impl<I> OwnSession<I> {
    pub(crate) fn new(
        (key, tenant): (OwnKey, Option<Arc<ClientSession>>),
        set: Declared,
        share: Share,
        (instance, is_held): (Arc<I>, fn(&I) -> bool),
        counted: StandingCharge,
    ) -> Self {
        Self {
            key,
            tenant,
            set,
            instance,
            share,
            http: ArcSwapOption::empty(),
            used: AtomicU64::new(0),
            evicted: CancellationToken::new(),
            called: Notify::new(),
            is_shut: AtomicBool::new(false),
            has_lists: AtomicBool::new(false),
            is_held,
            tries: Tries::default(),
            _counted: counted,
            owed: OwedWord::default(),
        }
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether nothing was wanted of it for so long.
    fn is_idle(&self, now: u64, limit: Duration) -> bool {
        let is_busy = self.http.load().as_ref().is_some_and(|http| http.is_busy());
        if is_busy || (self.is_held)(&self.instance) {
            self.used.store(now, Ordering::Relaxed);
        }
        Duration::from_millis(now.saturating_sub(self.used())) >= limit
    }

    /// It could not be opened, or can be tried again.
    pub(crate) fn set_shut(&self, is_shut: bool) -> bool {
        self.is_shut.swap(is_shut, Ordering::AcqRel)
    }

    /// Whether it could not be opened the last time.
    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Acquire)
    }

    /// Whether its client sees the lists that were read in it; says what was.
    pub(crate) fn set_has_lists(&self, has_lists: bool) -> bool {
        self.has_lists.swap(has_lists, Ordering::AcqRel)
    }

    /// Whether its client sees the lists that were read in it.
    pub(crate) fn has_lists(&self) -> bool {
        self.has_lists.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;

//! The table of the legacy clients' sessions: bounded, bound to principals, swept.

use super::client::{Session, Stage};
use super::kept::{Earlier, Ended, KeptWishes};
use super::sealed_id;
pub(crate) use super::sealed_id::SealedIds;
pub(crate) use super::shares::Full;
use super::shares::{Room, SessionShares};
use crate::call::caller::Principal;
use crate::call::share::Share;
use crate::config;
use crate::edge::Asks;
use crate::edge::client_era::Who;
use crate::memory::StandingCharge;
use crate::memory::budget::Budget;
use crate::metrics;
use crate::response::Label;
use crate::runtime::Keyed;
use ::metrics::Gauge;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dashmap::DashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The table.
pub(crate) struct Sessions {
    /// By the short form of their ids.
    table: DashMap<Arc<str>, Arc<Session>, Keyed>,
    ids: SealedIds,
    /// Those that are not revived, whatever their ids say.
    ended: Ended,
    /// What clients want lastingly, for the next run.
    pub(crate) wishes: Arc<KeptWishes>,
    /// Held while one is revived: once, however many requests of it come at the same time.
    reviving: Mutex<()>,
    /// Whose they are. Locked before a part of the table, never after.
    shares: Mutex<SessionShares>,
    config: config::Session,
    label: Label,
    budget: Budget,
    gauge: Gauge,
}

/// What a session keeps beside what its client has declared.
const SESSION_BYTES: usize = 2 * 1024;
/// So many sessions make room for one, where the memory of their client is spent.
const EVICTED_MAX: usize = 8;

impl Sessions {
    pub(crate) fn new(config: &config::Config, label: Label, budget: Budget) -> Self {
        Self {
            table: DashMap::default(),
            ids: SealedIds::new(config),
            ended: Ended::kept_in(config.state_folder.as_deref()),
            wishes: Arc::new(KeptWishes::new(config)),
            reviving: Mutex::default(),
            shares: Mutex::default(),
            config: config.session.clone(),
            label,
            budget,
            gauge: metrics::sessions("http"),
        }
    }

    /// Opens a session with an id that cannot be guessed.
    pub(crate) fn create(&self, who: Who, asks: Asks) -> Result<Arc<Session>, Full> {
        let id = self.ids.give_out(&who, &asks).unwrap_or_else(new_id);
        self.open(id.into(), who, asks, None)
    }

    /// Opens a session of another run again, which its id says all of; and whether this request is the first of it. `None` where it has
    /// ended, is somebody else's, or was none of ours.
    pub(crate) fn revive(&self, id: &str, who: &Who) -> Result<Option<(Arc<Session>, bool)>, Full> {
        let Some((asks, is_of_this_folder)) = self.ids.read(id, &who.principal) else { return Ok(None) };
        // Before the lock: a disk that hangs holds up nobody but this request.
        let earlier = self.wishes.earlier(sealed_id::short(id));
        let _alone = self.reviving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = self.find(id, &who.principal) {
            return Ok(Some((session, false)));
        }
        if self.ended.has(sealed_id::short(id)) {
            return Ok(None);
        }
        tracing::debug!(client = &*asks.client, "session of an earlier run revived");
        let session = self.open(id.into(), who.clone(), asks, Some((is_of_this_folder, earlier)))?;
        session.reach(Stage::Initialized);
        Ok(Some((session, true)))
    }

    fn open(
        &self,
        id: Arc<str>,
        who: Who,
        asks: Asks,
        recalled: Option<(bool, Earlier)>,
    ) -> Result<Arc<Session>, Full> {
        let share = who.share();
        let short: Arc<str> = sealed_id::short(&id).into();
        // Of an id, what a sealed one has more than another.
        let kept = self.memory(&share, SESSION_BYTES + asks.capabilities.len() + id.len() - short.len())?;
        let evicted = {
            let mut shares = self.shares();
            let evicted = match shares.all() >= self.config.max {
                true => {
                    let room = shares.room_for(&share);
                    Some(self.make_room(&mut shares, &room).ok_or_else(|| shares.full(&share, false))?)
                }
                false => None,
            };
            shares.enter(&share, &short, |id| self.table.get(id).is_some_and(|one| !one.has_reached(Stage::Used)));
            evicted
        };
        if let Some(evicted) = evicted {
            metrics::evicted("cap").increment(1);
            evicted.end();
        }
        let terms = (self.label, self.config.resume_buffer);
        let session = match recalled {
            Some((is_of_this_folder, earlier)) => {
                Session::revived(id, who, asks, terms, &self.budget).recalled(is_of_this_folder, earlier)
            }
            None => Session::new(id, who, asks, terms, &self.budget),
        };
        let session = Arc::new(session.counted(kept).wishing(&self.wishes));
        self.table.insert(session.short.clone(), session.clone());
        self.show();
        // What it was opened with may have been revoked since it was looked at: who revokes looks at the table afterwards.
        if session.revocation.is_revoked() {
            self.revoke(&session);
        }
        Ok(session)
    }

    /// The session of an id, where it is the principal's own, whatever its token allows. An unknown session and one of another principal
    /// cannot be told apart from the answer.
    pub(crate) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.table.get(sealed_id::short(id))?;
        (*session.id == *id && session.caller().principal == *principal).then(|| session.clone())
    }

    /// So many of them at most, for whoever looks.
    pub(crate) fn some(&self, most: usize) -> Vec<Arc<Session>> {
        self.table.iter().take(most).map(|session| session.clone()).collect()
    }

    /// Ends a session, of which this is the short id.
    pub(crate) fn remove(&self, short: &str) {
        if let Some((_, session)) = self.table.remove(short) {
            self.shares().leave(&session.caller().share());
            self.ended.note(&session.short, session.is_revived);
            self.show();
            session.end();
        }
    }

    /// Ends a session for its client, also for the runs to come.
    pub(crate) fn end(&self, session: &Session) {
        self.remove(&session.short);
        if session.short != session.id {
            self.ended.keep(&session.short);
        }
        session.wants_nothing();
    }

    /// Ends the sessions that were opened with what counts no more, also for the runs to come.
    pub(crate) fn end_revoked(&self) {
        let theirs = self.table.iter().filter(|session| session.revocation.is_revoked());
        let theirs: Vec<_> = theirs.map(|session| session.clone()).collect();
        theirs.iter().for_each(|session| self.revoke(session));
    }

    fn revoke(&self, session: &Session) {
        self.end(session);
        metrics::evicted("revoked").increment(1);
    }

    /// Ends the sessions that were idle for too long, and what streams of the others nobody came back for.
    pub(crate) fn sweep(&self) {
        let mut gone = Vec::new();
        for session in &self.table {
            session.streams.expire();
            if session.idle().is_some_and(|idle| idle >= self.config.idle_timeout) {
                gone.push(session.short.clone());
            }
        }
        for id in gone {
            self.remove(&id);
            metrics::evicted("idle").increment(1);
        }
    }

    /// How long the sweeper may rest.
    pub(crate) fn sweep_interval(&self) -> Duration {
        (self.config.idle_timeout / 4).clamp(Duration::from_millis(100), Duration::from_secs(30))
    }

    /// Takes a session out, to be ended.
    fn make_room(&self, shares: &mut SessionShares, room: &Room) -> Option<Arc<Session>> {
        let id = self.unused(shares, room).or_else(|| {
            let those = self.table.iter().filter(|one| room.is_of(&one.caller().share()));
            room.choose(those.map(|one| one.clone()))
        });
        let (_, session) = self.table.remove(&id?)?;
        shares.leave(&session.caller().share());
        self.ended.note(&session.short, session.is_revived);
        Some(session)
    }

    /// Memory for a session of this share, for which others of its own make room, or those of the share with the most.
    fn memory(&self, share: &Share, bytes: usize) -> Result<StandingCharge, Full> {
        let budget = self.budget.owned_by(share.owner());
        for _ in 0..EVICTED_MAX {
            if let Ok(kept) = budget.stand(bytes) {
                return Ok(kept);
            }
            let evicted = {
                let mut shares = self.shares();
                let own = self.make_room(&mut shares, &Room::of(share));
                own.or_else(|| {
                    // However many clients have taken their part before: one that has less is not shut out.
                    let room = shares.room_for(share);
                    self.make_room(&mut shares, &room)
                })
                .ok_or_else(|| shares.full(share, true))?
            };
            metrics::evicted("cap").increment(1);
            evicted.end();
        }
        budget.stand(bytes).map_err(|_| self.shares().full(share, true))
    }

    /// The session that was never of use to its client; found without a look at all of them.
    fn unused(&self, shares: &mut SessionShares, room: &Room) -> Option<Arc<str>> {
        shares.unused(room, |id| self.table.get(id).map(|session| session.clone()))
    }

    fn shares(&self) -> MutexGuard<'_, SessionShares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self) {
        self.gauge.set(self.shares().all() as f64);
    }
}

/// 192 random bits in visible ASCII.
pub(crate) fn new_id() -> String {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).expect("the system's random source does not fail once it has worked");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests;

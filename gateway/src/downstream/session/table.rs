//! The table of the legacy clients' sessions: bounded, bound to principals, swept.

use super::client::{Session, Stage};
use super::ended::Ended;
use super::sealed_id;
pub(crate) use super::sealed_id::SealedIds;
pub(crate) use super::shares::Full;
use super::shares::{Room, SessionShares};
use crate::call::caller::Principal;
use crate::call::share::Share;
use crate::downstream::config;
use crate::downstream::edge::Asks;
use crate::downstream::edge::client_era::Who;
use crate::downstream::response::Label;
use crate::memory::StandingCharge;
use crate::memory::budget::Budget;
use crate::metrics;
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
        self.open(id.into(), who, asks, false)
    }

    /// Opens a session of another run again, which its id says all of; and whether this request is the first of it. `None` where it has
    /// ended, is somebody else's, or was none of ours.
    pub(crate) fn revive(&self, id: &str, who: &Who) -> Result<Option<(Arc<Session>, bool)>, Full> {
        let Some((asks, is_of_this_folder)) = self.ids.read(id, &who.principal) else { return Ok(None) };
        let _alone = self.reviving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = self.find(id, &who.principal) {
            return Ok(Some((session, false)));
        }
        if self.ended.has(sealed_id::short(id)) {
            return Ok(None);
        }
        tracing::debug!(client = &*asks.client, "session of an earlier run revived");
        let session = self.open(id.into(), who.clone(), asks, true)?;
        if let Some(tenant) = session.caller.tenant.as_ref().filter(|_| !is_of_this_folder) {
            tenant.comes_from_elsewhere();
        }
        session.reach(Stage::Initialized);
        Ok(Some((session, true)))
    }

    fn open(&self, id: Arc<str>, who: Who, asks: Asks, is_revived: bool) -> Result<Arc<Session>, Full> {
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
        let session = match is_revived {
            true => Session::revived(id, who, asks, terms, &self.budget),
            false => Session::new(id, who, asks, terms, &self.budget),
        };
        let session = Arc::new(session.counted(kept));
        self.table.insert(session.short.clone(), session.clone());
        self.show();
        // What it was opened with may have been revoked since it was looked at: who revokes looks at the table afterwards.
        if session.revocation.is_revoked() {
            self.revoke(&session);
        }
        Ok(session)
    }

    /// The session of an id, where it is the principal's own. Whose it is otherwise cannot be told from the answer.
    pub(crate) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.table.get(sealed_id::short(id))?;
        (*session.id == *id && session.caller.principal == *principal).then(|| session.clone())
    }

    /// So many of them at most, for whoever looks.
    pub(crate) fn some(&self, most: usize) -> Vec<Arc<Session>> {
        self.table.iter().take(most).map(|session| session.clone()).collect()
    }

    /// Ends a session, of which this is the short id.
    pub(crate) fn remove(&self, short: &str) {
        if let Some((_, session)) = self.table.remove(short) {
            self.shares().leave(&session.caller.share());
            self.ended.note(&session);
            self.show();
            session.end();
        }
    }

    /// Ends a session for its client, also for the runs to come.
    pub(crate) fn end(&self, session: &Session) {
        self.remove(&session.short);
        self.ended.keep(session);
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
            let those = self.table.iter().filter(|one| room.is_of(&one.caller.share()));
            room.choose(those.map(|one| one.clone()))
        });
        let (_, session) = self.table.remove(&id?)?;
        shares.leave(&session.caller.share());
        self.ended.note(&session);
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
mod tests {
    use super::*;
    use crate::protocol::frame::message::Id;
    use crate::protocol::revision::Revision;
    use bytes::Bytes;

    fn sessions(max: usize, budget: Budget) -> Sessions {
        let session = config::Session { max, ..config::Session::default() };
        Sessions::new(&config::Config { session, ..config::Config::default() }, Label(false), budget)
    }

    fn table(max: usize) -> Sessions {
        sessions(max, Budget::default())
    }

    fn open(table: &Sessions, who: &str) -> Result<Arc<Session>, Full> {
        let who = Who::of(Principal::named(who));
        let capabilities = Bytes::from_static(b"{}");
        table.create(who, Asks { revision: Revision::V2025_11_25, is_dialect: false, capabilities, client: "".into() })
    }

    fn used(table: &Sessions, who: &str) -> Arc<Session> {
        let session = open(table, who).unwrap();
        session.reach(Stage::Used);
        session
    }

    fn is_there(table: &Sessions, session: &Session) -> bool {
        table.table.contains_key(&session.short)
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_that_were_never_used_make_room_at_once_the_least_far_first() {
        let table = table(4);
        let (kept, initialized) = (used(&table, "a"), open(&table, "a").unwrap());
        let (begun, later) = (open(&table, "a").unwrap(), open(&table, "a").unwrap());
        initialized.reach(Stage::Initialized);
        let _streaming = later.attach();
        let fifth = used(&table, "a");
        assert!(!is_there(&table, &begun), "it had said nothing");
        assert!(is_there(&table, &initialized));
        let sixth = used(&table, "a");
        assert!(!is_there(&table, &initialized), "it had called nothing");
        assert!([&kept, &later, &fifth, &sixth].iter().all(|one| is_there(&table, one)));
        let full = open(&table, "a").err().unwrap();
        assert_eq!((full.own, full.all), (4, 4), "each is of use, and none idle for long");
        tokio::time::advance(Duration::from_secs(61)).await;
        fifth.touch();
        sixth.touch();
        used(&table, "a");
        assert!(!is_there(&table, &kept), "it was idle the longest");
    }

    #[tokio::test(start_paused = true)]
    async fn what_sessions_keep_is_counted_and_ones_own_make_room() {
        let budget = Budget::new(4 << 20);
        let table = sessions(10_000, budget.clone());
        let declaring = |who: &str, stage| {
            let who = Who::of(Principal::named(who));
            let capabilities = Bytes::from(vec![b' '; 6 * 1024]);
            let asks = Asks { revision: Revision::V2025_11_25, is_dialect: false, capabilities, client: "".into() };
            table.create(who, asks).map(|session| session.reach(stage))
        };
        let flood: Vec<_> = (0..200).map(|_| declaring("loud", Stage::Begun)).collect();
        assert!(flood.iter().all(Result::is_ok), "those that were never used make room");
        assert_eq!((table.shares().all(), budget.used()), (64, 512 << 10), "an eighth of the memory");
        assert!(declaring("quiet", Stage::Used).is_ok());
        assert_eq!(table.shares().all(), 65);
        (0..64).for_each(|_| drop(declaring("loud", Stage::Used)));
        let full = declaring("loud", Stage::Used).err().unwrap();
        assert!(full.is_of_memory && full.own < 65);
        let ids: Vec<_> = table.table.iter().map(|one| one.short.clone()).collect();
        ids.iter().for_each(|id| table.remove(id));
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn many_clients_with_their_parts_do_not_shut_out_another_one() {
        let table = sessions(10_000, Budget::new(4 << 20));
        let declaring = |who: String| {
            let who = Who::of(Principal::named(&who));
            let capabilities = Bytes::from(vec![b' '; 6 * 1024]);
            let asks = Asks { revision: Revision::V2025_11_25, is_dialect: false, capabilities, client: "".into() };
            table.create(who, asks).map(|session| session.reach(Stage::Used))
        };
        // Each takes half of what is left: nothing is, after some.
        for flooder in 0..40 {
            while table.shares().of(&Share::Principal(Principal::named(&format!("loud{flooder}")))) < 64
                && declaring(format!("loud{flooder}")).is_ok()
            {}
        }
        let all = table.shares().all();
        assert!((126..=128).contains(&all), "all of the part: {all}");
        for session in 0..3 {
            assert!(declaring("quiet".to_owned()).is_ok(), "session {session}");
        }
        assert!(table.shares().all() <= 128);
    }

    #[tokio::test(start_paused = true)]
    async fn one_shares_flood_takes_nothing_of_anothers() {
        let table = table(6);
        let quiet = used(&table, "quiet");
        tokio::time::advance(Duration::from_secs(600)).await;
        let flood: Vec<_> = (0..50).map(|_| open(&table, "loud").map(|one| one.reach(Stage::Used))).collect();
        assert!(is_there(&table, &quiet), "however long it is idle");
        assert_eq!(flood.iter().filter(|one| one.is_ok()).count(), 5, "used a moment ago, its own keep their places");
        let mut others: Vec<_> = (0..2).map(|_| used(&table, "other")).collect();
        assert_eq!(table.shares().of(&Share::Principal(Principal::named("loud"))), 3, "the loud one makes room");
        // Until it is no better off than who asks.
        others.push(used(&table, "quiet"));
        assert_eq!(table.shares().of(&Share::Principal(Principal::named("loud"))), 2);
        quiet.touch();
        assert!(open(&table, "quiet").is_err(), "it would have more than who makes room");
        assert!(others.iter().all(|one| is_there(&table, one)) && is_there(&table, &quiet));
    }

    #[tokio::test(start_paused = true)]
    async fn streams_do_not_save_a_flood_and_calls_do() {
        let table = table(4);
        let flood: Vec<_> = (0..4).map(|_| used(&table, "loud")).collect();
        let _streams: Vec<_> = flood.iter().map(|one| one.attach()).collect();
        let at_work = flood[3].open.enter(&Id::from_raw(Bytes::from_static(b"1")).unwrap()).unwrap();
        used(&table, "b");
        assert!(!is_there(&table, &flood[2]) && is_there(&table, &flood[3]), "the newest without a call");
        assert!(flood[2].caller.tenant.as_ref().unwrap().has_ended());
        drop(at_work);
        assert_eq!(table.shares().all(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_of_another_run_is_revived_once_within_the_limits_and_not_after_its_end() {
        let key = config::SigningKey::new("k".repeat(32)).unwrap();
        let run = |max| {
            let session = config::Session { max, signing_keys: vec![key.clone()], ..config::Session::default() };
            let config = config::Config { session, ..config::Config::default() };
            Sessions::new(&config, Label(false), Budget::default())
        };
        let who = |name: &str| Who::of(Principal::named(name));
        let (before, after) = (run(10), run(2));
        let ids: Vec<_> = (0..3).map(|_| used(&before, "a").id.clone()).collect();
        assert!(before.revive(&ids[0], &who("a")).unwrap().is_none(), "it is there");
        let (first, is_first) = after.revive(&ids[0], &who("a")).unwrap().unwrap();
        let (again, is_again_first) = after.revive(&ids[0], &who("a")).unwrap().unwrap();
        assert!(is_first && !is_again_first && Arc::ptr_eq(&first, &again));
        assert!(after.find(&ids[0], &Principal::named("a")).is_some() && first.has_reached(Stage::Initialized));
        assert!(
            after.revive(&ids[1], &who("b")).unwrap().is_none() && after.find(&ids[0], &who("b").principal).is_none()
        );
        let (second, _) = after.revive(&ids[1], &who("a")).unwrap().unwrap();
        [&first, &second].into_iter().for_each(|one| one.reach(Stage::Used));
        let full = after.revive(&ids[2], &who("a")).err().unwrap();
        assert_eq!((full.own, full.all), (2, 2));
        after.end(&first);
        assert!(after.revive(&ids[0], &who("a")).unwrap().is_none(), "it has ended");
        assert!(after.revive(&ids[2], &who("a")).unwrap().is_some());
        before.remove(sealed_id::short(&ids[0]));
        assert!(before.revive(&ids[0], &who("a")).unwrap().is_none());
    }
}

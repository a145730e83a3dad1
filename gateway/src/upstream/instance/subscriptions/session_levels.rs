//! How verbose upstreams are to be for sessions, by who would hear it.

use crate::call::LogLevel;
use crate::call::caller::Principal;
use crate::upstream::status::notice::Audience;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The levels of log messages that sessions want, by whom messages that belong to no call are for.
#[derive(Debug, Default)]
pub struct SessionLevels {
    wanted: Mutex<SessionWants>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct SessionWants {
    /// Several principals call: what an upstream that all share tells outside of calls goes to none of them.
    is_mixed: bool,
    all: Counts,
    principals: HashMap<Principal, Counts>,
    sessions: HashMap<Arc<str>, Counts>,
}

/// How many want each level.
#[derive(Debug, Default)]
struct Counts([usize; LogLevel::COUNT]);

impl SessionLevels {
    /// A session of a principal wants this level.
    pub fn hold(&self, principal: &Principal, session: &Arc<str>, level: LogLevel) {
        let mut wanted = self.lock();
        wanted.all.0[level as usize] += 1;
        wanted.principals.entry(principal.clone()).or_default().0[level as usize] += 1;
        wanted.sessions.entry(session.clone()).or_default().0[level as usize] += 1;
        drop(wanted);
        self.changes.send_replace(());
    }

    /// It no longer does.
    pub fn release(&self, principal: &Principal, session: &Arc<str>, level: LogLevel) {
        let mut wanted = self.lock();
        wanted.all.0[level as usize] -= 1;
        release(&mut wanted.principals, principal, level);
        release(&mut wanted.sessions, session, level);
        drop(wanted);
        self.changes.send_replace(());
    }

    /// From now on several principals call.
    pub fn mix(&self) {
        self.lock().is_mixed = true;
        self.changes.send_replace(());
    }

    /// The most verbose level that matters to what is told for these.
    pub fn of(&self, whose: &Audience) -> Option<LogLevel> {
        let wanted = self.lock();
        match whose {
            Audience::Everyone | Audience::Others(_) if wanted.is_mixed => None,
            Audience::Everyone | Audience::Others(_) => wanted.all.most(),
            Audience::Session(id) => wanted.sessions.get(id)?.most(),
            Audience::Principal(principal) => wanted.principals.get(principal)?.most(),
        }
    }

    /// Tells when they may be others.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, SessionWants> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn most(&self) -> Option<LogLevel> {
        LogLevel::all().find(|level| self.0[*level as usize] > 0)
    }
}

fn release<K: Eq + Hash>(all: &mut HashMap<K, Counts>, key: &K, level: LogLevel) {
    if let Some(counts) = all.get_mut(key) {
        counts.0[level as usize] -= 1;
        if counts.most().is_none() {
            all.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principals_level_is_not_anothers() {
        let [ann, bob] = ["ann", "bob"].map(Principal::named);
        let levels = SessionLevels::default();
        levels.hold(&ann, &"1".into(), LogLevel::Debug);
        levels.hold(&ann, &"2".into(), LogLevel::Alert);
        assert_eq!(levels.of(&Audience::Everyone), Some(LogLevel::Debug));
        levels.mix();
        levels.hold(&bob, &"3".into(), LogLevel::Error);
        let of = |whose| levels.of(&whose);
        assert_eq!(of(Audience::Everyone), None, "nobody would hear it");
        let both = [&ann, &bob].map(|one| of(Audience::Principal(one.clone())));
        assert_eq!(both, [Some(LogLevel::Debug), Some(LogLevel::Error)]);
        assert_eq!(of(Audience::Session("2".into())), Some(LogLevel::Alert));
        levels.release(&ann, &"1".into(), LogLevel::Debug);
        assert_eq!(of(Audience::Principal(ann)), Some(LogLevel::Alert));
        assert_eq!(of(Audience::Session("1".into())), None);
        assert_eq!(levels.lock().sessions.len(), 2);
    }
}

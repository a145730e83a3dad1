//! How verbose upstreams are to be for sessions, by who would hear it.

use crate::call::LogLevel;
use crate::call::caller::{Grants, Principal};
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
    principals: HashMap<Principal, Holders>,
    sessions: HashMap<Arc<str>, Holders>,
}

/// How many want each level, by what they may see: mostly all of one principal have the same rights.
#[derive(Debug, Default)]
struct Holders(Vec<(Grants, Counts)>);

/// How many want each level.
#[derive(Debug, Default)]
struct Counts([usize; LogLevel::COUNT]);

impl SessionLevels {
    /// A session of a principal wants this level of what it may see.
    pub fn hold(&self, (principal, grants): (&Principal, &Grants), session: &Arc<str>, level: LogLevel) {
        let mut wanted = self.lock();
        wanted.principals.entry(principal.clone()).or_default().hold(grants, level);
        wanted.sessions.entry(session.clone()).or_default().hold(grants, level);
        drop(wanted);
        self.look_again();
    }

    /// It no longer does.
    pub fn release(&self, (principal, grants): (&Principal, &Grants), session: &Arc<str>, level: LogLevel) {
        let mut wanted = self.lock();
        release(&mut wanted.principals, principal, (grants, level));
        release(&mut wanted.sessions, session, (grants, level));
        drop(wanted);
        self.look_again();
    }

    /// What somebody may see has changed.
    pub fn look_again(&self) {
        self.changes.send_replace(());
    }

    /// From now on several principals call.
    pub fn mix(&self) {
        self.lock().is_mixed = true;
        self.look_again();
    }

    /// The most verbose level that matters to what an upstream tells for these: of those who may see it.
    pub fn of(&self, whose: &Audience, upstream: &str) -> Option<LogLevel> {
        let wanted = self.lock();
        match whose {
            Audience::Everyone | Audience::Others(_) if wanted.is_mixed => None,
            // Mostly there is one.
            Audience::Everyone | Audience::Others(_) => {
                wanted.principals.values().filter_map(|one| one.most(upstream)).min()
            }
            Audience::Session(id) => wanted.sessions.get(id)?.most(upstream),
            Audience::Principal(principal) => wanted.principals.get(principal)?.most(upstream),
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

impl Holders {
    fn hold(&mut self, grants: &Grants, level: LogLevel) {
        let at = self.0.iter().position(|(known, _)| known.is(grants)).unwrap_or_else(|| {
            self.0.push((grants.clone(), Counts::default()));
            self.0.len() - 1
        });
        self.0[at].1.0[level as usize] += 1;
    }

    fn release(&mut self, grants: &Grants, level: LogLevel) {
        if let Some((_, counts)) = self.0.iter_mut().find(|(known, _)| known.is(grants)) {
            counts.0[level as usize] -= 1;
        }
        self.0.retain(|(_, counts)| counts.most().is_some());
    }

    fn most(&self, upstream: &str) -> Option<LogLevel> {
        let seeing = self.0.iter().filter(|(grants, _)| grants.sees(upstream));
        seeing.filter_map(|(_, counts)| counts.most()).min()
    }
}

impl Counts {
    fn most(&self) -> Option<LogLevel> {
        LogLevel::all().find(|level| self.0[*level as usize] > 0)
    }
}

fn release<K: Eq + Hash>(all: &mut HashMap<K, Holders>, key: &K, (grants, level): (&Grants, LogLevel)) {
    if let Some(holders) = all.get_mut(key) {
        holders.release(grants, level);
        if holders.0.is_empty() {
            all.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::rights::{Rights, Role};
    use crate::protocol::value::Glob;

    #[test]
    fn one_principals_level_is_not_anothers() {
        let [ann, bob] = ["ann", "bob"].map(Principal::named);
        let (levels, all) = (SessionLevels::default(), Grants::all());
        levels.hold((&ann, &all), &"1".into(), LogLevel::Debug);
        levels.hold((&ann, &all), &"2".into(), LogLevel::Alert);
        assert_eq!(levels.of(&Audience::Everyone, "a"), Some(LogLevel::Debug));
        levels.mix();
        levels.hold((&bob, &all), &"3".into(), LogLevel::Error);
        let of = |whose| levels.of(&whose, "a");
        assert_eq!(of(Audience::Everyone), None, "nobody would hear it");
        let both = [&ann, &bob].map(|one| of(Audience::Principal(one.clone())));
        assert_eq!(both, [Some(LogLevel::Debug), Some(LogLevel::Error)]);
        assert_eq!(of(Audience::Session("2".into())), Some(LogLevel::Alert));
        levels.release((&ann, &all), &"1".into(), LogLevel::Debug);
        assert_eq!(of(Audience::Principal(ann)), Some(LogLevel::Alert));
        assert_eq!(of(Audience::Session("1".into())), None);
        assert_eq!(levels.lock().sessions.len(), 2);
    }

    #[test]
    fn an_upstream_is_asked_for_what_those_want_who_may_see_it() {
        let ann = Principal::named("ann");
        let role = |upstream: &str| {
            let upstreams = vec![Glob::new(upstream)];
            let (name, tools, resources, prompts) = ("r".into(), None, None, None);
            Some(Arc::new(Rights::of([Arc::new(Role {
                name,
                upstreams,
                tools,
                read_only: false,
                resources,
                prompts,
            })])))
        };
        let (levels, [some, other]) = (SessionLevels::default(), ["a", "b"].map(|name| Grants::of(role(name))));
        levels.hold((&ann, &some), &"1".into(), LogLevel::Debug);
        levels.hold((&ann, &other), &"2".into(), LogLevel::Error);
        let of = |whose: Audience| ["a", "b"].map(|upstream| levels.of(&whose, upstream));
        for whose in [Audience::Everyone, Audience::Principal(ann.clone())] {
            assert_eq!(of(whose), [Some(LogLevel::Debug), Some(LogLevel::Error)]);
        }
        assert_eq!(of(Audience::Session("1".into())), [Some(LogLevel::Debug), None]);
        let mut changes = levels.changes();
        some.set(role("b"));
        levels.look_again();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        assert_eq!(of(Audience::Everyone), [None, Some(LogLevel::Debug)]);
        levels.release((&ann, &some), &"1".into(), LogLevel::Debug);
        assert_eq!(of(Audience::Everyone), [None, Some(LogLevel::Error)]);
    }
}

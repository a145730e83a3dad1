//! How verbose a handshake upstream has to be: as verbose as anyone wants just now, and no longer than that.

use super::peer::Peer;
use crate::call::LogLevel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// So long nobody has wanted more before an upstream is told to say less: a client that asks on every call costs no more.
const QUIET_AFTER: Duration = Duration::from_secs(5);
/// What an upstream is told once nobody says any more what is wanted.
pub(crate) const ORDINARY: LogLevel = LogLevel::Info;

/// The levels that are wanted of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    wanted: Mutex<Wanted>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Wanted {
    /// By the sessions.
    sessions: Option<LogLevel>,
    /// By how many open calls, for each level.
    calls: [usize; LogLevel::COUNT],
}

impl Levels {
    /// The most verbose level that a session wants.
    pub(crate) fn want(&self, level: Option<LogLevel>) {
        self.change(|wanted| wanted.sessions = level);
    }

    /// That level.
    pub(crate) fn of_sessions(&self) -> Option<LogLevel> {
        self.lock().sessions
    }

    /// An open call wants this level.
    pub(crate) fn hold(&self, level: LogLevel) {
        self.change(|wanted| wanted.calls[level as usize] += 1);
    }

    /// It has ended.
    pub(crate) fn release(&self, level: LogLevel) {
        self.change(|wanted| wanted.calls[level as usize] -= 1);
    }

    /// The most verbose level that anybody wants now.
    pub(crate) fn wanted(&self) -> Option<LogLevel> {
        self.lock().most()
    }

    fn change(&self, change: impl FnOnce(&mut Wanted)) {
        let mut wanted = self.lock();
        let before = wanted.most();
        change(&mut wanted);
        if wanted.most() != before {
            drop(wanted);
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wanted {
    fn most(&self) -> Option<LogLevel> {
        let of_calls = LogLevel::all().find(|level| self.calls[*level as usize] > 0);
        self.sessions.into_iter().chain(of_calls).min()
    }
}

/// Keeps a peer told: more at once, less when that was all that was wanted for a while.
pub(crate) async fn keep(levels: &Levels, peer: &Peer) {
    loop {
        let (wanted, told) = (levels.wanted(), peer.level());
        match (wanted, told) {
            (Some(wanted), told) if told.is_none_or(|told| wanted < told) => peer.set_level(wanted),
            (None, None) => {}
            (wanted, told) => {
                let less = wanted.unwrap_or(ORDINARY);
                if told != Some(less) {
                    tokio::select! {
                        () = sleep(QUIET_AFTER) => peer.set_level(less),
                        () = levels.changed.notified() => {}
                    }
                    continue;
                }
            }
        }
        levels.changed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_verbose_level_wins_and_goes_with_who_wanted_it() {
        let levels = Levels::default();
        assert_eq!(levels.wanted(), None);
        levels.want(Some(LogLevel::Error));
        levels.hold(LogLevel::Debug);
        levels.hold(LogLevel::Debug);
        levels.hold(LogLevel::Warning);
        levels.release(LogLevel::Debug);
        assert_eq!(levels.wanted(), Some(LogLevel::Debug));
        levels.release(LogLevel::Debug);
        assert_eq!(levels.wanted(), Some(LogLevel::Warning));
        levels.release(LogLevel::Warning);
        assert_eq!(levels.wanted(), Some(LogLevel::Error));
        levels.want(None);
        assert_eq!(levels.wanted(), None);
    }
}

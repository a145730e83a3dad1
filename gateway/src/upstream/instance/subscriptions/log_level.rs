//! How verbose a handshake upstream has to be: as verbose as anyone wants just now, and no longer than that.

use crate::call::LogLevel;
use crate::peer::Peer;
use crate::peer::profile::ORDINARY;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// So long nobody has wanted more before an upstream is told to say less: a client that asks on every call costs no more.
const QUIET_AFTER: Duration = Duration::from_secs(5);

/// The levels that are wanted of one upstream.
#[derive(Debug, Default)]
pub(crate) struct LogLevels {
    wanted: Mutex<WantedLevels>,
    /// The most verbose of them, for whoever keeps a session told.
    most: watch::Sender<Option<LogLevel>>,
}

#[derive(Debug, Default)]
struct WantedLevels {
    /// By the sessions.
    sessions: Option<LogLevel>,
    /// By how many open calls, for each level.
    calls: [usize; LogLevel::COUNT],
}

impl LogLevels {
    /// The most verbose level that a session wants.
    pub(crate) fn want(&self, level: Option<LogLevel>) {
        self.change(|wanted| wanted.sessions = level);
    }

    /// An open call wants this level.
    pub(crate) fn hold(&self, level: LogLevel) {
        self.change(|wanted| wanted.calls[level as usize] += 1);
    }

    /// It has ended.
    pub(crate) fn release(&self, level: LogLevel) {
        self.change(|wanted| wanted.calls[level as usize] -= 1);
    }

    /// Resolves when anybody wants any.
    pub(crate) async fn begun(&self) {
        // The sender lies here.
        let _ = self.most.subscribe().wait_for(Option::is_some).await;
    }

    /// The most verbose level that anybody wants now.
    #[cfg(test)]
    pub(crate) fn wanted(&self) -> Option<LogLevel> {
        self.lock().most()
    }

    fn change(&self, change: impl FnOnce(&mut WantedLevels)) {
        let mut wanted = self.lock();
        change(&mut wanted);
        let most = wanted.most();
        self.most.send_if_modified(|told| std::mem::replace(told, most) != most);
    }

    fn lock(&self) -> MutexGuard<'_, WantedLevels> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WantedLevels {
    fn most(&self) -> Option<LogLevel> {
        let of_calls = LogLevel::all().find(|level| self.calls[*level as usize] > 0);
        self.sessions.into_iter().chain(of_calls).min()
    }
}

/// Keeps one session of an upstream told: more at once, less when that was all that was wanted for a while.
pub(crate) async fn keep(levels: &LogLevels, peer: &Peer) {
    let mut most = levels.most.subscribe();
    loop {
        let (wanted, told) = (*most.borrow_and_update(), peer.level());
        match (wanted, told) {
            (Some(wanted), told) if told.is_none_or(|told| wanted < told) => peer.set_level(wanted),
            (None, None) => {}
            (wanted, told) => {
                let less = wanted.unwrap_or(ORDINARY);
                if told != Some(less) {
                    tokio::select! {
                        () = sleep(QUIET_AFTER) => peer.set_level(less),
                        _ = most.changed() => {}
                    }
                    continue;
                }
            }
        }
        if most.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_verbose_level_wins_and_goes_with_who_wanted_it() {
        let levels = LogLevels::default();
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

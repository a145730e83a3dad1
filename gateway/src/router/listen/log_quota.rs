//! How much of what upstreams say is written to our own log: a flood of one must not bury the rest.

use crate::call::caller::Principal;
use crate::call::{Call, LogLevel};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many messages of one upstream are written in a [`WINDOW`].
const MESSAGES: u32 = 20;
const WINDOW: Duration = Duration::from_secs(10);

/// What each upstream has said of late. There are no more entries than upstreams.
#[derive(Default)]
pub(crate) struct LogQuota(Mutex<HashMap<Arc<str>, Said>>);

/// Whether all who ever called are one principal: only then may it hear what belongs to no call.
#[derive(Default)]
pub(super) struct Crowd {
    pub(super) first: OnceLock<Principal>,
    pub(super) is_mixed: AtomicBool,
}

struct Said {
    since: Instant,
    written: u32,
    kept_back: u64,
}

impl LogQuota {
    /// Whether another message may be written; if so, how many were not since the last window began.
    pub(crate) fn take(&self, upstream: &Arc<str>) -> Option<u64> {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said = all.entry(upstream.clone()).or_insert(Said { since: now, written: 0, kept_back: 0 });
        if now.duration_since(said.since) >= WINDOW {
            (said.since, said.written) = (now, 0);
        }
        if said.written >= MESSAGES {
            said.kept_back += 1;
            return None;
        }
        said.written += 1;
        Some(std::mem::take(&mut said.kept_back))
    }
}

/// From which level on a listen call hears log messages: a session's call for the lists alone, from where it has named, or the ordinary.
pub(super) fn heard_by(call: &Call, is_of_lists: bool) -> Option<LogLevel> {
    let level = call.log_level.or(is_of_lists.then_some(LogLevel::ORDINARY));
    level.filter(|_| call.caller.tenant.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_cut_and_counted_and_no_other_upstream_suffers() {
        let (quota, loud, calm) = (LogQuota::default(), "loud".into(), "calm".into());
        let written = (0..1000).filter(|_| quota.take(&loud).is_some()).count();
        assert_eq!((written, quota.take(&calm)), (20, Some(0)));
        tokio::time::advance(WINDOW).await;
        assert_eq!((quota.take(&loud), quota.take(&loud)), (Some(980), Some(0)));
    }
}

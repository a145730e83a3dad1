//! The streams that a session's client can come back for.

use super::replay::{Reader, Replay};
use crate::memory::budget::Budget;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a stream that has ended is kept.
const KEPT_AFTER_END: Duration = Duration::from_secs(300);
/// The most streams that are kept after their end.
const ENDED_MAX: usize = 64;
/// How many times the bytes of one stream all streams that have ended may keep together.
const ENDED_SHARE: usize = 2;

/// A session's streams by their numbers.
#[derive(Debug)]
pub(crate) struct Streams {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    streams: BTreeMap<u64, Arc<Replay>>,
    newest: u64,
    closed: bool,
}

impl Streams {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, inner: Mutex::default() }
    }

    /// Opens a stream; number 0 is never given: it means the notices.
    pub(crate) fn open(&self, budget: &Budget) -> Arc<Replay> {
        let mut inner = self.lock();
        inner.newest += 1;
        let replay = Replay::new(inner.newest, self.bytes_max, budget);
        if inner.closed {
            replay.end();
        } else {
            inner.prune(self.bytes_max.saturating_mul(ENDED_SHARE));
            inner.streams.insert(replay.number, replay.clone());
        }
        replay
    }

    /// Reads a stream on from an event that was seen; `None` where the stream or what follows is not there.
    pub(crate) fn resume(&self, (number, after): (u64, u64)) -> Option<Reader> {
        let replay = self.lock().streams.get(&number).cloned();
        replay?.attach(after)
    }

    /// Forgets what nobody came back for.
    pub(crate) fn expire(&self) {
        self.lock().streams.retain(|_, replay| replay.ended().is_none_or(|ago| ago < KEPT_AFTER_END));
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let streams = std::mem::take(&mut inner.streams);
        drop(inner);
        streams.values().for_each(|replay| replay.end());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Forgets the oldest of those that have ended, where they are too many or keep too much.
    fn prune(&mut self, bytes_max: usize) {
        let ended = self.streams.values().filter(|replay| replay.ended().is_some());
        let ended: Vec<_> = ended.map(|replay| (replay.number, replay.bytes())).collect();
        let (mut count, mut bytes) = (ended.len(), ended.iter().map(|(_, bytes)| bytes).sum::<usize>());
        for (number, held) in ended {
            if count < ENDED_MAX && bytes <= bytes_max {
                break;
            }
            self.streams.remove(&number);
            count -= 1;
            bytes -= held;
        }
    }
}

/// The event id of a stream's event.
pub(crate) fn event_id(number: u64, event: u64) -> String {
    format!("{number}-{event}")
}

/// What an event id means, where it is one of ours.
pub(crate) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (number, event) = id.split_once('-')?;
    let is_plain = |digits: &str| digits.len() <= 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_plain(number) && is_plain(event)).then(|| Some((number.parse().ok()?, event.parse().ok()?)))?
}

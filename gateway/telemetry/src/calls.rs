//! The calls under way, and the last ones that ended: what each was about and how long it took, never what it was given or gave.
//!
//! A call costs two short locks of one part of the table and no memory of its own; what is kept has a bound.

use crate::call::caller::Principal;
use crate::protocol::value::{Key, Object};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Calls are kept in so many parts, so that few wait for one another.
const PARTS: usize = 16;
/// So many calls under way are shown of each part; further ones are not.
const OPEN_MAX: usize = 256;
/// So many of those that ended are kept of each part.
const ENDED_MAX: usize = 16;
/// So much of a name is kept.
const NAME_BYTES_MAX: usize = 64;

/// The table. Cheap to clone.
#[derive(Clone, Default)]
pub struct Calls(Arc<Table>);

struct Table {
    /// When it was made: what the ends of calls are numbered by.
    epoch: Instant,
    parts: [Mutex<Part>; PARTS],
    next: AtomicUsize,
}

impl Default for Table {
    fn default() -> Self {
        Self { epoch: Instant::now(), parts: Default::default(), next: AtomicUsize::new(0) }
    }
}

#[derive(Default)]
struct Part {
    open: Vec<Option<About>>,
    free: Vec<u32>,
    /// The oldest first.
    ended: VecDeque<(About, End)>,
}

/// What a call is about.
#[derive(Clone)]
pub(super) struct About {
    pub(super) began: Instant,
    pub(super) method: &'static str,
    pub(super) principal: Principal,
    /// The public name of a tool or a prompt, as the client wrote it.
    pub(super) name: Name,
    /// Whose it is, where that was known at once.
    pub(super) upstream: Option<Arc<str>>,
}

/// How a call ended.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) outcome: &'static str,
    pub(super) duration: Duration,
    pub(super) upstream_time: Duration,
    pub(super) queue_time: Duration,
    pub(super) at: Instant,
}

/// A name, without memory of its own; a longer one is cut.
#[derive(Clone, Copy)]
pub(super) struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    length: u8,
}

impl Default for Name {
    fn default() -> Self {
        Self { bytes: [0; NAME_BYTES_MAX], length: 0 }
    }
}

impl Name {
    /// The name in these parameters, where they have one.
    pub(super) fn of(params: &Object) -> Self {
        let raw = params.get(Key::Name).unwrap_or_default();
        let raw = raw.strip_prefix(b"\"").unwrap_or(raw);
        let raw = raw.strip_suffix(b"\"").unwrap_or(raw);
        let length = raw.len().min(NAME_BYTES_MAX);
        let mut bytes = [0; NAME_BYTES_MAX];
        bytes[..length].copy_from_slice(&raw[..length]);
        Self { bytes, length: length as u8 }
    }

    /// The name, as far as it is text.
    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes[..usize::from(self.length)])
    }
}

/// Where a call under way stands in the table, until it ends.
pub(super) struct Place {
    part: usize,
    /// `None` where there was no room.
    slot: Option<u32>,
}

/// How far the table has come: it differs once a call has begun or ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// When the last call ended, in microseconds since the table was made.
    pub ended: u64,
    /// When the last of those under way began.
    pub begun: u64,
    /// How many are under way.
    pub open: usize,
}

/// A call, for whoever looks.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Who made it; empty without tokens.
    pub principal: String,
    /// What was asked.
    pub method: &'static str,
    /// Whose it is.
    pub upstream: Option<Arc<str>>,
    /// The tool or prompt.
    pub name: String,
    /// How long it has been under way, or took.
    pub duration: Duration,
    /// How it ended; `None` while it is under way.
    pub end: Option<Ended>,
    /// When it ended, or else when it began, in microseconds since the table was made.
    pub at: u64,
}

/// How a call ended, for whoever looks.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// With what.
    pub outcome: &'static str,
    /// How long the upstream had it.
    pub upstream_time: Duration,
    /// How long it waited for its turn, or for the start of its upstream.
    pub queue_time: Duration,
    /// How long ago.
    pub ago: Duration,
}

impl Calls {
    /// A call has begun.
    pub(super) fn begin(&self, about: About) -> Place {
        let part = self.0.next.fetch_add(1, Ordering::Relaxed) % PARTS;
        let mut those = self.part(part);
        let slot = match those.free.pop() {
            Some(slot) => {
                those.open[slot as usize] = Some(about);
                Some(slot)
            }
            None if those.open.len() < OPEN_MAX => {
                those.open.push(Some(about));
                Some(those.open.len() as u32 - 1)
            }
            None => None,
        };
        Place { part, slot }
    }

    /// It has ended.
    pub(super) fn end(&self, place: &Place, end: End) {
        let Some(slot) = place.slot else { return };
        let mut those = self.part(place.part);
        let Some(about) = those.open[slot as usize].take() else { return };
        those.free.push(slot);
        let oldest = if those.ended.len() == ENDED_MAX { those.ended.pop_front() } else { None };
        those.ended.push_back((about, end));
        drop(those);
        // What it held is given back outside of the lock.
        drop(oldest);
    }

    /// The calls under way, the oldest first, and those that ended, the newest first.
    pub fn shown(&self) -> (Vec<Shown>, Vec<Shown>) {
        let (mut open, mut ended) = (Vec::new(), Vec::new());
        for part in 0..PARTS {
            let those = self.part(part);
            open.extend(those.open.iter().flatten().cloned());
            ended.extend(those.ended.iter().cloned());
        }
        open.sort_by_key(|about| about.began);
        ended.sort_by_key(|(_, end)| std::cmp::Reverse(end.at));
        let open = open.iter().map(|about| self.one(about, None)).collect();
        (open, ended.iter().map(|(about, end)| self.one(about, Some(end))).collect())
    }

    /// How far the table has come.
    pub fn mark(&self) -> Mark {
        let mut mark = Mark::default();
        for part in 0..PARTS {
            let those = self.part(part);
            let ended = those.ended.iter().map(|(_, end)| self.since_epoch(end.at));
            mark.ended = ended.fold(mark.ended, u64::max);
            let begun = those.open.iter().flatten().map(|about| self.since_epoch(about.began));
            mark.begun = begun.fold(mark.begun, u64::max);
            mark.open += those.open.len() - those.free.len();
        }
        mark
    }

    fn one(&self, about: &About, end: Option<&End>) -> Shown {
        let at = self.since_epoch(end.map_or(about.began, |end| end.at));
        Shown {
            principal: about.principal.name().to_owned(),
            method: about.method,
            upstream: about.upstream.clone(),
            name: about.name.text().into_owned(),
            duration: end.map_or_else(|| about.began.elapsed(), |end| end.duration),
            end: end.map(|end| {
                let End { outcome, upstream_time, queue_time, .. } = *end;
                Ended { outcome, upstream_time, queue_time, ago: end.at.elapsed() }
            }),
            at,
        }
    }

    fn since_epoch(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.0.epoch).as_micros()).unwrap_or(u64::MAX)
    }

    fn part(&self, part: usize) -> MutexGuard<'_, Part> {
        self.0.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> About {
        let params =
            Object::parse(format!("{{\"name\":\"{name}\",\"arguments\":{{\"a\":\"secret\"}}}}").into()).unwrap();
        About {
            began: Instant::now(),
            method: "tools/call",
            principal: Principal::of_token("ann"),
            name: Name::of(&params),
            upstream: Some("a".into()),
        }
    }

    fn end(outcome: &'static str) -> End {
        let [duration, upstream_time, queue_time] = [5, 3, 1].map(Duration::from_millis);
        End { outcome, duration, upstream_time, queue_time, at: Instant::now() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_shown_while_it_is_under_way_and_after_its_end() {
        let calls = Calls::default();
        let (first, second) = (calls.begin(about("a__x")), calls.begin(about("a__y")));
        tokio::time::advance(Duration::from_secs(2)).await;
        calls.end(&second, end("ok"));
        let (open, ended) = calls.shown();
        assert_eq!((open.len(), &*open[0].name, open[0].duration), (1, "a__x", Duration::from_secs(2)));
        assert!(open[0].end.is_none() && open[0].principal == "token:ann");
        assert_eq!((ended.len(), &*ended[0].name, ended[0].end.unwrap().outcome), (1, "a__y", "ok"));
        let before = calls.mark();
        assert_eq!((before.open, before.ended), (1, 2_000_000));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(calls.mark(), before, "nothing has happened");
        calls.end(&first, end("timeout"));
        assert_eq!((calls.mark().open, calls.mark().ended), (0, 3_000_000));
        let (open, ended) = calls.shown();
        assert_eq!((open.len(), ended.len(), ended[0].at), (0, 2, 3_000_000));
    }

    #[tokio::test]
    async fn the_table_has_a_bound_and_long_names_are_cut() {
        let calls = Calls::default();
        let long = "x".repeat(1000);
        let places: Vec<_> = (0..PARTS * OPEN_MAX + 50).map(|_| calls.begin(about(&long))).collect();
        let (open, _) = calls.shown();
        assert_eq!((open.len(), open[0].name.len()), (PARTS * OPEN_MAX, NAME_BYTES_MAX));
        places.iter().for_each(|place| calls.end(place, end("ok")));
        let (open, ended) = calls.shown();
        assert_eq!((open.len(), ended.len()), (0, PARTS * ENDED_MAX));
        assert!(calls.begin(about("again")).slot.is_some(), "there is room again");
    }
}

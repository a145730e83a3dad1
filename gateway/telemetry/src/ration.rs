//! How much of the log one upstream may take: what flaps or breaks the protocol again and again fills it for all others.
//!
//! So many lines a minute are written about each; the rest is counted, and as soon as there is room again a line tells how many
//! were left out and how the upstream stood at last. A part is kept for the lines that say how it fares: noise cannot hide that.

use super::lines::{Due, Lines};
use std::collections::{HashMap, VecDeque};
use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use trunkline_foundation::metrics;

const WINDOW: Duration = Duration::from_secs(60);
/// So many lines about one upstream within a window, with the one that tells of those that were left out.
const LINES: usize = 20;
/// So many of them may say how it fares.
const STATES: usize = LINES - 1;
/// So many may be of any other kind.
const OTHERS: usize = 12;
/// What a child writes, and what an upstream logs, has bounds of its own; who asks for a line a call gets all of them.
const APART: [&str; 4] = [metrics::CHILD_STDERR, metrics::UPSTREAM_LOG, metrics::LEFT_OUT, metrics::CALLS];

/// The books of all upstreams: there are no more than upstreams were ever named.
#[derive(Default)]
pub(super) struct Ration {
    books: Mutex<HashMap<String, Book>>,
    /// Who asks for more than the usual is given all of it.
    is_off: AtomicBool,
}

/// What was written about one upstream of late, and what was not.
#[derive(Default)]
struct Book {
    written: VecDeque<Instant>,
    left_out: u64,
    /// How it stood at last, where that was left out.
    last: Option<String>,
}

/// What was left out about one upstream.
#[derive(Debug, PartialEq, Eq)]
struct LeftOut {
    upstream: String,
    lines: u64,
    last: String,
}

impl Book {
    /// What left the window counts no more.
    fn pass(&mut self, now: Instant) {
        while self.written.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            self.written.pop_front();
        }
    }

    /// When there is room to tell what was left out.
    fn due(&self) -> Option<Instant> {
        let oldest = self.written.front().copied().filter(|_| self.left_out > 0);
        oldest.and_then(|oldest| oldest.checked_add(WINDOW))
    }
}

impl Ration {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Book>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It holds for a log with this filter, unless that shows more than the usual.
    pub(super) fn holds(&self, filter: &EnvFilter) {
        let is_usual = filter.max_level_hint().is_some_and(|most| most <= LevelFilter::INFO);
        self.is_off.store(!is_usual, Ordering::Relaxed);
    }

    /// Whether a line about this upstream may be written; if not it is counted, and what it says of how the upstream fares kept.
    fn take(&self, now: Instant, upstream: &str, state: Option<String>) -> bool {
        let mut books = self.lock();
        if !books.contains_key(upstream) {
            books.insert(upstream.to_owned(), Book::default());
        }
        let Some(book) = books.get_mut(upstream) else { return true };
        book.pass(now);
        let most = if state.is_some() { STATES } else { OTHERS };
        if book.written.len() < most {
            book.written.push_back(now);
            // What was left out before is out of date.
            book.last = book.last.take().filter(|_| state.is_none());
            return true;
        }
        book.left_out += 1;
        book.last = state.or(book.last.take());
        false
    }

    /// What there is room to tell of now; at the end, all of it.
    fn told(&self, now: Instant, is_end: bool) -> Vec<LeftOut> {
        let mut all = Vec::new();
        for (upstream, book) in self.lock().iter_mut() {
            if book.due().is_some_and(|due| is_end || due <= now) {
                book.pass(now);
                book.written.push_back(now);
                let lines = std::mem::take(&mut book.left_out);
                all.push(LeftOut { upstream: upstream.clone(), lines, last: book.last.take().unwrap_or_default() });
            }
        }
        all
    }

    fn tell(&self, is_end: bool) {
        for LeftOut { upstream, lines, last } in self.told(Instant::now(), is_end) {
            tracing::warn!(
                target: metrics::LEFT_OUT,
                upstream,
                lines,
                last,
                "log lines about the upstream suppressed"
            );
        }
    }

    /// At the end of the process, nothing remains untold.
    pub(super) fn end(&self) {
        self.tell(true);
    }
}

impl Due for Ration {
    fn next(&self) -> Option<Instant> {
        self.lock().values().filter_map(Book::due).min()
    }

    fn now(&self) {
        self.tell(false);
    }
}

/// The layer of the log that keeps to it.
pub(super) struct Rationed {
    pub(super) ration: Arc<Ration>,
    pub(super) lines: Lines,
}

impl<S: Subscriber> Layer<S> for Rationed {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if self.ration.is_off.load(Ordering::Relaxed)
            || APART.contains(&metadata.target())
            || *metadata.level() > Level::INFO
        {
            return true;
        }
        let mut about = About::default();
        event.record(&mut about);
        let Some(upstream) = about.upstream else { return true };
        let state = (metadata.target() == metrics::UPSTREAM_STATE).then_some(about.says);
        let may = self.ration.take(Instant::now(), &upstream, state);
        if !may {
            self.lines.look();
        }
        may
    }
}

/// Which upstream an event is about, and what it says.
#[derive(Default)]
struct About {
    upstream: Option<String>,
    says: String,
}

impl Visit for About {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // The message is such a value.
        if field.name() == "message" {
            self.says.insert_str(0, &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "upstream" => self.upstream = Some(value.to_owned()),
            "cause" if !value.is_empty() => drop(write!(self.says, ": {value}")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(says: &str) -> Option<String> {
        Some(says.to_owned())
    }

    fn left_out(lines: u64, last: &str) -> Vec<LeftOut> {
        vec![LeftOut { upstream: "u1".into(), lines, last: last.into() }]
    }

    #[test]
    fn noise_leaves_room_for_how_an_upstream_fares() {
        let (ration, now) = (Ration::default(), Instant::now());
        let noise = (0..100).filter(|_| ration.take(now, "u1", None)).count();
        let states = (0..100).filter(|_| ration.take(now, "u1", state("failed"))).count();
        assert_eq!((noise, states), (12, 7));
        assert!(ration.take(now, "u2", None), "another upstream has a ration of its own");
    }

    #[test]
    fn what_was_left_out_is_told_as_soon_as_there_is_room_and_the_last_state_with_it() {
        let (ration, begun) = (Ration::default(), Instant::now());
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let written = (0..30).filter(|second| ration.take(at(*second), "u1", state("ready"))).count();
        assert_eq!(written, 19);
        assert!(!ration.take(at(30), "u1", state("failed: it exited")) && !ration.take(at(31), "u1", None));
        assert_eq!((ration.next(), ration.told(at(59), false)), (Some(at(60)), vec![]));
        assert_eq!(ration.told(at(60), false), left_out(13, "failed: it exited"));
        assert_eq!((ration.next(), ration.told(at(61), false)), (None, vec![]));
    }

    #[test]
    fn no_minute_has_more_lines_than_there_may_be_and_none_is_lost_from_the_count() {
        let (ration, begun) = (Ration::default(), Instant::now());
        let (mut written, mut counted, mut all) = (Vec::new(), 0, 0);
        for tick in 0..6_000 {
            let now = begun + Duration::from_millis(100) * tick;
            all += 1;
            if ration.take(now, "u1", (tick % 3 == 0).then(String::new)) {
                written.push(now);
            }
            for told in ration.told(now, false) {
                written.push(now);
                counted += told.lines;
                all += 1;
            }
        }
        counted += ration.told(begun, true).iter().map(|told| told.lines).sum::<u64>();
        let busiest =
            (0..written.len()).map(|first| written[first..].partition_point(|at| *at < written[first] + WINDOW));
        assert!(busiest.max().is_some_and(|most| most > OTHERS && most <= LINES));
        assert_eq!(written.len() as u64 + counted, all);
    }

    #[test]
    fn a_state_that_is_written_makes_an_older_one_that_was_not_out_of_date() {
        let (ration, begun) = (Ration::default(), Instant::now());
        let written = (0..40).filter(|_| ration.take(begun, "u1", state("failed"))).count();
        let later = begun + WINDOW;
        assert!(ration.take(later, "u1", state("ready")));
        assert_eq!((written, ration.told(later + WINDOW, false)), (19, left_out(21, "")));
    }
}

//! What is logged of the stderr of an upstream's children.

use super::super::stderr::{StderrTail, drain};
use super::*;
use crate::runtime::Tasks;
use std::fmt::Debug;
use tracing::Metadata;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

/// A share whose lines nobody counts.
fn share_of(upstream: &str) -> StderrLog {
    StderrLog::new(&upstream.into(), Counter::noop())
}

/// Keeps when a line of the log about stderr was written, and how many lines it says were not.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<(Instant, u64)>>>);

impl Written {
    /// How many lines were logged, and how many were told of.
    fn counts(&self) -> (usize, u64) {
        let all = self.0.lock().unwrap();
        (all.iter().filter(|(_, kept_back)| *kept_back == 0).count(), all.iter().map(|(_, kept_back)| kept_back).sum())
    }

    /// How many lines were written within ten seconds at the most.
    fn busiest(&self) -> usize {
        let all = self.0.lock().unwrap();
        let within = |first: usize| all[first..].iter().filter(|(at, _)| *at < all[first].0 + WINDOW).count();
        (0..all.len()).map(within).max().unwrap_or_default()
    }
}

struct KeptBack(u64);

impl Visit for KeptBack {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let told = format!("{value:?}");
            self.0 = told.strip_suffix(" more stderr lines not shown").map_or(0, |count| count.parse().unwrap());
        }
    }
}

impl tracing::Subscriber for Written {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == metrics::CHILD_STDERR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut kept_back = KeptBack(0);
        event.record(&mut kept_back);
        self.0.lock().unwrap().push((Instant::now(), kept_back.0));
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The whole life of a child that writes so many lines.
async fn life(log: &StderrLog, lines: usize) {
    drain("why it ends\n".repeat(lines).as_bytes(), StderrTail::default(), log).await;
}

#[tokio::test(start_paused = true)]
async fn restarts_share_one_window_and_its_end_tells_what_was_kept_back() {
    let (log, written, tasks) = (share_of("a"), Written::default(), Tasks::new());
    let _scope = tracing::subscriber::set_default(written.clone());
    let reported = log.clone();
    tasks.spawn_until_end(async move { reported.report().await });
    for _ in 0..9 {
        life(&log, 15).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(written.counts(), (20, 0), "nine children in one window");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(written.counts(), (20, 115), "told though no more come");
    tokio::time::sleep(WINDOW).await;
    life(&log, 15).await;
    assert_eq!(written.counts(), (35, 115), "the next window");
    tasks.end();
}

#[tokio::test(start_paused = true)]
async fn instances_of_one_upstream_share_a_window() {
    let (log, written) = (share_of("a"), Written::default());
    let _scope = tracing::subscriber::set_default(written.clone());
    tokio::join!(life(&log, 15), life(&log, 15), life(&log, 15));
    assert_eq!(written.counts(), (20, 0));
    life(&share_of("b"), 15).await;
    assert_eq!(written.counts(), (35, 0), "another upstream has a share of its own");
    tokio::time::sleep(WINDOW).await;
    life(&log, 15).await;
    assert_eq!(written.counts(), (50, 25), "the next line tells");
}

#[tokio::test(start_paused = true)]
async fn children_that_end_again_and_again_write_a_bounded_number_of_lines_and_every_line_is_told_of() {
    let (log, written, tasks) = (share_of("a"), Written::default(), Tasks::new());
    let _scope = tracing::subscriber::set_default(written.clone());
    let reported = log.clone();
    tasks.spawn_until_end(async move { reported.report().await });
    // Windows begin anywhere in these lives; some lives are a flood that is not looked at line by line.
    for number in 0..400 {
        life(&log, [3, 40, 500, 1][number % 4]).await;
        tokio::time::sleep(Duration::from_millis(130 + 70 * (number as u64 % 7))).await;
    }
    log.finish();
    log.finish();
    let (logged, told_of) = written.counts();
    assert_eq!(logged as u64 + told_of, 100 * 544);
    assert!(written.busiest() <= 2 * LINES as usize + 1, "{} lines within ten seconds", written.busiest());
    tasks.end();
}

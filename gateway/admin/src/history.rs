//! What the gateway did in the last minutes, in memory: a sample every few seconds, for lines of small charts.

use crate::health::StatusBoard;
use crate::runtime::Tasks;
use crate::telemetry::metrics::{Metrics, Totals};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// A sample is taken so often.
const EVERY: Duration = Duration::from_secs(5);
/// So many are kept: ten minutes.
const SAMPLES_MAX: usize = 120;
/// Calls are told apart by so many upstreams; those of further ones are in the whole alone.
const UPSTREAMS_MAX: usize = 64;

/// The last minutes. Clones are the same.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    /// The oldest first.
    samples: VecDeque<Sample>,
    /// What was counted when the last one was taken, and when that was.
    before: Option<(Totals, Instant)>,
}

/// What happened between two samples.
#[derive(Debug, Clone, Default, Serialize)]
struct Sample {
    calls_per_second: f64,
    failed_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_seconds: Option<f64>,
    in_flight: usize,
    queued: usize,
    memory_bytes: usize,
    /// Calls a second by upstream, where there were any.
    upstreams: BTreeMap<String, f64>,
}

/// As it is shown: the oldest sample first.
#[derive(Serialize)]
struct Shown<'a> {
    every_seconds: u64,
    samples: &'a VecDeque<Sample>,
}

impl History {
    /// Takes samples from now on.
    pub fn keep(&self, metrics: &Metrics, board: &StatusBoard, tasks: &Tasks) {
        let (history, metrics, board) = (self.clone(), metrics.clone(), board.clone());
        tasks.spawn_until_end(async move {
            let mut ticks = interval(EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                history.take(metrics.totals(), &board);
            }
        });
    }

    fn take(&self, totals: Totals, board: &StatusBoard) {
        let upstreams = board.snapshot();
        let all = || upstreams.iter().flat_map(|one| std::iter::once(one).chain(one.instances.values()));
        let now = Instant::now();
        let mut kept = self.lock();
        if let Some((before, at)) = &kept.before {
            let sample = Sample {
                in_flight: all().map(|one| one.traffic.in_flight()).sum(),
                queued: all().map(|one| one.traffic.queued()).sum(),
                memory_bytes: board.budget().used(),
                ..between(before, &totals, now.duration_since(*at).as_secs_f64())
            };
            if kept.samples.len() == SAMPLES_MAX {
                kept.samples.pop_front();
            }
            kept.samples.push_back(sample);
        }
        kept.before = Some((totals, now));
    }

    /// As JSON.
    pub(super) fn shown(&self) -> serde_json::Value {
        let kept = self.lock();
        serde_json::json!(Shown { every_seconds: EVERY.as_secs(), samples: &kept.samples })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happened between two countings, so many seconds apart.
fn between(before: &Totals, now: &Totals, seconds: f64) -> Sample {
    let seconds = seconds.max(0.001);
    let mut sample = Sample::default();
    for (name, [calls, failed]) in &now.calls {
        let [calls_before, failed_before] = before.calls.get(name).copied().unwrap_or_default();
        // An upstream that was removed and added again counts anew.
        let calls = calls.saturating_sub(calls_before) as f64 / seconds;
        sample.calls_per_second += calls;
        sample.failed_per_second += failed.saturating_sub(failed_before) as f64 / seconds;
        if calls > 0.0 && sample.upstreams.len() < UPSTREAMS_MAX {
            sample.upstreams.insert(name.clone(), calls);
        }
    }
    let mean = |now: (u64, f64), then: (u64, f64)| {
        let count = now.0.saturating_sub(then.0);
        (count > 0).then(|| (now.1 - then.1).max(0.0) / count as f64)
    };
    sample.mean_seconds = mean(now.duration, before.duration);
    sample.gateway_seconds = mean(now.overhead, before.overhead);
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(calls: u64, failed: u64) -> Totals {
        let calls_by = [("a".to_owned(), [calls, failed])].into();
        Totals { calls: calls_by, duration: (calls, calls as f64 * 0.5), overhead: (calls, calls as f64 * 0.01) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sample_is_what_happened_since_the_last_one() {
        let (history, board) = (History::default(), StatusBoard::default());
        history.take(totals(10, 1), &board);
        assert_eq!(history.shown()["samples"].as_array().map(Vec::len), Some(0));
        tokio::time::advance(EVERY).await;
        history.take(totals(20, 2), &board);
        let sample = &history.shown()["samples"][0];
        assert_eq!((&sample["calls_per_second"], &sample["upstreams"]["a"]), (&2.0.into(), &2.0.into()));
        assert_eq!((&sample["failed_per_second"], &sample["mean_seconds"]), (&0.2.into(), &0.5.into()));
        assert!((sample["gateway_seconds"].as_f64().unwrap() - 0.01).abs() < 1e-9);
        tokio::time::advance(EVERY).await;
        history.take(totals(20, 2), &board);
        let sample = &history.shown()["samples"][1];
        assert!(sample["mean_seconds"].is_null() && sample["upstreams"].as_object().is_some_and(|all| all.is_empty()));
    }

    #[tokio::test(start_paused = true)]
    async fn ten_minutes_are_kept_and_no_more() {
        let (history, board) = (History::default(), StatusBoard::default());
        for count in 0..500 {
            history.take(totals(count, 0), &board);
            tokio::time::advance(EVERY).await;
        }
        assert_eq!(history.shown()["samples"].as_array().map(Vec::len), Some(SAMPLES_MAX));
    }
}

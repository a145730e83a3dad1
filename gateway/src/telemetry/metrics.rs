//! The recorder behind the metrics.

use crate::lifecycle::{Board, Tasks};
use crate::protocol::Revision;
use crate::signals;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::Handle;

/// How often what was recorded is put into its buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Reads what was recorded. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

/// Puts the recorder in its place; once in a process, later calls give the same.
pub fn install() -> Metrics {
    let handle = HANDLE.get_or_init(|| {
        let recorder = builder().build_recorder();
        let handle = recorder.handle();
        // Another recorder, as in a test, stays: then there is nothing to be read here.
        if metrics::set_global_recorder(recorder).is_ok() {
            signals::describe();
        }
        handle
    });
    Metrics(handle.clone())
}

fn builder() -> PrometheusBuilder {
    let buckets = PrometheusBuilder::new().set_buckets(&signals::DURATION_BUCKETS);
    let mut builder = buckets.expect("the list of borders is not empty");
    for name in signals::OVERHEAD_METRICS {
        let own = builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), &signals::OVERHEAD_BUCKETS);
        builder = own.expect("the list of borders is not empty");
    }
    builder
}

impl Metrics {
    /// The text that Prometheus reads, with what the board says now.
    pub fn render(&self, board: &Board) -> String {
        for health in board.snapshot() {
            let uptime = health.uptime().unwrap_or_default().as_secs_f64();
            let all = Revision::ALL.into_iter().map(Revision::as_str);
            signals::shown(&health.name, uptime, health.pid.unwrap_or_default(), health.revision, all);
        }
        signals::refresh(Handle::try_current().map_or(0, |runtime| runtime.metrics().num_alive_tasks()));
        self.0.render()
    }

    /// Keeps what is recorded from piling up between two readings.
    pub fn keep_up(&self, tasks: &Tasks) {
        let handle = self.0.clone();
        tasks.spawn_until_end(async move {
            let mut ticks = tokio::time::interval(UPKEEP_EVERY);
            loop {
                ticks.tick().await;
                handle.run_upkeep();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_histogram_has_its_own_borders() {
        let recorder = builder().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            signals::describe();
            signals::overhead("tools/call").record(0.000_03);
            signals::route("tools/call", &"a".into()).duration.record(0.03);
        });
        let text = recorder.handle().render();
        assert!(text.contains("trunkline_overhead_seconds_bucket{method=\"tools/call\",le=\"0.00005\"} 1"), "{text}");
        let duration = "trunkline_request_duration_seconds_bucket{method=\"tools/call\",upstream=\"a\",le=\"0.05\"} 1";
        assert!(text.contains(duration), "{text}");
        assert!(text.contains("trunkline_build_info{version="), "{text}");
    }
}

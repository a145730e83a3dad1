//! The recorder behind the metrics.

use super::recorder::Registry;
use crate::health::StatusBoard;
use crate::memory::account::Kind;
use crate::metrics;
use crate::protocol::revision::Revision;
use std::sync::OnceLock;
use tokio::runtime::Handle;

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Reads what was recorded. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Registry);

/// Puts the recorder in its place; once in a process, later calls give the same.
pub fn install() -> Metrics {
    let registry = REGISTRY.get_or_init(|| {
        let registry = Registry::default();
        // Another recorder, as in a test, stays: then there is nothing to be read here.
        if ::metrics::set_global_recorder(registry.clone()).is_ok() {
            metrics::describe();
        }
        registry
    });
    Metrics(registry.clone())
}

impl Metrics {
    /// The text that Prometheus reads, with what the board says now.
    pub fn render(&self, board: &StatusBoard) -> String {
        for health in board.snapshot() {
            let uptime = health.uptime().unwrap_or_default().as_secs_f64();
            let all = Revision::ALL.into_iter().map(Revision::as_str);
            metrics::shown(&health.name, uptime, health.pid.unwrap_or_default(), health.revision, all);
        }
        let budget = board.budget();
        Kind::ALL
            .into_iter()
            .for_each(|kind| metrics::memory(kind.as_str(), budget.used_by(kind), budget.lost_by(kind)));
        budget.limit().into_iter().for_each(metrics::memory_limit);
        metrics::refresh(Handle::try_current().map_or(0, |runtime| runtime.metrics().num_alive_tasks()));
        self.0.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_histogram_has_its_own_borders() {
        let registry = Registry::default();
        ::metrics::with_local_recorder(&registry, || {
            crate::metrics::describe();
            crate::metrics::overhead("tools/call").record(0.000_03);
            crate::metrics::route("tools/call", &"a".into()).duration.record(0.03);
        });
        let text = registry.render();
        assert!(text.contains("trunkline_overhead_seconds_bucket{method=\"tools/call\",le=\"0.00005\"} 1"), "{text}");
        let duration = "trunkline_request_duration_seconds_bucket{method=\"tools/call\",upstream=\"a\",le=\"0.05\"} 1";
        assert!(text.contains(duration), "{text}");
        assert!(text.contains("trunkline_build_info{version="), "{text}");
    }
}

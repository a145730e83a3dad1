//! The recorder behind the metrics.

use super::processes::Processes;
pub use super::recorder::Totals;
pub use super::recorder::exposition::Format;

use super::recorder::Registry;
use crate::health::StatusBoard;
use crate::health::row::State;
use crate::memory::account::Kind;
use crate::protocol::revision::Revision;
use crate::runtime::aside;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::runtime::Handle;
use trunkline_foundation::metrics;
use trunkline_foundation::metrics::resources::{self, Workers};
use trunkline_foundation::metrics::sampled::{self, Known};

/// A reading is done beside the workers, as work on so many bytes is: it looks at files of the system.
const READING: usize = 1024 * 1024;

static METRICS: OnceLock<Metrics> = OnceLock::new();

/// Reads what was recorded. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Read>);

struct Read {
    registry: Registry,
    processes: Processes,
    /// Held for one reading: what is only seen is forgotten and set anew in it.
    one_at_a_time: Mutex<Named>,
}

/// The upstreams that were on the board.
#[derive(Default)]
struct Named {
    known: HashSet<Arc<str>>,
    /// Those of them that were not, at the last reading.
    missing: HashSet<Arc<str>>,
    /// Those that are gone for good. What ends later, such as a call, is recorded under their names once more.
    gone: HashSet<Arc<str>>,
}

/// How many names are remembered of those that are gone.
const GONE_MAX: usize = 100;

impl Named {
    /// Those of them that were at no reading before.
    fn new_ones(&self, now: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        now.difference(&self.known).cloned().collect()
    }

    /// The upstreams that are gone for good: at two readings one after the other they were not there. One that is removed and added again is
    /// missing for a moment at most.
    fn gone(&mut self, now: &HashSet<Arc<str>>) -> Vec<Arc<str>> {
        let missing: HashSet<_> = self.known.difference(now).cloned().collect();
        let gone: Vec<_> = missing.intersection(&self.missing).cloned().collect();
        self.known = now.union(&missing).filter(|name| !gone.contains(name)).cloned().collect();
        self.missing = missing;
        self.gone.retain(|name| !now.contains(name));
        if self.gone.len() + gone.len() > GONE_MAX {
            self.gone.clear();
        }
        self.gone.extend(gone);
        self.gone.iter().cloned().collect()
    }
}

/// Puts the recorder in its place; once in a process, later calls give the same.
pub fn install() -> Metrics {
    let install = || {
        let registry = Registry::default();
        // Another recorder, as in a test, stays: then there is nothing to be read here.
        if ::metrics::set_global_recorder(registry.clone()).is_ok() {
            metrics::describe();
        }
        Metrics(Arc::new(Read { registry, processes: Processes::default(), one_at_a_time: Mutex::default() }))
    };
    METRICS.get_or_init(install).clone()
}

impl Metrics {
    /// What was counted of requests.
    pub fn totals(&self) -> Totals {
        self.0.registry.totals()
    }

    /// The text that Prometheus reads, with what the board says now.
    pub fn render(&self, board: &StatusBoard, format: Format) -> String {
        let tasks = Handle::try_current().map_or(0, |runtime| runtime.metrics().num_alive_tasks());
        workers();
        aside(READING, || self.read(board, tasks, format))
    }

    fn read(&self, board: &StatusBoard, tasks: usize, format: Format) -> String {
        let mut named = self.0.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.registry.forget(sampled::sampled());
        let upstreams = board.snapshot();
        let now = upstreams.iter().map(|health| health.name.clone()).collect();
        named.new_ones(&now).iter().for_each(|name| metrics::first_seen(name));
        for name in named.gone(&now) {
            if self.0.registry.forget_upstream(&name) {
                metrics::forgets();
            }
        }
        for health in &upstreams {
            let uptime = health.uptime().unwrap_or_default().as_secs_f64();
            let all = Revision::ALL.into_iter().map(Revision::as_str);
            let cause =
                health.cause.as_ref().filter(|_| health.state != State::Ready).map(|cause| cause.code().as_str());
            let known = Known { upstream: &health.name, uptime, cause, revision: health.revision };
            sampled::shown(known, all);
        }
        self.0.processes.show(&upstreams);
        let budget = board.budget();
        Kind::ALL
            .into_iter()
            .for_each(|kind| sampled::memory(kind.as_str(), budget.used_by(kind), budget.lost_by(kind)));
        budget.limit().into_iter().for_each(sampled::memory_limit);
        sampled::refresh(tasks);
        metrics::messages::show();
        self.0.registry.render(format)
    }
}

/// Shows what the workers of this runtime do.
fn workers() {
    let Ok(runtime) = Handle::try_current() else { return };
    let (metrics, mut now) = (runtime.metrics(), Workers::default());
    (now.count, now.waiting) = (metrics.num_workers(), metrics.global_queue_depth());
    for worker in 0..now.count {
        now.busy += u64::try_from(metrics.worker_total_busy_duration(worker).as_micros()).unwrap_or(u64::MAX);
        now.parks += metrics.worker_park_count(worker);
    }
    resources::workers(now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_gone_when_it_was_missing_twice_and_until_it_comes_again() {
        let mut named = Named::default();
        let mut at = |names: &[&str]| {
            let mut gone = named.gone(&names.iter().map(|name| Arc::from(*name)).collect());
            gone.sort();
            gone.join(" ")
        };
        assert_eq!([at(&["a", "b", "c"]), at(&["a"]), at(&["a", "b"]), at(&["b"])], ["", "", "c", "c"]);
        assert_eq!([at(&["b", "a"]), at(&[]), at(&[]), at(&[])], ["c", "c", "a b c", "a b c"]);
        assert_eq!([at(&["a"]), at(&["a", "b", "c"])], ["b c", ""]);
    }

    #[test]
    fn each_kind_of_histogram_has_its_own_borders() {
        let registry = Registry::default();
        ::metrics::with_local_recorder(&registry, || {
            trunkline_foundation::metrics::describe();
            trunkline_foundation::metrics::overhead("tools/call").record(0.000_03);
            trunkline_foundation::metrics::route("tools/call", &"a".into()).duration.record(0.03);
        });
        let text = registry.render(Format::Prometheus);
        assert!(text.contains("trunkline_overhead_seconds_bucket{method=\"tools/call\",le=\"0.00005\"} 1"), "{text}");
        let duration = "trunkline_request_duration_seconds_bucket{method=\"tools/call\",upstream=\"a\",le=\"0.05\"} 1";
        assert!(text.contains(duration), "{text}");
        assert!(text.contains("trunkline_build_info{version="), "{text}");
    }
}

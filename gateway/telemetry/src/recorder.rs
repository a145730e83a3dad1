//! What is counted and measured, by name and labels, and the text that Prometheus reads.
//!
//! A histogram has its borders from the start: to record is to count, without a sample that somebody has to fold in later, without
//! a clock, and without one that is calibrated when the program starts. The exporter escapes descriptions and labels; its own
//! recorder keeps each sample until a task folds it in, and calibrates a clock for them.

// Which requests a histogram's buckets have counted last.
pub(super) mod exemplar;
// The formats of a page of metrics.
pub(super) mod exposition;

use ::metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit};
use exemplar::Exemplars;
use exposition::{Format, Page};
use metrics_exporter_prometheus::formatting;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trunkline_foundation::metrics;
use trunkline_foundation::metrics::{clients, edges, resources};

/// All that is recorded. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Registry(Arc<Mutex<Tables>>);

#[derive(Debug, Default)]
struct Tables {
    /// What each name means.
    help: BTreeMap<String, SharedString>,
    /// By name, and then by labels as they are written.
    counters: Table<AtomicU64>,
    gauges: Table<AtomicU64>,
    histograms: Table<Buckets>,
}

type Table<T> = BTreeMap<String, BTreeMap<String, Arc<T>>>;

/// What was measured, counted between fixed borders.
#[derive(Debug)]
struct Buckets {
    /// The upper borders, ascending.
    borders: &'static [f64],
    /// How many lie below each border and above the one before it; the last are above all of them.
    counts: Box<[AtomicU64]>,
    /// The bits of the sum.
    sum: AtomicU64,
    exemplars: Exemplars,
}

impl Buckets {
    fn new(name: &str) -> Self {
        let borders: &[f64] = match name {
            _ if metrics::OVERHEAD_METRICS.contains(&name) => &metrics::OVERHEAD_BUCKETS,
            _ if edges::OPERATIONS.contains(&name) => &edges::OPERATION_BUCKETS,
            _ if clients::SESSIONS.contains(&name) => &clients::SESSION_BUCKETS,
            _ => &metrics::DURATION_BUCKETS,
        };
        let counts = (0..=borders.len()).map(|_| AtomicU64::new(0)).collect();
        Self { borders, counts, sum: AtomicU64::new(0), exemplars: Exemplars::default() }
    }

    fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn sum(&self) -> f64 {
        f64::from_bits(self.sum.load(Ordering::Relaxed))
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let at = self.borders.iter().position(|border| value <= *border).unwrap_or(self.borders.len());
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.exemplars.counted(at, self.counts.len(), value);
        let add = |sum| Some((f64::from_bits(sum) + value).to_bits());
        let _always = self.sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }
}

/// What was counted since the start, over all methods.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Requests that ended, and those of them that failed, by upstream.
    pub calls: BTreeMap<String, [u64; 2]>,
    /// How many were timed, and how long they took together.
    pub duration: (u64, f64),
    /// The same of the part in which no upstream had them.
    pub overhead: (u64, f64),
}

impl Registry {
    /// What was counted of requests.
    pub(super) fn totals(&self) -> Totals {
        let tables = self.lock();
        let mut totals = Totals::default();
        let [requests, duration, overhead] = metrics::OF_REQUESTS;
        for (labels, counter) in tables.counters.get(requests).into_iter().flatten() {
            let count = counter.load(Ordering::Relaxed);
            if let (Some(upstream), true) = (value_of(labels, "upstream"), count > 0) {
                let of_it = totals.calls.entry(upstream.to_owned()).or_default();
                of_it[0] += count;
                if !matches!(value_of(labels, "outcome"), Some("ok" | "cancelled" | "client_gone")) {
                    of_it[1] += count;
                }
            }
        }
        let sum = |name: &str| {
            let all = tables.histograms.get(name).into_iter().flat_map(BTreeMap::values);
            all.fold((0, 0.0), |(count, sum), buckets| (count + buckets.count(), sum + buckets.sum()))
        };
        (totals.duration, totals.overhead) = (sum(duration), sum(overhead));
        totals
    }

    /// The sum of a counter, whatever its labels.
    #[cfg(any(test, feature = "test-support"))]
    pub fn counted(&self, name: &str) -> u64 {
        let tables = self.lock();
        let series = tables.counters.get(name).into_iter().flat_map(|series| series.values());
        series.map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    /// The text that Prometheus reads.
    pub(super) fn render(&self, format: Format) -> String {
        let tables = self.lock();
        let mut page = Page::new(format);
        let help = |name: &str| tables.help.get(name).map(|help| &**help);
        for (name, series) in &tables.counters {
            page.head(name, "counter", help(name));
            let is_micros = resources::IN_MICROSECONDS.contains(&&**name);
            for (labels, counter) in series {
                match (counter.load(Ordering::Relaxed), is_micros) {
                    (count, true) => page.sample(name, "", labels, count as f64 / 1e6),
                    (count, false) => page.sample(name, "", labels, count),
                }
            }
            page.end();
        }
        for (name, series) in &tables.gauges {
            page.head(name, "gauge", help(name));
            for (labels, gauge) in series {
                page.sample(name, "", labels, f64::from_bits(gauge.load(Ordering::Relaxed)));
            }
            page.end();
        }
        for (name, series) in &tables.histograms {
            page.head(name, "histogram", help(name));
            for (labels, buckets) in series {
                let mut count = 0;
                let borders = buckets.borders.iter().copied().chain([f64::INFINITY]);
                for (at, (border, own)) in borders.zip(&buckets.counts).enumerate() {
                    count += own.load(Ordering::Relaxed);
                    page.bucket((name, labels), border, count, buckets.exemplars.of(at));
                }
                page.sample(name, "_sum", labels, buckets.sum());
                page.sample(name, "_count", labels, count);
            }
            page.end();
        }
        page.finish()
    }

    /// Forgets the gauges of these names: what is to be seen of them is set anew.
    pub(super) fn forget(&self, names: impl Iterator<Item = &'static str>) {
        let mut tables = self.lock();
        names.for_each(|name| drop(tables.gauges.remove(name)));
    }

    /// Forgets all that was recorded of an upstream. Handles that are still there record what nobody reads.
    pub(super) fn forget_upstream(&self, name: &str) -> bool {
        let label = format!("upstream=\"{}\"", formatting::sanitize_label_value(name));
        // Within a value a quotation mark has a backslash before it: this finds labels alone.
        let is_of_it = |labels: &str| labels.starts_with(&label) || labels.contains(&format!(",{label}"));
        let mut tables = self.lock();
        let Tables { counters, gauges, histograms, .. } = &mut *tables;
        let dropped =
            [drop_series(counters, is_of_it), drop_series(gauges, is_of_it), drop_series(histograms, is_of_it)];
        dropped.contains(&true)
    }

    fn describe(&self, name: &KeyName, help: SharedString) {
        self.lock().help.entry(name.as_str().to_owned()).or_insert(help);
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there were any.
fn drop_series<T>(table: &mut Table<T>, is_gone: impl Fn(&str) -> bool) -> bool {
    let mut any = false;
    table.values_mut().for_each(|series| {
        let before = series.len();
        series.retain(|labels, _| !is_gone(labels));
        any |= series.len() < before;
    });
    any
}

/// The value of a label, of those whose values need no escapes.
fn value_of<'a>(labels: &'a str, label: &str) -> Option<&'a str> {
    let of = |part: &'a str| part.strip_prefix(label)?.strip_prefix("=\"")?.strip_suffix('"');
    labels.split(',').find_map(of)
}

/// Labels as they are written.
fn written<'a>(labels: impl Iterator<Item = &'a Label>) -> String {
    // A start writes some fifty sets of them for each upstream, nearly all of which need no escapes.
    let is_plain_key = |key: &str| key.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
    let mut text = String::with_capacity(96);
    for label in labels {
        let (key, value) = (label.key(), label.value());
        if !text.is_empty() {
            text.push(',');
        }
        match is_plain_key(key) {
            true => text.push_str(key),
            false => text.push_str(&formatting::sanitize_label_key(key)),
        }
        text.push_str("=\"");
        match memchr::memchr3(b'\\', b'"', b'\n', value.as_bytes()) {
            None => text.push_str(value),
            Some(_) => text.push_str(&formatting::sanitize_label_value(value)),
        }
        text.push('"');
    }
    text
}

/// What is recorded under a key, which is made where it is new.
fn found<T>(table: &mut Table<T>, key: &Key, make: impl FnOnce() -> T) -> Arc<T> {
    let labels = written(key.labels());
    if let Some(series) = table.get_mut(key.name()) {
        return series.entry(labels).or_insert_with(|| Arc::new(make())).clone();
    }
    let series = table.entry(key.name().to_owned()).or_default();
    series.entry(labels).or_insert_with(|| Arc::new(make())).clone()
}

impl Recorder for Registry {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, help);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, help);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, help: SharedString) {
        self.describe(&name, help);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(found(&mut self.lock().counters, key, || AtomicU64::new(0)))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(found(&mut self.lock().gauges, key, || AtomicU64::new(0)))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(found(&mut self.lock().histograms, key, || Buckets::new(key.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::meta::trace::Context;

    #[test]
    fn what_was_only_seen_is_forgotten_and_what_was_counted_stays() {
        let registry = Registry::default();
        let seen = |upstream| {
            registry.forget(metrics::sampled::sampled());
            let known = metrics::sampled::Known { upstream, uptime: 2.0, cause: Some("exited"), revision: None };
            let usage = resources::Usage { cpu: 1_500_000, resident: 4096, open_fds: 3 };
            ::metrics::with_local_recorder(&registry, || {
                metrics::sampled::shown(known, [].into_iter());
                resources::children(upstream, usage);
            });
            registry.render(Format::Prometheus)
        };
        let first = seen("a");
        for line in [
            "trunkline_upstream_cause_info{upstream=\"a\",code=\"exited\"} 1\n",
            "trunkline_child_memory_bytes{upstream=\"a\"} 4096\n",
            "# TYPE trunkline_child_cpu_seconds_total counter\ntrunkline_child_cpu_seconds_total{upstream=\"a\"} 1.5\n",
        ] {
            assert!(first.contains(line), "{line} is not in {first}");
        }
        let second = seen("b");
        let of_first: Vec<_> = second.lines().filter(|line| line.contains("upstream=\"a\"")).collect();
        assert_eq!(of_first, ["trunkline_child_cpu_seconds_total{upstream=\"a\"} 1.5"]);
        assert!(second.contains("trunkline_upstream_cause_info{upstream=\"b\",code=\"exited\"} 1\n"), "{second}");
    }

    #[test]
    fn what_was_counted_of_requests_is_summed_by_upstream_and_each_time_by_itself() {
        let registry = Registry::default();
        let [requests, duration, overhead] = metrics::OF_REQUESTS;
        ::metrics::with_local_recorder(&registry, || {
            for (upstream, outcome, count) in
                [("a", "ok", 3), ("a", "cancelled", 2), ("a", "timeout", 1), ("b", "ok", 0)]
            {
                ::metrics::counter!(requests, "upstream" => upstream, "outcome" => outcome).increment(count);
            }
            ::metrics::histogram!(duration, "method" => "tools/call").record(2.0);
            ::metrics::histogram!(duration, "method" => "ping").record(1.0);
            ::metrics::histogram!(overhead, "method" => "tools/call").record(0.25);
        });
        let calls = BTreeMap::from([("a".to_owned(), [6, 1])]);
        assert_eq!(registry.totals(), Totals { calls, duration: (2, 3.0), overhead: (1, 0.25) });
    }

    #[test]
    fn of_an_upstream_that_is_gone_nothing_is_left() {
        let registry = Registry::default();
        ::metrics::with_local_recorder(&registry, || {
            for name in ["a", "ba", "b"] {
                drop(metrics::upstream(name));
                metrics::first_seen(name);
                ::metrics::counter!("calls", "kind" => "x", "upstream" => name).increment(1);
                ::metrics::histogram!("waited", "upstream" => name, "kind" => "x").record(1.0);
                ::metrics::gauge!("other", "tool" => format!("upstream=\"{name}\"")).set(1.0);
            }
        });
        assert!(registry.forget_upstream("a") && !registry.forget_upstream("a"), "it is told whether there was any");
        let text = registry.render(Format::Prometheus);
        let left = |name: &str| text.lines().filter(|line| line.contains(&format!("upstream=\"{name}\""))).count();
        assert_eq!(left("a"), 0, "{text}");
        assert!(left("ba") > 30 && left("ba") == left("b"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("other{")).count(), 3, "{text}");
    }

    #[test]
    fn what_is_recorded_reads_as_prometheus_wants_it() {
        let registry = Registry::default();
        ::metrics::with_local_recorder(&registry, || {
            ::metrics::describe_counter!("calls", "Calls\nby \\ name");
            ::metrics::counter!("calls", "name" => "a\"b\\c\nd", "kind" => "x").increment(2);
            ::metrics::counter!("calls", "name" => "a\"b\\c\nd", "kind" => "x").increment(1);
            ::metrics::gauge!("open").set(2.5);
            ::metrics::gauge!("open").decrement(1.0);
            let waited = ::metrics::histogram!("waited", "kind" => "y");
            [0.005, 0.006, 400.0].into_iter().for_each(|seconds| waited.record(seconds));
        });
        let text = registry.render(Format::Prometheus);
        for expected in [
            "# HELP calls Calls\\nby \\\\ name\n# TYPE calls counter\ncalls{name=\"a\\\"b\\\\c\\nd\",kind=\"x\"} 3\n\n",
            "# TYPE open gauge\nopen 1.5\n\n",
            "# TYPE waited histogram\nwaited_bucket{kind=\"y\",le=\"0.005\"} 1\nwaited_bucket{kind=\"y\",le=\"0.01\"} 2\n",
            "waited_bucket{kind=\"y\",le=\"300\"} 2\nwaited_bucket{kind=\"y\",le=\"+Inf\"} 3\n\
             waited_sum{kind=\"y\"} 400.011\nwaited_count{kind=\"y\"} 3\n\n",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }

    #[test]
    fn in_openmetrics_a_bucket_shows_the_last_sampled_request_that_it_has_counted() {
        let registry = Registry::default();
        let context = |span, flags| {
            let value = format!("00-0af7651916cd43dd8448eb211c80319c-{span:016x}-{flags}");
            Context::parse(&value).unwrap()
        };
        ::metrics::with_local_recorder(&registry, || {
            ::metrics::describe_counter!("calls_total", "Calls by \"name\"");
            ::metrics::counter!("calls_total", "name" => "a").increment(2);
            ::metrics::gauge!("open").set(2.5);
            let waited = ::metrics::histogram!("waited", "kind" => "y");
            exemplar::of_span(Some(&context(1, "01")), || waited.record(0.003));
            exemplar::of_span(Some(&context(2, "01")), || waited.record(0.004));
            exemplar::of_span(Some(&context(3, "00")), || waited.record(0.002));
            exemplar::of_span(None, || waited.record(0.001));
            exemplar::of_span(Some(&context(4, "01")), || waited.record(400.0));
            waited.record(1.0);
        });
        let text = registry.render(Format::OpenMetrics);
        let [trace, second] = ["0af7651916cd43dd8448eb211c80319c", "0000000000000002"];
        for expected in [
            "# TYPE calls counter\n# HELP calls Calls by \\\"name\\\"\ncalls_total{name=\"a\"} 2\n# TYPE open gauge\nopen 2.5\n# TYPE",
            &format!("le=\"0.005\"}} 4 # {{trace_id=\"{trace}\",span_id=\"{second}\"}} 0.004 "),
            "le=\"1.0\"} 5\n",
            &format!("le=\"+Inf\"}} 6 # {{trace_id=\"{trace}\",span_id=\"0000000000000004\"}} 400 "),
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
        assert!(text.ends_with("waited_count{kind=\"y\"} 6\n# EOF\n") && !text.contains("\n\n"), "{text}");
        let older = registry.render(Format::Prometheus);
        assert!(!older.contains("trace_id") && older.contains("le=\"1\"} 5\n"), "{older}");
    }
}

//! What is seen of a gateway from outside: the system's own books, its metrics, its page of upstreams.

use serde_json::Value;

use crate::judge::history::Census;
use crate::process;

/// What a gateway holds, by the system's books and its metrics page; an empty page counts nothing.
#[must_use]
pub fn census(pid: u32, metrics: &str) -> Census {
    let zombies = process::zombies(pid).len();
    let sum = |names: &[&str]| names.iter().map(|name| total(metrics, name, |_| true)).sum::<f64>() as usize;
    Census {
        children: process::children(pid).len() - zombies,
        zombies,
        files: process::open_files(pid),
        threads: process::threads(pid),
        tasks: sum(&["trunkline_tasks"]),
        pending: sum(&["trunkline_pending_requests", "trunkline_inflight_requests", "trunkline_parked_calls"]),
        sessions: sum(&["trunkline_sessions"]),
        resident_kib: process::resident_kib(pid).unwrap_or_default(),
    }
}

/// The sum of a metric over the series whose labels fit.
#[must_use]
pub fn total(metrics: &str, name: &str, fits: impl Fn(&str) -> bool) -> f64 {
    let value = |line: &str| {
        let (series, value) = line.rsplit_once(' ')?;
        let (own, labels) = series.split_once('{').unwrap_or((series, ""));
        (own == name && fits(labels)).then(|| value.parse::<f64>().ok())?
    };
    metrics.lines().filter(|line| !line.starts_with('#')).filter_map(value).sum()
}

/// How much trouble an upstream ever made, by the metrics.
#[must_use]
pub fn trouble(metrics: &str, upstream: &str) -> f64 {
    let label = format!("upstream=\"{upstream}\"");
    let of = |labels: &str| labels.contains(&label);
    let bad = ["timeout", "rpc_error", "upstream_unavailable", "busy", "bad_answer", "outcome_unknown"];
    let bad = bad.map(|outcome| format!("outcome=\"{outcome}\""));
    let counted = ["restarts", "protocol_violations", "child_stderr_lines"];
    let names = counted.map(|name| match name {
        "restarts" => "trunkline_upstream_restarts_total".to_owned(),
        other => format!("trunkline_{other}_total"),
    });
    let troubles: f64 = names.iter().map(|name| total(metrics, name, of)).sum();
    troubles
        + total(metrics, "trunkline_requests_total", |labels| of(labels) && bad.iter().any(|bad| labels.contains(bad)))
}

/// Whether an upstream is up, by the metrics.
#[must_use]
pub fn is_up(metrics: &str, upstream: &str) -> bool {
    let label = format!("upstream=\"{upstream}\"");
    total(metrics, "trunkline_upstream_up", |labels| labels.contains(&label)) == 1.0
}

/// An upstream's row on the page of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Whether it is ready and nothing is held against it.
    pub is_well: bool,
    /// The word for where it stands.
    pub state: String,
    /// How often it was started again.
    pub restarts: u64,
}

/// Reads an upstream's row.
#[must_use]
pub fn row(page: &str, upstream: &str) -> Option<Row> {
    let page: Value = serde_json::from_str(page).ok()?;
    let row = page["upstreams"].as_array()?.iter().find(|row| row["name"] == upstream)?;
    let state = row["state"].as_str().unwrap_or_default().to_owned();
    let is_well = state == "ready" && row["cause"].is_null();
    Some(Row { is_well, state, restarts: row["restarts"].as_u64().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::{Row, is_up, row, total, trouble};

    #[test]
    fn pages_are_read() {
        let metrics = "# HELP a b\na{upstream=\"u1\"} 2\na{upstream=\"u2\"} 3\nab 7\n\
            trunkline_upstream_restarts_total{upstream=\"u1\",reason=\"crash\"} 1\n\
            trunkline_requests_total{method=\"tools/call\",upstream=\"u1\",outcome=\"timeout\"} 4\n\
            trunkline_requests_total{method=\"tools/call\",upstream=\"u1\",outcome=\"ok\"} 8\n";
        assert_eq!(total(metrics, "a", |_| true), 5.0);
        assert_eq!((trouble(metrics, "u1"), trouble(metrics, "u2")), (5.0, 0.0));
        let up = "trunkline_upstream_up{upstream=\"u1\"} 1\ntrunkline_upstream_up{upstream=\"u2\"} 0\n";
        assert!(is_up(up, "u1") && !is_up(up, "u2") && !is_up(up, "u3"));
        let page = "{\"upstreams\":[{\"name\":\"u1\",\"state\":\"ready\",\"restarts\":2,\"cause\":\"slow\"}]}";
        assert_eq!(row(page, "u1"), Some(Row { is_well: false, state: "ready".into(), restarts: 2 }));
    }
}

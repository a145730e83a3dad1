//! In which format metrics are asked for.

use crate::telemetry::metrics::Format;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// The versions of OpenMetrics that its writer meets.
const VERSIONS: [&str; 2] = ["1.0.0", "0.0.1"];

/// OpenMetrics where it is named and nothing else is liked better, else the older format.
pub(super) fn metrics(headers: &HeaderMap) -> Format {
    let ranges =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let (mut newer, mut older) = (0.0, 0.0);
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut is_known) = (1.0, true);
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match &*key.trim().to_ascii_lowercase() {
                "q" => quality = value.parse().unwrap_or(0.0),
                "version" => is_known = VERSIONS.contains(&value),
                _ => {}
            }
        }
        match &*kind {
            "application/openmetrics-text" if is_known => newer = f32::max(newer, quality),
            "text/plain" | "text/*" | "*/*" => older = f32::max(older, quality),
            _ => {}
        }
    }
    if newer > 0.0 && newer >= older { Format::OpenMetrics } else { Format::Prometheus }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_given_where_it_is_asked_for() {
        let of = |accept: &str| metrics(&HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]));
        for accept in [
            "application/openmetrics-text",
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "text/plain;q=0.5, Application/OpenMetrics-Text; Version=\"0.0.1\"; Q=0.5",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        ] {
            assert_eq!(of(accept), Format::OpenMetrics, "{accept}");
        }
        for accept in [
            "*/*",
            "text/plain",
            "",
            "text/html, */*;q=0.8",
            "application/openmetrics-text;version=2.0.0, text/plain;q=0.1",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=broken",
            "application/openmetrics-text;q=0.3, text/plain",
            "application/json",
        ] {
            assert_eq!(of(accept), Format::Prometheus, "{accept}");
        }
        assert_eq!(metrics(&HeaderMap::new()), Format::Prometheus);
    }
}

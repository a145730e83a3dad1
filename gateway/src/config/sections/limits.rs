//! `[limits]`, and rates as people write them.

use std::time::Duration;

use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::read::{Section, size};
use crate::policy::config::{Limits, Rate};

/// Keys of `[limits]`.
pub(crate) const LIMITS_DOC: TableDoc = TableDoc {
    heading: "[limits]",
    path: &["limits"],
    intro: "[How much](../sharing.md#limits) one client may have of calls, prompts and reads: a principal, \
        without tokens an address.",
    keys: &[&[
        KeyDoc {
            key: "calls",
            kind: "rate, as `\"50/s\"`, `\"30/m\"`, `\"1000/h\"`",
            default: "no limit",
            description: "so many; after a rest all of them may come at once",
        },
        KeyDoc {
            key: "max_concurrency",
            kind: "number",
            default: "no limit",
            description: "so many at once, those that wait for a person too; [calls of a client that is \
                gone](../sharing.md#limits) give way",
        },
        KeyDoc {
            key: "bytes",
            kind: "rate, as `\"10MiB/s\"`",
            default: "no limit",
            description: "of parameters and results",
        },
    ]],
    notes: "",
};

/// `[limits]`.
pub(crate) fn limits(mut section: Section<'_>) -> Limits {
    let limits = Limits {
        calls: section.parse("calls", rate),
        max_concurrency: section.count("max_concurrency", 1, 1_000_000),
        bytes: section.parse("bytes", bytes),
    };
    section.end("[limits]");
    limits
}

/// `50/s`, `30/m`, `1000/h`.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let expected = || "expected a number and a time, as \"50/s\", \"30/m\" or \"1000/h\"".to_owned();
    let (count, per) = per(text).ok_or_else(expected)?;
    match count.parse() {
        Ok(count @ 1..=1_000_000_000) => Ok(Rate { count, per }),
        _ => Err(expected()),
    }
}

/// `10MiB/s`.
fn bytes(text: &str) -> Result<Rate, String> {
    let expected = || "expected a size and a time, as \"10MiB/s\" or \"1GiB/h\"".to_owned();
    let (count, per) = per(text).ok_or_else(expected)?;
    match size(count) {
        Ok(count) if count > 0 => Ok(Rate { count: count as u64, per }),
        _ => Err(expected()),
    }
}

fn per(text: &str) -> Option<(&str, Duration)> {
    let (count, unit) = text.split_once('/')?;
    let seconds = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some((count.trim(), Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let of = |count, seconds| Ok(Rate { count, per: Duration::from_secs(seconds) });
        assert_eq!((rate("50/s"), rate("30 / m"), rate("1/h")), (of(50, 1), of(30, 60), of(1, 3600)));
        assert_eq!(bytes("10MiB/s"), of(10 << 20, 1));
        for text in ["", "50", "50/d", "/s", "0/s", "-1/s", "1.5/s", "99999999999/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert!(bytes("0/s").is_err() && bytes("x/s").is_err());
    }
}

//! Durations and sizes as people write them.

use std::time::Duration;

/// No clock of ours runs longer, so that adding to an instant never overflows.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// `250ms`, `30s`, `10m`, `1h`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected \"250ms\", \"30s\", \"10m\", \"1h\" or a number of seconds";
    let (number, unit) = split(text);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(EXPECTED.to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| EXPECTED.to_owned())?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(duration) if duration > LONGEST => Err("the longest is 720h".to_owned()),
        // A float of seconds is never exact; nobody means less than a microsecond.
        Ok(duration) => Ok(Duration::from_micros((duration.as_nanos() as f64 / 1000.0).round() as u64)),
        Err(_) => Err(EXPECTED.to_owned()),
    }
}

/// `8MiB`, `64KiB`, `1GiB`, `10MB`, or a number of bytes.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    const EXPECTED: &str = "expected \"64KiB\", \"8MiB\", \"1GiB\" or a number of bytes";
    let (number, unit) = split(text);
    let bytes: usize = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "kib" => 1 << 10,
        "mb" => 1_000_000,
        "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        _ => return Err(EXPECTED.to_owned()),
    };
    let number: usize = number.parse().map_err(|_| EXPECTED.to_owned())?;
    number.checked_mul(bytes).ok_or_else(|| "too large".to_owned())
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    (&text[..at], text[at..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, millis) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("2", 2_000),
            ("0", 0),
            ("1.5", 1_500),
            ("0.1s", 100),
            (" 5 s ", 5_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in
            ["", "s", "-1s", "1d", "1 parsec", "1e3", "inf", "NaN", "..", "1.2.3s", "721h", "99999999999999999999h"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in
            [("8MiB", 8 << 20), ("64kib", 64 << 10), ("1GiB", 1 << 30), ("10MB", 10_000_000), ("512", 512), ("3 B", 3)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "-1", "1.5MiB", "8 Mi", "99999999999GiB", "18446744073709551616"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}

//! When a line of the gateway's log was written: as the line itself has it, however much later it is read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::log;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// What stands before the time of day.
const DATE: &str = "2026-01-01T";

/// How long ago a line was written, where it says so and it is not hours.
pub(crate) fn age(line: &str, now: SystemTime) -> Option<Duration> {
    let text = log::time(line)?.get(DATE.len()..)?;
    let mut parts = text[..text.find('Z')?].split(':').map(|part| part.parse::<f64>().ok());
    let seconds = parts.next()?? * 3600.0 + parts.next()?? * 60.0 + parts.next()??;
    let since = now.duration_since(UNIX_EPOCH).ok()?.as_secs_f64() % DAY.as_secs_f64();
    let age = (since - seconds).rem_euclid(DAY.as_secs_f64());
    Duration::try_from_secs_f64(age).ok().filter(|age| *age < DAY / 2)
}

#[cfg(test)]
mod tests {
    use super::{DAY, age};
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_line_says_when_it_was_written() {
        let noon = UNIX_EPOCH + 20_000 * DAY + DAY / 2;
        let of = |time: &str| age(&format!("{{\"timestamp\":\"2026-11-22T{time}Z\",\"level\":\"INFO\"}}"), noon);
        let near = |time: &str, seconds: f64| (of(time).expect("a time").as_secs_f64() - seconds).abs() < 1e-3;
        assert!(near("11:59:58.250000", 1.75) && near("10:00:00.000000", 7200.0) && near("12:00:00.000000", 0.0));
        let midnight = age("{\"timestamp\":\"2026-11-22T23:59:59.000000Z\"}", UNIX_EPOCH + 20_000 * DAY);
        assert_eq!(midnight.map(|age| age.as_secs()), Some(1));
        // A clock that was set back meanwhile.
        assert_eq!(of("12:00:01.000000"), None);
        assert_eq!(age("ready    u7   http", noon), None);
    }
}

//! How long an upstream asks to be left alone: `Retry-After`, in seconds or as a date.

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest pause that is granted; whoever asks for more is asked again then.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The pause that the headers of a refusal ask for; what cannot be read, or has passed, asks for none.
pub fn pause(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let wanted = text(RETRY_AFTER)?;
    let seconds = match wanted.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long time too.
        true if !wanted.is_empty() => wanted.parse().unwrap_or(u64::MAX),
        _ => {
            // Both dates are by the upstream's own clock, where it tells it.
            let now = text(DATE)
                .and_then(epoch_seconds)
                .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
            epoch_seconds(wanted)?.saturating_sub(now)
        }
    };
    let pause = Duration::from_secs(seconds).min(PAUSE_MAX);
    (!pause.is_zero()).then_some(pause)
}

/// A date in one of the three forms that HTTP has, in seconds since 1970.
fn epoch_seconds(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts: Vec<&str> = text.split([' ', ',', '-', ':']).filter(|part| !part.is_empty()).collect();
    let (day, month, year, time) = match parts[..] {
        [_, day, month, year, hour, minute, second, "GMT"] => (day, month, year, [hour, minute, second]),
        [_, month, day, hour, minute, second, year] => (day, month, year, [hour, minute, second]),
        _ => return None,
    };
    let number = |text: &str, most: u64| text.parse::<u64>().ok().filter(|number| *number <= most);
    let month = MONTHS.iter().position(|known| *known == month)? as u64 + 1;
    let year = match number(year, 9999)? {
        short @ 0..70 if year.len() == 2 => 2000 + short,
        short @ 70..100 if year.len() == 2 => 1900 + short,
        year => year,
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let (day, [hour, minute, second]) = (number(day, days)?, time);
    let seconds = number(hour, 23)? * 3600 + number(minute, 59)? * 60 + number(second, 60)?;
    // Days since 1970: a year that begins in March has its leap day at its end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day.checked_sub(1)?;
    Some(days.checked_sub(719_468)? * 86_400 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(retry_after: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
        date.into_iter().for_each(|date| _ = headers.insert(DATE, date.parse().unwrap()));
        pause(&headers).map(|pause| pause.as_secs())
    }

    #[test]
    fn seconds_are_taken_up_to_a_minute_and_what_is_none_is_none() {
        let cases = [
            ("7", Some(7)),
            (" 7 ", Some(7)),
            ("60", Some(60)),
            ("61", Some(60)),
            ("1000000000", Some(60)),
            ("99999999999999999999999999", Some(60)),
            ("0", None),
            ("-3", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text, None), expected, "{text:?}");
        }
        assert_eq!(pause(&HeaderMap::new()), None);
    }

    #[test]
    fn dates_are_taken_by_the_clock_of_who_sends_them() {
        let now = Some("Sun, 06 Nov 1994 08:49:00 GMT");
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(epoch_seconds(text), Some(784_111_777), "{text}");
            assert_eq!(of(text, now), Some(37), "{text}");
        }
        assert_eq!(of("Sun, 06 Nov 1994 09:49:37 GMT", now), Some(60));
        assert_eq!(of("Sun, 06 Nov 1994 08:00:00 GMT", now), None, "it has passed");
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT", None), None, "by our clock too");
        assert_eq!(of("Fri, 31 Dec 9999 23:59:59 GMT", None), Some(60));
        for text in [
            "Thu, 30 Feb 2034 08:49:37 GMT",
            "Thu, 29 Feb 2035 08:49:37 GMT",
            "Thu, 31 Nov 2034 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Now 1994 08:49:37 GMT",
            "GMT",
        ] {
            assert_eq!(of(text, now), None, "{text}");
        }
        assert_eq!(epoch_seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(epoch_seconds("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
    }
}

//! Moments as people write them: a day, or a day and a time, of UTC.

use std::time::{Duration, SystemTime};

const DAY: u64 = 24 * 60 * 60;

/// The moment that a text names: `2027-01-01`, which is its first, or `2027-01-01T12:30:00Z`.
pub fn moment(text: &str) -> Result<SystemTime, String> {
    parsed(text)
        .ok_or_else(|| "expected a day or a moment of UTC, as \"2027-01-01\" or \"2027-01-01T12:30:00Z\"".to_owned())
}

fn parsed(text: &str) -> Option<SystemTime> {
    let (day, time) = match text.split_once('T') {
        Some((day, time)) => (day, Some(time.strip_suffix('Z')?)),
        None => (text, None),
    };
    let [year, month, day] = numbers(day, '-', [4, 2, 2])?;
    let [hour, minute, second] = time.map_or(Some([0; 3]), |time| numbers(time, ':', [2; 3]))?;
    let is_real = year >= 1970 && (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !is_real || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days_before(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Three numbers of so many digits.
fn numbers(text: &str, mark: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(mark);
    let mut found = [0; 3];
    for (number, digits) in found.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits && part.bytes().all(|one| one.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// The moment as it is written, to the second.
pub fn in_words(at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (mut days, rest) = (seconds / DAY, seconds % DAY);
    let mut year = 1970;
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_in(year, month) {
        days -= days_in(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}Z", days + 1, rest / 3600, rest / 60 % 60, rest % 60)
}

/// How many days passed before this one since 1970.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let years: u64 = (1970..year).map(days_of).sum();
    years + (1..month).map(|month| days_in(year, month)).sum::<u64>() + day - 1
}

fn days_of(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_is_written_and_what_is_none_is_refused() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2027-01-01", 1_798_761_600),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ] {
            let at = moment(text).unwrap();
            assert_eq!(at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(), seconds, "{text}");
            assert_eq!(moment(&in_words(at)), Ok(at), "{text}");
        }
        for text in [
            "",
            "2027",
            "2027-13-01",
            "2027-02-29",
            "2027-00-10",
            "2027-01-00",
            "2027-1-1",
            "27-01-01",
            "2027-01-01T12:30",
            "2027-01-01T12:30:00",
            "2027-01-01T24:00:00Z",
            "2027-01-01T12:30:00+02:00",
            "1969-12-31",
            "+027-01-01",
            "2027-01-01Z",
            "2027-01-01-01",
        ] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}

//! The time of day where the person is, by `TZ` or `/etc/localtime`, read once. UTC where neither says more.

use std::path::{Path, PathBuf};

/// Where the zones of the world are kept.
const ZONES: &str = "/usr/share/zoneinfo";
const HERE: &str = "/etc/localtime";
/// Larger than the file of any zone.
const BYTES_MAX: usize = 256 << 10;
const DAY: i64 = 86_400;

/// How far the clocks of a place are from UTC, and when that changes.
#[derive(Debug, Default)]
pub struct Zone {
    /// Since when, and by how many seconds.
    changes: Vec<(i64, i64)>,
    /// What holds after the last of them.
    rule: Option<Rule>,
}

/// The rule of each year: `CET-1CEST,M3.5.0,M10.5.0/3`.
#[derive(Debug, PartialEq)]
struct Rule {
    standard: i64,
    /// The offset in summer, and when that begins and ends in local time.
    summer: Option<(i64, Day, Day)>,
}

/// The fifth, or last, of a day of the week in a month, and the second of that day.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Day {
    month: i64,
    week: i64,
    weekday: i64,
    second: i64,
}

impl Zone {
    /// That of this process.
    pub fn here() -> Self {
        let path = match std::env::var("TZ") {
            Err(_) => PathBuf::from(HERE),
            Ok(name) => {
                let name = name.trim_start_matches(':').to_owned();
                if let Some(rule) = Rule::parse(&name).filter(|_| !Path::new(ZONES).join(&name).is_file()) {
                    return Self { changes: Vec::new(), rule: Some(rule) };
                }
                Path::new(ZONES).join(name)
            }
        };
        let bytes = path.metadata().ok().filter(|seen| seen.is_file() && seen.len() < BYTES_MAX as u64);
        bytes.and_then(|_| std::fs::read(path).ok()).and_then(|bytes| Self::parse(&bytes)).unwrap_or_default()
    }

    /// Reads the file of a zone, of its second version.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let count = |head: &[u8], at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?) as usize);
        let counts = |head: &[u8]| -> Option<[usize; 6]> {
            let mut all = [0; 6];
            for (number, own) in all.iter_mut().enumerate() {
                *own = count(head, 20 + 4 * number).filter(|count| *count < BYTES_MAX)?;
            }
            Some(all)
        };
        if !bytes.starts_with(b"TZif") || *bytes.get(4)? < b'2' {
            return None;
        }
        let [utc, standard, leaps, times, types, letters] = counts(bytes)?;
        let second = bytes.get(44 + times * 5 + types * 6 + letters + leaps * 8 + standard + utc..)?;
        let [utc, standard, leaps, times, types, letters] = counts(second)?;
        let body = second.get(44..)?;
        let kinds = body.get(times * 9..)?;
        let offset =
            |kind: usize| Some(i64::from(i32::from_be_bytes(kinds.get(kind * 6..kind * 6 + 4)?.try_into().ok()?)));
        let mut changes = vec![(i64::MIN, offset(0)?)];
        for number in 0..times {
            let since = i64::from_be_bytes(body.get(number * 8..number * 8 + 8)?.try_into().ok()?);
            changes.push((since, offset(usize::from(*body.get(times * 8 + number)?))?));
        }
        let foot = kinds.get(types * 6 + letters + leaps * 12 + standard + utc..)?;
        let foot = std::str::from_utf8(foot).ok()?.trim_matches('\n');
        Some(Self { changes, rule: Rule::parse(foot) })
    }

    /// By how many seconds its clocks are before UTC at this time.
    pub(super) fn offset(&self, now: i64) -> i64 {
        let next = self.changes.partition_point(|(since, _)| *since <= now);
        match &self.rule {
            Some(rule) if next == self.changes.len() => rule.offset(now),
            _ => self.changes.get(next.saturating_sub(1)).map_or(0, |(_, offset)| *offset),
        }
    }

    /// The time of day, `14:03:59.123`.
    pub fn time_of_day(&self, now: i64, milliseconds: u32) -> String {
        let second = (now + self.offset(now)).rem_euclid(DAY);
        format!("{:02}:{:02}:{:02}.{milliseconds:03}", second / 3600, second / 60 % 60, second % 60)
    }
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(',');
        let (_, rest) = name(parts.next()?)?;
        let (standard, rest) = time(rest)?;
        let standard = -standard;
        if rest.is_empty() {
            return Some(Self { standard, summer: None });
        }
        let (_, rest) = name(rest)?;
        let summer = if rest.is_empty() { standard + 3600 } else { -time(rest)?.0 };
        let (begins, ends) = (Day::parse(parts.next()?)?, Day::parse(parts.next()?)?);
        Some(Self { standard, summer: Some((summer, begins, ends)) })
    }

    fn offset(&self, now: i64) -> i64 {
        let Some((summer, begins, ends)) = self.summer else { return self.standard };
        let year = year((now + self.standard).div_euclid(DAY));
        let (from, until) = (begins.at(year) - self.standard, ends.at(year) - summer);
        let is_summer = if from <= until { (from..until).contains(&now) } else { !(until..from).contains(&now) };
        if is_summer { summer } else { self.standard }
    }
}

impl Day {
    fn parse(text: &str) -> Option<Self> {
        let (day, at) = text.split_once('/').unwrap_or((text, "2"));
        let mut numbers = day.strip_prefix('M')?.split('.').map(|number| number.parse::<i64>().ok());
        let (month, week, weekday) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let is_day = (1..=12).contains(&month) && (1..=5).contains(&week) && (0..=6).contains(&weekday);
        is_day.then_some(Self { month, week, weekday, second: time(at)?.0 })
    }

    /// Its second since 1970, by local clocks.
    fn at(self, year: i64) -> i64 {
        let first = days(year, self.month);
        // The first of January 1970 was a Thursday.
        let ahead = (self.weekday - (first + 4)).rem_euclid(7);
        let mut day = first + ahead + 7 * (self.week - 1);
        let next = if self.month == 12 { days(year + 1, 1) } else { days(year, self.month + 1) };
        while day >= next {
            day -= 7;
        }
        day * DAY + self.second
    }
}

/// The name of a zone, and what stands behind it.
fn name(text: &str) -> Option<((), &str)> {
    let rest = match text.strip_prefix('<') {
        Some(inside) => inside.split_once('>')?.1,
        None => text.trim_start_matches(|char: char| char.is_ascii_alphabetic()),
    };
    (rest.len() + 3 <= text.len()).then_some(((), rest))
}

/// `5`, `-3:30`: seconds, and what stands behind them.
fn time(text: &str) -> Option<(i64, &str)> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let end = digits.find(|char: char| !char.is_ascii_digit() && char != ':').unwrap_or(digits.len());
    let mut seconds = 0;
    for (unit, part) in [3600, 60, 1].into_iter().zip(digits[..end].split(':')) {
        seconds += unit * part.parse::<i64>().ok().filter(|number| *number < 1000)?;
    }
    Some((sign * seconds, &digits[end..]))
}

/// How many days a month begins after the first of January 1970.
fn days(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let before = year - 1;
    let leaps = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let is_leap = leaps(year) > leaps(before);
    let own = BEFORE[usize::try_from(month - 1).unwrap_or_default().min(11)] + i64::from(is_leap && month > 2);
    365 * (year - 1970) + leaps(before) - leaps(1969) + own
}

/// The year of a day.
fn year(day: i64) -> i64 {
    let mut year = 1970 + day.div_euclid(366);
    while days(year + 1, 1) <= day {
        year += 1;
    }
    year
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summer_begins_and_ends_as_the_rule_says() {
        let of = |rule: &str, now: i64| Rule::parse(rule).unwrap().offset(now);
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
        // 2026-03-29T01:00:00Z and 2026-10-25T01:00:00Z.
        for (now, offset) in
            [(1_774_745_999, 3600), (1_774_746_000, 7200), (1_792_889_999, 7200), (1_792_890_000, 3600)]
        {
            assert_eq!(of(berlin, now), offset, "{now}");
        }
        // 2026-03-08T07:00:00Z.
        assert_eq!(
            (of("EST5EDT,M3.2.0,M11.1.0", 1_772_953_199), of("EST5EDT,M3.2.0,M11.1.0", 1_772_953_200)),
            (-18000, -14400)
        );
        // Summer goes over the turn of the year.
        assert_eq!(of("AEST-10AEDT,M10.1.0,M4.1.0/3", 1_767_225_600), 39_600);
        assert_eq!(of("<+0530>-5:30", 0), 19_800);
        for text in ["", "x", "CET", "CET-1CEST", "CET-1CEST,J1,J2", "CET-1CEST,M13.1.0,M1.1.0"] {
            assert_eq!(Rule::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_file_of_a_zone_is_read_and_nonsense_is_none() {
        let zone =
            |name: &str| std::fs::read(Path::new(ZONES).join(name)).ok().map(|bytes| Zone::parse(&bytes).unwrap());
        if let Some(berlin) = zone("Europe/Berlin") {
            assert_eq!(berlin.time_of_day(1_782_864_000, 7), "02:00:00.007");
            assert_eq!(berlin.time_of_day(0, 0), "01:00:00.000");
        }
        assert_eq!(Zone::default().time_of_day(86_399, 999), "23:59:59.999");
        let head = [b"TZif2".as_slice(), &[0xff; 60]].concat();
        assert!(Zone::parse(&head).is_none() && Zone::parse(b"TZif2").is_none() && Zone::parse(b"").is_none());
        assert_eq!((year(0), year(-1), year(days(2024, 12) + 30), year(days(2025, 1))), (1970, 1969, 2024, 2025));
    }
}

//! What is read of a certificate besides what the library checks: whom it names, and when it ends.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::time::{Duration, SystemTime};

/// The tags of DER that are met.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const OBJECT: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERAL_TIME: u8 = 0x18;
/// The name of a subject's common name.
const CN: &[u8] = &[0x55, 0x04, 0x03];
/// The most characters of a name.
const NAME_MAX: usize = 128;

/// When a certificate ends, where that can be read.
pub(crate) fn ends(certificate: &[u8]) -> Option<SystemTime> {
    let (_, validity) = parts(certificate)?;
    let mut times = elements(validity);
    let (tag, text) = times.nth(1)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERAL_TIME => text.to_owned(),
        _ => return None,
    };
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let seconds = number(8, 10)? * 3600 + number(10, 12)? * 60 + number(12, 14)?;
    // Days since 1 March of the year 0, and from there to 1970.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(days.checked_sub(719_468)? * 86_400 + seconds))
}

/// Whom a certificate names: the common name of its subject, else a digest of all of it.
pub(crate) fn subject(certificate: &[u8]) -> String {
    let is_plain =
        |name: &String| !name.is_empty() && name.chars().count() <= NAME_MAX && !name.chars().any(char::is_control);
    named(certificate).filter(is_plain).unwrap_or_else(|| {
        Sha256::digest(certificate).iter().fold("sha256-".to_owned(), |mut text, byte| {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    })
}

fn named(certificate: &[u8]) -> Option<String> {
    let (subject, _) = parts(certificate)?;
    let names = elements(subject).flat_map(|(_, set)| elements(set)).filter_map(|(_, pair)| {
        let mut pair = elements(pair);
        let (tag, name) = pair.next()?;
        let (_, value) = pair.next()?;
        (tag == OBJECT && name == CN).then_some(value)
    });
    names.last().and_then(|value| String::from_utf8(value.to_vec()).ok())
}

/// The subject and the validity.
fn parts(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, whole) = elements(certificate).next().filter(|(tag, _)| *tag == SEQUENCE)?;
    let (_, signed) = elements(whole).next().filter(|(tag, _)| *tag == SEQUENCE)?;
    // Serial number, algorithm, issuer, validity, subject; a version may stand before them.
    let mut fields = elements(signed).skip_while(|(tag, _)| *tag == VERSION);
    let (_, validity) = fields.nth(3)?;
    let (_, subject) = fields.next()?;
    Some((subject, validity))
}

/// The elements that stand one after the other, up to the first that is none.
fn elements(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let [tag, first, rest @ ..] = bytes else { return None };
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x84 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, behind) = rest.split_at_checked(length)?;
        bytes = behind;
        Some((*tag, content))
    })
}

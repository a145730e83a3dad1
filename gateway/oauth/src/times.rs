//! How long a token lasts, by the words of who gives it out.

use serde_json::{Map, Value};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the seconds that a token lasts are called in JSON; and the second at which it ends.
const LASTS: [&str; 2] = ["expires_in", "expiresIn"];
const ENDS: [&str; 2] = ["expires_at", "expires_on"];

/// How long the token in this JSON lasts, as far as that is said: nought seconds say nothing. Else why it is of no use, as what follows "it
/// gives".
pub(super) fn lasts(members: &Map<String, Value>) -> Result<Option<Duration>, String> {
    let named = |names: [&'static str; 2]| {
        let found = |name| Some((name, members.get(name).filter(|value| !value.is_null())?));
        names.into_iter().find_map(found)
    };
    if let Some((name, value)) = named(LASTS) {
        return match number(value) {
            None => Err(format!("a token whose `{name}` is no number of seconds")),
            Some(seconds) if seconds < 0.0 => Err(format!("a token that has ended: its `{name}` is negative")),
            Some(seconds) => Ok(Some(duration(seconds))),
        };
    }
    // A date in another form is not read.
    let end = named(ENDS).and_then(|(name, value)| Some((name, number(value)?)));
    let Some((name, end)) = end.filter(|(_, end)| *end > 0.0) else { return Ok(None) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    match end > now {
        true => Ok(Some(duration(end - now))),
        false => Err(format!("a token that has ended: its `{name}` was {:.0} s ago by the clock here", now - end)),
    }
}

/// A number, which some write as a text.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite())
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(json: &str) -> Result<Option<Duration>, String> {
        lasts(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn seconds_are_read_as_servers_write_them_and_what_is_over_or_no_number_is_no_token() {
        for (json, millis) in [
            ("{}", None),
            (r#"{"expires_in":null,"expires_at":null}"#, None),
            (r#"{"expires_in":0}"#, Some(0)),
            (r#"{"expires_in":7}"#, Some(7_000)),
            (r#"{"expires_in":"3599"}"#, Some(3_599_000)),
            (r#"{"expiresIn":" 8.5 "}"#, Some(8_500)),
            (r#"{"expires_in":0.25}"#, Some(250)),
            (r#"{"expires_at":0}"#, None),
            (r#"{"expires_on":"2027-01-01"}"#, None),
        ] {
            assert_eq!(said(json), Ok(millis.map(Duration::from_millis)), "{json}");
        }
        assert_eq!(said(r#"{"expires_in":1e300}"#), Ok(Some(Duration::MAX)));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let left = said(&format!(r#"{{"expires_on":"{}"}}"#, now + 100)).unwrap().unwrap();
        assert!((90..=100).contains(&left.as_secs()), "{left:?}");
        for (json, words) in [
            (r#"{"expires_in":-1}"#, "a token that has ended: its `expires_in` is negative"),
            (r#"{"expires_in":"-0.5"}"#, "a token that has ended"),
            (r#"{"expires_in":"soon"}"#, "a token whose `expires_in` is no number of seconds"),
            (r#"{"expires_in":"NaN"}"#, "no number of seconds"),
            (r#"{"expires_in":{}}"#, "no number of seconds"),
            (&format!(r#"{{"expires_at":{}}}"#, now - 100), "a token that has ended: its `expires_at` was 10"),
        ] {
            let why = said(json).unwrap_err();
            assert!(why.contains(words), "{json}: {why}");
        }
    }
}

//! Changes values deep inside raw JSON without decoding the rest. Pure.

use crate::json;
use crate::json::Members;
use std::ops::Range;

/// Where the value at a path of keys stands; of a key that stands twice the last, as whoever reads it next takes it.
pub fn find(raw: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let mut place = json::space(raw, 0)..raw.len();
    for key in path {
        let inside = &raw[place.clone()];
        let members = Members::of(inside).ok()?.map_while(Result::ok);
        let member = members.filter(|m| m.key(inside).as_deref() == Some(key.as_bytes())).last()?;
        place = place.start + member.value..place.start + member.end;
    }
    Some(place)
}

/// The text at a path, and where its value stands.
pub fn text(raw: &[u8], path: &[&str]) -> Option<(String, Range<usize>)> {
    let place = find(raw, path)?;
    Some((json::unquote(&raw[place.clone()])?.into_owned(), place))
}

/// The text with some places written anew; the places are in order and do not overlap.
pub fn replace<T: AsRef<str>>(raw: &[u8], changes: &[(Range<usize>, T)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len() + changes.iter().map(|(_, text)| text.as_ref().len()).sum::<usize>());
    let mut at = 0;
    for (place, text) in changes {
        out.extend_from_slice(&raw[at..place.start]);
        out.extend_from_slice(text.as_ref().as_bytes());
        at = place.end;
    }
    out.extend_from_slice(&raw[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_values_are_found_and_written_anew() {
        let raw = br#" {"a":{"b" : "x"},"c":[1]} "#;
        let (text, place) = text(raw, &["a", "b"]).unwrap();
        assert_eq!(text, "x");
        assert_eq!(replace(raw, &[(place, "\"yy\"")]), br#" {"a":{"b" : "yy"},"c":[1]} "#);
        assert_eq!(find(raw, &["c", "b"]), None);
        assert_eq!(find(raw, &["d"]), None);
        assert_eq!(find(br#"{"a":1,"\u0061":22}"#, &["a"]), Some(16..18), "the last of two");
    }
}

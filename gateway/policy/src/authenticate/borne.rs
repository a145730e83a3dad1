//! What a request bears to be let in.

use http::header::{self, Entry};
use http::{HeaderMap, HeaderValue};

/// What a request bears, which bears it no more, and whether that is all. Most do where they are expected to.
pub(super) fn taken(headers: &mut HeaderMap, is_expected: bool) -> (Option<HeaderValue>, bool) {
    // Few headers are walked faster than one is looked up.
    if !is_expected && headers.keys().all(|name| *name != header::AUTHORIZATION) {
        return (None, true);
    }
    let Entry::Occupied(borne) = headers.entry(header::AUTHORIZATION) else { return (None, true) };
    let (_, mut values) = borne.remove_entry_mult();
    let first = values.next();
    (first, values.next().is_none())
}

/// The token of a value.
pub(super) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{ACCEPT, AUTHORIZATION};

    #[test]
    fn what_is_borne_is_taken_whether_it_is_expected_or_not_and_nothing_else() {
        for (values, is_expected) in [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true), (3, true)] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static("a"));
            for value in ["x", "y", "z"].iter().take(values) {
                headers.append(AUTHORIZATION, HeaderValue::from_static(value));
            }
            let (first, is_alone) = taken(&mut headers, is_expected);
            assert_eq!(first, (values > 0).then(|| HeaderValue::from_static("x")));
            assert_eq!((is_alone, headers.len(), headers.contains_key(ACCEPT)), (values < 2, 1, true));
        }
    }
}

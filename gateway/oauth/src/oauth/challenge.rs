//! What a 401 says: `WWW-Authenticate`.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// The longest header that is read.
const HEADER_MAX: usize = 8 * 1024;

/// What a challenge for a bearer token says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where the upstream says what it is as a resource.
    pub(super) resource_metadata: Option<String>,
    /// What the token is to allow.
    pub(super) scope: Option<String>,
    /// Why what was shown is not taken.
    pub(super) error: Option<String>,
}

/// The challenge for a bearer token among the headers of a refusal.
pub(super) fn challenge(headers: &HeaderMap) -> Challenge {
    let mut found = Challenge::default();
    for text in headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()) {
        if text.len() <= HEADER_MAX {
            read(text, &mut found);
        }
    }
    found
}

/// Reads one header, which may hold challenges of several schemes (RFC 9110, 11.6.1).
fn read(text: &str, found: &mut Challenge) {
    let (mut rest, mut is_bearer) = (text.trim_start(), false);
    while !rest.is_empty() {
        let end = rest.find([' ', '\t', '=', ',']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let behind_blanks = behind.trim_start();
        let value = behind_blanks.strip_prefix('=').map(str::trim_start);
        let Some(value) = value.filter(|_| !word.is_empty()) else {
            // A word without a value begins a scheme.
            is_bearer = if word.is_empty() { is_bearer } else { word.eq_ignore_ascii_case("bearer") };
            rest = behind.trim_start_matches([' ', '\t', ',']);
            if word.is_empty() && rest.len() == behind.len() {
                return;
            }
            continue;
        };
        let (value, next) = value_of(value);
        let seat = match () {
            () if !is_bearer => None,
            () if word.eq_ignore_ascii_case("resource_metadata") => Some(&mut found.resource_metadata),
            () if word.eq_ignore_ascii_case("scope") => Some(&mut found.scope),
            () if word.eq_ignore_ascii_case("error") => Some(&mut found.error),
            () => None,
        };
        // The first one counts.
        if let Some(seat @ None) = seat {
            *seat = Some(value).filter(|value| !value.is_empty());
        }
        rest = next.trim_start_matches([' ', '\t', ',']);
    }
}

/// A value, quoted or not, and what stands behind it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut chars) = (String::new(), quoted.char_indices());
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, char)| char)),
            char => value.push(char),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> (Option<String>, Option<String>) {
        let mut headers = HeaderMap::new();
        texts.iter().for_each(|text| _ = headers.append(WWW_AUTHENTICATE, text.parse().unwrap()));
        let Challenge { resource_metadata, scope, .. } = challenge(&headers);
        (resource_metadata, scope)
    }

    #[test]
    fn a_bearer_challenge_is_found_among_others_and_in_every_form_of_writing() {
        let both = (Some("https://h/m".to_owned()), Some("a b".to_owned()));
        for texts in [
            &[r#"Bearer resource_metadata="https://h/m", scope="a b""#][..],
            &[r#"bearer  realm="x, y", Resource_Metadata = "https://h/m" ,scope="a b", error=invalid_token"#],
            &[r#"Basic realm="x", Bearer resource_metadata="https://h/m", scope="a b""#],
            &[r#"Negotiate YWJj=="#, r#"Bearer scope="a b""#, r#"Bearer resource_metadata=https://h/m"#],
            &[r#"Bearer resource_metadata="https:\/\/h/m", scope="a b", scope="c", Digest scope="d""#],
        ] {
            assert_eq!(of(texts), both, "{texts:?}");
        }
    }

    #[test]
    fn what_is_said_for_another_scheme_or_broken_off_counts_for_nothing() {
        for text in
            [r#"Basic scope="a", resource_metadata="https://h""#, "Bearer", "", "=,=,", "Bearer =", ",,,", "Bearer \"x"]
        {
            assert_eq!(of(&[text]), (None, None), "{text}");
        }
        assert_eq!(of(&[r#"Bearer scope="a"#]), (None, Some("a".to_owned())));
        assert_eq!(of(&[&format!("Bearer scope=\"{}\"", "x".repeat(HEADER_MAX))]), (None, None));
    }
}

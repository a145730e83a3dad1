//! Whether a word looks like chance, as tokens and keys do.

/// So many characters of both cases and digits, or so many hexadecimal digits, are no word of a language, and no name.
const MIXED_MIN: usize = 20;
const DIGITS_MIN: usize = 32;

/// Whether a word looks like chance. Paths and addresses do not.
pub fn looks_random(word: &str) -> bool {
    let is_digits = word.len() >= DIGITS_MIN && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    let is_path = word.starts_with(['/', '.', '~']) || word.contains("://");
    let is_mixed = word.len() >= MIXED_MIN
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte))
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit);
    is_digits || is_mixed && !is_path
}

/// A shorter token could be guessed, and of a longer run of letters of one case, or of digits, none is a word of a language, or a number that somebody says.
const GIVEN_MIN: usize = 16;
const RUN_MAX: usize = 23;
/// In words and names of words fewer of the letters and digits follow on one of another kind: one of so many.
const CHANGES: usize = 4;

/// Whether what a server gave out as a token is one by its looks, and no word or name that others say, too.
pub(super) fn looks_given(token: &str) -> bool {
    let bytes = token.as_bytes();
    let length = bytes.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    // A capital begins a word; what follows it is no change.
    let kind = |byte: &u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let is_change = |pair: &[u8]| {
        let is_word = pair.iter().all(u8::is_ascii_alphanumeric);
        is_word && kind(&pair[0]) != kind(&pair[1]) && !(pair[0].is_ascii_uppercase() && pair[1].is_ascii_lowercase())
    };
    let changes = bytes.windows(2).filter(|pair| is_change(pair)).count();
    let has_run = |is: fn(&u8) -> bool| bytes.split(|byte| !is(byte)).any(|run| run.len() > RUN_MAX);
    let digits = bytes.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    let is_hexadecimal = digits >= DIGITS_MIN && bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    length >= GIVEN_MIN
        && (changes * CHANGES >= length
            || is_hexadecimal
            || has_run(u8::is_ascii_lowercase)
            || has_run(u8::is_ascii_uppercase)
            || has_run(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_gives_out_is_a_token_unless_it_is_short_or_a_word_or_a_name() {
        for token in [
            "V1StGXR8_Z5jdHi6B-myT",
            "gho_16C7e42F292c6912E7710c838347Ae178B4a",
            "ya29.a0AfB_byC4xq7Zk1mN3",
            "9f86d081884c7d65",
            "11111111-aaaa-4bbb-8ccc-dddddddddddd",
            "eyJhbGciOiJub25lIn0.e30.",
            "abcdefghijklmnopqrstuvwx",
        ] {
            assert!(looks_given(token), "{token}");
        }
        for word in [
            "irreversibly",
            "uncharacteristically",
            "Never-call-this-without-asking",
            "create_pull_request_v2",
            "getConfluencePageAncestors",
            "ConfluenceGetPageById2",
            "google-cloud-sdk-450.0.1-linux-x86_64",
            "2026-01-02T03:04:05Z",
            "https://mcp.example.com/v1",
            "k8s-e2e",
            "a1B2c3D4",
            "",
        ] {
            assert!(!looks_given(word), "{word}");
        }
    }

    #[test]
    fn tokens_look_like_chance_and_words_names_paths_and_addresses_do_not() {
        for token in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N",
            "0123456789abcdef0123456789abcdef",
            "Zx9-QwErTy+UiOp/AsDfGh==",
        ] {
            assert!(looks_random(token), "{token}");
        }
        for other in [
            "not-configured",
            "InvalidAuthenticationToken",
            "google-cloud-sdk-450.0.1-linux-x86_64",
            "/usr/lib/Python3/site-packages/x.py",
            "https://Login.example.com/T3nant/token",
            "2026-01-02T03:04:05Z",
            "Zx9-QwErTy",
        ] {
            assert!(!looks_random(other), "{other}");
        }
    }
}

//! Whether a word looks like chance, as tokens and keys do.

/// So many characters of both cases and digits, or so many hexadecimal digits, are no word of a language, and no name.
const MIXED_MIN: usize = 20;
const DIGITS_MIN: usize = 32;

/// Whether a word looks like chance. Paths and addresses do not.
pub(crate) fn looks_random(word: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

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

//! The known word that somebody most likely meant.

/// Longer words are not compared: no known one is near to them.
const WORD_BYTES_MAX: usize = 64;

/// The nearest of `known`, if one is near enough to be worth asking for.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', "_");
    let word = plain(word);
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&word, &plain(known)), *known))
        .min_by_key(|(distance, _)| *distance)
        // A third of the letters may be wrong: more is another word.
        .filter(|(distance, known)| *distance * 3 <= known.len().max(3))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let known = ["command", "args", "env", "url", "startup_timeout"];
        assert_eq!(nearest("comand", &known), Some("command"));
        assert_eq!(nearest("evn", &known), Some("env"));
        assert_eq!(nearest("startupTimeout", &known), Some("startup_timeout"));
        assert_eq!(nearest("startup-timeout", &known), Some("startup_timeout"));
        assert_eq!(nearest("description", &known), None);
        assert_eq!(nearest("x", &[]), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), &known), None);
    }
}

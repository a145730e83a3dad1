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
        .filter(|(distance, known)| *distance * 3 <= known.len().max(3) && *distance < known.len())
        .map(|(_, known)| known)
}

/// What is said behind a word that is not known: which of `known` is meant, and all of them.
pub(crate) fn told(word: &str, known: &[&str]) -> String {
    let meant = nearest(word, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let stop = if meant.is_empty() { "." } else { "" };
    let all = match known.len() {
        0 => "none".to_owned(),
        count if count > LISTED_MAX => format!("{}, and {} more", near(word, known).join(", "), count - NEAR),
        _ => known.join(", "),
    };
    format!("{meant}{stop} Known: {all}")
}

/// So many known words are all told; of more only so many, the nearest ones.
const LISTED_MAX: usize = 20;
const NEAR: usize = 5;

/// The nearest of many, the first one first.
fn near<'a>(word: &str, known: &[&'a str]) -> Vec<&'a str> {
    let word: String = word.chars().take(WORD_BYTES_MAX).collect();
    let mut known = known.to_vec();
    known.sort_by_cached_key(|known| strsim::damerau_levenshtein(&word, known));
    known.truncate(NEAR);
    known
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
        assert_eq!([nearest("x", &["a"]), nearest("A", &["a"])], [None, Some("a")], "nothing of it is left");
        assert_eq!(nearest(&"x".repeat(1 << 20), &known), None);
    }

    #[test]
    fn a_word_that_is_not_known_is_told_with_the_one_that_is_meant_and_all_others() {
        assert_eq!(told("evn", &["url", "env"]), "; did you mean `env`? Known: url, env");
        assert_eq!(told("x-y-z", &["url"]), ". Known: url");
        assert_eq!(told("x", &[]), ". Known: none");
        let many: Vec<String> = (0..100).map(|index| format!("server-{index}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let said = told("sever-42", &many);
        assert!(said.starts_with("; did you mean `server-42`? Known: server-42, server-"), "{said}");
        assert!(said.ends_with(", and 95 more") && said.len() < 120, "{said}");
    }
}

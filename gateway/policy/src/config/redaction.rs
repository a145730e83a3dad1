//! What is a secret by its form: keys and tokens that are known, and what the configuration says.

// The search for one pattern, in a time that is linear in the text.
mod search;

use search::{MATCH_MAX, Pattern, Stopped, Unusable};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// The memory that the compiled patterns of a configuration may take together.
const BYTES_MAX: usize = 8 << 20;

/// Keys and tokens that are known by how they begin, and private keys.
const KNOWN: [&str; 15] = [
    // Amazon: access keys.
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    // GitHub and GitLab.
    r"\bgh[opsur]_[0-9A-Za-z]{36,255}\b",
    r"\bgithub_pat_[0-9A-Za-z_]{22,255}\b",
    r"\bglpat-[0-9A-Za-z_-]{20,}",
    // Slack.
    r"\bx(?:ox[abeoprs]|app)-[0-9A-Za-z-]{10,}",
    // Language models, Stripe, SendGrid.
    r"\bsk-[0-9A-Za-z_-]{20,}",
    r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}",
    r"\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}",
    r"\bhf_[0-9A-Za-z]{30,}\b",
    // Google.
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\bya29\.[0-9A-Za-z_-]{20,}",
    // Registries of packages.
    r"\b(?:npm_[0-9A-Za-z]{36}\b|pypi-[0-9A-Za-z_-]{50,})",
    // JSON Web Tokens, and whatever is presented as a bearer's.
    r"\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*",
    r"(?i:\bbearer\s+)[0-9A-Za-z._~+/-]{20,}=*",
    // A private key, to its end or to that of the text.
    r"-----BEGIN (?:[0-9A-Z]+ )*PRIVATE KEY-----(?s:.*?)(?:-----END (?:[0-9A-Z]+ )*PRIVATE KEY-----|\z)",
];

/// What is taken out of texts; nothing by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Redaction {
    /// Keys and tokens that are known by their form.
    pub keys: bool,
    /// What is found by these regular expressions.
    pub patterns: Vec<String>,
}

/// The compiled patterns.
#[derive(Debug, Default)]
pub struct Patterns(Vec<Pattern>);

/// The result of a search of one text.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Matches {
    /// The matches of all patterns in order; those that overlap are one.
    pub(crate) places: Vec<Range<usize>>,
    /// The search read more than it may, or was cancelled: nothing of the text is known to be free of secrets.
    pub(crate) is_withheld: bool,
    /// The bytes that were read for it.
    pub(crate) read: usize,
}

impl Patterns {
    /// The patterns of a configuration, each of which was checked.
    pub fn new(terms: &Redaction) -> Self {
        let known = KNOWN.iter().filter(|_| terms.keys).map(|known| compile_known(known));
        let own = terms.patterns.iter().map(|own| Pattern::configured(own));
        let mut patterns = Vec::new();
        for pattern in known.chain(own) {
            match pattern {
                Ok(pattern) => patterns.push(pattern),
                Err(why) => tracing::error!(?why, "pattern of [redact] cannot be used: nothing is redacted by it"),
            }
        }
        Self(patterns)
    }

    /// The work of a search of so many bytes: each pattern reads them. A pattern of the configuration may take longer than one of the
    /// gateway's own.
    pub(crate) fn work(&self, bytes: usize) -> usize {
        const CONFIGURED: usize = 16;
        let weights = self.0.iter().map(|pattern| if pattern.is_configured() { CONFIGURED } else { 1 });
        bytes.saturating_mul(weights.sum())
    }

    /// Searches a text for all patterns.
    pub(crate) fn search(&self, text: &str, is_cancelled: &AtomicBool) -> Matches {
        let mut matches = Matches::default();
        for pattern in &self.0 {
            match pattern.find_all(text, is_cancelled, &mut matches.places) {
                Ok(read) => matches.read += read,
                Err(Stopped) => return Matches { is_withheld: true, ..Matches::default() },
            }
        }
        matches.places.sort_unstable_by_key(|place| place.start);
        matches.places.dedup_by(|next, place| {
            let overlaps = next.start < place.end;
            if overlaps {
                place.end = place.end.max(next.end);
            }
            overlaps
        });
        matches
    }
}

/// A boundary of words is that of ASCII here: a key that follows a letter of another script is a key, too.
fn compile_known(pattern: &str) -> Result<Pattern, Unusable> {
    Pattern::of_form(&pattern.replace(r"\b", r"(?-u:\b)"))
}

/// What is wrong with the patterns of a configuration: of which one, where it is one of them.
pub fn wrong(patterns: &[String]) -> Option<(Option<usize>, String)> {
    let mut bytes = 0;
    for (index, pattern) in patterns.iter().enumerate() {
        let why = match Pattern::configured(pattern) {
            Ok(pattern) => {
                bytes += pattern.bytes();
                continue;
            }
            Err(Unusable::MatchesEmpty) => "it matches an empty text".to_owned(),
            Err(Unusable::TooLong) => format!("each match is longer than {MATCH_MAX} bytes"),
            Err(Unusable::TooLarge) => {
                "it takes too much memory; write `(?-u:\\w)` for ASCII letters, or repeat less".to_owned()
            }
            Err(Unusable::Syntax(error)) => {
                let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("not a regular expression: {why}")
            }
        };
        return Some((Some(index), why));
    }
    (bytes > BYTES_MAX).then(|| (None, "all patterns together take too much memory".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Patterns {
        /// The text without secrets, where it has one, and how many it had.
        fn redacted(&self, text: &str) -> Option<(String, usize)> {
            let matches = self.search(text, &AtomicBool::new(false));
            assert!(!matches.is_withheld, "the budget is spent");
            let mut redacted = text.to_owned();
            matches.places.iter().rev().for_each(|place| redacted.replace_range(place.clone(), "[redacted]"));
            (!matches.places.is_empty()).then_some((redacted, matches.places.len()))
        }
    }

    fn own(patterns: &[&str]) -> Patterns {
        Patterns::new(&Redaction { keys: false, patterns: patterns.iter().map(ToString::to_string).collect() })
    }

    fn keys() -> Patterns {
        Patterns::new(&Redaction { keys: true, patterns: Vec::new() })
    }

    #[test]
    fn keys_and_tokens_are_known_by_their_form() {
        let long = |begin: &str, count| format!("{begin}{}", "aB3".repeat(count));
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nAAAA\n-----END RSA PRIVATE KEY-----";
        for secret in [
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            long("ghp_", 12),
            long("github_pat_", 10),
            long("glpat-", 7),
            long("xoxb-1234-", 4),
            long("xapp-1-", 4),
            long("sk-proj-", 8),
            long("sk_live_", 6),
            format!("{}.{}", long("SG.", 6), long("", 6)),
            long("hf_", 11),
            format!("{}ab", long("AIza", 11)),
            long("ya29.", 8),
            long("npm_", 12),
            long("pypi-", 20),
            format!("{}.{}.{}", long("eyJ", 4), long("eyJ", 4), long("", 4)),
            long("bEaReR ", 8),
            pem.to_owned(),
        ] {
            let text = format!("before {secret} after");
            assert_eq!(keys().redacted(&text), Some(("before [redacted] after".to_owned(), 1)), "{text}");
        }
        let cut = "-----BEGIN PRIVATE KEY-----\nMIIE and no end";
        assert_eq!(keys().redacted(cut), Some(("[redacted]".to_owned(), 1)));
    }

    #[test]
    fn what_only_looks_a_little_like_one_stays() {
        for text in [
            "task-management-of-a-large-company",
            "AKIA is how such a key begins",
            "the sk-learn package",
            "a bearer of news",
            "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
            "disk-0123456789012345678901234567",
        ] {
            assert_eq!(keys().redacted(text), None, "{text}");
        }
    }

    #[test]
    fn own_patterns_are_beside_those_or_alone_and_a_wrong_one_says_why() {
        let of =
            |patterns: &[&str]| Redaction { keys: false, patterns: patterns.iter().map(ToString::to_string).collect() };
        let own = Patterns::new(&of(&[r"ACME-\d{4}", "(?i)hush"]));
        let text = "ACME-1234, Hush, hush and AKIAIOSFODNN7EXAMPLE";
        let expected = "[redacted], [redacted], [redacted] and AKIAIOSFODNN7EXAMPLE";
        assert_eq!(own.redacted(text), Some((expected.to_owned(), 3)));
        assert_eq!(Patterns::new(&of(&[])).redacted(text), None);
        assert_eq!(wrong(&[r"ACME-\d{4}".to_owned()]), None);
        for (pattern, why) in [
            ("a*", "it matches an empty text"),
            ("(a", "not a regular expression: unclosed group"),
            (r"x|\b", "it matches an empty text"),
            ("a{4097}", "each match is longer than 4096 bytes"),
            (
                "(?:[a-z]{0,1000}x){1,1000}",
                "it takes too much memory; write `(?-u:\\w)` for ASCII letters, or repeat less",
            ),
        ] {
            let said = wrong(&["fine".to_owned(), pattern.to_owned()]);
            assert_eq!(said, Some((Some(1), why.to_owned())));
        }
        let large = vec!["[a-z]{200}".repeat(20); 80];
        assert_eq!(wrong(&large), Some((None, "all patterns together take too much memory".to_owned())));
    }

    #[test]
    fn known_forms_are_found_at_any_length() {
        let lines = "MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF0qJDr8\n".repeat(1_500);
        let pem = format!("-----BEGIN RSA PRIVATE KEY-----\n{lines}-----END RSA PRIVATE KEY-----");
        let long = "aB3_".repeat(10_000);
        for secret in [pem, format!("eyJ{long}.eyJ{long}.{long}"), format!("Bearer {long}"), format!("sk-{long}")] {
            let text = format!("before {secret} after");
            assert_eq!(keys().redacted(&text), Some(("before [redacted] after".to_owned(), 1)), "{}", &text[..40]);
        }
    }

    #[test]
    fn matches_that_overlap_are_redacted_as_one() {
        let patterns = own(&["abcd", "cdef", "defg"]);
        assert_eq!(patterns.redacted("abcdefg abcd"), Some(("[redacted] [redacted]".to_owned(), 2)));
    }

    #[test]
    fn matches_across_window_borders_are_found() {
        let long = format!("<cc>{}</cc>", "x".repeat(MATCH_MAX - 9));
        let patterns = own(&["<cc>.*?</cc>", r"\bhush\b"]);
        for secret in [long.as_str(), "hush"] {
            for before in (12_000..17_000).step_by(53) {
                let before = "y ".repeat(before / 2);
                let text = format!("{before}{secret} {before}");
                assert_eq!(patterns.redacted(&text).unwrap().0, format!("{before}[redacted] {before}"));
            }
        }
    }

    /// Neither the end of a window nor its beginning is the end of a word.
    #[test]
    fn window_borders_make_no_matches() {
        let patterns = own(&[r"\bhush\b", "(?m)^rush$", r"\A_+\z"]);
        for before in 12_200..12_400 {
            let text = format!("{}hushhushrush{}", "_".repeat(before), "_".repeat(30_000));
            assert_eq!(patterns.redacted(&text), None);
        }
        for before in 16_300..16_400 {
            let text = format!("{}hushhushrush{}", "é".repeat(before / 2), "é".repeat(10_000));
            assert_eq!(patterns.redacted(&text), None);
        }
        let text = format!("{} hush, {}", "é".repeat(30_000), "é".repeat(30_000));
        assert_eq!(patterns.redacted(&text).unwrap().1, 1);
    }

    /// The texts are as dense with matches, and with beginnings of matches, as they can be.
    #[test]
    fn search_reads_linearly_on_dense_texts() {
        let cc = own(&["<cc>.*</cc>", "[0-9]{4}"]);
        let token = format!("eyJaaaaaaaa-AKIA{}-", "A".repeat(16));
        let pem = "-----BEGIN PRIVATE KEY-----";
        for (patterns, part) in [
            (&keys(), token.as_str()),
            (&keys(), "eyJaaaaaaaa.eyJaaaaaaaa.aaa "),
            (&keys(), "SG.aaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaa."),
            (&keys(), "bearer aaaaaaaaaaaaaaaaaaaaaaaaa= "),
            (&keys(), pem),
            (&cc, "1234 "),
            (&cc, "<cc>1234 "),
            (&cc, "<cc>1234</cc> "),
            (&cc, "<cc>1234</cc>\n"),
            (&own(&["(x+x+)+y", "x+"]), "x"),
            (&own(&[r"\bhush\b"]), "é hush "),
        ] {
            let read = |bytes: usize| {
                let text = part.repeat(bytes / part.len());
                let matches = patterns.search(&text, &AtomicBool::new(false));
                assert!(!matches.is_withheld, "{part}");
                matches.read
            };
            let (once, twice) = (read(256 << 10), read(512 << 10));
            assert!(twice <= once * 21 / 10, "{part}: {once} bytes are read, and {twice} of twice the text");
        }
    }

    #[test]
    fn text_is_withheld_once_its_budget_is_spent() {
        // Each match reads a window to its end.
        let patterns = own(&["[0-9]{4}(?:.*x)?"]);
        let matches = patterns.search(&"1234 ".repeat(50_000), &AtomicBool::new(false));
        assert_eq!(matches, Matches { is_withheld: true, ..Matches::default() });
        assert_eq!(patterns.redacted("1234 5678"), Some(("[redacted] [redacted]".to_owned(), 2)));
    }

    #[test]
    fn search_stops_when_it_is_cancelled() {
        assert!(keys().search("AKIAIOSFODNN7EXAMPLE", &AtomicBool::new(true)).is_withheld);
    }
}

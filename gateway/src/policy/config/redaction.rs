//! What is a secret by its form: keys and tokens that are known, and what the configuration says.

use regex::{Captures, Regex, RegexBuilder};

/// What stands in the place of a secret.
const IN_ITS_PLACE: &str = "[redacted]";
/// What the patterns of a configuration may take of memory together, and how long a text may be that a search remembers.
const BYTES_MAX: usize = 4 << 20;

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

/// All of them, read as one.
#[derive(Debug)]
pub(crate) struct Patterns(Option<Regex>);

impl Patterns {
    /// Those of a configuration, each of which was checked; none where it names none.
    pub(crate) fn new(terms: &Redaction) -> Self {
        let known = KNOWN.iter().filter(|_| terms.keys).map(|known| (*known).to_owned());
        let all: Vec<_> = known.chain(terms.patterns.iter().cloned()).map(|one| format!("(?:{one})")).collect();
        if all.is_empty() {
            return Self(None);
        }
        match compiled(&all.join("|")) {
            Ok(pattern) => Self(Some(pattern)),
            Err(error) => {
                tracing::error!(%error, "patterns of [redact] cannot be used together: nothing is redacted");
                Self(None)
            }
        }
    }

    /// The text without secrets, where it has one, and how many it had.
    pub(crate) fn redacted(&self, text: &str) -> Option<(String, usize)> {
        let pattern = self.0.as_ref()?;
        let mut count = 0;
        let text = pattern.replace_all(text, |_: &Captures<'_>| {
            count += 1;
            IN_ITS_PLACE
        });
        (count > 0).then(|| (text.into_owned(), count))
    }
}

fn compiled(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(BYTES_MAX).dfa_size_limit(BYTES_MAX).build()
}

/// What is wrong with the patterns of a configuration: of which one, where it is one of them.
pub(crate) fn wrong(patterns: &[String]) -> Option<(Option<usize>, String)> {
    // To read what is known takes a good part of the time of a start, and mostly nothing else is there.
    if patterns.is_empty() {
        return None;
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let why = match compiled(pattern) {
            // It would be found between all letters.
            Ok(found) if found.is_match("") => "it matches an empty text".to_owned(),
            Ok(_) => continue,
            Err(regex::Error::CompiledTooBig(_)) => "it takes too much memory".to_owned(),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                format!("not a regular expression: {why}")
            }
        };
        return Some((Some(index), why));
    }
    let all: Vec<_> = KNOWN.iter().copied().chain(patterns.iter().map(String::as_str)).collect();
    let is_too_large = compiled(&format!("(?:{})", all.join(")|(?:"))).is_err();
    is_too_large.then(|| (None, "all patterns together take too much memory".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("(?:a{1000}){1000}", "it takes too much memory"),
        ] {
            let said = wrong(&["fine".to_owned(), pattern.to_owned()]);
            assert_eq!(said, Some((Some(1), why.to_owned())));
        }
        let large = vec!["[a-z]{200}".repeat(100); 40];
        assert_eq!(wrong(&large), Some((None, "all patterns together take too much memory".to_owned())));
    }

    #[test]
    fn a_search_takes_time_by_the_length_of_its_text_alone() {
        // The classic case for what goes back and tries again: it would take longer than the world is old.
        let own = Patterns::new(&Redaction { keys: true, patterns: vec!["(x+x+)+y".to_owned()] });
        assert_eq!(own.redacted(&"x".repeat(100_000)), None);
    }
}

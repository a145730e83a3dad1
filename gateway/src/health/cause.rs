//! Why something happened: in our words, which everybody may read, and in those of others, which only the operator may.

use crate::secrets::mask;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Why something happened, for a person. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Cause(Arc<Parts>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Parts {
    text: String,
    /// Which pieces of it are another's words, or say what only the operator may know. They are in order.
    foreign: Vec<Range<usize>>,
}

impl Cause {
    /// With more in our words.
    #[must_use]
    pub fn own(mut self, text: &str) -> Self {
        Arc::make_mut(&mut self.0).text.push_str(text);
        self
    }

    /// With more in the words of another, or with what only the operator may know: a path, an address. Secrets are masked.
    #[must_use]
    pub fn foreign(mut self, text: &str) -> Self {
        if !text.is_empty() {
            let parts = Arc::make_mut(&mut self.0);
            let start = parts.text.len();
            parts.text.push_str(&mask::masked(text));
            parts.foreign.push(start..parts.text.len());
        }
        self
    }

    /// With all that another says.
    #[must_use]
    pub fn then(mut self, other: &Self) -> Self {
        let parts = Arc::make_mut(&mut self.0);
        let start = parts.text.len();
        parts.text.push_str(&other.0.text);
        parts.foreign.extend(other.0.foreign.iter().map(|range| range.start + start..range.end + start));
        self
    }

    /// For the operator: everything.
    pub fn full(&self) -> &str {
        &self.0.text
    }

    /// For everybody: our words alone.
    pub fn public(&self) -> Cow<'_, str> {
        if self.0.foreign.is_empty() {
            return Cow::Borrowed(&self.0.text);
        }
        let (mut out, mut at) = (String::new(), 0);
        for foreign in &self.0.foreign {
            out.push_str(&self.0.text[at..foreign.start]);
            at = foreign.end;
        }
        out.push_str(&self.0.text[at..]);
        Cow::Owned(out)
    }

    /// What kind of failure it tells of: our words and the codes in them, without counts, times and the words of others.
    pub fn class(&self) -> String {
        /// A number behind one of these is a code.
        const CODES: [&str; 5] = ["HTTP", "status", "error", "signal", "code"];
        let public = self.public();
        let mut before = "";
        let words = public.split(' ').map(|word| {
            let is_code = CODES.contains(&std::mem::replace(&mut before, word));
            if is_code { word.to_owned() } else { word.replace(|c: char| c.is_ascii_digit(), "") }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Whether nothing of it is for the operator alone.
    pub fn is_public(&self) -> bool {
        self.0.foreign.is_empty()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.0.text.is_empty()
    }
}

impl From<&str> for Cause {
    fn from(own: &str) -> Self {
        own.to_owned().into()
    }
}

impl From<String> for Cause {
    fn from(own: String) -> Self {
        Self(Arc::new(Parts { text: own, foreign: Vec::new() }))
    }
}

/// It may stand in a log: whoever reads that is the operator.
impl std::fmt::Debug for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self.full(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_a_cause_has_its_codes_and_neither_counts_nor_the_words_of_others() {
        let of = |own: &str, foreign: &str| Cause::from(own).foreign(foreign).own("; again in 3 s").class();
        assert_eq!(of("HTTP 503 after 7 s", ": request 8a1f"), of("HTTP 503 after 12 s", ": request 77bc"));
        assert_eq!(of("it failed 3 times: error -32603", ""), of("it failed 4 times: error -32603", ""));
        assert_ne!(of("HTTP 503", ""), of("HTTP 401", ""));
        assert_ne!(of("it exited with status 1", ""), of("it exited with status 2", ""));
        assert_ne!(of("it was killed by signal 9", ""), of("it exited with status 9", ""));
    }

    #[test]
    fn everybody_is_told_our_words_and_the_operator_all() {
        let inner = Cause::from("HTTP 401").foreign(": go away").own("; set `headers`");
        let cause = Cause::from("it was asked: ").then(&inner).own(", 3 times").foreign(" (/bin/x)");
        assert_eq!(cause.full(), "it was asked: HTTP 401: go away; set `headers`, 3 times (/bin/x)");
        assert_eq!(cause.public(), "it was asked: HTTP 401; set `headers`, 3 times");
        assert!(!cause.is_public() && Cause::from("x").foreign("").is_public() && Cause::default().is_empty());
        assert_ne!(Cause::from("a").foreign("b"), Cause::from("ab"));
    }
}

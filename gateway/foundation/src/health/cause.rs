//! Why something happened: a code for programs, our words, which everybody may read, those of others, which only the operator may, and
//! what the operator does next.

use super::code::CauseCode;
use crate::secrets::mask;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Why something happened. It has no code where it is a piece of another one. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Cause(Arc<Parts>);

#[derive(Clone, Default, PartialEq, Eq)]
struct Parts {
    /// What happened, then what that comes of.
    codes: Vec<CauseCode>,
    text: String,
    /// Which pieces of the text are another's words, or say what only the operator may know, each with what stands for it elsewhere. They
    /// are in order.
    foreign: Vec<(Range<usize>, &'static str)>,
    /// What the operator does next, in our words; empty where there is nothing to do.
    advice: String,
}

impl Cause {
    /// Of this kind, in our words.
    pub fn new(code: CauseCode, own: impl Into<String>) -> Self {
        Self(Arc::new(Parts { codes: vec![code], text: own.into(), ..Parts::default() }))
    }

    /// With more in our words.
    #[must_use]
    pub fn own(mut self, text: &str) -> Self {
        Arc::make_mut(&mut self.0).text.push_str(text);
        self
    }

    /// With more in the words of another, or with what only the operator may know: a path, an address. Secrets are masked.
    #[must_use]
    pub fn foreign(self, text: &str) -> Self {
        self.foreign_or(text, "")
    }

    /// The same, for which everybody else reads a word of ours.
    #[must_use]
    pub fn foreign_or(mut self, text: &str, instead: &'static str) -> Self {
        if !text.is_empty() {
            let parts = Arc::make_mut(&mut self.0);
            let start = parts.text.len();
            parts.text.push_str(&mask::masked(text));
            parts.foreign.push((start..parts.text.len(), instead));
        }
        self
    }

    /// With what the operator does next, beside what was advised already.
    #[must_use]
    pub fn advise(mut self, advice: &str) -> Self {
        if !advice.is_empty() {
            let known = &mut Arc::make_mut(&mut self.0).advice;
            let gap = if known.is_empty() { "" } else { "; " };
            known.push_str(gap);
            known.push_str(advice);
        }
        self
    }

    /// With this in place of what was advised already.
    #[must_use]
    pub fn advise_instead(mut self, advice: &str) -> Self {
        advice.clone_into(&mut Arc::make_mut(&mut self.0).advice);
        self
    }

    /// With all that another says: it comes of that one.
    #[must_use]
    pub fn then(mut self, other: &Self) -> Self {
        let parts = Arc::make_mut(&mut self.0);
        let start = parts.text.len();
        parts.text.push_str(&other.0.text);
        let moved = |(range, instead): &(Range<usize>, _)| (range.start + start..range.end + start, *instead);
        parts.foreign.extend(other.0.foreign.iter().map(moved));
        parts.codes.extend(&other.0.codes);
        self.advise(&other.0.advice)
    }

    /// What kind of thing happened.
    pub fn code(&self) -> CauseCode {
        self.0.codes.first().copied().unwrap_or(CauseCode::Unknown)
    }

    /// The number of its kind, or of the first kind it comes of that has one.
    pub fn number(&self) -> Option<i64> {
        self.0.codes.iter().find_map(|code| code.number())
    }

    /// What kinds of things happened, what comes of the others first. Causes of the same kinds are one event that happened again: counts,
    /// times and the words of others make no other.
    pub fn codes(&self) -> &[CauseCode] {
        &self.0.codes
    }

    /// What the operator does next; empty where there is nothing to do.
    pub fn advice(&self) -> &str {
        &self.0.advice
    }

    /// For the operator: everything.
    pub fn full(&self) -> Cow<'_, str> {
        self.advised(Cow::Borrowed(&self.0.text))
    }

    /// For everybody: our words alone, and the advice.
    pub fn public(&self) -> Cow<'_, str> {
        self.advised(self.own_words())
    }

    /// What happened, in our words alone.
    pub fn own_words(&self) -> Cow<'_, str> {
        if self.0.foreign.is_empty() {
            return Cow::Borrowed(&self.0.text);
        }
        let (mut out, mut at) = (String::new(), 0);
        for (foreign, instead) in &self.0.foreign {
            out.push_str(&self.0.text[at..foreign.start]);
            out.push_str(instead);
            at = foreign.end;
        }
        out.push_str(&self.0.text[at..]);
        Cow::Owned(out)
    }

    /// A text about what happened, with the advice.
    pub fn advised<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        match &*self.0.advice {
            "" => text,
            advice => Cow::Owned(format!("{text}; {advice}")),
        }
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

#[cfg(any(test, feature = "test-support"))]
impl From<&str> for Cause {
    fn from(own: &str) -> Self {
        Self::new(CauseCode::Unknown, own)
    }
}

/// It may stand in a log: whoever reads that is the operator.
impl std::fmt::Debug for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&*self.full(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_alike_by_their_codes_whatever_counts_times_and_words_of_others_they_have() {
        let status = |status, own: &str, foreign: &str| {
            Cause::new(CauseCode::HttpStatus(status), own).foreign(foreign).own("; again in 3 s")
        };
        let is_alike = |one: &Cause, other: &Cause| one.codes() == other.codes();
        let busy = status(503, "HTTP 503 after 7 s", ": request 8a1f");
        assert!(is_alike(&busy, &status(503, "HTTP 503 after 12 s", ": request 77bc")));
        assert!(!is_alike(&busy, &status(401, "HTTP 401 after 7 s", ": request 8a1f")));
        let open = |last: &Cause| Cause::new(CauseCode::BreakerOpen, "failed (last: ").then(last).own(")");
        assert!(is_alike(&open(&busy), &open(&status(503, "HTTP 503", ""))) && !is_alike(&open(&busy), &busy));
        assert!(!is_alike(&open(&busy), &open(&status(500, "HTTP 500", ""))));
        assert_eq!((open(&busy).code().as_str(), open(&busy).number()), ("breaker_open", Some(503)));
        let (exited, killed) = (Cause::new(CauseCode::Exited(9), "x"), Cause::new(CauseCode::Killed(9), "x"));
        assert!(!is_alike(&exited, &killed));
        assert_eq!(Cause::default().code(), CauseCode::Unknown);
    }

    #[test]
    fn everybody_is_told_our_words_and_the_operator_all() {
        let inner = Cause::from("HTTP 401").foreign(": go away").advise("set `headers`");
        let cause = Cause::from("it was asked: ").then(&inner).own(", 3 times").foreign(" (/bin/x)");
        assert_eq!(cause.full(), "it was asked: HTTP 401: go away, 3 times (/bin/x); set `headers`");
        assert_eq!(cause.public(), "it was asked: HTTP 401, 3 times; set `headers`");
        assert_eq!((&*cause.own_words(), cause.advice()), ("it was asked: HTTP 401, 3 times", "set `headers`"));
        assert_eq!(cause.advise("try again").advice(), "set `headers`; try again");
        assert!(!inner.is_public() && Cause::from("x").foreign("").is_public() && Cause::default().is_empty());
        assert_ne!(Cause::from("a").foreign("b"), Cause::from("ab"));
    }
}

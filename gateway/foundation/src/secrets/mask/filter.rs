//! A first look at a text, which costs little: most hold none of the secrets, and need none of the normal forms.
//!
//! A normal form leaves out some characters of a text, and resolves escapes. Where a text has no escapes, every normal form of it differs
//! from it by characters that are left out; without all of these, the forms of a secret are looked for in one pass.

use super::view::{RUN_MIN, View, is_digit};
use crate::steps;
use aho_corasick::AhoCorasick;
use std::collections::BTreeSet;

/// Less than this of a form tells nothing.
const LEAST: usize = 3;

/// What is left of what is looked for.
pub(super) struct Filter {
    automaton: AhoCorasick,
    /// Whether a secret has characters beyond ASCII: those of a text count then, in whatever form.
    is_foreign: bool,
}

impl Filter {
    /// Of parts that every form of a secret has; `None` where too little is left of one of them. Those with bytes beyond ASCII are not
    /// looked for: what may hold these passes anyway, where a secret has any.
    pub(super) fn of<'a>(parts: impl Iterator<Item = &'a [u8]>, is_foreign: bool) -> Option<Self> {
        let parts = parts.filter(|part| !is_foreign || part.is_ascii());
        let left: BTreeSet<Vec<u8>> =
            parts.map(|part| part.iter().filter(|byte| stays(**byte)).map(u8::to_ascii_lowercase).collect()).collect();
        let is_enough = left.iter().all(|part: &Vec<u8>| part.len() >= LEAST);
        let automaton = is_enough.then(|| AhoCorasick::new(&left).ok()).flatten()?;
        Some(Self { automaton, is_foreign })
    }

    /// Whether a text may hold a secret in any normal form; if not, it holds none. `is_json` says that it stands between the quotes of a
    /// JSON string.
    pub(super) fn may_hold(&self, text: &[u8], is_json: bool) -> bool {
        steps::add(text.len());
        self.left_of(text, is_json).is_none_or(|left| self.automaton.is_match(&left))
    }

    /// A text without what some normal form leaves out; `None` where it has escapes, or base64 of something that has.
    fn left_of(&self, text: &[u8], is_json: bool) -> Option<Vec<u8>> {
        let mut left = Vec::with_capacity(text.len());
        let (mut at, mut run) = (0, Vec::new());
        while let Some(byte) = text.get(at) {
            let after = &text[at + 1..];
            let (taken, byte) = match byte {
                b'\\' if is_json => match after.first()? {
                    b'n' | b'r' | b't' | b'b' | b'f' => (2, b' '),
                    plain @ (b'"' | b'/') => (2, *plain),
                    _ => return None,
                },
                b'\\' | 0x1b => return None,
                b'%' | b'&' | b'=' | b'<' if begins_escape(*byte, after) => return None,
                0x80.. if self.is_foreign => return None,
                byte => (1, *byte),
            };
            if is_digit(byte) {
                run.push(byte);
            } else if !run.is_empty() {
                self.has_nothing(&run)?;
                run.clear();
            }
            if stays(byte) {
                left.push(byte.to_ascii_lowercase());
            }
            at += taken;
        }
        self.has_nothing(&run)?;
        Some(left)
    }

    /// Fails where a run of base64 digits may hold what is encoded once more.
    fn has_nothing(&self, run: &[u8]) -> Option<()> {
        if run.len() < RUN_MIN {
            return Some(());
        }
        let view = View::plain(run);
        let is_of_escapes = |first| view.decoded(first).is_some_and(|decoded| decoded.resolved().is_some());
        (!self.is_foreign && !(0..4).any(is_of_escapes)).then_some(())
    }
}

/// Whether no normal form leaves it out by itself: white space, what cannot be seen, what stands between digits.
fn stays(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b":-,;0xX".contains(&byte)
}

/// Whether an escape may begin with this byte, before these.
fn begins_escape(byte: u8, after: &[u8]) -> bool {
    let Some(first) = after.first() else { return false };
    let is_hex = || after.iter().take(2).filter(|byte| byte.is_ascii_hexdigit()).count() == 2;
    *first == b'\\'
        || match byte {
            b'%' => b"uU".contains(first) || is_hex(),
            b'&' => *first == b'#' || first.is_ascii_alphabetic(),
            b'=' => b"\r\n".contains(first) || is_hex(),
            _ => b"/!".contains(first) || first.is_ascii_alphabetic(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_texts_need_no_second_look() {
        let filter = Filter::of([&b"s3cr3t"[..], b"70-617373"].into_iter(), false).unwrap();
        for text in [
            "it is not there: \t100 % of a < b & c = d",
            "no information about täg/authorization",
            "s3cr",
            "",
            "p4ssw0rd",
        ] {
            assert!(!filter.may_hold(text.as_bytes(), false), "{text}");
        }
        assert!(!filter.may_hold(br#"a \"b\" of\n s3c 3t \/ r"#, true));
        for text in
            ["a S3cr3T b", "s 3:c\tr 3-t", "0x70, 0x61 73:73", "s3c%72", "<b>", "a=3D", "&amp;", "\\", "xJTczJTMzJTYz"]
        {
            assert!(filter.may_hold(text.as_bytes(), false), "{text}");
        }
        assert!(filter.may_hold(br"s3c\nr3t", true) && filter.may_hold(br"\u0041", true));
        let foreign = Filter::of([&b"gef"[..]].into_iter(), true).unwrap();
        assert!(foreign.may_hold("ä".as_bytes(), false) && !foreign.may_hold(b"a", false));
        assert!(Filter::of([&b"0-0-0-0-a"[..]].into_iter(), false).is_none());
    }
}

//! Walks raw JSON without building a tree: validates strictly, one pass, no recursion, no decoding.

pub use nest::DEPTH_MAX;
pub use text::{has_lone_surrogate, quote, quote_to, quoted_len, unquote, unquote_lossy, written_places};

mod nest;
mod text;

use crate::steps;
use nest::Nest;
use std::borrow::Cow;

/// Why some bytes are not a JSON value that we accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The grammar breaks at this byte.
    #[error("not valid JSON at byte {0}")]
    Syntax(usize),
    /// Arrays and objects lie deeper than [`DEPTH_MAX`].
    #[error("JSON is nested deeper than {DEPTH_MAX} levels")]
    Depth,
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    Utf8,
    /// An array has more elements than are looked at one by one.
    #[error("an array has too many elements")]
    Many,
}

/// The most elements of an array that are looked at one by one.
pub const ELEMENTS_MAX: usize = 64 * 1024;

/// Skips white space.
#[inline]
pub fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Validates the one value that starts at `at` (no white space before it) and returns where it ends.
pub fn value(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let end = match bytes.get(at) {
        Some(b'"') => string(bytes, at),
        Some(b'{' | b'[') => nested(bytes, at),
        _ => scalar(bytes, at),
    };
    steps::add(end.as_ref().map_or(bytes.len(), |end| *end) - at.min(bytes.len()));
    end
}

/// As [`value`], of an array or an object.
fn nested(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    let mut nest = Nest::default();
    loop {
        at = match bytes.get(at) {
            Some(b'{') => {
                nest.push(true).ok_or(Fault::Depth)?;
                at = space(bytes, at + 1);
                if bytes.get(at) != Some(&b'}') {
                    at = key(bytes, at)?;
                    continue;
                }
                nest.pop();
                at + 1
            }
            Some(b'[') => {
                nest.push(false).ok_or(Fault::Depth)?;
                at = space(bytes, at + 1);
                if bytes.get(at) != Some(&b']') {
                    continue;
                }
                nest.pop();
                at + 1
            }
            Some(b'"') => string(bytes, at)?,
            _ => scalar(bytes, at)?,
        };
        loop {
            if nest.is_empty() {
                return Ok(at);
            }
            at = space(bytes, at);
            match (bytes.get(at), nest.in_object()) {
                (Some(b','), true) => {
                    at = key(bytes, space(bytes, at + 1))?;
                    break;
                }
                (Some(b','), false) => {
                    at = space(bytes, at + 1);
                    break;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    nest.pop();
                    at += 1;
                }
                _ => return Err(Fault::Syntax(at)),
            }
        }
    }
}

/// Validates a whole text: white space, one value, white space. Returns the value's place.
pub fn document(bytes: &[u8]) -> Result<std::ops::Range<usize>, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::Utf8)?;
    let start = space(bytes, 0);
    let end = value(bytes, start)?;
    finish(bytes, end)?;
    Ok(start..end)
}

/// Requires that nothing but white space follows.
pub(crate) fn finish(bytes: &[u8], at: usize) -> Result<(), Fault> {
    let at = space(bytes, at);
    if at == bytes.len() { Ok(()) } else { Err(Fault::Syntax(at)) }
}

/// What stands at one level of a validated or unvalidated object: `(key, value)` places, in order.
pub struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
    state: Walk,
}

/// One member: where its key string (with quotes) and its value stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// First byte of the key's opening quote.
    pub start: usize,
    /// One past the key's closing quote.
    pub key_end: usize,
    /// First byte of the value.
    pub value: usize,
    /// One past the value.
    pub end: usize,
    /// The key is spelled with an escape.
    pub is_escaped: bool,
}

impl Member {
    /// The key as its receiver reads it; `None` where it is no text (a lone surrogate).
    #[inline(always)]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if self.is_escaped {
            let text = unquote(&bytes[self.start..self.key_end])?;
            return Some(Cow::Owned(text.into_owned().into_bytes()));
        }
        Some(Cow::Borrowed(&bytes[self.start + 1..self.key_end - 1]))
    }
}

#[derive(PartialEq)]
enum Walk {
    First,
    Rest,
    Done,
}

impl<'a> Members<'a> {
    /// Walks the object whose `{` stands at `at`.
    pub fn at(bytes: &'a [u8], at: usize) -> Result<Self, Fault> {
        if bytes.get(at) != Some(&b'{') {
            return Err(Fault::Syntax(at));
        }
        Ok(Self { bytes, at: at + 1, state: Walk::First })
    }

    /// Walks `bytes` as one object, as [`crate::value::Object`] and results hold it.
    pub fn of(bytes: &'a [u8]) -> Result<Self, Fault> {
        Self::at(bytes, space(bytes, 0))
    }

    /// The next member up to its value, which the caller may walk itself and then report with [`Self::resume`].
    #[inline(always)]
    pub fn next_key(&mut self) -> Result<Option<Member>, Fault> {
        if self.state == Walk::Done {
            return Ok(None);
        }
        let mut at = space(self.bytes, self.at);
        match (self.bytes.get(at), &self.state) {
            (Some(b'}'), _) => {
                self.state = Walk::Done;
                self.at = at + 1;
                return Ok(None);
            }
            (Some(b','), Walk::Rest) => at = space(self.bytes, at + 1),
            (Some(_), Walk::First) => {}
            _ => return Err(Fault::Syntax(at)),
        }
        self.state = Walk::Rest;
        if self.bytes.get(at) != Some(&b'"') {
            return Err(Fault::Syntax(at));
        }
        let plain_end = plain(self.bytes, at + 1);
        let is_escaped = self.bytes.get(plain_end) != Some(&b'"');
        let key_end = if is_escaped { escaped(self.bytes, plain_end)? } else { plain_end + 1 };
        let colon = space(self.bytes, key_end);
        if self.bytes.get(colon) != Some(&b':') {
            return Err(Fault::Syntax(colon));
        }
        let value = space(self.bytes, colon + 1);
        steps::add(value - self.at);
        Ok(Some(Member { start: at, key_end, value, end: value, is_escaped }))
    }

    /// Goes on behind a value that the caller has walked.
    pub fn resume(&mut self, at: usize) {
        (self.at, self.state) = (at, Walk::Rest);
    }

    /// Where the object ended; meaningful once the walk has returned `None`.
    pub(crate) fn end(&self) -> usize {
        self.at
    }
}

impl Iterator for Members<'_> {
    type Item = Result<Member, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.next_key().and_then(|member| match member {
            Some(mut member) => {
                member.end = value(self.bytes, member.value)?;
                self.at = member.end;
                Ok(Some(member))
            }
            None => Ok(None),
        });
        if step.is_err() {
            self.state = Walk::Done;
        }
        step.transpose()
    }
}

/// The places of an array's elements, in order.
pub fn elements(bytes: &[u8]) -> Result<Vec<std::ops::Range<usize>>, Fault> {
    elements_up_to(ELEMENTS_MAX, bytes)
}

/// As [`elements`], where more than `max` are too many: they are counted while they are split.
pub fn elements_up_to(max: usize, bytes: &[u8]) -> Result<Vec<std::ops::Range<usize>>, Fault> {
    let (found, is_all) = first_elements(max, bytes)?;
    is_all.then_some(found).ok_or(Fault::Many)
}

/// The first elements of an array, at most `max`, and whether those are all of them.
pub fn first_elements(max: usize, bytes: &[u8]) -> Result<(Vec<std::ops::Range<usize>>, bool), Fault> {
    let mut at = space(bytes, 0);
    if bytes.get(at) != Some(&b'[') {
        return Err(Fault::Syntax(at));
    }
    let mut found = Vec::new();
    at = space(bytes, at + 1);
    if bytes.get(at) == Some(&b']') {
        return Ok((found, true));
    }
    loop {
        let end = value(bytes, at)?;
        if found.len() >= max {
            return Ok((found, false));
        }
        found.push(at..end);
        at = space(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = space(bytes, at + 1),
            Some(b']') => return Ok((found, true)),
            _ => return Err(Fault::Syntax(at)),
        }
    }
}

/// The raw value of `key` in an object; the last one where the key stands twice.
pub fn get<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let mut found = None;
    for member in Members::of(object).ok()? {
        let member = member.ok()?;
        if member.key(object).as_deref() == Some(key.as_bytes()) {
            found = Some(&object[member.value..member.end]);
        }
    }
    found
}

/// Appends the members of an object but these, each behind a comma.
pub fn others(object: &[u8], left_out: &[&str], out: &mut Vec<u8>) {
    for member in Members::of(object).into_iter().flatten().flatten() {
        let key = member.key(object);
        if !left_out.iter().any(|name| key.as_deref() == Some(name.as_bytes())) {
            out.push(b',');
            out.extend_from_slice(&object[member.start..member.end]);
        }
    }
}

fn key(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let colon = space(bytes, string(bytes, at)?);
    if bytes.get(colon) == Some(&b':') { Ok(space(bytes, colon + 1)) } else { Err(Fault::Syntax(colon)) }
}

/// Validates a string whose opening quote stands at `at`; lone surrogate escapes pass, raw control bytes do not. Returns
/// where it ends.
#[inline]
fn string(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    if bytes.get(at) != Some(&b'"') {
        return Err(Fault::Syntax(at));
    }
    let at = plain(bytes, at + 1);
    if bytes.get(at) == Some(&b'"') { Ok(at + 1) } else { escaped(bytes, at) }
}

/// Goes on within a string where its plain bytes end.
fn escaped(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') if bytes.len() >= at + 6 && bytes[at + 2..at + 6].iter().all(u8::is_ascii_hexdigit) => {
                    at += 6;
                }
                _ => return Err(Fault::Syntax(at)),
            },
            _ => return Err(Fault::Syntax(at)),
        }
        at = plain(bytes, at);
    }
}

/// Skips string bytes that need no look, eight at a time, up to a quote, a backslash, a control byte or the end.
#[inline]
fn plain(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("the slice has eight bytes"));
        // Flipping the second bit puts the quote, 0x22, next to the control bytes: one test finds both.
        let quote_or_control = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
        let slash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
        let hit = (quote_or_control | slash) & !word & HIGH;
        if hit != 0 {
            return at + (hit.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        at += 1;
    }
    at
}

fn scalar(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let rest = bytes.get(at..).unwrap_or_default();
    let word = match rest.first() {
        Some(b't') => &b"true"[..],
        Some(b'f') => b"false",
        Some(b'n') => b"null",
        _ => return number(bytes, at),
    };
    if rest.starts_with(word) { Ok(at + word.len()) } else { Err(Fault::Syntax(at)) }
}

fn number(bytes: &[u8], start: usize) -> Result<usize, Fault> {
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let whole = start + usize::from(bytes.get(start) == Some(&b'-'));
    let mut at = match bytes.get(whole) {
        Some(b'0') => whole + 1,
        Some(b'1'..=b'9') => digits(whole),
        _ => return Err(Fault::Syntax(whole)),
    };
    if bytes.get(at) == Some(&b'.') {
        let end = digits(at + 1);
        if end == at + 1 {
            return Err(Fault::Syntax(end));
        }
        at = end;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let sign = at + 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        at = digits(sign);
        if at == sign {
            return Err(Fault::Syntax(at));
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests;

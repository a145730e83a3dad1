//! Detection of dot segments in URIs, in each spelling that a consumer could resolve.

use crate::secrets::is_hidden;
use std::borrow::Cow;
use unicode_normalization::char::decompose_compatible;

/// Checks if a part of a URI has a segment `.` or `..` for any consumer: one that decodes escapes once or repeatedly, normalizes
/// Unicode (NFKC), drops blanks and invisible characters, or accepts overlong UTF-8.
pub(super) fn can_climb(part: &str) -> bool {
    let Some(decoded) = decode(part) else { return true };
    let mut segment = Segment::default();
    for c in decoded.chars() {
        match c {
            c if is_refused(c) => return true,
            c if is_separator(c) && segment.is_dots() => return true,
            c if is_separator(c) => segment = Segment::default(),
            '.' => segment.dots += 1,
            // Forms write a blank as a plus sign.
            ' ' | '+' => segment.has_droppable = true,
            _ if !c.is_ascii() && (!c.is_alphanumeric() || is_hidden(c)) => segment.has_droppable = true,
            _ => segment.is_name = true,
        }
    }
    segment.is_dots()
}

/// The characters of a segment so far.
#[derive(Default)]
struct Segment {
    dots: usize,
    /// It has characters that a consumer may drop.
    has_droppable: bool,
    /// It has characters that every consumer keeps.
    is_name: bool,
}

impl Segment {
    /// Checks if the segment is `.` or `..` for some consumer.
    fn is_dots(&self) -> bool {
        !self.is_name && (matches!(self.dots, 1 | 2) || (self.dots > 2 && self.has_droppable))
    }
}

/// Resolves each escape once. `None`: a blank, a percent sign without two hexadecimal digits (also `%u002e`), or invalid UTF-8.
/// Consumers disagree on all of them.
fn decode(part: &str) -> Option<Cow<'_, str>> {
    if part.contains(' ') {
        return None;
    }
    let mut pieces = part.split('%');
    let start = pieces.next()?;
    if start.len() == part.len() {
        return Some(Cow::Borrowed(part));
    }
    let mut bytes = Vec::with_capacity(part.len());
    bytes.extend_from_slice(start.as_bytes());
    for piece in pieces {
        let (digits, literal) = piece.split_at_checked(2)?;
        // `from_str_radix` alone accepts a sign.
        let is_escape = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(is_escape.then(|| u8::from_str_radix(digits, 16).ok()).flatten()?);
        bytes.extend_from_slice(literal.as_bytes());
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// A character that no decoded part may contain: consumers drop it, or turn it into a dot, a separator or an escape.
fn is_refused(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() || c == '%';
    }
    let mut is_special = c.is_control();
    decompose_compatible(c, |part| is_special |= matches!(part, '.' | '%') || (part != c && is_read_as_slash(part)));
    is_special
}

/// A character that ends a segment of a path as ASCII, or in a code page that has `\` in its place.
fn is_read_as_slash(c: char) -> bool {
    matches!(c, '/' | '\\' | '?' | '#' | ';' | '\u{a5}' | '\u{20a9}')
}

/// A character that ends a segment of a path, or a name or value of a query, which may be a path too. Common code pages turn the ones
/// beyond ASCII into `/` or `\`; NFKC does not.
fn is_separator(c: char) -> bool {
    is_read_as_slash(c) || matches!(c, '\u{2044}' | '\u{2215}' | '\u{2216}' | '=' | '&')
}

#[cfg(test)]
mod tests;

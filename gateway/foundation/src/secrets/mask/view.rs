//! Normal forms of a text: escapes resolved, separators taken out. Each byte of a form knows the bytes of the text that it stands for.

use crate::secrets::visible::is_hidden;
use crate::steps;
use std::ops::Range;
use unicode_normalization::char::decompose_compatible;

/// A tag of markup is at most so long; what is longer is no tag.
const TAG_BYTES_MAX: usize = 256;
/// An escape sequence of a terminal is at most so long.
const ANSI_BYTES_MAX: usize = 64;
/// Names of characters in markup that stand in secrets.
const ENTITIES: [(&[u8], u8); 30] = [
    (b"amp", b'&'),
    (b"apos", b'\''),
    (b"ast", b'*'),
    (b"bsol", b'\\'),
    (b"colon", b':'),
    (b"comma", b','),
    (b"commat", b'@'),
    (b"dollar", b'$'),
    (b"equals", b'='),
    (b"excl", b'!'),
    (b"grave", b'`'),
    (b"gt", b'>'),
    (b"hat", b'^'),
    (b"hyphen", b'-'),
    (b"lbrace", b'{'),
    (b"lbrack", b'['),
    (b"lowbar", b'_'),
    (b"lpar", b'('),
    (b"lt", b'<'),
    (b"num", b'#'),
    (b"percnt", b'%'),
    (b"period", b'.'),
    (b"plus", b'+'),
    (b"quest", b'?'),
    (b"quot", b'"'),
    (b"rbrace", b'}'),
    (b"rbrack", b']'),
    (b"rpar", b')'),
    (b"semi", b';'),
    (b"sol", b'/'),
];

/// No character is looked for in more bytes of what it is made of.
const PIECE_BYTES_MAX: usize = 16;
/// So many digits of base64 can hold a secret.
pub(super) const RUN_MIN: usize = 11;

/// The bytes of a form, and for each the first byte of the text that it stands for and the one behind the last.
type Form = (Vec<u8>, Vec<(u32, u32)>);

/// A text in a normal form.
#[derive(Clone)]
pub(super) struct View {
    pub(super) bytes: Vec<u8>,
    /// For each byte the first byte of the text that it stands for, and the one behind the last; `None` where each stands for itself.
    places: Option<Vec<(u32, u32)>>,
}

impl View {
    /// The text as it is.
    pub(super) fn plain(text: &[u8]) -> Self {
        steps::add(text.len());
        Self { bytes: text.to_vec(), places: None }
    }

    /// What a JSON string says; the text is what stands between its quotes.
    pub(super) fn of_json(text: &[u8]) -> Self {
        let plain = Self::plain(text);
        plain.rewritten(|rest| memchr::memchr(b'\\', rest), backslash).unwrap_or(plain)
    }

    /// Which bytes of the text these of the form stand for.
    pub(super) fn place(&self, range: Range<usize>) -> Option<Range<usize>> {
        let Some(places) = &self.places else { return (!range.is_empty()).then_some(range) };
        let (first, last) = (places.get(range.start)?, places.get(range.end.checked_sub(1)?)?);
        Some(first.0 as usize..last.1 as usize)
    }

    /// Where the first piece begins that stands at or behind these bytes of the text: no escape is cut there.
    pub(super) fn behind(&self, bytes: usize) -> usize {
        let Some(places) = &self.places else { return bytes };
        let at = places.partition_point(|place| (place.0 as usize) < bytes);
        places.get(at).map_or(bytes, |place| place.0 as usize)
    }

    /// With escapes of JSON, programs, markup and addresses resolved once; `None` where there are none.
    pub(super) fn resolved(&self) -> Option<Self> {
        let find = |rest: &[u8]| memchr::memchr3(b'\\', b'&', b'%', rest);
        self.rewritten(find, |bytes, at| match bytes[at] {
            b'\\' => backslash(bytes, at),
            b'&' => entity(bytes, at),
            b'%' => percent(bytes, at),
            _ => None,
        })
    }

    /// With the escapes of mail resolved: `=2B`, and a line that goes on in the next one.
    pub(super) fn unquoted(&self) -> Option<Self> {
        self.rewritten(
            |rest| memchr::memchr(b'=', rest),
            |bytes, at| {
                let after = &bytes[at + 1..];
                match (bytes[at], after) {
                    (b'=', [b'\r', b'\n', ..]) => Some((3, Piece::default())),
                    (b'=', [b'\n', ..]) => Some((2, Piece::default())),
                    (b'=', _) => Some((3, Piece::byte(number(after.get(..2)?, 16)?))),
                    _ => None,
                }
            },
        )
    }

    /// Without what may stand between the characters of a value: white space, tags, what a terminal obeys or does not show.
    pub(super) fn joined(&self) -> Option<Self> {
        let find = |rest: &[u8]| rest.iter().position(|byte| *byte == b'<' || !byte.is_ascii_graphic());
        self.rewritten(find, |bytes, at| match bytes[at] {
            b'<' => Some((tag(bytes, at)?, Piece::default())),
            0x1b => Some((ansi(bytes, at), Piece::default())),
            byte if byte.is_ascii() => Some((1, Piece::default())),
            _ => match char_at(bytes, at) {
                Some(char) if is_hidden(char) || char.is_whitespace() || char == '\u{fffd}' => {
                    Some((char.len_utf8(), Piece::default()))
                }
                Some(char) => Some((char.len_utf8(), Piece::char(char))),
                None => Some((1, Piece::default())),
            },
        })
    }

    /// Without what stands between hexadecimal digits: `0x`, colons, commas, hyphens, white space.
    pub(super) fn of_digits(&self) -> Option<Self> {
        let find = |rest: &[u8]| rest.iter().position(|byte| b"0:-,; \t\r\n".contains(byte));
        self.rewritten(find, |bytes, at| match (bytes[at], bytes.get(at + 1)) {
            (b'0', Some(b'x' | b'X')) if bytes.get(at + 2).is_some_and(u8::is_ascii_hexdigit) => {
                Some((2, Piece::default()))
            }
            (b':' | b'-' | b',' | b';' | b' ' | b'\t' | b'\r' | b'\n', _) => Some((1, Piece::default())),
            _ => None,
        })
    }

    /// With every character beyond ASCII in small letters and taken apart: whichever form of it a text has, it is the same here.
    pub(super) fn folded(&self) -> Option<Self> {
        let find = |rest: &[u8]| rest.iter().position(|byte| !byte.is_ascii());
        self.rewritten(find, |bytes, at| char_at(bytes, at).map(|char| (char.len_utf8(), Piece::folded(char))))
    }

    /// What its runs of base64 digits hold, each read from the digit with this number on; `None` where no run is long enough, nor is one
    /// then from a later digit on.
    pub(super) fn decoded(&self, first: usize) -> Option<Self> {
        let (mut bytes, mut places) = Form::default();
        let mut at = 0;
        steps::add(self.bytes.len());
        while at < self.bytes.len() {
            let run = self.bytes[at..].iter().take_while(|byte| is_digit(**byte)).count();
            if run >= RUN_MIN + first {
                let digits = &self.bytes[at + first..at + run];
                for (group, four) in digits.chunks(4).enumerate().filter(|(_, four)| four.len() > 1) {
                    let begin = at + first + 4 * group;
                    let place = (self.place_at(begin).0, self.place_at(begin + four.len() - 1).1);
                    let bits = four.iter().fold(0, |bits, byte| bits << 6 | digit(*byte).unwrap_or_default());
                    let bits = bits << (6 * (4 - four.len()));
                    bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
                    places.extend(std::iter::repeat_n(place, four.len() - 1));
                }
                // Nothing of one run is a part of the next.
                let end = at + run - 1;
                bytes.push(0);
                places.push(self.place_at(end));
            }
            at += run.max(1);
        }
        (!bytes.is_empty()).then_some(Self { bytes, places: Some(places) })
    }

    /// Another form of this one: `find` says where the next byte is that may be another piece, and `read` how many bytes are one. One
    /// pass; nothing is allocated before the first piece that differs.
    fn rewritten(
        &self,
        find: impl Fn(&[u8]) -> Option<usize>,
        read: impl Fn(&[u8], usize) -> Option<(usize, Piece)>,
    ) -> Option<Self> {
        let mut out: Option<Form> = None;
        let mut at = 0;
        steps::add(self.bytes.len());
        while let Some(next) = find(&self.bytes[at..]) {
            out.iter_mut().for_each(|out| self.copy(at..at + next, out));
            at += next;
            let (taken, piece) = read(&self.bytes, at).unwrap_or((1, Piece::byte(u32::from(self.bytes[at]))));
            let end = (at + taken.max(1)).min(self.bytes.len());
            if out.is_some() || piece.bytes() != &self.bytes[at..end] {
                let (bytes, places) = out.get_or_insert_with(|| self.up_to(at));
                let place = (self.place_at(at).0, self.place_at(end - 1).1);
                bytes.extend_from_slice(piece.bytes());
                places.extend(piece.bytes().iter().map(|_| place));
            }
            at = end;
        }
        let mut out = out?;
        self.copy(at..self.bytes.len(), &mut out);
        let (bytes, places) = out;
        Some(Self { bytes, places: Some(places) })
    }

    /// The first bytes and what they stand for, with room for the rest.
    fn up_to(&self, at: usize) -> Form {
        let mut out = (Vec::with_capacity(self.bytes.len()), Vec::with_capacity(self.bytes.len()));
        self.copy(0..at, &mut out);
        out
    }

    /// Bytes that are the same in the other form.
    fn copy(&self, range: Range<usize>, (bytes, places): &mut Form) {
        bytes.extend_from_slice(&self.bytes[range.clone()]);
        match &self.places {
            Some(own) => places.extend_from_slice(&own[range]),
            None => places.extend((range.start as u32..).zip(range.start as u32 + 1..).take(range.len())),
        }
    }

    fn place_at(&self, at: usize) -> (u32, u32) {
        self.places.as_ref().map_or((at as u32, at as u32 + 1), |places| places[at])
    }
}

/// The bytes of a character, or of the few that it is made of.
#[derive(Default)]
struct Piece {
    bytes: [u8; PIECE_BYTES_MAX],
    length: usize,
}

impl Piece {
    /// One byte, as programs write bytes: two of them may be one character.
    fn byte(number: u32) -> Self {
        let mut piece = Self { length: 1, ..Self::default() };
        piece.bytes[0] = number as u8;
        piece
    }

    fn char(char: char) -> Self {
        let mut bytes = [0; PIECE_BYTES_MAX];
        let length = char.encode_utf8(&mut bytes).len();
        Self { bytes, length }
    }

    /// A character in small letters, and taken apart into what it is made of; as it is, where that is too much.
    fn folded(char: char) -> Self {
        let (mut piece, mut is_whole) = (Self::default(), true);
        for small in char.to_lowercase() {
            decompose_compatible(small, |part| {
                let room = &mut piece.bytes[piece.length..];
                is_whole &= part.len_utf8() <= room.len();
                if is_whole {
                    piece.length += part.encode_utf8(room).len();
                }
            });
        }
        if is_whole { piece } else { Self::char(char) }
    }

    fn number(number: u32) -> Self {
        Self::char(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// `\n`, `\"`, `\x2b`, `\053`, `\u002b`, `\u{2b}`, `\U0000002b`.
fn backslash(bytes: &[u8], at: usize) -> Option<(usize, Piece)> {
    let after = &bytes[at + 1..];
    let one = |byte: u8| Some((2, Piece::byte(u32::from(byte))));
    match after.first()? {
        byte @ (b'"' | b'\'' | b'\\' | b'/') => one(*byte),
        b'n' => one(b'\n'),
        b'r' => one(b'\r'),
        b't' => one(b'\t'),
        b'b' => one(8),
        b'f' => one(12),
        b'x' => Some((4, Piece::byte(number(after.get(1..3)?, 16)?))),
        b'U' => Some((10, Piece::number(number(after.get(1..9)?, 16)?))),
        b'u' if after.get(1) == Some(&b'{') => {
            let length = after.iter().take(10).position(|byte| *byte == b'}')?;
            Some((length + 2, Piece::number(number(&after[2..length], 16)?)))
        }
        b'u' => {
            let unit = number(after.get(1..5)?, 16)?;
            let low = after.get(5..7).filter(|begin| *begin == b"\\u").and_then(|_| number(after.get(7..11)?, 16));
            match low.filter(|low| (0xd800..0xdc00).contains(&unit) && (0xdc00..0xe000).contains(low)) {
                Some(low) => Some((12, Piece::number(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)))),
                None => Some((6, Piece::number(unit))),
            }
        }
        b'0'..=b'3' => Some((4, Piece::byte(number(after.get(..3)?, 8)?))),
        _ => None,
    }
}

/// `&#43;`, `&#x2b;`, `&plus;`.
fn entity(bytes: &[u8], at: usize) -> Option<(usize, Piece)> {
    let after = &bytes[at + 1..];
    if after.first() == Some(&b'#') {
        let (begin, radix) = if matches!(after.get(1), Some(b'x' | b'X')) { (2, 16) } else { (1, 10) };
        let digits = after[begin..].iter().take(8).take_while(|byte| char::from(**byte).is_digit(radix)).count();
        let end = begin + digits;
        let length = 1 + end + usize::from(after.get(end) == Some(&b';'));
        return Some((length, Piece::number(number(&after[begin..end], radix)?)));
    }
    let length = after.iter().take(8).position(|byte| *byte == b';')?;
    let found = ENTITIES.iter().find(|(name, _)| name.eq_ignore_ascii_case(&after[..length]))?;
    Some((length + 2, Piece::byte(u32::from(found.1))))
}

/// `%2B`, `%u002B`.
fn percent(bytes: &[u8], at: usize) -> Option<(usize, Piece)> {
    let after = &bytes[at + 1..];
    match after.first()? {
        b'u' | b'U' => Some((6, Piece::number(number(after.get(1..5)?, 16)?))),
        _ => Some((3, Piece::byte(number(after.get(..2)?, 16)?))),
    }
}

/// How long the tag is that begins here.
fn tag(bytes: &[u8], at: usize) -> Option<usize> {
    let after = &bytes[at + 1..(at + TAG_BYTES_MAX).min(bytes.len())];
    let begins = after.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"/!".contains(byte));
    // Each byte is looked at for one tag alone: the next one begins at a bracket.
    let end = after.iter().position(|byte| b"<>".contains(byte)).filter(|end| after[*end] == b'>')?;
    begins.then_some(end + 2)
}

/// How long the sequence is that begins with this escape.
fn ansi(bytes: &[u8], at: usize) -> usize {
    let after = &bytes[at + 1..(at + ANSI_BYTES_MAX).min(bytes.len())];
    match after.first() {
        Some(b'[') => {
            let parameters = after[1..].iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
            let is_ended = after.get(1 + parameters).is_some_and(|byte| (0x40..0x7f).contains(byte));
            if is_ended { parameters + 3 } else { 1 }
        }
        Some(b']') => after.iter().position(|byte| *byte == 7).map_or(1, |end| end + 2),
        _ => 1,
    }
}

/// Whether it is a digit of base64.
pub(super) fn is_digit(byte: u8) -> bool {
    digit(byte).is_some()
}

/// What a digit of base64 stands for, in either alphabet.
fn digit(byte: u8) -> Option<u32> {
    let number = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(number.into())
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    if digits.is_empty() || !digits.iter().all(is_digit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

/// The character that begins here, where the bytes are one.
fn char_at(bytes: &[u8], at: usize) -> Option<char> {
    let length = match bytes[at] {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        _ => return None,
    };
    std::str::from_utf8(bytes.get(at..at + length)?).ok()?.chars().next()
}

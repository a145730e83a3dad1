//! In which forms a secret may stand in a text: as it is, escaped, percent-encoded, in hexadecimal digits, in base64.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::fmt::Write;
use unicode_normalization::UnicodeNormalization;

/// What stands where a secret stood.
pub const MASK: &str = "[secret]";
/// A shorter value is no secret: it stands in texts by chance.
pub const BYTES_MIN: usize = 8;
/// So much of secrets is known in all.
pub const BYTES_MAX: usize = 1 << 20;

/// What stands before a credential.
const BEFORE: [&str; 11] = [
    "bearer ",
    "token=",
    "token: ",
    "token:",
    "token ",
    "token \"",
    "token `",
    "token '",
    "token\":\"",
    "token\": \"",
    "secret=",
];

/// A longer value is looked for in pieces of [`PIECE`].
pub(super) const WHOLE_MAX: usize = 1024;
const PIECE: usize = 256;
/// A longer one is not looked for in base64 of base64, and none where all together are longer than that: those forms are the most.
const TWICE_MAX: usize = 512;
const TWICE_SUM_MAX: usize = 64 * 1024;
/// Of a longer one only the plain forms are looked for: no header and no address can hold it.
const CODED_MAX: usize = 16 * 1024;
/// What the bytes from 0x80 to 0x9f are in the Western character set of Windows; five of them are nothing there.
const WESTERN: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";

/// All forms of a value, its characters composed and taken apart where they can be; `sum` is how long all values are.
pub(super) fn all(value: &str, sum: usize) -> Vec<Vec<u8>> {
    let mut forms = of(value, sum);
    if !value.is_ascii() {
        let (composed, apart): (String, String) = (value.nfc().collect(), value.nfd().collect());
        forms.extend([&composed, &apart].into_iter().filter(|other| *other != value).flat_map(|other| of(other, sum)));
        if value.len() <= CODED_MAX {
            forms.extend(pieces(&composed).into_iter().filter_map(western).flat_map(of_bytes));
        }
    }
    forms
}

/// The forms of a word where it stands as a credential.
pub(super) fn of_credential(word: &str) -> impl Iterator<Item = Vec<u8>> {
    BEFORE.into_iter().map(move |before| [before, word].concat().into_bytes())
}

/// Values as one reads them who takes their bytes for Latin-1, or for what Windows has in its place: so many programs read headers. There
/// is no such reading of a value in ASCII. The shortest come first; those that no header could hold together are left out.
pub(super) fn misread<'a>(values: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut foreign: Vec<&String> = values.filter(|value| !value.is_ascii()).collect();
    foreign.sort_by_key(|value| value.len());
    let mut sum = 0;
    let has_room = |value: &&String| {
        sum += value.len();
        sum <= CODED_MAX
    };
    let of_windows = |byte: u8| match byte {
        0x80..0xa0 => WESTERN.chars().nth(usize::from(byte - 0x80)).unwrap_or_default(),
        byte => char::from(byte),
    };
    let both =
        |value: &String| [value.bytes().map(char::from).collect(), value.bytes().map(of_windows).collect::<String>()];
    foreign.into_iter().take_while(has_room).flat_map(both).collect()
}

/// A value where each character is one byte; `None` where it has other characters, or is too short to be told from other bytes.
fn western(value: &str) -> Option<Vec<u8>> {
    let byte = |char| match WESTERN.chars().position(|other| other == char) {
        Some(at) => u8::try_from(at + 0x80).ok(),
        None => u8::try_from(u32::from(char)).ok(),
    };
    let bytes: Vec<u8> = value.chars().map(byte).collect::<Option<_>>()?;
    (bytes.len() >= BYTES_MIN).then_some(bytes)
}

/// The forms of bytes that are no text: no text has them but escaped or encoded.
fn of_bytes(bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let mut forms = base64(&bytes);
    forms.extend([hex(&bytes), bytes]);
    forms
}

/// All forms of a value; `sum` is how long all values are.
fn of(value: &str, sum: usize) -> Vec<Vec<u8>> {
    let pieces = pieces(value);
    let is_coded = value.len() <= CODED_MAX;
    let mut forms: Vec<Vec<u8>> = Vec::new();
    for piece in pieces {
        forms.push(piece.as_bytes().to_vec());
        forms.extend(escaped(piece).into_iter().map(String::into_bytes));
        if is_coded {
            forms.extend(percent(piece).into_iter().map(String::into_bytes));
            let digits = hex(piece.as_bytes());
            let coded = base64(piece.as_bytes());
            if piece.len() <= TWICE_MAX && sum <= TWICE_SUM_MAX {
                forms.extend(coded.iter().flat_map(|once| base64(once)));
                // The case of letters is another one in base64.
                forms.extend([&digits, &digits.to_ascii_uppercase()].into_iter().flat_map(|digits| base64(digits)));
                forms.extend(coded.iter().map(|once| hex(once)));
            }
            forms.push(digits);
            forms.extend(coded);
            // Whoever encodes a form once more, as `Basic` credentials are, leaves its `+`, which is no escape, for a blank.
            if piece.contains(' ') {
                let plus = piece.replace(' ', "+");
                forms.push(hex(form(piece).as_bytes()));
                forms.extend(base64(plus.as_bytes()));
                forms.push(plus.into_bytes());
            }
        }
    }
    forms
}

/// The whole, or pieces that together are the whole.
fn pieces(value: &str) -> Vec<&str> {
    if value.len() <= WHOLE_MAX {
        return vec![value];
    }
    let (mut pieces, mut rest) = (Vec::new(), value);
    while !rest.is_empty() {
        // The last one is as long as two at most, so that none is too short to be told from other text.
        let end = if rest.len() < 2 * PIECE { rest.len() } else { PIECE };
        let end = (end..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// As JSON and the languages with strings like it write it.
fn escaped(value: &str) -> Vec<String> {
    let quoted = serde_json::to_string(value).unwrap_or_default();
    let plain = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let mut in_ascii = String::new();
    for char in plain.chars() {
        match char.is_ascii() {
            true => in_ascii.push(char),
            false => char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| _ = write!(in_ascii, "\\u{unit:04x}")),
        }
    }
    // A text that was quoted is quoted once more in the text that quotes it.
    let again = plain.replace('\\', "\\\\").replace('"', "\\\"");
    let slashed = [plain.replace('/', "\\/"), in_ascii.replace('/', "\\/")];
    // As a shell or a log quotes it.
    let single = value.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
    let markup = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let markup_quoted = markup.replace('"', "&quot;").replace('\'', "&#39;");
    [plain, in_ascii, again, single, markup, markup_quoted].into_iter().chain(slashed).collect()
}

/// Percent-encoded, by the rules that are in use: they differ in what they leave as it is.
fn percent(value: &str) -> Vec<String> {
    const KEPT: [&str; 6] =
        ["-_.~/", "-_.~", "-_.!~*'()", "-_.!~*'();/?:@&=+$,#", "-_.~!$&'()*+,;=:@", "-_.~!$&'()*+,;=:@/?"];
    let of = |kept: &&str| encoded_but(value, |byte| byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte));
    let mut forms: Vec<String> = KEPT.iter().map(of).collect();
    forms.extend([form(value), encoded_but(value, |_| false)]);
    forms
}

/// As a form has it: `+` for a blank.
fn form(value: &str) -> String {
    encoded_but(value, |byte| byte.is_ascii_alphanumeric() || b"*-._ ".contains(&byte)).replace(' ', "+")
}

fn encoded_but(value: &str, is_kept: impl Fn(u8) -> bool) -> String {
    value.bytes().fold(String::new(), |mut out, byte| {
        match is_kept(byte) {
            true => out.push(byte.into()),
            false => _ = write!(out, "%{byte:02X}"),
        }
        out
    })
}

fn hex(value: &[u8]) -> Vec<u8> {
    value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// In base64, wherever in a longer text it may begin: the digits that hold nothing but the value.
fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let text = [&[0; 2][..before], value].concat();
        let first = (before * 8).div_ceil(6);
        let last = text.len() * 8 / 6;
        for coded in [STANDARD_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            forms.extend(coded.as_bytes().get(first..last).map(<[u8]>::to_vec));
        }
    }
    forms
}

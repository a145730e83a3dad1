//! A canary, the forms in which it is quoted, and how it is found again.

use std::sync::LazyLock;

use crate::frame::quote;

/// So many forms there are.
pub const FORMS: usize = 22;
/// What all canaries have in common.
pub const CORE: &str = "Canary";

/// A secret that must be told to nobody.
#[derive(Clone, Debug)]
pub struct Canary {
    /// The secret itself.
    pub text: String,
}

impl Canary {
    /// The canary of that number.
    #[must_use]
    pub fn new(number: usize) -> Self {
        Self { text: format!("{CORE}{number:03}x/+=~\"w'{CORE}{number:03}y") }
    }
}

/// One of the forms of a text.
#[must_use]
pub fn form(number: usize, text: &str) -> String {
    match number {
        0 => text.to_owned(),
        1 => base64(text.as_bytes()),
        2 => base64(format!("a{text}").as_bytes()),
        3 => base64(format!("ab{text}z").as_bytes()),
        4 => base64(text.as_bytes()).replace('+', "-").replace('/', "_").replace('=', ""),
        5 => percent(text, true),
        6 => percent(text, true).to_lowercase().replace("canary", CORE),
        7 => percent(text, false),
        8 => quote(text),
        9 => hex(text),
        10 => each(text, |byte| format!("\\u{byte:04X}")),
        11 => each(text, |byte| format!("\\x{byte:02x}")),
        12 => each(text, |byte| format!("&#{byte};")),
        13 => each(text, |byte| format!("&#x{byte:x};")),
        14 => percent(text, true).replace('%', "%25"),
        15 => base64(base64(format!("a{text}").as_bytes()).as_bytes()),
        16 => each(text, |byte| format!("{byte:02X}:")),
        17 => text.replace('/', "</b><b>/"),
        18 => base64(percent(text, true).as_bytes()),
        19 => base64(format!("a{}", percent(text, false)).as_bytes()),
        20 => percent(&base64(text.as_bytes()), true),
        // Who quotes it has died before its end.
        _ => text[..text.len() - 3].to_owned(),
    }
}

fn each(text: &str, write: impl Fn(u8) -> String) -> String {
    text.bytes().map(write).collect()
}

/// What stands between the quotes of a JSON string where an encoder keeps to ASCII letters and digits.
#[must_use]
pub fn in_ascii(text: &str) -> String {
    let one = |char: char| match char.is_ascii_alphanumeric() || " :".contains(char) {
        true => char.to_string(),
        false => char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
    };
    text.chars().map(one).collect()
}

/// A text percent-encoded, its letters too where they are not kept.
#[must_use]
pub fn percent(text: &str, keeps_letters: bool) -> String {
    let encode = |byte: u8| match keeps_letters && (byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes as base64.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for piece in bytes.chunks(3) {
        let all = piece.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte)) << (8 * (3 - piece.len()));
        for at in 0..4 {
            let digit = DIGITS[(all >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= piece.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// What a text holds that quotes this stem in any of the forms, whatever stands before and after it.
#[must_use]
pub fn needles(stem: &str) -> Vec<String> {
    let mut needles = vec![stem.to_owned(), hex(stem), hex(stem).to_uppercase(), percent(stem, false)];
    needles.extend([10, 11, 12, 13, 16].map(|number| form(number, stem)));
    for before in 0..3 {
        let coded = base64(format!("{}{stem}", &"__"[..before]).as_bytes());
        // Without the digits that hold something of what stands before or after.
        let (first, last) = ((before * 8_usize).div_ceil(6), (before + stem.len()) * 8 / 6);
        needles.push(coded[first..last].to_owned());
    }
    needles
}

/// Where a text holds one of these: what stands around it.
#[must_use]
pub fn found(text: &str, needles: &[String]) -> Option<String> {
    let at = needles.iter().find_map(|needle| text.find(needle))?;
    let before: String = text[..at].chars().rev().take(120).collect();
    Some(format!(
        "{} >>> {}",
        before.chars().rev().collect::<String>(),
        text[at..].chars().take(60).collect::<String>()
    ))
}

/// Where a text holds a canary in any form: what stands around it.
#[must_use]
pub fn leak(text: &str) -> Option<String> {
    static NEEDLES: LazyLock<Vec<String>> = LazyLock::new(|| needles(CORE));
    found(text, &NEEDLES)
}

//! Header values that are not plain text: `=?base64?…?=`.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// A value as it may stand in a header.
#[must_use]
pub fn encode(value: &str) -> String {
    let plain = value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let trimmed = value.trim_matches([' ', '\t']) == value;
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    if plain && trimmed && !looks_encoded {
        return value.to_owned();
    }
    format!("=?base64?{}?=", base64(value.as_bytes()))
}

/// The value that a header stands for; nothing if it is broken.
#[must_use]
pub fn decode(header: &str) -> Option<String> {
    match header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(digits) => String::from_utf8(from_base64(digits)?).ok(),
        None => Some(header.to_owned()),
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = (word >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() { char::from(DIGITS[digit as usize]) } else { '=' });
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::new();
    let (mut word, mut bits) = (0u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        word = (word << 6) | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((word >> bits) & 255).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn what_is_encoded_comes_back() {
        for value in ["echo", "a b", "", " a", "späß", "=?base64?YQ==?=", "日本語"] {
            assert_eq!(decode(&encode(value)).as_deref(), Some(value));
        }
        assert_eq!(encode("a b"), "a b");
        assert_eq!(encode("é"), "=?base64?w6k=?=");
        assert_eq!(decode("=?base64?YQ=?="), None);
    }
}

//! Texts of a URL with `%2F` and the like read.

/// The bytes that a text stands for, and whether each `%` in it has its two digits. One without stands for itself.
fn read(text: &str) -> (Vec<u8>, bool) {
    let (mut bytes, mut is_whole, mut rest) = (Vec::with_capacity(text.len()), true, text.as_bytes());
    while let [first, behind @ ..] = rest {
        let digit = |at: usize| behind.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let coded = digit(0).zip(digit(1)).filter(|_| *first == b'%');
        match coded {
            Some((high, low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &behind[2..];
            }
            None => {
                is_whole &= *first != b'%';
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    (bytes, is_whole)
}

/// What a text stands for; `None` where it is not whole, or no text.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let (bytes, is_whole) = read(text);
    String::from_utf8(bytes).ok().filter(|_| is_whole)
}

/// What a text stands for as far as that can be said.
pub(crate) fn decoded_in_part(text: &str) -> String {
    String::from_utf8_lossy(&read(text).0).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_without_two_digits_stands_for_itself_or_for_nothing() {
        for (text, whole, in_part) in [
            ("%2Frun%2fa%20b", Some("/run/a b"), "/run/a b"),
            ("", Some(""), ""),
            ("sch%C3%B6n", Some("sch\u{f6}n"), "sch\u{f6}n"),
            ("100%", None, "100%"),
            ("%2", None, "%2"),
            ("%+f", None, "%+f"),
            ("%zz%41", None, "%zzA"),
            ("%ff", None, "\u{fffd}"),
            ("%\u{e4}1", None, "%\u{e4}1"),
        ] {
            assert_eq!((decoded(text).as_deref(), &*decoded_in_part(text)), (whole, in_part), "{text}");
        }
    }
}

//! What a collector says of a batch that it has taken in part: `partial_success` of `ExportTraceServiceResponse`.

/// How much of the collector's words is told.
const SAID_CHARS: usize = 200;

/// Spans of a batch that the collector has rejected.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) spans: u64,
    /// Why, in the collector's words.
    pub(super) why: String,
}

/// A field of a message: its number, and what it holds.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a kind that nothing here has.
    Other,
}

impl Rejected {
    /// What an answer says. One that cannot be read says nothing.
    pub(super) fn of(mut answer: &[u8]) -> Self {
        let mut rejected = Self::default();
        while let Some((number, value)) = field(&mut answer) {
            let (1, Value::Bytes(mut partial)) = (number, value) else { continue };
            while let Some(part) = field(&mut partial) {
                match part {
                    (1, Value::Number(spans)) => rejected.spans = spans,
                    (2, Value::Bytes(why)) => {
                        rejected.why = String::from_utf8_lossy(why).chars().take(SAID_CHARS).collect();
                    }
                    _ => {}
                }
            }
        }
        rejected
    }
}

/// The next field; `None` at the end, and where the rest is none.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let tag = varint(bytes)?;
    let value = match tag & 7 {
        0 => Value::Number(varint(bytes)?),
        1 => bytes.split_off(..8).map(|_| Value::Other)?,
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            Value::Bytes(bytes.split_off(..length)?)
        }
        5 => bytes.split_off(..4).map(|_| Value::Other)?,
        _ => return None,
    };
    Some((tag >> 3, value))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_rejected_is_read_and_nonsense_says_nothing() {
        let rejected = |spans, why: &str| Rejected { spans, why: why.to_owned() };
        let answer = b"\x12\x01x\x0a\x07\x08\x96\x01\x12\x02no\x18\x01";
        assert_eq!(Rejected::of(&answer[..]), rejected(150, "no"));
        assert_eq!(Rejected::of(b""), Rejected::default());
        assert_eq!(Rejected::of(b"\x0a\x00"), Rejected::default());
        // Each beginning of an answer, lengths and numbers that lead nowhere, and groups.
        (0..answer.len()).for_each(|end| drop(Rejected::of(&answer[..end])));
        for odd in [&b"\x0a\xff\xff\xff\xff\x0f"[..], &[0xff; 40], b"\x0b\x0c", b"\x0d\x01", b"<html>"] {
            assert_eq!(Rejected::of(odd), Rejected::default(), "{odd:?}");
        }
        assert_eq!(Rejected::of(&[b"\x0a\x83\x08\x12\x80\x08", &[b'a'; 1024][..]].concat()).why.len(), SAID_CHARS);
    }
}

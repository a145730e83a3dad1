//! Two secrets are compared so that the time it takes says nothing of them but their length.

/// Whether two are the same, which takes as long wherever they differ.
pub(super) fn is_same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn secrets_of_another_byte_or_length_are_not_the_same() {
        assert!(is_same(b"one", b"one") && is_same(b"", b""));
        for other in [&b"two"[..], b"on", b"one ", b"", b"onE", b"Xne"] {
            assert!(!is_same(b"one", other) && !is_same(other, b"one"));
        }
    }
}

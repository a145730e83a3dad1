//! HTTP/2: the frames of clients and of servers, as they are followed before the library reads them.

use super::target::{Shape, Target};
use std::time::Instant;
use trunkline::runtime::watched::{Credit, Frames};

pub(super) const TARGETS: &[Target] = &[Target {
    name: "multiplexed",
    body: multiplexed,
    words: &[
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\0\0\0\u{4}\0\0\0\0\0",
        "\0\0\0\u{1}\u{4}\0\0\0\u{1}",
        "\0\0\0\t\u{4}\0\0\0\u{1}",
        "\0\0\u{2}\0\0\0\0\0\u{1}{}",
        "\0\0\0\0\u{1}\0\0\0\u{1}",
        "\0\0\u{8}\u{6}\0\0\0\0\0",
    ],
}];

const PREFACE: usize = 24;
const HEAD: usize = 9;
/// So many frames that ask for nothing may come at once, and so many a second.
const AT_ONCE: usize = 1000;
const A_SECOND: usize = 100;
/// Some inputs come again and again until there are so many bytes of them.
const MANY_BYTES: usize = 32 * 1024;

/// What is left of some bytes, how many frames were too many, and whether a head was coming in when they ended.
fn follow(bytes: &[u8], piece: usize, is_client: bool) -> (Vec<u8>, u64, bool) {
    let (mut frames, credit) = (if is_client { Frames::of_client() } else { Frames::of_server() }, Credit::default());
    let mut left = bytes.to_vec();
    let mut before = 0;
    for piece in left.chunks_mut(piece) {
        let spoilt = frames.follow(piece, &credit);
        assert!(spoilt >= before && spoilt == frames.spoilt());
        before = spoilt;
    }
    (left, before, frames.is_within_head())
}

/// The same read plainly: where the frames that ask for nothing have the last byte of their heads, and whether a head was coming in.
fn plainly(bytes: &[u8], is_client: bool) -> (Vec<usize>, bool) {
    let (mut at, mut asks_nothing) = (if is_client { PREFACE } else { 0 }, Vec::new());
    let (mut is_within, mut ends) = (true, true);
    while let Some([high, middle, low, kind, flags, ..]) = bytes.get(at..at + HEAD) {
        let length = usize::from(*high) << 16 | usize::from(*middle) << 8 | usize::from(*low);
        let asks = match kind {
            0 => length > 0 || flags & 1 != 0,
            1 => is_client,
            _ => false,
        };
        if !asks {
            asks_nothing.push(at + HEAD - 1);
        }
        if matches!(kind, 1 | 9) {
            (is_within, ends) = (true, flags & 4 != 0);
        }
        at += HEAD + length;
        if at > bytes.len() {
            break;
        }
        is_within &= !ends;
    }
    (asks_nothing, is_within)
}

/// The first byte says whose frames these are, in which pieces they come, and whether they come again and again. Any pieces are read the
/// same; what is spoilt is the stream of a frame that asks for nothing, and only where there were too many.
fn multiplexed(input: &[u8]) -> Shape {
    let Some((first, bytes)) = input.split_first() else { return Shape::of(0) };
    let (is_client, is_many) = (first & 1 == 0, first & 0xc0 == 0);
    let mut bytes = bytes.to_vec();
    if is_many && !bytes.is_empty() {
        bytes = bytes.iter().copied().cycle().take(MANY_BYTES).collect();
    }
    let begun = Instant::now();
    let (left, spoilt, is_within) = follow(&bytes, usize::from(first / 2 % 32) + 1, is_client);
    let (_, at_once_spoilt, at_once_within) = follow(&bytes, bytes.len().max(1), is_client);
    let earned = begun.elapsed().as_millis() as usize * A_SECOND / 1000 + 1;
    let (asks_nothing, plainly_within) = plainly(&bytes, is_client);
    assert_eq!(is_within, plainly_within, "a head begins or ends elsewhere");
    let changed: Vec<_> = (0..bytes.len()).filter(|at| left[*at] != bytes[*at]).collect();
    assert!(
        changed.iter().all(|at| asks_nothing.binary_search(at).is_ok() && left[*at] == 2),
        "what is no frame's stream is changed"
    );
    let marked = asks_nothing.iter().filter(|at| left[**at] == 2).count();
    assert!(spoilt as usize <= marked, "what is too much is not spoilt: {spoilt}, {marked}");
    assert!(spoilt as usize <= asks_nothing.len().saturating_sub(AT_ONCE), "too many are too many: {spoilt}");
    assert!(spoilt as usize + AT_ONCE + earned >= asks_nothing.len(), "too few are too many: {spoilt}");
    assert!(is_within == at_once_within && spoilt.abs_diff(at_once_spoilt) as usize <= earned, "pieces differ");
    Shape::of((is_client, is_within, spoilt > 0, asks_nothing.len().checked_ilog2()))
}

//! Makes inputs of others: bits, pieces, words, and whole values of JSON.

use super::target::Target;
use crate::seed::Seed;
use std::ops::Range;
use trunkline::protocol::json;

/// Longer inputs are cut.
const BYTES_MAX: usize = 16 * 1024;
/// Bytes and numbers at which parsers go wrong.
const BYTES: &[u8] = &[0, b'\n', b'\r', b' ', b'"', b'\\', b'{', b'}', b'[', b']', b',', b':', 0x1f, 0x7f, 0x80, 0xff];
const NUMBERS: &[&str] =
    &["0", "-0", "-1", "1e400", "0.1", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "1E+2"];
/// Pieces of JSON.
const JSON: &[&str] = &[
    "{}",
    "[]",
    "{\"",
    "\":",
    "\",\"",
    "null",
    "true",
    "\"\"",
    "\"\\u00e4\"",
    "\"\\ud83d\\ude00\"",
    "[[",
    "]]",
    "{\"a\":",
    ",",
];

/// An input like one of these, changed in one to a few ways.
pub(super) fn mutated(seed: &mut Seed, inputs: &[Vec<u8>], target: &Target) -> Vec<u8> {
    let mut text = seed.pick(inputs).clone();
    for _ in 0..=seed.below(4) {
        change(seed, &mut text, inputs, target);
        text.truncate(BYTES_MAX);
    }
    text
}

fn change(seed: &mut Seed, text: &mut Vec<u8>, inputs: &[Vec<u8>], target: &Target) {
    let at = seed.below(text.len() + 1);
    match seed.below(14) {
        0 if at < text.len() => text[at] ^= 1 << seed.below(8),
        1 if at < text.len() => text[at] = *seed.pick(BYTES),
        2 => text.insert(at, *seed.pick(BYTES)),
        3 => drop(text.drain(piece(seed, text))),
        4 => {
            let copied = text[piece(seed, text)].to_vec();
            insert(text, at, &copied);
        }
        // What is short becomes long: here costs show.
        5 => {
            let copied = text[piece(seed, text)].to_vec();
            let times = 1 << seed.below(8);
            insert(text, at, &copied.repeat(times.min(BYTES_MAX / (copied.len() + 1) + 1)));
        }
        6 => {
            let other = seed.pick(inputs);
            let copied = other[piece(seed, other)].to_vec();
            insert(text, at, &copied);
        }
        7 if !target.words.is_empty() => insert(text, at, seed.pick(target.words).as_bytes()),
        8 => insert(text, at, seed.pick(JSON).as_bytes()),
        9 => insert(text, at, seed.pick(NUMBERS).as_bytes()),
        10 => text.truncate(at),
        _ => values(seed, text, inputs),
    }
}

/// Changes whole values: one stands twice, in another's place, in a list, deep, or not at all.
fn values(seed: &mut Seed, text: &mut Vec<u8>, inputs: &[Vec<u8>]) {
    let Some(place) = value(seed, text) else { return };
    let own = text[place.clone()].to_vec();
    let new = match seed.below(6) {
        0 => [&own[..], b",", &own].concat(),
        1 => {
            let other = seed.pick(inputs);
            value(seed, other).map_or_else(|| b"{}".to_vec(), |place| other[place].to_vec())
        }
        2 => {
            let depth = 1 << seed.below(8);
            [&b"[".repeat(depth)[..], &own, &b"]".repeat(depth)].concat()
        }
        3 => [b"{\"a\":", &own[..], b"}"].concat(),
        4 => seed.pick(NUMBERS).as_bytes().to_vec(),
        // A member and its neighbour of the same name.
        _ => match key_before(text, place.start) {
            Some(start) => [&own[..], b",", &text[start..place.end]].concat(),
            None => Vec::new(),
        },
    };
    text.splice(place, new);
}

/// Where the key stands whose value begins here.
fn key_before(text: &[u8], value: usize) -> Option<usize> {
    let before = text[..value].trim_ascii_end().strip_suffix(b":")?.trim_ascii_end().strip_suffix(b"\"")?;
    before.iter().rposition(|byte| *byte == b'"')
}

/// Where some value stands that ends within the text.
fn value(seed: &mut Seed, text: &[u8]) -> Option<Range<usize>> {
    let starts: Vec<usize> =
        (0..text.len()).filter(|at| *at == 0 || matches!(text[at - 1], b':' | b',' | b'[' | b' ')).take(512).collect();
    let start = *starts.get(seed.below(starts.len().max(1)))?;
    let end = json::value(text, start).ok()?;
    (end > start).then_some(start..end)
}

fn piece(seed: &mut Seed, text: &[u8]) -> Range<usize> {
    let start = seed.below(text.len() + 1);
    let most = if seed.chance(50) { 8 } else { text.len() + 1 };
    start..(start + seed.below(most)).min(text.len())
}

fn insert(text: &mut Vec<u8>, at: usize, piece: &[u8]) {
    text.splice(at..at, piece.iter().copied());
}

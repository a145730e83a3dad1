//! Spellings of dot segments, and a reference of consumers that resolve them.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;
use unicode_normalization::UnicodeNormalization;

#[test]
fn dot_segments_are_found_in_every_spelling() {
    for spelling in [
        "..%01/x",
        "..%00/x",
        ".%00./x",
        "..%09/x",
        "..%7f/x",
        "..%c2%85/x",
        "..\u{85}/x",
        "..%20/x",
        "..+/x",
        "+../x",
        "..%2b%2fx",
        "?file=../x",
        "?file=..%2fx",
        "?a&..%5cx",
        "..\u{ffe5}x",
        "..%ef%bf%a6x",
        "%20../x",
        ".%20./x",
        "..%3f",
        "..%3Fx",
        "..%23x",
        "..%3b/x",
        "..%5Cx",
        "%2e%2E%2fx",
        "..?x",
        "..#x",
        "..;x",
        "..",
        ".",
        "a/./b",
        "%252e./x",
        "%25252e./x",
        "%%32e./x",
        "%u002e./x",
        "..%u2215x",
        "%2",
        "%",
        "%+1",
        "%zz",
        "%c0%ae%c0%ae/x",
        "..%c0%afx",
        "..%e0%80%afx",
        "%ff/x",
        "\u{2024}\u{2024}/x",
        "\u{ff0e}./x",
        "%ef%bc%8e./x",
        "\u{2025}/x",
        "\u{2026}",
        "a\u{2488}/x",
        "..\u{ff0f}x",
        "..\u{ff3c}x",
        "..\u{fe68}x",
        "..\u{ff1f}x",
        "..\u{ff1b}x",
        "..\u{37e}x",
        "a\u{2100}b",
        "\u{ff05}2e./x",
        "%\u{ff12}e./x",
        "..\u{ad}/x",
        ".\u{200b}./x",
        "..\u{a0}/x",
        "..%e3%80%80/x",
        "..\u{3164}/x",
        "...\u{200d}/x",
        "..\u{2215}x",
        "..\u{2044}x",
        "a b",
        "a\tb",
    ] {
        assert!(can_climb(spelling), "{spelling:?}");
    }
}

#[test]
fn names_with_dots_blanks_and_foreign_letters_pass() {
    for name in [
        "",
        "a/b.txt",
        "a..b/c",
        "%20b",
        "a%20...%20b",
        "a%20b.txt",
        "...",
        "a/.../b",
        ".git/config",
        "..a",
        "a..",
        "日本",
        "%E6%97%A5%E6%9C%AC.txt",
        "schön.txt",
        "½",
        "a\u{200b}b.",
        "é.\u{301}x",
        "a?x=1;y=..2#z",
        "price¥.txt",
        "x=%2Fa",
        "😀.txt",
    ] {
        assert!(!can_climb(name), "{name:?}");
    }
}

/// Percent escapes as a lenient consumer resolves them: `%u` and overlong UTF-8 count, other bytes are Latin-1.
fn unescape(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        let wide =
            rest.get(2..6).filter(|_| rest.starts_with("%u")).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let byte = rest.get(1..3).filter(|_| c == '%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let length = if let Some(wide) = wide.and_then(char::from_u32) {
            bytes.extend(wide.to_string().bytes());
            6
        } else if let Some(byte) = byte {
            bytes.push(byte);
            3
        } else {
            bytes.extend_from_slice(&rest.as_bytes()[..c.len_utf8()]);
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        match chunk.invalid() {
            [] => {}
            invalid => out.extend(invalid.iter().map(|byte| char::from(*byte))),
        }
    }
    // An overlong pair was split into two Latin-1 characters.
    out.replace("\u{c0}\u{ae}", ".").replace("\u{c0}\u{af}", "/")
}

fn has_parent_above(path: &str) -> bool {
    let mut depth = 0;
    path.split(['/', '\\']).filter(|segment| !matches!(*segment, "" | ".")).any(|segment| {
        depth += if segment == ".." { -1 } else { 1 };
        depth < 0
    })
}

/// Checks if some consumer resolves a part of a URI to a place above its start.
fn climbs_for_a_consumer(part: &str) -> bool {
    type Step = fn(&str) -> String;
    let steps: [Step; 5] = [
        unescape,
        |text| text.nfkc().collect(),
        |text| text.chars().filter(|c| !c.is_control() && !c.is_whitespace() && !is_hidden(*c)).collect(),
        |text| text.split('\0').next().unwrap_or_default().to_owned(),
        |text| text.replace('%', ""),
    ];
    let mut texts = HashSet::from([part.to_owned()]);
    for _ in 0..4 {
        let more: Vec<_> = texts.iter().flat_map(|text| steps.map(|step| step(text))).collect();
        texts.extend(more);
    }
    texts.iter().any(|text| {
        let path = text.split(['?', '#']).next().unwrap_or_default();
        // Parameters of a segment (`..;a=b/`) are dropped by some consumers; others end the path there.
        let stripped: Vec<_> = path.split('/').map(|part| part.split(';').next().unwrap_or_default()).collect();
        has_parent_above(path) || has_parent_above(&stripped.join("/"))
    })
}

const PIECES: [&str; 50] = [
    ".",
    ".",
    ".",
    "..",
    "..",
    "/",
    "/",
    "\\",
    "a",
    "b",
    "2e",
    "e",
    "u",
    "%",
    "%25",
    "%2e",
    "%2E",
    "%2f",
    "%2F",
    "%5c",
    "%252e",
    "%u002e",
    "%u002f",
    "%c0%ae",
    "%c0%af",
    "%e2%80%a4",
    "%ef%bc%8e",
    "%00",
    "%01",
    "%09",
    "%20",
    "%3f",
    "%23",
    "%3b",
    "%c2%a0",
    "%c2%ad",
    "?",
    "#",
    ";",
    "\t",
    " ",
    "\u{ad}",
    "\u{200b}",
    "\u{2024}",
    "\u{ff0e}",
    "\u{ff0f}",
    "\u{ff3c}",
    "\u{ff05}",
    "日",
    "\u{3000}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn uris_that_climb_for_any_consumer_are_found(picks in proptest::collection::vec(0..PIECES.len(), 1..9)) {
        let part: String = picks.into_iter().map(|pick| PIECES[pick]).collect();
        prop_assert!(can_climb(&part) || !climbs_for_a_consumer(&part), "{:?}", part);
    }
}

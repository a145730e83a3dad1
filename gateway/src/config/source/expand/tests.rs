//! What expansion does, against examples and against properties that hold for every text.

use proptest::prelude::*;

use super::*;

struct Known;

impl Lookup for Known {
    fn variable(&self, name: &str) -> Result<Option<String>, String> {
        match name {
            "A" => Ok(Some("one".to_owned())),
            "NESTED" => Ok(Some("${A} $$ ${".to_owned())),
            "EMPTY" => Ok(Some(String::new())),
            "BYTES" => Err("it is not text".to_owned()),
            _ => Ok(None),
        }
    }

    fn file(&self, path: &str) -> Result<String, String> {
        if path == "/secret" { Ok("of file".to_owned()) } else { Err("not found".to_owned()) }
    }
}

fn kinds(text: &str) -> Vec<(&'static str, Range<usize>)> {
    expand(text, &Known).unwrap_err().into_iter().map(|problem| (problem.kind, problem.range)).collect()
}

#[test]
fn references_are_filled_in() {
    for (text, want) in [
        ("", ""),
        ("plain", "plain"),
        ("${A}", "one"),
        ("<${A}${A}>", "<oneone>"),
        ("${env:A}", "one"),
        ("${X:-}", ""),
        ("${X:-a b}", "a b"),
        ("${EMPTY}", ""),
        ("${EMPTY:-d}", "d"),
        ("${A:-d}", "one"),
        ("${A:?m}", "one"),
        ("${file:/secret}", "of file"),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("$$${A}", "$one"),
        ("$A $", "$A $"),
        ("{A}", "{A}"),
        ("é${A}é", "éoneé"),
    ] {
        assert_eq!(expand(text, &Known).as_deref(), Ok(want), "{text}");
    }
}

#[test]
fn what_is_filled_in_is_not_expanded_again() {
    assert_eq!(expand("${NESTED}", &Known).as_deref(), Ok("${A} $$ ${"));
}

#[test]
fn every_bad_reference_is_named_with_its_place() {
    assert_eq!(kinds("a ${X} ${Y}"), [("unset-variable", 2..6), ("unset-variable", 7..11)]);
    assert_eq!(kinds("${EMPTY:?say}"), [("unset-variable", 0..7)]);
    assert_eq!(kinds("${"), [("bad-reference", 0..2)]);
    assert_eq!(kinds("${A"), [("bad-reference", 0..2)]);
    assert_eq!(kinds("${}"), [("bad-reference", 0..2)]);
    assert_eq!(kinds("${1A}"), [("bad-reference", 0..4)]);
    assert_eq!(kinds("${A-x}"), [("bad-reference", 0..3)]);
    assert_eq!(kinds("${A:-${B}}"), [("bad-reference", 0..3)]);
    assert_eq!(kinds("${BYTES}"), [("bad-reference", 0..7)]);
    assert_eq!(kinds("${input:key}"), [("bad-reference", 0..7)]);
    assert_eq!(kinds("${file:/none}"), [("unreadable-file", 0..13)]);
}

#[test]
fn a_default_is_never_shown() {
    for text in ["${X:+canary}", "${1:-canary}", "${X:-${canary}}", "${X:=canary}"] {
        for problem in expand(text, &Known).unwrap_err() {
            assert!(!problem.text.contains("canary"), "{}", problem.text);
            assert!(!text[problem.range].contains("canary"), "{text}");
        }
    }
}

proptest! {
    #[test]
    fn text_without_dollars_is_itself(text in "[^$]{0,40}") {
        prop_assert_eq!(expand(&text, &Known), Ok(text));
    }

    #[test]
    fn doubled_dollars_give_the_text_back(text in "[${}:A-]{0,30}") {
        prop_assert_eq!(expand(&text.replace('$', "$$"), &Known), Ok(text));
    }

    #[test]
    fn any_text_is_taken_without_panic_and_ranges_lie_inside(text in "(\\$|\\{|\\}|:|-|\\?|A|X|é|file){0,16}") {
        if let Err(problems) = expand(&text, &Known) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(text.get(problem.range.clone()).is_some_and(|shown| shown.starts_with("${")), "{:?}", problem);
            }
        }
    }

    #[test]
    fn parts_expand_as_the_whole(left in "[a-z ]{0,8}", right in "[a-z ]{0,8}") {
        let whole = format!("{left}${{A}}{right}");
        prop_assert_eq!(expand(&whole, &Known), Ok(format!("{left}one{right}")));
    }
}

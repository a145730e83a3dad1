//! Tests of the comparison.

use super::*;
use crate::tokens::lexer::lex;
use crate::tokens::normal::normal;
use crate::tokens::table::Table;

fn differs(old: &str, new: &str, table: &str, terms: Terms) -> Option<Difference> {
    let (old, new) = (lex(old).unwrap(), lex(new).unwrap());
    let table = Table::parse(table).unwrap();
    let result = compare(&normal(&old, terms), &normal(&new, terms), &table.names_in("a.rs"), terms);
    result.err().map(|difference| *difference)
}

fn is_rename(old: &str, new: &str, table: &str) -> bool {
    differs(old, new, table, Terms::default()).is_none()
}

fn is_prose(old: &str, new: &str) -> bool {
    differs(old, new, "", Terms { is_prose: true, ..Terms::default() }).is_none()
}

#[test]
fn wrong_renames_and_changed_operators_are_found() {
    let old = "fn said(a: u8) -> bool {\n    a == 1 && told\n}";
    assert!(is_rename(old, "fn text(a: u8) -> bool { a == 1 && told }", "said -> text"));
    let wrong = differs(old, "fn text(a: u8) -> bool { a == 1 && text }", "said -> text", Terms::default()).unwrap();
    assert_eq!((wrong.old_line, wrong.new_line, &*wrong.old), (2, 1, "told }"));
    assert!(!is_rename(old, "fn texts(a: u8) -> bool { a == 1 && told }", "said -> text"));
    for (sign, other) in [("==", "!="), ("&&", "||"), ("1", "2"), ("->", "=>")] {
        assert!(!is_rename(old, &old.replace(sign, other), ""), "{sign}");
        assert!(!is_prose(old, &old.replace(sign, other)), "{sign}");
    }
    assert!(!is_rename("a & &b", "a && b", ""));
    assert!(!is_rename("a; b;", "a;", ""));
}

#[test]
fn a_name_must_change_everywhere() {
    assert!(!is_rename("said(said)", "text(said)", "said -> text"));
    assert!(is_rename("said(said)", "text(said)", "said -> text\nsaid -> said"));
    assert!(is_rename("&'a said", "&'long said", "'a -> 'long"));
}

#[test]
fn renamed_fields_may_need_their_long_form() {
    assert!(is_rename("S { said, b }", "S { text: said, b }", "said -> text"));
    assert!(is_rename("S { said, b }", "S { said: text, b }", "said -> text"));
    assert!(is_rename("S { said, b }", "S { text, b }", "said -> text"));
    assert!(!is_rename("S { said, b }", "S { text: b, b }", "said -> text"));
}

#[test]
fn use_lines_are_renamed_in_any_order() {
    let old = "use crate::a::{Told, b};\nuse crate::z::X;\nfn f() {}";
    let new = "use crate::a::b;\nuse crate::y::X;\nuse crate::a::Reason;\nfn f() {}";
    assert!(is_rename(old, new, "Told -> Reason\ncrate::z -> crate::y"));
    assert!(!is_rename(old, new, "Told -> Reason"));
    assert!(!is_rename(old, &new.replace("use crate::a::b;\n", ""), "Told -> Reason\ncrate::z -> crate::y"));
}

#[test]
fn comments_change_only_in_backticks() {
    let old = "// What is said: `said`, [`Told::said`], `other`\nx";
    assert!(is_rename(old, "// What is said: `text`, [`Told::text`], `other`\nx", "said -> text"));
    assert!(is_rename(old, old, "said -> text"));
    assert!(!is_rename(old, &old.replace("is said", "is text"), "said -> text"));
    assert!(!is_rename(old, &old.replace("other", "another"), "said -> text"));
    assert!(!is_rename("// a\nx", "x", ""));
    assert!(is_rename("    /* a\n       b */ x", "/* a\n   b */ x", ""));
}

#[test]
fn strings_change_only_in_captured_names() {
    let old = r#"format!("said {said} {said:>width$} {{said}}", said = 1)"#;
    let new = r#"format!("said {text} {text:>width$} {{said}}", text = 1)"#;
    assert!(is_rename(old, new, "said -> text"));
    assert!(!is_rename(old, &new.replace("\"said", "\"text"), "said -> text"));
    assert!(!is_rename(r#"f("{\"said\": 1}")"#, r#"f("{\"text\": 1}")"#, "said -> text"));
}

#[test]
fn prose_may_change_and_code_may_not() {
    let old = "/// What is said.\nfn f() { say(\"it said {x}\"); } // why";
    assert!(is_prose(old, "/// Prints the text.\n/// Always.\nfn f() {\n say(r#\"text: {x}\"#,); }"));
    assert!(!is_prose(old, "fn g() { say(\"it said {x}\"); }"));
    assert!(!is_prose(old, "fn f() { say(\"it said {x}\", \"\"); }"));
    assert!(!is_prose("f(b\"a\")", "f(\"a\")"));
    assert!(!is_prose("f('a')", "f('b')"));
}

#[test]
fn changed_placeholders_and_single_words_are_listed() {
    let old = lex(r#"f("it {a} of {}", "some_key", "a b", "{b}")"#).unwrap();
    let new = lex(r#"f("{} in {a}", "other_key", "c", "{c}")"#).unwrap();
    let strings = strings(&old, &new);
    let texts = |pairs: &[(Token<'_>, Token<'_>)]| pairs.iter().map(|(old, _)| old.text.to_owned()).collect::<Vec<_>>();
    assert_eq!(texts(&strings.placeholders), [r#""{b}""#]);
    assert_eq!(texts(&strings.words), [r#""some_key""#, r#""{b}""#]);
    let all = placeholders(r#"{} {0} {a:?} {a:>w$.p$} {{x}} {"y"} {z w} {"#);
    assert_eq!(all.iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["{}", "{0}", "{a:?}", "{a:>w$.p$}"]);
}

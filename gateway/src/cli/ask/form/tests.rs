//! What a person types becomes what the server has asked for, or is asked for again.

use super::*;
use std::collections::VecDeque;

/// One who types these lines, and then goes away.
#[derive(Default)]
struct Typist {
    lines: VecDeque<&'static str>,
    seen: String,
}

impl Person for Typist {
    fn say(&mut self, text: &str) {
        self.seen.push_str(text);
        self.seen.push('\n');
    }

    fn line(&mut self, prompt: &str) -> Option<String> {
        self.say(prompt);
        self.lines.pop_front().map(str::to_owned)
    }
}

fn ask(params: &str, lines: &[&'static str]) -> (Value, String) {
    let mut typist = Typist { lines: lines.iter().copied().collect(), seen: String::new() };
    let line = format!("{{\"id\":1,\"params\":{params}}}");
    let answer = answered(&serde_json::from_str(params).unwrap(), line.as_bytes(), &mut typist);
    assert!(typist.lines.is_empty(), "{:?} was not asked for: {}", typist.lines, typist.seen);
    (answer, typist.seen)
}

fn field(schema: &str, lines: &[&'static str]) -> (Value, String) {
    let params = format!(
        "{{\"message\":\"m\",\"requestedSchema\":{{\"type\":\"object\",\"properties\":{{\"x\":{schema}}},\"required\":[\"x\"]}}}}"
    );
    let lines: Vec<_> = lines.iter().copied().chain(["y"]).collect();
    let (answer, seen) = ask(&params, &lines);
    (answer["content"]["x"].clone(), seen)
}

#[test]
fn each_type_is_asked_for_until_it_fits() {
    let number = r#"{"type":"integer","minimum":2,"maximum":9}"#;
    let (value, seen) = field(number, &["x", "2.5", "1", "10", "", "7"]);
    assert_eq!(value, json!(7));
    for why in ["no number", "no whole number", "at least 2", "at most 9", "a value is required"] {
        assert!(seen.contains(why), "{why}: {seen}");
    }
    assert_eq!(field(r#"{"type":"number"}"#, &["2.5"]).0, json!(2.5));
    assert_eq!(field(r#"{"type":"boolean"}"#, &["perhaps", "No"]).0, json!(false));
    assert_eq!(field(r#"{"type":"string","minLength":2,"maxLength":3}"#, &["a", "abcd", "äöü"]).0, json!("äöü"));
    assert_eq!(field(r#"{"type":"string","format":"email"}"#, &["x", "ada@example.com"]).0, json!("ada@example.com"));
    assert_eq!(field(r#"{"type":"string","format":"date"}"#, &["7.1.2026", "2026-01-07"]).0, json!("2026-01-07"));
    assert_eq!(field(r#"{"type":"string","format":"uri"}"#, &["x", "a:b"]).0, json!("a:b"));
    assert_eq!(field(r#"{"type":"string","default":"d"}"#, &[""]).0, json!("d"));
    assert_eq!(field(r#"{"type":"object"}"#, &["{", "{\"a\":1}"]).0, json!({ "a": 1 }));
}

#[test]
fn choices_are_made_by_number_or_value_and_several_with_commas() {
    let plain = r#"{"type":"string","enum":["red","2"],"enumNames":["Red","Two"]}"#;
    assert_eq!(field(plain, &["3", "1"]).0, json!("red"));
    assert_eq!(field(plain, &["2"]).0, json!("2"), "a value goes before a number");
    assert_eq!(field(plain, &["Two"]).0, json!("2"));
    let titled = r#"{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}"#;
    let (value, seen) = field(titled, &["2"]);
    assert!(value == json!("g") && seen.contains("1  Red") && seen.contains("2  Green"), "{seen}");
    let several = r#"{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b","c"]}}"#;
    assert_eq!(field(several, &["", "1,2,3", "1, x", "c,1"]).0, json!(["c", "a"]));
    let several = r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]}}"#;
    assert_eq!(field(several, &["B"]).0, json!(["b"]));
}

#[test]
fn fields_come_in_the_order_of_the_server_and_what_is_optional_may_stay_empty() {
    let params = r#"{"message":"who?\u001b[2J","_meta":{"trunkline/upstream":"up"},"requestedSchema":{"properties":{"z":{"type":"string"},"a":{"type":"string","title":"First"}},"required":["z"]}}"#;
    let (answer, seen) = ask(params, &["1", "", "y"]);
    assert_eq!(answer, json!({ "action": "accept", "content": { "z": "1" } }));
    assert!(
        seen.starts_with("the server asks: who?") && !seen.contains("up asks") && !seen.contains('\u{1b}'),
        "{seen:?}"
    );
    assert!(seen.find("z (text)") < seen.find("First (text, optional)"), "{seen}");
}

#[test]
fn a_form_is_declined_or_cancelled_at_each_line_and_cancelled_by_whoever_goes() {
    let params = r#"{"message":"m","requestedSchema":{"properties":{"x":{"type":"string"}}}}"#;
    for (lines, action) in [
        (&[":decline"][..], "decline"),
        (&[":cancel"], "cancel"),
        (&[], "cancel"),
        (&["v", "n"], "decline"),
        (&["v", "what", "c"], "cancel"),
        (&["v"], "cancel"),
    ] {
        assert_eq!(ask(params, lines).0, json!({ "action": action }), "{lines:?}");
    }
    assert_eq!(ask(r#"{"message":"m","requestedSchema":{}}"#, &["y"]).0, json!({ "action": "accept", "content": {} }));
}

#[test]
fn what_is_too_much_for_a_person_is_cut_and_a_form_without_end_declined() {
    let long = "x".repeat(5000);
    let params = format!(
        r#"{{"message":"{}","requestedSchema":{{"properties":{{"a":{{"type":"string","title":"{long}","description":"{long}","default":"{long}"}}}}}}}}"#,
        format!("{long}\\n").repeat(99)
    );
    let (answer, seen) = ask(&params, &["", "y"]);
    assert_eq!(answer["content"]["a"], long);
    assert!(
        seen.len() < 50_000 && seen.contains("… (59 more lines)") && seen.contains("… (5000 characters)"),
        "{}",
        seen.len()
    );
    let fields: Vec<_> = (0..101).map(|at| format!("\"f{at}\":{{\"type\":\"string\"}}")).collect();
    let (answer, seen) =
        ask(&format!(r#"{{"message":"m","requestedSchema":{{"properties":{{{}}}}}}}"#, fields.join(",")), &[]);
    assert!(answer == json!({ "action": "decline" }) && seen.contains("the form has 101 fields"), "{seen}");
    let all: Vec<_> = (0..3000).map(|at| format!("\"v{at}\"")).collect();
    let (value, seen) = field(&format!(r#"{{"type":"string","enum":[{}]}}"#, all.join(",")), &["v2999"]);
    assert!(
        value == "v2999" && seen.contains("50  v49") && !seen.contains("51  v50") && seen.contains("3000 choices"),
        "{seen}"
    );
}

#[test]
fn a_person_is_warned_of_a_field_for_a_secret_and_nobody_else_is_taken_for_the_one_who_asks() {
    let params = r#"{"message":"[x] m","_meta":{"trunkline/upstream":"bank"},"requestedSchema":{"properties":{"api_key":{"type":"string"},"n":{"type":"string","title":"Your password"},"o":{"type":"string"}}}}"#;
    let (_, seen) = ask(params, &["", "", "", "y"]);
    assert!(!seen.contains("bank") && seen.matches("must not ask for a secret").count() == 2, "{seen}");
}

#[test]
fn items_of_a_list_are_of_its_kind() {
    assert_eq!(
        field(r#"{"type":"array","items":{"type":"integer","maximum":5}}"#, &["1,x", "1,9", "1, 2"]).0,
        json!([1, 2])
    );
    assert_eq!(field(r#"{"type":"array","items":{"type":"string"}}"#, &["1,x"]).0, json!(["1", "x"]));
    assert_eq!(field(r#"{"type":"array"}"#, &["a"]).0, json!(["a"]));
}

#[test]
fn a_page_is_printed_and_never_opened() {
    let params = r#"{"message":"log in","mode":"url","url":"https://example.com/\u202e","elicitationId":"e"}"#;
    let (answer, seen) = ask(params, &["y"]);
    assert_eq!(answer, json!({ "action": "accept" }));
    assert!(seen.contains("yourself") && seen.contains("https://example.com/\\u{202e}"), "{seen}");
    assert_eq!(ask(params, &["d"]).0, json!({ "action": "decline" }));
}

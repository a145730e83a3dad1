//! Questions and answers: what each revision can be asked and told.

use super::super::*;
use super::rig::{answered, asked};
use Revision as R;

fn form(field: &str) -> String {
    format!(r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"f":{field}}}}}}}"#)
}

#[test]
fn forms_are_asked_of_those_that_have_them() {
    let plain = form(r#"{"type":"string"}"#);
    for to in [R::V2024_11_05, R::V2025_03_26] {
        assert_eq!(asked(Method::Elicitation, &plain, R::V2025_11_25, to), None, "{to}");
    }
    for (from, to) in
        [(R::V2025_06_18, R::V2026_07_28), (R::V2026_07_28, R::V2025_06_18), (R::V2025_11_25, R::V2025_06_18)]
    {
        assert_eq!(asked(Method::Elicitation, &plain, from, to).as_deref(), Some(&*plain));
    }
    let full = r#"{"mode":"form","task":{},"_meta":{"progressToken":1,"a/b":2},"message":"m"}"#;
    let to = |to| asked(Method::Elicitation, full, R::V2025_11_25, to).unwrap();
    assert_eq!(to(R::V2025_06_18), r#"{"_meta":{"progressToken":1,"a/b":2},"message":"m"}"#);
    assert_eq!(to(R::V2026_07_28), r#"{"mode":"form","_meta":{"a/b":2},"message":"m"}"#);
    let hop = r#"{"message":"m","_meta":{"io.modelcontextprotocol/related-task":{}}}"#;
    assert_eq!(asked(Method::Elicitation, hop, R::V2025_11_25, R::V2026_07_28).unwrap(), r#"{"message":"m"}"#);
}

#[test]
fn pages_are_asked_of_those_that_have_them() {
    let page = r#"{"mode":"url","elicitationId":"1","url":"https://a.example","message":"m"}"#;
    assert_eq!(asked(Method::Elicitation, page, R::V2025_11_25, R::V2025_06_18), None);
    assert_eq!(
        asked(Method::Elicitation, page, R::V2025_11_25, R::V2026_07_28).unwrap(),
        r#"{"mode":"url","url":"https://a.example","message":"m"}"#
    );
    assert_eq!(asked(Method::Elicitation, page, R::V2026_07_28, R::V2025_11_25).unwrap(), page);
}

#[test]
fn choices_are_said_as_each_revision_can() {
    let titled =
        form(r#"{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}],"default":"a"}"#);
    let named = form(r#"{"type":"string","enum":["a","b"],"enumNames":["A","B"]}"#);
    assert_eq!(asked(Method::Elicitation, &titled, R::V2026_07_28, R::V2025_06_18).unwrap(), named);
    let again = asked(Method::Elicitation, &named, R::V2025_06_18, R::V2025_11_25).unwrap();
    assert_eq!(again, titled.replace(r#","default":"a""#, ""));
    let fewer = form(r#"{"type":"string","enum":["a","b"],"enumNames":["A"]}"#);
    assert_eq!(asked(Method::Elicitation, &fewer, R::V2025_06_18, R::V2026_07_28).unwrap(), fewer);
    for many in [
        r#"{"type":"array","items":{"type":"string","enum":["a"]}}"#,
        r#"{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}"#,
        r#"{"type":"string","oneOf":[{"title":"A"}]}"#,
    ] {
        assert_eq!(asked(Method::Elicitation, &form(many), R::V2025_11_25, R::V2025_06_18), None, "{many}");
        assert!(asked(Method::Elicitation, &form(many), R::V2025_11_25, R::V2026_07_28).is_some());
    }
    let yes = form(r#"{"type":"boolean","default":true}"#);
    assert_eq!(asked(Method::Elicitation, &yes, R::V2025_11_25, R::V2025_06_18).unwrap(), yes);
    let five = form(r#"{"type":"number","default":5}"#);
    assert_eq!(
        asked(Method::Elicitation, &five, R::V2025_11_25, R::V2025_06_18).unwrap(),
        form(r#"{"type":"number"}"#)
    );
}

#[test]
fn a_persons_answer_goes_back_where_it_can_be_told() {
    let many = r#"{"action":"accept","content":{"a":["x"]}}"#;
    assert_eq!(answered(Method::Elicitation, many, R::V2026_07_28, R::V2025_06_18), None);
    assert_eq!(answered(Method::Elicitation, many, R::V2026_07_28, R::V2025_11_25).unwrap(), many);
    let one = r#"{"action":"accept","content":{"a":"x"},"_meta":{"progressToken":1}}"#;
    assert_eq!(
        answered(Method::Elicitation, one, R::V2025_06_18, R::V2026_07_28).unwrap(),
        r#"{"action":"accept","content":{"a":"x"}}"#
    );
}

#[test]
fn models_are_asked_what_their_revision_can_say() {
    let one = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","_meta":{}}],"_meta":{}}],"tools":[],"toolChoice":{},"maxTokens":1}"#;
    assert_eq!(
        asked(Method::Sampling, one, R::V2025_11_25, R::V2025_03_26).unwrap(),
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}],"maxTokens":1}"#
    );
    assert_eq!(asked(Method::Sampling, one, R::V2025_11_25, R::V2026_07_28).unwrap(), one);
    for unsayable in [
        r#"{"messages":[],"tools":[{"name":"t","inputSchema":{}}]}"#,
        r#"{"messages":[{"role":"user","content":[]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}"#,
        r#"{"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[]}}]}"#,
    ] {
        assert_eq!(asked(Method::Sampling, unsayable, R::V2026_07_28, R::V2025_06_18), None, "{unsayable}");
        assert!(asked(Method::Sampling, unsayable, R::V2026_07_28, R::V2025_11_25).is_some());
    }
    let sound = r#"{"messages":[{"role":"user","content":{"type":"audio","data":"","mimeType":"a/b"}}]}"#;
    assert_eq!(asked(Method::Sampling, sound, R::V2025_03_26, R::V2024_11_05), None);
    assert_eq!(asked(Method::Sampling, sound, R::V2025_06_18, R::V2025_03_26).unwrap(), sound);
}

#[test]
fn tools_in_a_question_are_those_of_the_asked_revision() {
    let raw = r#"{"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":[1]}}],"tools":[{"name":"t","inputSchema":{},"execution":{},"outputSchema":{"type":"array"}}]}"#;
    assert_eq!(
        asked(Method::Sampling, raw, R::V2026_07_28, R::V2025_11_25).unwrap(),
        r#"{"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"[1]"}]}}],"tools":[{"name":"t","inputSchema":{}}]}"#
    );
}

#[test]
fn a_models_answer_is_one_block_for_those_that_have_one() {
    let one = r#"{"role":"assistant","content":[{"type":"text","text":"a"}],"model":"m"}"#;
    assert_eq!(
        answered(Method::Sampling, one, R::V2026_07_28, R::V2025_06_18).unwrap(),
        r#"{"role":"assistant","content":{"type":"text","text":"a"},"model":"m"}"#
    );
    assert_eq!(answered(Method::Sampling, one, R::V2026_07_28, R::V2025_11_25).unwrap(), one);
    let two =
        r#"{"role":"assistant","content":[{"type":"text","text":"a\u0041"},{"type":"text","text":"\"b"}],"model":"m"}"#;
    assert_eq!(
        answered(Method::Sampling, two, R::V2025_11_25, R::V2025_06_18).unwrap(),
        r#"{"role":"assistant","content":{"type":"text","text":"aA\n\"b"},"model":"m"}"#
    );
    let mixed = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}]}"#;
    assert_eq!(answered(Method::Sampling, mixed, R::V2025_11_25, R::V2025_06_18), None);
    let none = r#"{"role":"assistant","content":[],"model":"m"}"#;
    assert_eq!(answered(Method::Sampling, none, R::V2025_11_25, R::V2025_06_18), None);
}

#[test]
fn roots_have_no_meta_where_that_is_unknown() {
    let raw = r#"{"roots":[{"uri":"file:///a","_meta":{}}]}"#;
    assert_eq!(
        answered(Method::RootsList, raw, R::V2025_11_25, R::V2025_03_26).unwrap(),
        r#"{"roots":[{"uri":"file:///a"}]}"#
    );
    assert_eq!(answered(Method::RootsList, raw, R::V2025_06_18, R::V2026_07_28).unwrap(), raw);
    assert_eq!(
        asked(Method::RootsList, r#"{"_meta":{"progressToken":1}}"#, R::V2025_11_25, R::V2026_07_28).unwrap(),
        "{}"
    );
}

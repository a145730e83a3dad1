//! Definitions and capabilities: each receiver has what its revision knows.

use super::super::*;
use Revision as R;

fn to(raw: &str, from: Revision, to: Revision) -> String {
    String::from_utf8(definition(raw.as_bytes(), from, to).into_owned()).unwrap()
}

#[test]
fn a_definition_has_only_what_its_receiver_knows() {
    let raw = r#"{"name":"a","title":"A","inputSchema":{},"annotations":{},"icons":[],"execution":{},"x":"execution"}"#;
    let older = |revision| to(raw, R::V2025_11_25, revision);
    assert_eq!(older(R::V2025_11_25), raw);
    assert_eq!(older(R::V2024_11_05), r#"{"name":"a","inputSchema":{},"x":"execution"}"#);
    assert_eq!(older(R::V2025_03_26), r#"{"name":"a","inputSchema":{},"annotations":{},"x":"execution"}"#);
    assert_eq!(older(R::V2025_06_18), r#"{"name":"a","title":"A","inputSchema":{},"annotations":{},"x":"execution"}"#);
    let to_modern = r#"{"name":"a","title":"A","inputSchema":{},"annotations":{},"icons":[],"x":"execution"}"#;
    assert_eq!(older(R::V2026_07_28), to_modern);
    let resource = r#"{"uri":"a:b","annotations":{}}"#;
    assert_eq!(to(resource, R::V2025_11_25, R::V2024_11_05), resource);
}

#[test]
fn tasks_are_shown_only_from_and_to_the_one_revision_that_has_them() {
    let raw = r#"{"name":"a","inputSchema":{},"execution":{"taskSupport":"required"}}"#;
    let has_them = |revision| revision == R::V2025_11_25;
    for (from, other) in crate::translate::tests::rig::pairs().filter(|(from, to)| has_them(*from) != has_them(*to)) {
        assert!(!to(raw, from, other).contains("execution"), "{from} to {other}");
    }
}

#[test]
fn a_schema_of_results_that_need_not_be_objects_is_for_the_newest_alone() {
    let list = r#"{"name":"a","inputSchema":{},"outputSchema":{"type":"array"}}"#;
    let object = r#"{"name":"a","inputSchema":{},"outputSchema":{"type":"object"}}"#;
    assert_eq!(to(list, R::V2026_07_28, R::V2025_11_25), r#"{"name":"a","inputSchema":{}}"#);
    assert_eq!(to(object, R::V2026_07_28, R::V2025_06_18), object);
    assert_eq!(to(object, R::V2026_07_28, R::V2025_03_26), r#"{"name":"a","inputSchema":{}}"#);
    assert_eq!(to(list, R::V2026_07_28, R::V2026_07_28), list);
}

#[test]
fn arguments_of_prompts_lose_their_titles() {
    let raw = r#"{"name":"p","title":"P","arguments":[{"name":"x","title":"X","required":true}]}"#;
    assert_eq!(to(raw, R::V2025_06_18, R::V2025_03_26), r#"{"name":"p","arguments":[{"name":"x","required":true}]}"#);
    assert_eq!(to(raw, R::V2026_07_28, R::V2025_06_18), raw);
}

#[test]
fn capabilities_are_those_of_a_revision() {
    let all = br#"{"tools":{},"completions":{},"tasks":{"list":{}},"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}}}"#;
    let told = |to| String::from_utf8(capabilities(all, to).into_owned()).unwrap();
    assert_eq!(told(R::V2024_11_05), r#"{"tools":{}}"#);
    assert_eq!(told(R::V2025_06_18), r#"{"tools":{},"completions":{}}"#);
    assert_eq!(told(R::V2025_11_25), r#"{"tools":{},"completions":{},"tasks":{"list":{}},"extensions":{"a/b":{}}}"#);
    assert_eq!(
        told(R::V2026_07_28),
        r#"{"tools":{},"completions":{},"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}}}"#
    );
}

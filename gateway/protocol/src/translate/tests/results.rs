//! Results: what stateless revisions say around them, and their contents.

use super::super::*;
use super::rig::told;
use Revision as R;

#[test]
fn legacy_to_legacy_is_byte_for_byte() {
    let raw = r#"{ "content":[], "resultType":7 }"#;
    assert_eq!(told(Method::ToolsCall, raw, R::V2024_11_05, R::V2025_11_25), raw);
}

#[test]
fn results_gain_and_lose_what_stateless_revisions_add() {
    let us = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"t"}"#;
    assert_eq!(
        told(Method::ToolsList, r#"{"tools":[]}"#, R::V2024_11_05, R::V2026_07_28),
        format!(r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private",{us}}},"tools":[]}}"#)
    );
    let meta =
        r#"{"resultType":"complete","content":[1e400],"_meta":{"io.modelcontextprotocol/serverInfo":{},"a/b":1}}"#;
    assert_eq!(
        told(Method::ToolsCall, meta, R::V2026_07_28, R::V2025_03_26),
        r#"{"content":[1e400],"_meta":{"a/b":1}}"#
    );
    assert_eq!(
        told(Method::ToolsCall, meta, R::V2026_07_28, R::V2026_07_28),
        format!(r#"{{"resultType":"complete","content":[1e400],{us},"a/b":1}}}}"#)
    );
    let only = r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#;
    assert_eq!(told(Method::ToolsCall, only, R::V2026_07_28, R::V2025_03_26), r#"{"content":[]}"#);
    assert_eq!(
        told(Method::ToolsCall, r#"{"content":[],"resultType":"mine"}"#, R::V2025_06_18, R::V2026_07_28),
        format!(r#"{{{us}}},"content":[],"resultType":"complete"}}"#)
    );
}

#[test]
fn a_tools_result_has_content_for_everybody() {
    assert_eq!(
        told(Method::ToolsCall, r#"{"isError":true}"#, R::V2024_11_05, R::V2025_03_26),
        r#"{"content":[],"isError":true}"#
    );
    // What is no result yet gets none.
    let task = r#"{"task":{"taskId":"1"}}"#;
    assert_eq!(told(Method::ToolsCall, task, R::V2025_11_25, R::V2025_06_18), task);
}

#[test]
fn sound_becomes_words_and_a_resource_where_there_is_none() {
    let raw = r#"{"content":[{"type":"text","text":"a"},{"type":"audio","mimeType":"audio/wav","data":"AA=="}]}"#;
    assert_eq!(
        told(Method::ToolsCall, raw, R::V2025_03_26, R::V2024_11_05),
        concat!(
            r#"{"content":[{"type":"text","text":"a"},"#,
            r#"{"type":"text","text":"[Sound of type audio/wav, which this client's protocol revision does not have]"},"#,
            r#"{"type":"resource","resource":{"uri":"urn:trunkline:audio","mimeType":"audio/wav","blob":"AA=="}}]}"#
        )
    );
    assert_eq!(told(Method::ToolsCall, raw, R::V2025_11_25, R::V2025_03_26), raw);
    let prompt = r#"{"messages":[{"role":"user","content":{"type":"audio","data":"AA=="}}]}"#;
    let told = told(Method::PromptsGet, prompt, R::V2025_11_25, R::V2024_11_05);
    assert!(told.starts_with(r#"{"messages":[{"role":"user","content":{"type":"text","#), "{told}");
    assert!(told.contains(r#"},{"role":"user","content":{"type":"resource","#), "{told}");
}

#[test]
fn a_link_becomes_words_where_there_is_none_and_loses_icons_where_those_are_unknown() {
    let raw =
        r#"{"content":[{"type":"resource_link","uri":"a:b","name":"n","icons":[],"annotations":{"priority":1}}]}"#;
    assert_eq!(
        told(Method::ToolsCall, raw, R::V2025_11_25, R::V2025_03_26),
        r#"{"content":[{"type":"text","text":"n: a:b","annotations":{"priority":1}}]}"#
    );
    assert_eq!(
        told(Method::ToolsCall, raw, R::V2025_11_25, R::V2025_06_18),
        r#"{"content":[{"type":"resource_link","uri":"a:b","name":"n","annotations":{"priority":1}}]}"#
    );
    let escaped = r#"{"content":[{"type":"resource\u005flink","uri":"a:b","name":"a:b"}]}"#;
    assert_eq!(
        told(Method::ToolsCall, escaped, R::V2025_11_25, R::V2025_03_26),
        r#"{"content":[{"type":"text","text":"a:b"}]}"#
    );
}

#[test]
fn contents_have_no_meta_where_that_is_unknown() {
    let read = r#"{"contents":[{"uri":"a:b","text":"_meta","_meta":{"k":1}}],"_meta":{"k":2}}"#;
    assert_eq!(
        told(Method::ResourcesRead, read, R::V2025_06_18, R::V2025_03_26),
        r#"{"contents":[{"uri":"a:b","text":"_meta"}],"_meta":{"k":2}}"#
    );
    let embedded = r#"{"content":[{"type":"resource","resource":{"uri":"a:b","_meta":{}},"_meta":{}},{"type":"image","_meta":{}}]}"#;
    assert_eq!(
        told(Method::ToolsCall, embedded, R::V2025_06_18, R::V2024_11_05),
        r#"{"content":[{"type":"resource","resource":{"uri":"a:b"}},{"type":"image"}]}"#
    );
}

#[test]
fn structured_results_are_said_in_words_where_they_cannot_be_had() {
    let to = |raw: &str, to| told(Method::ToolsCall, raw, R::V2026_07_28, to);
    let said = r#"{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":[1,2]}"#;
    assert_eq!(to(said, R::V2025_11_25), r#"{"content":[{"type":"text","text":"[1, 2]"}]}"#);
    let unsaid = r#"{"content":[{"type":"text","text":"two"}],"structuredContent":[1,"a b"]}"#;
    for older in [R::V2025_11_25, R::V2025_06_18, R::V2024_11_05] {
        assert_eq!(
            to(unsaid, older),
            r#"{"content":[{"type":"text","text":"two"},{"type":"text","text":"[1,\"a b\"]"}]}"#
        );
    }
    let object = r#"{"content":[],"structuredContent":{"a":1}}"#;
    assert_eq!(to(object, R::V2025_06_18), object);
    assert_eq!(to(object, R::V2025_03_26), r#"{"content":[{"type":"text","text":"{\"a\":1}"}]}"#);
    let beside = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}"#;
    assert_eq!(to(beside, R::V2025_03_26), r#"{"content":[{"type":"text","text":"x"}]}"#);
    assert_eq!(to(r#"{"structuredContent":"a"}"#, R::V2025_11_25), r#"{"content":[{"type":"text","text":"\"a\""}]}"#);
}

#[test]
fn the_oldest_progress_has_no_words() {
    let notice = crate::translate::tests::rig::object(r#"{"progressToken":1,"progress":2,"message":"m"}"#);
    let old = params(&Method::Progress, &notice, R::V2025_11_25, R::V2024_11_05);
    assert_eq!(old.unwrap().raw(), r#"{"progressToken":1,"progress":2}"#);
    assert_eq!(params(&Method::Progress, &notice, R::V2026_07_28, R::V2025_03_26), None);
}

#[test]
fn a_call_asks_only_for_what_its_upstream_knows() {
    let call = |raw: &str, from, to| {
        let call = crate::translate::tests::rig::object(raw);
        let sent = params(&Method::ToolsCall, &call, from, to).unwrap_or(call);
        String::from_utf8(sent.raw().to_vec()).unwrap()
    };
    let task = r#"{"name":"a","task":{"ttl":1}}"#;
    assert_eq!(call(task, R::V2025_11_25, R::V2025_11_25), task);
    assert_eq!(call(task, R::V2025_11_25, R::V2026_07_28), r#"{"name":"a"}"#);
    let retry = r#"{"name":"a","requestState":"s","inputResponses":{}}"#;
    assert_eq!(call(retry, R::V2026_07_28, R::V2025_11_25), r#"{"name":"a"}"#);
    let complete = crate::translate::tests::rig::object(r#"{"argument":{},"context":{}}"#);
    let sent = params(&Method::Complete, &complete, R::V2025_06_18, R::V2025_03_26);
    assert_eq!(sent.unwrap().raw(), r#"{"argument":{}}"#);
}

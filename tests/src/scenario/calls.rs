//! Calls, and the two kinds of failure.

use serde_json::Value;

use crate::client::tool;
use crate::judge;
use crate::scenario::Case;

/// Arguments arrive and come back byte for byte; ids come back byte for byte.
pub(crate) async fn call(case: &Case) {
    let name = case.name("echo");
    for id in ["\"a \\u00e9\"", "7007", "\"7007\"", "-1", "9007199254740993"] {
        let nonce = judge::nonce();
        let arguments = format!("{{ \"nonce\":\"{nonce}\",\"n\":18446744073709551616,\"b\":1.0,\"a\":[] }}");
        let answer = case.client.request(tool(&name, &arguments).id(id)).await;
        assert_eq!(answer.id(), id, "the id as it was");
        assert_eq!(answer.text(), arguments, "the arguments as they were");
        if case.client.revision.has_structured_content() && case.upstream_revision.has_structured_content() {
            let result = answer.result();
            assert!(result.contains(&format!("\"structuredContent\":{arguments}")), "the result as it was: {result}");
        }
        case.upstream.ran(&nonce).await;
        assert_eq!(case.upstream.executed().await.iter().filter(|ran| **ran == nonce).count(), 1, "it ran once");
        let is_modern = case.client.revision.is_modern();
        assert_eq!(answer.value().get("resultType").is_some(), is_modern, "resultType is of one era");
    }
}

/// An upstream's own error passes as it is; a tool's failure is a result; unknown tools are refused.
pub(crate) async fn error(case: &Case) {
    let data = r#"{"why":[1,{"deep":"é"}],"big":1e400}"#;
    let arguments = format!("{{\"code\":4711,\"message\":\"no “such” luck\",\"data\":{data}}}");
    let answer = case.client.call(&case.name("fail"), &arguments).await;
    let raw = answer.error();
    assert!(raw.contains(data), "the data byte for byte: {raw}");
    assert!(raw.contains("4711"), "the code: {raw}");
    assert!(raw.contains("no “such” luck"), "the text: {raw}");

    let failed: Value = case.client.call(&case.name("tool_error"), "{}").await.value();
    assert_eq!(failed["isError"], true, "{failed}");
    assert_eq!(failed["content"][0]["text"], "the tool says no", "{failed}");

    let unknown = case.client.call(&case.name("no_such_tool"), "{}").await;
    assert_eq!(unknown.code(), -32602, "an unknown tool: {}", unknown.error());
}

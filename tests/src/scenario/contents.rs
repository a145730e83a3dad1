//! Contents that not every revision has a place for.

use serde_json::{Value, json};

use crate::scenario::Case;

/// Structured contents reach whoever has a place for them, and are text for all others.
pub(crate) async fn structured(case: &Case) {
    let (client, upstream) = (case.client.revision, case.upstream_revision);
    for value in [json!({"n": 1}), json!([1, "two"]), json!(7)] {
        let answer = case.client.call(&case.name("structured"), &format!("{{\"value\":{value}}}")).await.value();
        let is_sent = upstream.is_modern() || upstream.has_structured_content() && value.is_object();
        let is_shown = client.is_modern() || client.has_structured_content() && value.is_object();
        let shown = answer.get("structuredContent");
        assert_eq!(shown, (is_sent && is_shown).then_some(&value), "{value} of {upstream}: {answer}");
        if shown.is_none() {
            let text = answer["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{value} is lost: {answer}"));
            assert_eq!(serde_json::from_str::<Value>(text).expect("JSON as text"), value, "{answer}");
        }
    }
}

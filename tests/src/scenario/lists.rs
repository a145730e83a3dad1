//! Lists, and what is read from them.

use serde_json::Value;

use crate::client::Request;
use crate::frame::quote;
use crate::revision::Revision;
use crate::scenario::Case;

/// The four lists hold what the upstream has, in the client's shape.
pub(crate) async fn list(case: &Case) {
    let client = &case.client;
    let tools = client.request(Request::new("tools/list", "{}")).await.value();
    check_shape(case, &tools);
    let wanted = case.name("echo");
    let entries = tools["tools"].as_array().expect("tools is a list");
    let echo = entries.iter().find(|tool| tool["name"] == wanted.as_str());
    let echo = echo.unwrap_or_else(|| panic!("no {wanted} in {tools}"));
    assert_eq!(echo["description"], format!("echo of {}", case.upstream.name), "the description as it is");
    assert_eq!(echo["inputSchema"]["properties"]["nonce"]["type"], "string", "the schema as it is");
    check_field(case, echo, "title", Revision::R2025_06_18);
    check_field(case, echo, "annotations", Revision::R2025_03_26);

    let resources = client.list("resources/list", "resources", "uri").await;
    assert!(resources.contains(&case.uri("text")), "{resources:?}");
    let templates = client.list("resources/templates/list", "resourceTemplates", "uriTemplate").await;
    assert!(templates.contains(&case.uri("item/{id}")), "{templates:?}");
    let prompts = client.list("prompts/list", "prompts", "name").await;
    assert!(prompts.contains(&case.name("greet")), "{prompts:?}");
}

/// What a revision wants in a cacheable result is there, and what it does not know is not.
fn check_shape(case: &Case, result: &Value) {
    if case.client.revision.is_modern() {
        assert_eq!(result["resultType"], "complete", "{result}");
        assert!(result["ttlMs"].is_u64(), "ttlMs is a count of milliseconds: {}", result["ttlMs"]);
        assert!(["public", "private"].iter().any(|scope| result["cacheScope"] == *scope), "{}", result["cacheScope"]);
        return;
    }
    for key in ["resultType", "ttlMs", "cacheScope"] {
        assert!(result.get(key).is_none(), "{key} means nothing in {}: {result}", case.client.revision);
    }
    assert!(result["_meta"].get("io.modelcontextprotocol/serverInfo").is_none(), "hop-by-hop: {result}");
}

/// A field that came with a revision reaches clients of that revision, and no older ones.
fn check_field(case: &Case, entry: &Value, field: &str, since: Revision) {
    let expected = case.client.revision >= since && case.upstream_revision >= since;
    assert_eq!(entry.get(field).is_some(), expected, "{field} for a client of {}: {entry}", case.client.revision);
}

/// Listed resources, templates and missing resources.
pub(crate) async fn read(case: &Case) {
    for (path, text) in [("text", "text"), ("item/7", "item/7")] {
        let uri = case.uri(path);
        let read = case.client.request(read_request(&uri)).await.value();
        assert_eq!(read["contents"][0]["uri"], uri.as_str(), "{read}");
        assert_eq!(read["contents"][0]["text"], format!("{text} of {}", case.upstream.name), "{read}");
    }
    let missing = case.uri("nothing");
    let error = case.client.request(read_request(&missing)).await.error_value();
    let code = if case.client.revision.is_modern() { -32602 } else { -32002 };
    assert_eq!(error["code"], code, "not found, in the client's words: {error}");
    assert_eq!(error["data"]["uri"], missing.as_str(), "{error}");
}

fn read_request(uri: &str) -> Request {
    Request::new("resources/read", &format!("{{\"uri\":{}}}", quote(uri)))
}

/// A prompt with its argument.
pub(crate) async fn prompt(case: &Case) {
    let params = format!("{{\"name\":{},\"arguments\":{{\"who\":\"Ada\"}}}}", quote(&case.name("greet")));
    let prompt = case.client.request(Request::new("prompts/get", &params)).await.value();
    let text = &prompt["messages"][0]["content"]["text"];
    assert_eq!(*text, format!("Hello Ada, says {}", case.upstream.name), "{prompt}");
    let params = format!("{{\"name\":{}}}", quote(&case.name("nobody")));
    assert_eq!(case.client.request(Request::new("prompts/get", &params)).await.code(), -32602, "an unknown prompt");
}

/// Completion for a prompt and for a template: the upstream is asked about its own names.
pub(crate) async fn completion(case: &Case) {
    let template = case.uri("item/{id}");
    let asked = [
        (format!("{{\"type\":\"ref/prompt\",\"name\":{}}}", quote(&case.name("greet"))), "greet"),
        (format!("{{\"type\":\"ref/resource\",\"uri\":{}}}", quote(&template)), template.as_str()),
    ];
    for (reference, own) in asked {
        let params = format!("{{\"ref\":{reference},\"argument\":{{\"name\":\"id\",\"value\":\"v\"}}}}");
        let completion = case.client.request(Request::new("completion/complete", &params)).await.value();
        let values = &completion["completion"]["values"];
        assert_eq!(values[0], format!("v-{own}"), "{completion}");
        assert_eq!(values[1], format!("v-{}", case.upstream.name), "{completion}");
    }
}

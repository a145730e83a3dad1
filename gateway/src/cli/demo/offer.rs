//! What the demo offers beside its tools: resources, a template, a prompt, and completions. Pure.

use serde_json::{Value, json};

use super::era::{Era, Refusal};

/// The resource that changes.
pub(super) const COUNTER: &str = "demo://counter";
const GREETING: &str = "demo://greeting/";
const STYLES: [&str; 3] = ["formal", "friendly", "pirate"];
const NAMES: [&str; 4] = ["Ada", "Alan", "Grace", "Linus"];

/// `resources/list`.
pub(super) fn resources() -> Value {
    json!({ "resources": [{
        "uri": COUNTER,
        "name": "counter",
        "description": "A number that grows every few seconds",
        "mimeType": "text/plain",
    }] })
}

/// `resources/templates/list`.
pub(super) fn templates() -> Value {
    json!({ "resourceTemplates": [{
        "uriTemplate": "demo://greeting/{name}",
        "name": "greeting",
        "description": "A greeting for a name",
        "mimeType": "text/plain",
    }] })
}

/// `resources/read`; `count` is what the counter stands at.
pub(super) fn read(era: Era, params: &Value, count: u64) -> Result<Value, Refusal> {
    let uri = text(params, "uri")?;
    let read = match uri.strip_prefix(GREETING) {
        Some(name) if !name.is_empty() => format!("Hello, {name}!"),
        _ if uri == COUNTER => count.to_string(),
        _ => {
            // The newest revision has no code of its own for this.
            let code = if era == Era::Modern { -32602 } else { -32002 };
            let data = Some(json!({ "uri": uri }));
            return Err(Refusal { data, ..Refusal::new(code, format!("there is no resource {uri}")) });
        }
    };
    Ok(json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": read }] }))
}

/// `prompts/list`.
pub(super) fn prompts() -> Value {
    json!({ "prompts": [{
        "name": "greet",
        "description": "Asks for a greeting",
        "arguments": [
            { "name": "name", "description": "Who is greeted", "required": true },
            { "name": "style", "description": "formal, friendly or pirate" },
        ],
    }] })
}

/// `prompts/get`.
pub(super) fn prompt(params: &Value) -> Result<Value, Refusal> {
    match text(params, "name")? {
        "greet" => {}
        name => return Err(Refusal::new(-32602, format!("there is no prompt {name}"))),
    }
    let name = text(&params["arguments"], "name")?;
    let style = params["arguments"]["style"].as_str().unwrap_or("friendly");
    let said = format!("Write a {style} greeting for {name}, in one sentence.");
    Ok(json!({
        "description": "Asks for a greeting",
        "messages": [{ "role": "user", "content": { "type": "text", "text": said } }],
    }))
}

/// `completion/complete`.
pub(super) fn complete(params: &Value) -> Result<Value, Refusal> {
    let argument = text(&params["argument"], "name")?;
    let begun = params["argument"]["value"].as_str().unwrap_or_default().to_lowercase();
    let reference = &params["ref"];
    let known: &[&str] = match (reference["type"].as_str(), argument) {
        (Some("ref/prompt"), "style") if reference["name"] == "greet" => &STYLES,
        (Some("ref/prompt"), "name") if reference["name"] == "greet" => &NAMES,
        (Some("ref/resource"), "name") if reference["uri"] == "demo://greeting/{name}" => &NAMES,
        _ => return Err(Refusal::new(-32602, format!("nothing is known about the argument {argument} there"))),
    };
    let values: Vec<&str> = known.iter().copied().filter(|value| value.to_lowercase().starts_with(&begun)).collect();
    Ok(json!({ "completion": { "total": values.len(), "hasMore": false, "values": values } }))
}

/// The text at `key`, which must be there.
pub(super) fn text<'a>(from: &'a Value, key: &str) -> Result<&'a str, Refusal> {
    from[key].as_str().ok_or_else(|| Refusal::new(-32602, format!("`{key}` is missing, or is no text")))
}

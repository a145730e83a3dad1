//! What is read rather than run: resources, prompts, completions.

use crate::engine::said::Said;
use crate::frame::{Frame, fields, quote, text};
use crate::revision::Revision;
use crate::script::Script;

/// `resources/read`.
pub(crate) fn resource(script: &Script, frame: &Frame, revision: Revision) -> Said {
    let uri = frame.param_text("uri").unwrap_or_default();
    let root = format!("script://{}/", script.authority());
    let content = match uri.strip_prefix(&root) {
        Some(path @ ("text" | "changing")) => format!("{path} of {}", script.name),
        Some(path) if path.starts_with("item/") || path.starts_with("more/") => format!("{path} of {}", script.name),
        _ => {
            let code = if revision.is_modern() { -32602 } else { -32002 };
            return Said::error(code, "Resource not found", Some(&format!("{{\"uri\":{}}}", quote(&uri))));
        }
    };
    let text = format!(
        "{{\"contents\":[{{\"uri\":{},\"mimeType\":\"text/plain\",\"text\":{}}}]}}",
        quote(&uri),
        quote(&content)
    );
    Said::dressed(script, revision, true, &text)
}

/// `prompts/get`.
pub(crate) fn prompt(script: &Script, frame: &Frame, revision: Revision) -> Said {
    let name = frame.param_text("name").unwrap_or_default();
    if name != "greet" {
        return Said::error(-32602, &format!("Unknown prompt: {name}"), None);
    }
    let arguments = frame.param("arguments").map(|raw| fields(&raw)).unwrap_or_default();
    let who = arguments.get("who").and_then(|raw| text(raw)).unwrap_or_default();
    let greeting = quote(&format!("Hello {who}, says {}", script.name));
    Said::dressed(
        script,
        revision,
        false,
        &format!("{{\"messages\":[{{\"role\":\"user\",\"content\":{{\"type\":\"text\",\"text\":{greeting}}}}}]}}"),
    )
}

/// `completion/complete`: says what it was asked about, so that a test sees where the question arrived.
pub(crate) fn completion(script: &Script, frame: &Frame, revision: Revision) -> Said {
    let about = frame.param("ref").map(|raw| fields(&raw)).unwrap_or_default();
    let subject = about.get("name").or(about.get("uri")).and_then(|raw| text(raw)).unwrap_or_default();
    let argument = frame.param("argument").map(|raw| fields(&raw)).unwrap_or_default();
    let value = argument.get("value").and_then(|raw| text(raw)).unwrap_or_default();
    let values = format!("{},{}", quote(&format!("{value}-{subject}")), quote(&format!("{value}-{}", script.name)));
    let text = format!("{{\"completion\":{{\"values\":[{values}],\"total\":2,\"hasMore\":false}}}}");
    Said::dressed(script, revision, false, &text)
}

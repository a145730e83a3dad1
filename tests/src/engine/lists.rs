//! The four lists, in pages.

use crate::engine::Engine;
use crate::engine::said::Said;
use crate::frame::{Frame, quote};
use crate::revision::Revision;
use crate::script::Script;

/// `tools/list`.
pub(crate) fn tools(engine: &Engine, frame: &Frame, revision: Revision, session: &str) -> Said {
    let script = &engine.script;
    let mut names = script.tools.clone();
    names.extend((0..script.more_tools).map(|number| format!("tool_{number}")));
    names.extend(engine.added(session));
    let declared = match revision.is_modern() {
        true => frame
            .meta("io.modelcontextprotocol/clientCapabilities")
            .and_then(|raw| serde_json::from_str(raw.get()).ok()),
        false => Some(engine.questions.declared(session)),
    };
    names.extend(engine.tools_for(&declared.unwrap_or_default()));
    let mut entries: Vec<String> = names.iter().map(|name| tool(script, name, revision)).collect();
    entries.extend(script.raw_tools.iter().cloned());
    page(script, frame, revision, "tools", &entries)
}

fn tool(script: &Script, name: &str, revision: Revision) -> String {
    let mut text =
        format!("{{\"name\":{},\"description\":{}", quote(name), quote(&format!("{name} of {}", script.name)));
    if revision >= Revision::R2025_06_18 {
        text.push_str(&format!(",\"title\":{}", quote(&format!("Title of {name}"))));
    }
    if revision >= Revision::R2025_03_26 {
        text.push_str(",\"annotations\":{\"openWorldHint\":false}");
    }
    if name == "task" && revision == Revision::R2025_11_25 {
        text.push_str(",\"execution\":{\"taskSupport\":\"required\"}");
    }
    text.push_str(",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"nonce\":{\"type\":\"string\"}}}}");
    text
}

/// `resources/list`.
pub(crate) fn resources(script: &Script, frame: &Frame, revision: Revision) -> Said {
    let mut paths = vec!["text".to_owned(), "changing".to_owned()];
    paths.extend((0..script.more_resources).map(|number| format!("more/{number}")));
    let entries: Vec<String> = paths
        .iter()
        .map(|path| {
            let uri = format!("script://{}/{path}", script.authority());
            let name = format!("{path} of {}", script.name);
            format!("{{\"uri\":{},\"name\":{},\"mimeType\":\"text/plain\"}}", quote(&uri), quote(&name))
        })
        .collect();
    page(script, frame, revision, "resources", &entries)
}

/// `resources/templates/list`.
pub(crate) fn templates(script: &Script, frame: &Frame, revision: Revision) -> Said {
    let uri = format!("script://{}/item/{{id}}", script.authority());
    let entry = format!("{{\"uriTemplate\":{},\"name\":{}}}", quote(&uri), quote(&format!("items of {}", script.name)));
    let mut entries = vec![entry];
    if script.asks {
        let uri = format!("script://{}/ask/{{plan}}/{{who}}", script.authority());
        let name = format!("questions of {}", script.name);
        entries.push(format!("{{\"uriTemplate\":{},\"name\":{}}}", quote(&uri), quote(&name)));
    }
    page(script, frame, revision, "resourceTemplates", &entries)
}

/// `prompts/list`.
pub(crate) fn prompts(script: &Script, frame: &Frame, revision: Revision) -> Said {
    let description = quote(&format!("greet of {}", script.name));
    let entry = format!(
        "{{\"name\":\"greet\",\"description\":{description},\"arguments\":[{{\"name\":\"who\",\"required\":true}}]}}"
    );
    let mut entries = vec![entry];
    if script.asks {
        entries.push("{\"name\":\"ask\",\"arguments\":[{\"name\":\"plan\"},{\"name\":\"who\"}]}".into());
    }
    page(script, frame, revision, "prompts", &entries)
}

fn page(script: &Script, frame: &Frame, revision: Revision, field: &str, entries: &[String]) -> Said {
    let start = match frame.param_text("cursor") {
        None => 0,
        Some(cursor) => match cursor.strip_prefix("from ").and_then(|number| number.parse().ok()) {
            Some(start) if start <= entries.len() => start,
            _ => return Said::error(-32602, "Invalid cursor", None),
        },
    };
    let size = if script.page == 0 { entries.len() } else { script.page };
    let end = entries.len().min(start + size);
    let next = if end < entries.len() { format!(",\"nextCursor\":\"from {end}\"") } else { String::new() };
    let text = format!("{{\"{field}\":[{}]{next}}}", entries[start..end].join(","));
    Said::dressed(script, revision, true, &text)
}

//! How an upstream presents itself, in either era.

use crate::engine::said::{Said, identity};
use crate::frame::{Frame, quote};
use crate::revision::Revision;
use crate::script::Script;

const LEGACY_TASKS: &str = "\"tasks\":{\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}";
const TASKS: &str = "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}";

/// Answers `initialize`.
pub(crate) fn initialize(script: &Script, frame: &Frame) -> Said {
    let asked = frame.param_text("protocolVersion").unwrap_or_default();
    let Some(revision) = script.negotiate(&asked) else {
        let data = format!("{{\"supported\":[{}],\"requested\":{}}}", versions(script), quote(&asked));
        return Said::error(-32022, "Unsupported protocol version", Some(&data));
    };
    Said::result(format!(
        "{{\"protocolVersion\":\"{revision}\",\"capabilities\":{},\"serverInfo\":{}{}}}",
        capabilities(script, revision),
        identity(script),
        instructions(script)
    ))
}

/// Answers `server/discover`.
pub(crate) fn discover(script: &Script) -> Said {
    let body = format!(
        "{{\"supportedVersions\":[{}],\"capabilities\":{}{}}}",
        versions(script),
        capabilities(script, Revision::MODERN),
        instructions(script)
    );
    Said::dressed(script, Revision::MODERN, true, &body)
}

fn versions(script: &Script) -> String {
    script.revisions.iter().map(|revision| format!("\"{revision}\"")).collect::<Vec<_>>().join(",")
}

fn instructions(script: &Script) -> String {
    if script.instructions.is_empty() {
        return String::new();
    }
    format!(",\"instructions\":{}", quote(&script.instructions))
}

fn capabilities(script: &Script, revision: Revision) -> String {
    if !script.capabilities.is_empty() {
        return script.capabilities.clone();
    }
    let mut parts = vec!["\"tools\":{\"listChanged\":true}", "\"logging\":{}"];
    if script.offers_all {
        parts.push("\"resources\":{\"subscribe\":true,\"listChanged\":true}");
        parts.push("\"prompts\":{\"listChanged\":true}");
        if revision >= Revision::R2025_03_26 {
            parts.push("\"completions\":{}");
        }
    }
    match revision {
        Revision::R2025_11_25 if script.tasks => parts.push(LEGACY_TASKS),
        Revision::R2026_07_28 if script.tasks => parts.push(TASKS),
        _ => {}
    }
    format!("{{{}}}", parts.join(","))
}

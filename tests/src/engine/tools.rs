//! The built-in tools.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::engine::change::Change;
use crate::engine::said::Said;
use crate::engine::{Engine, Out, Outlet, asks, chatter, lock};
use crate::frame::{Frame, fields, quote, text};
use crate::journal::What;
use crate::revision::Revision;

type Arguments = BTreeMap<String, Box<RawValue>>;

/// `tools/call`.
pub(crate) async fn call(engine: &Engine, frame: &Frame, revision: Revision, outlet: &Outlet) -> Said {
    let name = frame.param_text("name").unwrap_or_default();
    let raw = frame.param("arguments");
    let arguments = raw.as_deref().map(fields).unwrap_or_default();
    if !known(engine, &name, outlet.session()) {
        return Said::error(-32602, &format!("Unknown tool: {name}"), None);
    }
    let nonce = text_of(&arguments, "nonce").unwrap_or_else(|| format!("id {}", frame.id_text()));
    engine.executed(nonce).await;
    let done = |text: &str| Said::dressed(&engine.script, revision, false, text);
    match name.as_str() {
        "wait" => {
            let gate = text_of(&arguments, "gate").unwrap_or_else(|| "wait".into());
            engine.journal.tell(What::Waiting { gate: gate.clone(), id: frame.id_text().into() }).await;
            engine.gates.pass(&gate).await;
            done(&content("released", false))
        }
        "progress" => {
            progress(engine, frame, &arguments, revision, outlet).await;
            done(&content("progressed", false))
        }
        "log" => {
            let data = arguments.get("data").map_or("null", |raw| raw.get());
            let level = text_of(&arguments, "level").unwrap_or_else(|| "warning".into());
            let params = format!("{{\"level\":{},\"logger\":\"script\",\"data\":{data}}}", quote(&level));
            let notice = Change::new("notifications/message", &params);
            outlet.send(Out::Notice(notice.frame())).await;
            done(&content("logged", false))
        }
        "chatter" => {
            let who = text_of(&arguments, "who").unwrap_or_default();
            chatter::say(engine, frame, revision, &who, outlet).await;
            done(&content("said", false))
        }
        "structured" => {
            let value = arguments.get("value").map_or("{}", |raw| raw.get());
            done(&structured(value, revision))
        }
        "fail" => {
            let code = arguments.get("code").and_then(|raw| raw.get().parse().ok()).unwrap_or(4242);
            let message = text_of(&arguments, "message").unwrap_or_else(|| "failed as asked".into());
            Said::error(code, &message, arguments.get("data").map(|raw| raw.get()))
        }
        "tool_error" => done(&content("the tool says no", true)),
        "big" => {
            let bytes = arguments.get("bytes").and_then(|raw| raw.get().parse().ok()).unwrap_or(0);
            done(&content(&"b".repeat(bytes), false))
        }
        "roots" => {
            let session = outlet.session().to_owned();
            let known = lock(&engine.roots).get(&session).cloned();
            let roots = match known {
                Some(roots) => roots,
                None => {
                    let roots = asks::live::roots(engine, frame, revision, outlet).await;
                    lock(&engine.roots).insert(session, roots.clone());
                    roots
                }
            };
            done(&content(&roots, false))
        }
        "touch" => {
            let number = engine.added(outlet.session()).len();
            engine.add_tool(format!("touched_{number}"), outlet.session());
            done(&content(&format!("touched_{number}"), false))
        }
        _ => done(&echo(raw.as_deref().map_or("{}", RawValue::get), revision)),
    }
}

fn known(engine: &Engine, name: &str, session: &str) -> bool {
    let script = &engine.script;
    script.tools.iter().any(|tool| tool == name)
        || name.strip_prefix("tool_").and_then(|n| n.parse::<usize>().ok()).is_some_and(|n| n < script.more_tools)
        || engine.added(session).iter().any(|tool| tool == name)
        || script.raw_tools.iter().any(|tool| tool.contains(&format!("\"name\":{}", quote(name))))
}

fn text_of(arguments: &Arguments, name: &str) -> Option<String> {
    text(arguments.get(name)?)
}

/// The arguments back: their very bytes as text, and as they are where the revision has a place for it.
fn echo(raw: &str, revision: Revision) -> String {
    let structured =
        if revision.has_structured_content() { format!(",\"structuredContent\":{raw}") } else { String::new() };
    format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]{structured}}}", quote(raw))
}

/// A value where the revision has a place for it, and no text beside it.
fn structured(value: &str, revision: Revision) -> String {
    if !revision.has_structured_content() || !revision.is_modern() && !value.starts_with('{') {
        return content(value, false);
    }
    format!("{{\"content\":[],\"structuredContent\":{value}}}")
}

fn content(text: &str, is_error: bool) -> String {
    let flag = if is_error { ",\"isError\":true" } else { "" };
    format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]{flag}}}", quote(text))
}

/// So many notices of progress; with a gate, each is followed by a wait until the test lets it go on.
async fn progress(engine: &Engine, frame: &Frame, arguments: &Arguments, revision: Revision, outlet: &Outlet) {
    let steps: u32 = arguments.get("steps").and_then(|raw| raw.get().parse().ok()).unwrap_or(3);
    let gate = text_of(arguments, "gate");
    for step in 1..=steps {
        if let Some(token) = frame.meta("progressToken") {
            let message =
                if revision.has_progress_message() { format!(",\"message\":\"step {step}\"") } else { String::new() };
            let params = format!("{{\"progressToken\":{token},\"progress\":{step},\"total\":{steps}{message}}}");
            let notice = Change::new("notifications/progress", &params);
            outlet.send(Out::Notice(notice.frame())).await;
        }
        if let Some(gate) = &gate {
            engine.journal.tell(What::Waiting { gate: gate.clone(), id: frame.id_text().into() }).await;
            engine.gates.pass(gate).await;
        }
    }
}

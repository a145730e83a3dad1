//! A stateless upstream over HTTP: every request alone, its headers held against its body.

use std::sync::Arc;

use crate::engine::Outlet;
use crate::frame::Frame;
use crate::revision::Revision;
use crate::sentinel;
use crate::upstream::body::{Answer, refusal, whole};
use crate::upstream::http::{Headers, Host, header};
use crate::upstream::stream;

/// Serves one POST.
pub(crate) async fn post(host: &Arc<Host>, headers: &Headers, head: &str, frame: Frame) -> Answer {
    let engine = &host.engine;
    if frame.method.is_none() {
        engine.complain("a response to a stateless upstream").await;
        return whole(400, "", "");
    }
    let (outlet, receiver) = Outlet::new(true);
    let outlet = outlet.given(head);
    if frame.id.is_none() {
        engine.notice(&frame, Revision::MODERN, &outlet).await;
        return whole(202, "", "");
    }
    if let Some(fault) = disagreement(headers, &frame) {
        engine.complain(fault.clone()).await;
        return refusal(400, frame.id_text(), -32020, &fault);
    }
    let id = frame.id_text().to_owned();
    if frame.meta("io.modelcontextprotocol/protocolVersion").is_none() {
        let code = if frame.method.as_deref() == Some("initialize") { -32022 } else { -32602 };
        return refusal(400, &id, code, "this upstream speaks 2026-07-28 only");
    }
    let serving = engine.clone();
    tokio::spawn(async move { serving.serve(&frame, Revision::MODERN, &outlet).await });
    stream::answer(host, receiver, false).await
}

/// Where headers and body differ, if they do.
fn disagreement(headers: &Headers, frame: &Frame) -> Option<String> {
    let method = frame.method.as_deref().unwrap_or("");
    let version = frame.meta("io.modelcontextprotocol/protocolVersion")?;
    let version: String = serde_json::from_str(version.get()).unwrap_or_default();
    if header(headers, "mcp-protocol-version") != Some(&version) {
        return Some(format!("{method}: the version header is not {version}"));
    }
    if header(headers, "mcp-method") != Some(method) {
        return Some(format!("{method}: the method header is {:?}", header(headers, "mcp-method")));
    }
    let field = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    let wanted = frame.param_text(field);
    let given = header(headers, "mcp-name").and_then(sentinel::decode);
    (wanted != given).then(|| format!("{method}: the name header is {given:?}, not {wanted:?}"))
}

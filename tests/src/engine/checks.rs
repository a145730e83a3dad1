//! What a strict upstream would hold against a request, whatever the transport.

use crate::engine::Engine;
use crate::frame::{Frame, fields};
use crate::revision::Revision;
use crate::schema::{self, Reader};

const OURS: &str = "io.modelcontextprotocol/";

/// Complains about whatever is wrong with a request.
pub(crate) async fn frame(engine: &Engine, frame: &Frame, revision: Revision) {
    if frame.method.as_deref() == Some("server/discover") && !revision.is_modern() {
        return; // a probe, and it cannot know whom it asks
    }
    schema(engine, frame, None, revision).await;
    for fault in faults(frame, revision) {
        engine.complain(format!("{}: {fault}", frame.method.as_deref().unwrap_or("?"))).await;
    }
}

/// Complains about what the revision's schema does not have; `method` is that of the question which is answered.
pub(crate) async fn schema(engine: &Engine, frame: &Frame, method: Option<&str>, revision: Revision) {
    if !engine.script.journal_frames {
        return;
    }
    // A handshake names its own revision.
    let named = frame.param_text("protocolVersion").filter(|_| frame.method.as_deref() == Some("initialize"));
    let revision = named.and_then(|text| Revision::parse(&text)).unwrap_or(revision);
    for fault in schema::faults(frame, method, Reader::Upstream, revision) {
        engine.complain(fault).await;
    }
}

fn faults(frame: &Frame, revision: Revision) -> Vec<String> {
    let mut faults = Vec::new();
    if frame.jsonrpc.as_ref().map(|raw| raw.get()) != Some("\"2.0\"") {
        faults.push("no jsonrpc 2.0".to_owned());
    }
    let id = frame.id_text();
    if !id.starts_with('"') && id.parse::<i64>().is_err() {
        faults.push(format!("an id is a string or an integer, not {id}"));
    }
    let meta = frame.param("_meta").map(|raw| fields(&raw)).unwrap_or_default();
    // A handshake is offered to whoever may know one; a stateless upstream refuses it.
    if revision.is_modern() && frame.method.as_deref() != Some("initialize") {
        if meta.get("io.modelcontextprotocol/protocolVersion").is_none_or(|raw| raw.get() != format!("\"{revision}\""))
        {
            faults.push("_meta does not name the revision".into());
        }
        if meta.get("io.modelcontextprotocol/clientCapabilities").is_none_or(|raw| !raw.get().starts_with('{')) {
            faults.push("_meta has no capabilities".into());
        }
    } else if let Some(key) = meta.keys().find(|key| key.starts_with(OURS)) {
        faults.push(format!("a legacy request with {key}"));
    }
    faults
}

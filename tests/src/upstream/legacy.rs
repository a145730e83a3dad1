//! An upstream with sessions over HTTP.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::{Out, Outlet};
use crate::frame::Frame;
use crate::journal::What;
use crate::revision::Revision;
use crate::script::Act;
use crate::sse;
use crate::upstream::body::{Answer, refusal, whole};
use crate::upstream::http::{Headers, Host, Session, header};
use crate::upstream::{body, stream};

/// Serves one POST; `claims` says that the request says to be a stateless one.
pub(crate) async fn post(host: &Arc<Host>, headers: &Headers, head: &str, frame: Frame, claims: bool) -> Answer {
    let engine = &host.engine;
    let method = frame.method.clone().unwrap_or_default();
    let id = if frame.id.is_some() { frame.id_text().to_owned() } else { "null".into() };
    let mut session = None;
    let revision = if method == "initialize" {
        if header(headers, "mcp-session-id").is_some() {
            engine.complain("initialize with a session id").await;
        }
        let revision = engine.script.negotiate(&frame.param_text("protocolVersion").unwrap_or_default());
        let revision = revision.unwrap_or(Revision::R2025_11_25);
        let most = engine.script.http.sessions_max;
        if most > 0 && host.sessions().len() >= most {
            return refusal(400, &id, -32000, "Bad Request: Server already initialized");
        }
        session = engine.script.http.sessions.then(|| open_session(host, revision));
        revision
    } else if claims {
        if !engine.has_rule(&method) {
            return refusal(400, &id, -32000, "Bad Request: No valid session ID provided");
        }
        Revision::R2025_11_25
    } else {
        match check_session(host, headers).await {
            Ok(revision) => {
                let session = header(headers, "mcp-session-id").unwrap_or_default();
                // One session reads lists for all; others are opened to read those of a client that declares less, and ended then.
                let may_only_read = method.ends_with("/list") || method == "notifications/initialized";
                let is_kept = !may_only_read || engine.declared(session)["extensions"].is_object();
                host.sessions().entry(session.to_owned()).and_modify(|session| session.is_kept |= is_kept);
                revision
            }
            Err(answer) => return answer,
        }
    };
    let place = session.as_deref().or(header(headers, "mcp-session-id")).unwrap_or("");
    if method == "initialize" {
        engine.declare(place, &frame);
    }
    let (outlet, receiver) = Outlet::new(false);
    let outlet = outlet.of(place).given(head);
    if frame.method.is_none() {
        engine.answered(&frame, place).await;
        return whole(202, "", "");
    }
    if frame.id.is_none() {
        engine.notice(&frame, revision, &outlet).await;
        return whole(202, "", "");
    }
    if header(headers, "mcp-method").is_some() && !claims {
        engine.complain(format!("{method}: a legacy request with Mcp-Method")).await;
    }
    let serving = engine.clone();
    tokio::spawn(async move { serving.serve(&frame, revision, &outlet).await });
    let mut answer = stream::answer(host, receiver, method != "initialize").await;
    if let Some(session) = session {
        answer.headers_mut().insert("mcp-session-id", session.parse().expect("visible text"));
    }
    answer
}

fn open_session(host: &Host, revision: Revision) -> String {
    let one = host.engine.script.http.one_session.clone();
    let session = one.unwrap_or_else(|| {
        let id = format!("session-{}", host.number());
        format!("{id:-<least$}", least = host.engine.script.http.session_bytes)
    });
    host.sessions().insert(session.clone(), Session { revision, is_kept: false });
    session
}

/// The revision of a request's session, or why it has none.
async fn check_session(host: &Host, headers: &Headers) -> Result<Revision, Answer> {
    if !host.engine.script.http.sessions {
        return Ok(host.engine.script.negotiate("").unwrap_or(Revision::R2025_11_25));
    }
    let Some(session) = header(headers, "mcp-session-id") else {
        return Err(refusal(400, "null", -32000, "Bad Request: No valid session ID provided"));
    };
    let known = host.sessions().get(session).map(|session| session.revision);
    let Some(revision) = known else {
        return Err(refusal(404, "null", -32001, "Session not found"));
    };
    if revision.has_version_header() && header(headers, "mcp-protocol-version") != Some(revision.text()) {
        let given = header(headers, "mcp-protocol-version");
        host.engine.complain(format!("the version header is {given:?}, not {revision}")).await;
        return Err(refusal(400, "null", -32000, "Bad Request: Unsupported protocol version"));
    }
    Ok(revision)
}

/// Serves a GET stream: changes, or the rest of an answer that was cut.
pub(crate) async fn get(host: &Arc<Host>, headers: &Headers) -> Answer {
    let engine = &host.engine;
    engine.journal.tell(What::Visit { method: "GET".into(), headers: headers.clone() }).await;
    if let Some(Act::Status { status, kind, body }) = engine.acts_for("GET", None).first() {
        return whole(*status, kind, body.clone());
    }
    if let Err(answer) = check_session(host, headers).await {
        return answer;
    }
    if let Some(last) = header(headers, "last-event-id") {
        let rest = host.cut.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(last);
        if let Some(receiver) = rest {
            return stream::resumed(host, receiver);
        }
    }
    if !engine.script.http.get_stream {
        return whole(405, "", "");
    }
    let session = header(headers, "mcp-session-id").unwrap_or_default().to_owned();
    let mut changes = engine.changes.subscribe();
    let (feeder, answer) = body::stream();
    let (engine, host) = (engine.clone(), host.clone());
    tokio::spawn(async move {
        let mut forgotten = std::pin::pin!(host.forgotten.notified());
        forgotten.as_mut().enable();
        // A comment sends the headers off, so that whoever listens knows that it does.
        let _ = feeder.send(Bytes::from_static(b": listening\n\n")).await;
        engine.journal.tell(What::Listening(String::new())).await;
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = feeder.closed() => return,
                () = &mut forgotten => return,
            };
            let Ok(change) = change else { return };
            if engine.tells(&change, &session) {
                let _ = feeder.send(Bytes::from(sse::encode(None, &change.frame()))).await;
            }
        }
    });
    answer
}

/// Ends a session.
pub(crate) async fn delete(host: &Arc<Host>, headers: &Headers) -> Answer {
    host.engine.journal.tell(What::Visit { method: "DELETE".into(), headers: headers.clone() }).await;
    if let Err(answer) = check_session(host, headers).await {
        return answer;
    }
    let session = header(headers, "mcp-session-id").unwrap_or_default();
    host.sessions().remove(session);
    whole(200, "", "")
}

/// What is left of a cut answer, kept until somebody resumes it.
pub(crate) fn keep(host: &Host, event: String, receiver: tokio::sync::mpsc::Receiver<Out>) {
    host.cut.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(event, receiver);
}

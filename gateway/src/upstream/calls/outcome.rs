//! What an upstream's answer means for its call.

use crate::call::Call;
use crate::call::reply::{Failure, Outcome};
use crate::health::{Cause, CauseCode};
use crate::metrics;
use crate::peer::Peer;
use crate::peer::fault::refused;
use crate::protocol::capabilities::{Capabilities, unknown_extensions};
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Body;
use crate::protocol::frame::rpc_error::{HEADER_MISMATCH, INTERNAL, RpcError, UNSUPPORTED_REVISION};
use crate::protocol::json;
use crate::protocol::revision::{Revision, dialect_2024_10_07};
use crate::protocol::value::{Key, Object};
use crate::upstream::instance::Instance;
use crate::upstream::instance::chunks::Folding;
use crate::upstream::instance::masked::without_secrets;
use std::sync::Arc;

/// The extension whose results are of type `task`.
const TASKS: &[u8] = b"\"io.modelcontextprotocol/tasks\"";

/// Whether a call may be made as a task on behalf of a caller whose revision has nothing like it. A stateless client is told what it would be
/// told by the upstream itself.
pub(crate) fn could_be_driven(call: &Call) -> bool {
    let is_bridged = !call.revision().is_modern();
    is_bridged && call.method == Method::ToolsCall && !call.caller.can().has(Capabilities::TASKS)
}

/// The outcome of a call that was answered in `revision`; else what breaks the protocol in the answer.
pub(crate) fn outcome(call: &Call, body: Body, revision: Revision) -> Result<Outcome, Cause> {
    if let Body::Result(result) = &body
        && let Some(double) = result.doubled()
    {
        return Err(invalid(double.of("result")));
    }
    match body {
        Body::Result(result) if revision.is_modern() => modern(call, result),
        Body::Result(result) if is_unasked_task(call, &result) => {
            Err(invalid("it made a task, and none was asked for"))
        }
        Body::Result(result) => Ok(Outcome::Complete(result)),
        Body::Error(raw) => error(RpcError::checked(raw).map_err(invalid)?, revision),
        Body::Odd(_) => Err(invalid("the result is not an object")),
        Body::Neither => Err(invalid("it must have either a result, or an error that is an object, and not both")),
    }
}

/// The outcome in the words of a revision, where it came in a dialect; it says what was lost with an earlier session, where that is due.
pub(crate) fn of_peer(outcome: Outcome, peer: &Peer, (upstream, call): (&str, &Call)) -> Outcome {
    match outcome {
        Outcome::Complete(result) => {
            let result = match peer.offer.is_dialect && call.method == Method::ToolsCall {
                true => dialect_2024_10_07::with_content(result),
                false => result,
            };
            Outcome::Complete(peer.owed.told_in(upstream, result))
        }
        Outcome::Error(Failure::Upstream(error)) if json::get(error.raw(), "message") == Some(b"\"\"") => {
            Outcome::Error(Failure::Upstream(with_text(&error, upstream)))
        }
        outcome => outcome,
    }
}

/// An error that says nothing, with a text.
fn with_text(error: &RpcError, upstream: &str) -> RpcError {
    let data = error.data().map(String::from_utf8_lossy);
    let text = format!("the upstream `{upstream}` gave an error without a text");
    RpcError::new(error.code().unwrap_or(INTERNAL), &text, data.as_deref())
}

/// A call that its upstream gets in the words of another era is counted.
pub(crate) fn count_bridged(metrics: &metrics::Upstream, call: &Call, revision: Revision) {
    let from = call.revision();
    if from.is_modern() != revision.is_modern() {
        metrics.bridged[usize::from(from.is_modern())].increment(1);
    }
}

fn invalid(why: impl Into<String>) -> Cause {
    Cause::new(CauseCode::ResponseInvalid, why)
}

/// Whether a handshake upstream gives a task to who asked for a result: its caller could not read it.
fn is_unasked_task(call: &Call, result: &Object) -> bool {
    call.method == Method::ToolsCall
        && result.get(Key::Content).is_none()
        && result.get(Key::Task).is_some_and(|task| json::get(task, "taskId").is_some())
        && !(call.revision() == Revision::V2025_11_25 && call.params.get(Key::Task).is_some())
}

fn error(error: RpcError, revision: Revision) -> Result<Outcome, Cause> {
    match error.code() {
        // They speak of the hop between the upstream and us, and would mislead the caller.
        Some(HEADER_MISMATCH | UNSUPPORTED_REVISION) if revision.is_modern() => {
            Err(invalid("it refused what this gateway sent").foreign(&format!(": {}", refused(&error).full())))
        }
        // It is the upstream's to say; what is ours to keep is not.
        _ => Ok(Outcome::Error(Failure::Upstream(without_secrets(error)))),
    }
}

fn modern(call: &Call, result: Object) -> Result<Outcome, Cause> {
    let Some(raw) = result.get(Key::ResultType) else { return Ok(Outcome::Complete(result)) };
    if raw == b"\"complete\"" {
        return Ok(Outcome::Complete(result));
    }
    Ok(match json::unquote(raw).as_deref() {
        Some("complete") => Outcome::Complete(result),
        Some("input_required") if call.method.is_long() => Outcome::InputRequired(result),
        // Only who declared the extension on this very call can be given a task.
        Some("task") if memchr::memmem::find(&call.caller.capabilities, TASKS).is_some() => Outcome::Complete(result),
        // Who speaks an extension that the gateway does not know reads its results too.
        Some(kind)
            if !["input_required", "task"].contains(&kind)
                && unknown_extensions(&call.caller.capabilities).next().is_some() =>
        {
            Outcome::Complete(result)
        }
        _ => return Err(invalid("the result is of a type that is not known")),
    })
}

/// Where an answer of a handshake upstream says that the result of a tool comes in chunks.
pub(crate) fn chunked(
    instance: &Instance,
    (peer, call): (&Arc<Peer>, &Call),
    progressed: Option<f64>,
    body: &Body,
) -> Option<Folding> {
    if peer.revision().is_modern() || call.method != Method::ToolsCall {
        return None;
    }
    let link = peer.link.clone();
    let begun_at = progressed.map_or(0, |reached| reached.max(0.0).ceil() as u64);
    let share = call.caller.share();
    instance.chunks.announced(body, Some(&share), begun_at, async move { link.closed().await })
}

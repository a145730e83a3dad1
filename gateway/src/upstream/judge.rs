//! What an upstream's answer means for its call.

use super::words;
use crate::call::{Call, Failure, Outcome};
use crate::protocol::capability::unknown_extensions;
use crate::protocol::error::{HEADER_MISMATCH, RpcError, UNSUPPORTED_REVISION};
use crate::protocol::frame::Body;
use crate::protocol::object::Key;
use crate::protocol::{Method, Object, Revision, json};
use std::sync::Arc;

/// The extension whose results are of type `task`.
const TASKS: &[u8] = b"\"io.modelcontextprotocol/tasks\"";

/// The outcome of a call that was answered in `revision`.
pub(crate) fn outcome(upstream: &Arc<str>, call: &Call, body: Body, revision: Revision) -> Outcome {
    match body {
        Body::Result(result) if revision.is_modern() => modern(upstream, call, result),
        Body::Result(result) if is_unasked_task(call, &result) => {
            words::bad_answer(upstream, call, "it made a task, and none was asked for").into()
        }
        Body::Result(result) => Outcome::Complete(result),
        Body::Error(raw) => error(upstream, call, RpcError::from_raw(raw), revision),
        Body::Odd(_) => words::bad_answer(upstream, call, "the result is not an object").into(),
        Body::Neither => words::bad_answer(upstream, call, "it has both a result and an error, or neither").into(),
    }
}

/// Whether a handshake upstream gives a task to who asked for a result: its caller could not read it.
fn is_unasked_task(call: &Call, result: &Object) -> bool {
    call.method == Method::ToolsCall
        && result.get(Key::Content).is_none()
        && json::get(result.raw(), "task").is_some_and(|task| json::get(task, "taskId").is_some())
        && !(call.revision() == Revision::V2025_11_25 && call.params.find("task").is_some())
}

fn error(upstream: &Arc<str>, call: &Call, error: RpcError, revision: Revision) -> Outcome {
    match error.code() {
        // They speak of the hop between the upstream and us, and would mislead the caller.
        Some(HEADER_MISMATCH | UNSUPPORTED_REVISION) if revision.is_modern() => {
            let why = format!("it refused what this gateway sent: {}", error.message().unwrap_or_default());
            words::bad_answer(upstream, call, &why).into()
        }
        _ => Outcome::Error(Failure::Upstream(error)),
    }
}

fn modern(upstream: &Arc<str>, call: &Call, result: Object) -> Outcome {
    if result.is_ambiguous() {
        return words::bad_answer(upstream, call, "a member of the result stands twice").into();
    }
    let Some(raw) = result.get(Key::ResultType) else { return Outcome::Complete(result) };
    if raw == b"\"complete\"" {
        return Outcome::Complete(result);
    }
    match json::unquote(raw).as_deref() {
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
        _ => words::bad_answer(upstream, call, "the result is of a type that is not known").into(),
    }
}

//! How an instance takes a plain call: judged, then sent, or waiting for its turn, or refused.

use super::admit::admit;
use super::call::CallSource;
use super::messages;
use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::Reply;
use crate::protocol::frame::Method;
use crate::protocol::value::Key;
use crate::upstream::config::Filter;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::gate::Sending;
use std::sync::Arc;

/// Takes a call that runs as it is. Nothing waits here.
pub(crate) fn plain(instance: &Arc<Instance>, call: Call) -> Reply {
    // Counted before the gate is looked at: whoever closes the gate of an idle upstream sees the call.
    let held = instance.admission.demand.hold(&call);
    let reply = match judge(&instance.config.tools, &call) {
        Some(refusal) => Reply::refuse(call.revision(), refusal),
        None => dispatch(instance, call, Reply::live),
    };
    match held {
        Some(held) => reply.attach(Box::new(held)),
        None => reply,
    }
}

/// Sends a call, or has it wait, or refuses it; `live` makes the reply that is read from what comes.
pub(crate) fn dispatch(instance: &Arc<Instance>, call: Call, live: impl FnOnce(CallSource) -> Reply) -> Reply {
    let revision = call.revision();
    match admit(instance, &call) {
        Ok(Sending::Sent(sent)) => live(CallSource::sent(instance, call, sent)),
        Ok(Sending::Waiting(wait)) => live(CallSource::waiting(instance, call, wait)),
        Err(refusal) => Reply::refuse(revision, refusal),
    }
}

/// Refuses what may not be called as what is not there.
pub(crate) fn judge(tools: &Filter, call: &Call) -> Option<Refusal> {
    if call.method != Method::ToolsCall || tools.is_open() {
        return None;
    }
    let name = call.params.text(Key::Name)?;
    (!tools.admits(&name)).then(|| {
        let name = messages::name(call).unwrap_or(name);
        Refusal::new(Reason::InvalidParams, format!("Unknown tool: {name}"))
    })
}

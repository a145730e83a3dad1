//! A call that runs as it is, whatever its upstream says of tasks: those that a task needs for itself.

use super::admit::{admit, judge};
use super::call::CallSource;
use super::child_breaker;
use super::child_breaker::Admitted;
use crate::call::Call;
use crate::call::refusal::Refusal;
use crate::call::reply::Reply;
use crate::upstream::instance::Instance;
use std::sync::Arc;

/// Takes a call that runs as it is. Nothing waits here.
pub(crate) fn plain(instance: &Arc<Instance>, call: Call) -> Reply {
    // Counted before the gate is looked at: whoever closes the gate of an idle upstream sees the call.
    let held = instance.admission.demand.hold(&call);
    let admitted = judge(&instance.config.tools, &call).map_or_else(|| tried(instance, &call), Err);
    let reply = match admitted {
        Ok(sending) => Reply::live(CallSource::new(instance, call, sending, false)),
        Err(refusal) => Reply::refuse(call.revision(), refusal),
    };
    match held {
        Some(held) => reply.attach(Box::new(held)),
        None => reply,
    }
}

/// Sends a call, or has it wait, or refuses it: while its breaker is open a child is sent none.
pub(crate) fn tried(instance: &Arc<Instance>, call: &Call) -> Result<Admitted, Refusal> {
    let probe = child_breaker::begin(instance, call)?;
    Ok((admit(instance, call)?, probe))
}

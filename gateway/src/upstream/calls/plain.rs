//! A call that runs as it is, whatever its upstream says of tasks: those that a task needs for itself.

use super::admit::{admit, judge};
use super::call::CallSource;
use crate::call::Call;
use crate::call::reply::Reply;
use crate::upstream::instance::Instance;
use std::sync::Arc;

/// Takes a call that runs as it is. Nothing waits here.
pub(crate) fn plain(instance: &Arc<Instance>, call: Call) -> Reply {
    // Counted before the gate is looked at: whoever closes the gate of an idle upstream sees the call.
    let held = instance.admission.demand.hold(&call);
    let admitted = judge(&instance.config.tools, &call).map_or_else(|| admit(instance, &call), Err);
    let reply = match admitted {
        Ok(sending) => Reply::live(CallSource::new(instance, call, sending, false)),
        Err(refusal) => Reply::refuse(call.revision(), refusal),
    };
    match held {
        Some(held) => reply.attach(Box::new(held)),
        None => reply,
    }
}

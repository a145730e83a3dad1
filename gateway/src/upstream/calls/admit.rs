//! Whether a call goes out now: judged, then sent, or waiting for its turn, or refused; and the notifications, which never wait.

use super::failure::{CallFailure, fail, shut_out, unavailable};
use super::messages;
use super::sessions::{Route, own, session_of};
use crate::call::Call;
use crate::call::caller::trace::Attempt;
use crate::call::refusal::{Reason, Refusal};
use crate::health::row::State;
use crate::peer::Peer;
use crate::protocol::frame::Method;
use crate::transport::exchange::Lost;
use crate::upstream::config::{Credentials, Filter};
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::Admission;
use crate::upstream::instance::admission::gate::{GateDecision, Sending};
use crate::upstream::instance::admission::waiter::Sent;
use std::sync::Arc;

/// Sends a call, or has it wait, or refuses it; nothing waits here.
pub(crate) fn admit(instance: &Arc<Instance>, call: &Call) -> Result<Sending, Refusal> {
    let admission = &instance.admission;
    if let Some(tokens) = &instance.tokens {
        // Its supervisor is about to learn of that, too.
        tokens.while_login_is_over(|| admission.gate.close());
    }
    // A peer that turns out to be gone is given up, and the call waits for the next one: nothing of it was sent.
    for _ in 0..2 {
        let decision = match admission.gate.admit(call, None) {
            GateDecision::Now(primary, place) => match session_of(instance, &primary, call) {
                Route::OfSet(session) => match session.gate.admit(call, place) {
                    // It has just been given up: there is another one by now, or the primary is for all.
                    GateDecision::Shut(_) => continue,
                    decision => decision,
                },
                Route::Own(own) => {
                    match own::gate(&own).admit(call, place) {
                        // It has just ended: another one is opened.
                        GateDecision::Shut(_) if !own.is_shut() => continue,
                        GateDecision::Wait(wait) => {
                            own.called.notify_one();
                            GateDecision::Wait(wait)
                        }
                        decision => decision,
                    }
                }
                Route::Primary => GateDecision::Now(primary, place),
                Route::Busy(why) => GateDecision::Full(why),
            },
            decision => decision,
        };
        match decision {
            GateDecision::Now(peer, place) => match peer.send(call, instance.offering.beside_of(call), place) {
                Ok((exchange, attempt)) => return Ok(Sending::Sent(Sent { peer, exchange, attempt })),
                Err(lost @ Lost::Unsent(_)) => {
                    own::retire_if_gone(instance, &call.caller, &peer, &lost);
                }
                Err(lost) => return Err(fail(&instance.config, &instance.status, call, CallFailure::Lost(&lost))),
            },
            GateDecision::Wait(wait) => {
                admission.demand.hurry();
                return Ok(Sending::Waiting(wait));
            }
            GateDecision::Full(why) => {
                // Where none may wait, the next one finds it there.
                admission.demand.hurry();
                return Err(fail(&instance.config, &instance.status, call, CallFailure::Lost(&Lost::Busy(why))));
            }
            // Its supervisor is about to learn of that, too: this call waits for what comes of it.
            GateDecision::Shut(_) if is_tried_anew(instance) => admission.gate.close(),
            GateDecision::Shut(shut) => return Err(shut_out(&instance.status, &admission.demand, call, &shut)),
        }
    }
    Err(unavailable(&instance.config, &instance.status, call))
}

/// Whether it rests since a token could not be exchanged, and its client has shown another one by now.
fn is_tried_anew(instance: &Instance) -> bool {
    let has_another = instance.tokens.as_ref().is_some_and(|tokens| tokens.has_another_to_exchange());
    has_another && matches!(instance.status.handle.health().state, State::Idle | State::BackingOff | State::Failed)
}

/// What was sent of a trace, which names the upstream from now on.
pub(crate) fn under_way(instance: &Instance, sent: &mut Sent) -> Option<Attempt> {
    let mut attempt = sent.attempt.take()?;
    attempt.towards(&instance.name, instance.config.transport.network());
    Some(attempt)
}

/// Refuses what may not be called as what is not there.
pub(crate) fn judge(tools: &Filter, call: &Call) -> Option<Refusal> {
    if tools.is_open() || call.method != Method::ToolsCall {
        return None;
    }
    let name = call.target_name()?;
    (!tools.admits(&name)).then(|| {
        let name = messages::name(call).unwrap_or(name);
        Refusal::new(Reason::InvalidParams, format!("Unknown tool: {name}"))
    })
}

/// Tells a notification to the peer that is live now.
pub(crate) fn tell(instance: &Instance, call: &Call) {
    let (admission, upstream): (&Admission, &str) = (&instance.admission, &instance.name);
    // Where each client has a token of its own, nothing of a client is said with that of the gateway.
    if instance.primary.is_none() && instance.config.credentials.as_ref().is_some_and(Credentials::is_exchange) {
        return;
    }
    // A stateless upstream asks for roots each time anew.
    let is_foreign = |peer: &Arc<Peer>| peer.revision().is_modern() && call.method == Method::RootsChanged;
    let Some(peer) = admission.gate.peer().filter(|peer| !is_foreign(peer)) else { return };
    let Err(lost) = peer.tell(call, instance.offering.identity.as_deref()) else { return };
    let (method, cause) = (call.method.label(), lost.text().full());
    tracing::debug!(upstream, method, cause = &*cause, "notification not sent");
}

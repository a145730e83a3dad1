//! How far a call has come with its requests to the upstream, and what is counted of each of them.

use crate::call::Call;
use crate::call::reply::Outcome;
use crate::health::{Cause, CauseCode};
use crate::peer::Peer;
use crate::transport::exchange::Lost;
use crate::transport::link::Link;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::waiter::{Sent, Wait, WaitingFor};
use crate::upstream::instance::chunks::Folding;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::Instant;

/// How far a call has come.
pub(super) enum Stage {
    /// It waits for its turn, nothing sent; for what, as far as that was told.
    Waiting(Wait, WaitingFor),
    /// It waits for the tools to be read again, since its headers were refused.
    Rereading(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// It was sent.
    Sent(Sent),
    /// It was answered, and its result comes in chunks.
    Folding(Box<Folding>),
    Over,
}

/// A request has ended with the outcome of this place, after this time.
pub(super) fn ended(instance: &Instance, call: &Call, (outcome, time): (usize, Duration)) {
    let method = (call.method.place(), call.method.label());
    instance.status.metrics.attempts.ended(method, outcome, time.as_secs_f64());
}

/// The reason for a second attempt, where the loss of the first proves that the call did not run and the budget of retries allows one.
pub(super) fn reason_to_repeat(instance: &Instance, peer: &Peer, lost: &Lost, is_second: bool) -> Option<&'static str> {
    let reason = match (lost, &peer.link) {
        (Lost::Session(_), _) => "session_lost",
        // No byte of the frame had left the queue when the pipe closed.
        (Lost::Unsent(_), Link::Pipe(_)) => "unsent",
        _ => return None,
    };
    (!is_second && may_repeat(instance)).then_some(reason)
}

/// Whether a call that has proved not to have run may be sent a second time.
pub(super) fn may_repeat(instance: &Instance) -> bool {
    let may = instance.retries.take();
    if !may {
        instance.status.metrics.attempts.withheld();
    }
    may
}

/// What a call ends with that was refused unrun by a stateless upstream, and may not be sent a second time.
pub(super) fn withheld() -> Lost {
    let why = "it refused what this gateway sent, and too many calls to it are sent a second time already";
    Lost::Session(Cause::new(CauseCode::ResponseInvalid, why))
}

/// A request that was sent then did not run, and the call is sent once more for this reason.
pub(super) fn repeated(instance: &Instance, call: &Call, sent: Instant, reason: &'static str) {
    let is_refused = !matches!(reason, "session_lost" | "unsent");
    let outcome = if is_refused { Outcome::RPC_ERROR } else { Outcome::UPSTREAM_UNAVAILABLE };
    ended(instance, call, (outcome, sent.elapsed()));
    instance.status.metrics.attempts.repeated(reason);
}

//! A line of the log, and one of the audit, for each call, where that is asked for: who called what, how it ended and how long it took. The
//! log never has what it was given.

use super::calls::Name;
use super::{audit, logging};
use crate::call::Call;
use crate::call::caller::Principal;
use crate::call::reply::{Failure, Outcome};
use std::sync::Arc;
use std::time::Duration;
use trunkline_foundation::metrics;

/// What is known of a call before it is made.
pub(super) struct Line {
    principal: Principal,
    session: Option<String>,
    bytes_in: usize,
    name: Name,
    given: audit::Given,
}

impl Line {
    /// Whether calls have lines. Costs a call nothing but two looks.
    pub(super) fn is_wanted() -> bool {
        logging::has_calls() || audit::is_on()
    }

    pub(super) fn of(call: &Call, name: Name) -> Box<Self> {
        let session = call.caller.tenant.as_ref().map(|session| session.mark());
        let (principal, bytes_in) = (call.caller.principal.clone(), call.params.raw().len());
        Box::new(Self { principal, session, bytes_in, name, given: audit::Given::of(&call.params) })
    }

    /// Writes it.
    pub(super) fn write(&self, call: &Ended<'_>) {
        let Ended { method, upstream, outcome, duration, upstream_time, bytes_out } = *call;
        let (principal, session) = (self.principal.name(), self.session.as_deref());
        let (name, bytes_in) = (self.name.text(), self.bytes_in);
        let name = Some(&*name).filter(|name| !name.is_empty());
        let upstream = upstream.map_or(metrics::GATEWAY, |upstream| &**upstream);
        let (duration_ms, upstream_ms) = (milliseconds(duration), upstream_time.map(milliseconds));
        if audit::is_on() {
            audit::call(&audit::Call {
                principal,
                session,
                upstream,
                method,
                name,
                outcome,
                duration_ms,
                bytes_in,
                bytes_out,
                given: &self.given,
            });
        }
        if !logging::has_calls() {
            return;
        }
        tracing::info!(
            target: metrics::CALLS,
            principal,
            session,
            upstream,
            method,
            name,
            outcome,
            duration_ms,
            upstream_ms,
            bytes_in,
            bytes_out,
            "call"
        );
    }
}

/// How a call ended.
#[derive(Clone, Copy)]
pub(super) struct Ended<'a> {
    pub(super) method: &'static str,
    pub(super) upstream: Option<&'a Arc<str>>,
    pub(super) outcome: &'static str,
    pub(super) duration: Duration,
    /// How long the upstream had it, where it answered.
    pub(super) upstream_time: Option<Duration>,
    pub(super) bytes_out: usize,
}

/// How long a result or an error of an upstream is.
pub(super) fn bytes_of(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Complete(result) | Outcome::InputRequired(result) => result.raw().len(),
        Outcome::Error(Failure::Upstream(error)) => error.raw().len(),
        Outcome::Error(Failure::Refused(_)) => 0,
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

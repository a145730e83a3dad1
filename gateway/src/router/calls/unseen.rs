//! What is said of a name or URI that only upstreams can own that were never seen, or offered nothing before they failed: not that it is unknown, which nobody knows.

use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::health::row::State;
use crate::health::{Cause, CauseCode};
use crate::router::catalog::Member;
use crate::router::catalog::snapshot::Catalog;
use crate::router::names::{MemberId, suggest};
use std::sync::Arc;

/// So many upstreams are named.
const NAMED_MAX: usize = 4;

/// Why nothing was sent, how those upstreams stand, and when the next of them is tried.
pub(crate) fn refusal(catalog: &Catalog, owners: impl Iterator<Item = MemberId>, call: &Call, name: &str) -> Refusal {
    let owners: Vec<_> = owners.map(|id| &catalog.members[id]).collect();
    let (method, name) = (call.method.as_str(), suggest::shown(name));
    let begins = format!("`{method}` of `{name}` was not sent: ");
    let next = owners.iter().filter_map(|member| member.owner.retry_in()).min();
    let next = next.map(|left| format!("; next try in {} s", left.as_secs_f32().ceil())).unwrap_or_default();
    if let [only] = owners[..] {
        let upstream = only.owner.name();
        let told = |why: &str| format!("{begins}upstream `{upstream}`, which may have it, {why}");
        let for_caller = only.owner.cause_for(&call.caller.principal);
        if for_caller.is_none() && only.is_coming() {
            let said = |why: &str| match why.trim() {
                "" => told("is still starting; try again"),
                why => told(&format!("is still starting ({why}); try again")),
            };
            // What its start waits for, where that is known.
            let cause = only.owner.cause().unwrap_or_default();
            let refusal = Refusal::of_upstream(Reason::Unavailable, upstream, said(&cause.public()));
            return if cause.is_public() { refusal } else { refusal.for_operator(said(&cause.full())) };
        }
        let cause = for_caller.unwrap_or_else(|| cause(only));
        let told = |cause: &str| told(&format!("is not available: {cause}{next}"));
        let is_stopped = only.owner.state() == State::Stopped;
        let reason = match cause.codes().contains(&CauseCode::LoginRequired) {
            true => Reason::Login,
            false if is_stopped => Reason::Stopped,
            false if cause.code() == CauseCode::QueueFull => Reason::Busy,
            false => Reason::Unavailable,
        };
        let refusal = Refusal::of_upstream(reason, upstream, told(&cause.public())).advised(cause.advice());
        return if cause.is_public() { refusal } else { refusal.for_operator(told(&cause.full())) };
    }
    let stand = |member: &&Arc<Member>| format!("`{}` ({})", member.owner.name(), member.owner.state().as_str());
    let mut all: Vec<_> = owners.iter().take(NAMED_MAX).map(stand).collect();
    all.extend((owners.len() > NAMED_MAX).then(|| format!("{} more", owners.len() - NAMED_MAX)));
    let why = format!(
        "{begins}one of these upstreams may have it, and none is available: {}{next}; try again",
        all.join(", ")
    );
    Refusal::new(Reason::Unavailable, why)
}

fn cause(member: &Member) -> Cause {
    member
        .owner
        .cause()
        .unwrap_or_else(|| Cause::new(CauseCode::Unknown, format!("its state is {}", member.owner.state().as_str())))
}

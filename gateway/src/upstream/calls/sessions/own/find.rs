//! Finds the session of a client's own for a call, and has one opened where there is none.

use super::life::keep;
use super::session::{Own, declared, gate, gives_sessions, is_held, key, show};
use crate::call::caller::Caller;
use crate::health::Cause;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::own::OwnSession;
use crate::upstream::owner::Ownership;
use std::sync::Arc;

/// Memory of a session beside the declarations of its client. Measured over 500 sessions of a release build: 36 KiB, and 52 KiB with
/// the connection of a GET stream.
const SESSION_BYTES: usize = 52 * 1024;

/// The session that a client has to itself, opened where there is none; `None` where clients share those of the instance. The error says
/// why it may have none now.
pub(crate) fn of(instance: &Arc<Instance>, caller: &Caller) -> Option<Result<Arc<Own>, Cause>> {
    let table = instance.own.as_ref().filter(|table| !table.is_refused())?;
    let key = key(instance, caller);
    if let Some(own) = table.find(&key) {
        if own.is_shut() && own.set_shut(false) {
            gate(&own).close();
        }
        return Some(Ok(own));
    }
    let (wire, tasks) = instance.admission.sessions.way_in().filter(|(_, tasks)| !tasks.is_ending())?;
    if caller.tenant.as_ref().is_some_and(|tenant| tenant.has_ended()) {
        return None;
    }
    let share = caller.share();
    let set = declared(instance, caller);
    let count = || {
        let budget = instance.status.handle.budget().owned_by(share.owner());
        budget.stand(SESSION_BYTES + set.beyond.bytes())
    };
    let opened = table.open(
        &key,
        &share,
        (count, |counted| {
            let tenant = caller.tenant.clone();
            let (owner, number) = match &tenant {
                Some(tenant) => (Ownership::session(tenant, caller.beyond()), tenant.number()),
                None => (Ownership::principal(&instance.config, &caller.principal, caller.beyond()), 0),
            };
            let side = Instance::own_session(instance, owner.with_share(share.clone()), number);
            OwnSession::new((key.clone(), tenant), set.clone(), share.clone(), (Arc::new(side), is_held), counted)
        }),
    );
    Some(opened.map(|(own, is_new)| {
        if is_new {
            show(instance);
            want_level(instance, &own);
            tasks.spawn(keep(instance.clone(), own.clone(), wire, tasks.clone()));
        }
        own
    }))
}

/// What a client listens to: its own session's, where it may have one.
pub(crate) fn home(instance: &Arc<Instance>, caller: &Caller) -> Arc<Instance> {
    let gives = instance.admission.gate.peer().is_some_and(|peer| gives_sessions(&peer));
    let own = gives.then(|| of(instance, caller)).flatten().and_then(Result::ok);
    own.map_or_else(|| instance.clone(), |own| own.instance.clone())
}

/// Has it be as verbose as its client wants.
fn want_level(instance: &Instance, own: &Own) {
    let primary = instance.primary.as_deref().unwrap_or(instance);
    if own.tenant.is_some() {
        let level = primary.wanted.level_of_sessions(&own.instance.owner.audience(), &primary.config.name);
        own.instance.wanted.levels.want(level);
    }
}

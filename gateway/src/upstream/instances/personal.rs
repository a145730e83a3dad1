//! Logins of single principals: what each of them is offered, for longer than an instance of it lives; and the call of who has yet to log in.

use crate::call::Call;
use crate::call::caller::Principal;
use crate::call::reply::Reply;
use crate::health::row::{Health, State};
use crate::health::{Cause, CauseCode};
use crate::protocol::json;
use crate::protocol::revision::Era;
use crate::protocol::value::Object;
use crate::runtime::timer::late::within;
use crate::upstream::calls::failure::unavailable;
use crate::upstream::instance::Instance;
use crate::upstream::instance::inventory::Inventory;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// What is offered to so many principals is known, twice where they come in both eras.
const LISTS_MAX: usize = 2048;
/// So long a call waits for what is being found out: whether its principal has logged in.
const KNOWN_WITHIN: Duration = Duration::from_secs(15);

/// What is offered to a principal, as it changes.
type Known = watch::Sender<Option<Arc<Inventory>>>;

/// What is offered to each principal.
#[derive(Default)]
pub(crate) struct PersonalLists(Mutex<HashMap<(Principal, Option<Era>), Known>>);

impl PersonalLists {
    /// What is offered to one of them in an era; nothing is known of it at first. Where there are too many, one that nobody looks at is
    /// read anew when it is needed again.
    #[allow(clippy::mutable_key_type, reason = "what a principal counts of its own is no part of who it is")]
    pub(crate) fn of(&self, principal: &Principal, era: Option<Era>) -> Known {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (principal.clone(), era);
        if let Some(known) = lists.get(&key) {
            return known.clone();
        }
        if lists.len() >= LISTS_MAX {
            let unseen = lists.iter().find(|(_, known)| known.receiver_count() == 0).map(|(key, _)| key.clone());
            unseen.into_iter().for_each(|key| drop(lists.remove(&key)));
        }
        let known = Known::new(None);
        if lists.len() < LISTS_MAX {
            lists.insert(key, known.clone());
        }
        known
    }
}

/// The call of the tool that is offered to who has yet to log in. Who has by now is told so.
pub(crate) fn log_in(instance: &Arc<Instance>, call: Call) -> Reply {
    let instance = instance.clone();
    Reply::deferred(async move {
        let _in_time = within(KNOWN_WITHIN, found_out(&instance)).await;
        match needs_login(&instance) {
            true => Reply::refuse(call.revision(), unavailable(&instance.config, &instance.status, &call)),
            false => {
                let is_connected = instance.status.handle.health().state.is_up();
                Reply::complete(call.revision(), logged_in(&instance.name, is_connected))
            }
        }
    })
}

/// What the tool answers whose caller has logged in by now.
fn logged_in(upstream: &str, is_connected: bool) -> Object {
    let text = match is_connected {
        true => format!("You are logged in to `{upstream}`: list the tools again to see what it offers."),
        false => format!(
            "You are logged in to `{upstream}`, which is not connected yet: list the tools again in a while to see what it offers."
        ),
    };
    let result = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}", json::quote(&text));
    Object::parse(result.into()).expect("what we write is an object")
}

/// The instances of one principal, or of all where they have one login: one, or one for each era.
pub struct Seat {
    instances: Vec<Arc<Instance>>,
    /// Why there can be none now.
    crowded: Option<Cause>,
}

impl Seat {
    /// Those that are there.
    pub(crate) fn of(instances: Vec<Arc<Instance>>) -> Self {
        Self { instances, crowded: None }
    }

    /// None, since others have taken all.
    pub(super) fn crowded(most: usize) -> Self {
        let taken = if most == 1 { "its one instance is taken" } else { "all its instances are taken" };
        let why = Cause::new(CauseCode::QueueFull, taken).advise("try again later, or raise `max_instances`");
        Self { instances: Vec::new(), crowded: Some(why) }
    }

    /// A person has logged in by this very process: what is there is connected with that login at once.
    pub fn login_was_made(&self) {
        self.instances.iter().flat_map(|instance| &instance.tokens).for_each(|tokens| tokens.login_was_made());
    }

    /// Where it stands: of two the one that is connected; of an upstream that was not called yet there is nothing.
    pub fn state(&self) -> State {
        let of_each = self.instances.iter().map(|instance| instance.status.handle.health().state);
        of_each.reduce(|one, other| if one.is_up() { one } else { other }).unwrap_or(State::Idle)
    }

    /// Why it is not there, where an attempt has shown that.
    pub fn cause(&self) -> Option<Cause> {
        let failed = |health: Health| if health.has_failed && !health.state.is_up() { health.cause } else { None };
        let found = self.instances.iter().find_map(|instance| failed(instance.status.handle.health()));
        found.or_else(|| self.crowded.clone())
    }
}

/// Whether the principal of an instance is to log in.
pub(super) fn needs_login(instance: &Instance) -> bool {
    let health = instance.status.handle.health();
    !health.state.is_up() && health.cause.is_some_and(|cause| cause.codes().contains(&CauseCode::LoginRequired))
}

/// Resolves when it is known how an instance stands.
async fn found_out(instance: &Instance) {
    let mut changes = instance.status.handle.changes();
    loop {
        changes.mark_unchanged();
        if !matches!(instance.status.handle.health().state, State::Starting | State::Stopping) {
            return;
        }
        // The board is there for as long as anything stands on it.
        let _moved = changes.changed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_how_many_are_known_and_what_somebody_looks_at_stays() {
        let lists = PersonalLists::default();
        let of = |number: usize| lists.of(&Principal::named(&format!("token:{number}")), None);
        let seen = of(0).subscribe();
        of(0).send_replace(Some(Inventory::to_log_in("up").into()));
        (1..LISTS_MAX + 10).for_each(|number| drop(of(number)));
        assert_eq!(lists.0.lock().unwrap().len(), LISTS_MAX);
        assert!(seen.borrow().is_some() && of(0).borrow().is_some());
        assert!(lists.of(&Principal::named("token:0"), Some(Era::Modern)).borrow().is_none(), "of another era");
    }
}

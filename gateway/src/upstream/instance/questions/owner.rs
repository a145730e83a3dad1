//! Whose question it is: the stream it came on, the session that has the link for itself, the only one who has calls open.

use crate::call::caller::ClientSession;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::revision::Revision;
use crate::transport::exchange::mailbox::Mailbox;
use crate::transport::questions::Whose;
use std::sync::Arc;

/// Who is asked, and on which of their calls.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) whose: Whose,
    /// The calls that it may belong to; it is put on the last of them. Empty where the session has none open.
    pub(crate) on: Vec<Arc<Mailbox>>,
}

impl Owner {
    /// What can be asked on the call that it is put on, and in which revision; without a call, what the session has
    /// declared, seen as one that speaks `revision`.
    pub(crate) fn able(&self, revision: Revision) -> (Capabilities, Revision) {
        match self.on.last().and_then(|slot| slot.caller.as_deref()) {
            Some(caller) => (caller.can(), caller.revision),
            None => (self.whose.tenant().map_or(Capabilities::NONE, |tenant| tenant.can()), revision),
        }
    }
}

/// Finds the owner of a question. `on` is the call on whose stream it came, `exclusive` the session that has the link for
/// itself, `calls` those that are open on the link, oldest first.
pub(crate) fn find(
    on: Option<&Arc<Mailbox>>,
    exclusive: Option<&Arc<ClientSession>>,
    calls: &[Arc<Mailbox>],
) -> Option<Owner> {
    if let Some(slot) = on.filter(|slot| slot.caller.is_some()) {
        return Some(of(slot, vec![slot.clone()]));
    }
    if let Some(tenant) = exclusive {
        let on = calls.iter().filter(|slot| slot.is_of(tenant)).cloned().collect();
        return Some(Owner { whose: Whose::Exclusive(tenant.clone()), on });
    }
    let (newest, others) = calls.split_last()?;
    let is_alone = match newest.tenant() {
        Some(tenant) => others.iter().all(|slot| slot.is_of(tenant)),
        None => others.is_empty(),
    };
    is_alone.then(|| of(newest, calls.to_vec()))
}

fn of(slot: &Arc<Mailbox>, on: Vec<Arc<Mailbox>>) -> Owner {
    let whose = match slot.tenant() {
        Some(tenant) => Whose::Session(tenant.clone()),
        None => Whose::Call(slot.clone()),
    };
    Owner { whose, on }
}

//! What is known of a session of a client's own: whose it is, what it declares, and when it is given up.

use crate::call::caller::Caller;
use crate::peer::Peer;
use crate::protocol::capabilities::beyond::Declared;
use crate::transport::exchange::Lost;
use crate::transport::link::Link;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::gate::{Gate, Retired};
use crate::upstream::instance::admission::own::{OwnKey, OwnSession};
use crate::upstream::instance::inventory::schedule::ListKinds;
use crate::upstream::owner::BRIDGED;
use std::sync::Arc;

/// A session of a client's own.
pub(crate) type Own = OwnSession<Instance>;

/// Whether the upstream gives its handshake sessions ids: then it may keep something for each of them.
pub(crate) fn gives_sessions(peer: &Peer) -> bool {
    matches!(&peer.link, Link::Http(http) if http.has_session() && !peer.revision().is_modern())
}

/// Where calls wait for it.
pub(crate) fn gate(own: &Own) -> &Gate {
    &own.instance.admission.gate
}

/// The session that a client has to itself, where there is one.
pub(crate) fn existing(instance: &Instance, caller: &Caller) -> Option<Arc<Own>> {
    instance.own.as_ref()?.get(&key(instance, caller))
}

/// Whether the session of a client's own cannot be opened, again and again. A call that is served otherwise has it tried again.
pub(crate) fn is_hopeless(instance: &Instance, caller: &Caller) -> bool {
    let hopeless = existing(instance, caller).filter(|own| own.tries.are_hopeless());
    hopeless.is_some_and(|own| {
        own.called.notify_one();
        true
    })
}

/// Gives up the peer of a call where a loss says that it is of no more use.
pub(crate) fn retire_if_gone(instance: &Instance, caller: &Caller, peer: &Arc<Peer>, lost: &Lost) {
    match existing(instance, caller) {
        Some(own) => give_up(instance, &own, peer, lost),
        None => instance.admission.retire_if_gone(peer, lost),
    }
}

/// The same of a session that is known. One that cannot be reached may be there, with its state, when the upstream is: that it is not
/// shows in the session of the gateway's own.
pub(super) fn give_up(instance: &Instance, own: &Own, peer: &Arc<Peer>, lost: &Lost) {
    match lost {
        Lost::Session(why) => gate(own).retire(peer, Retired::Session(why.clone())),
        Lost::Unsent(_) => instance.offering.reads.mark(ListKinds::ALL),
        _ => {}
    }
    instance.admission.retire_if_gone(peer, lost);
}

pub(super) fn key(instance: &Instance, caller: &Caller) -> OwnKey {
    match &caller.tenant {
        Some(tenant) => OwnKey::Session(tenant.number()),
        None => OwnKey::Principal(caller.principal.clone(), declared(instance, caller)),
    }
}

/// What its handshake declares: of a session what that has declared, whatever a single call of it says.
pub(super) fn declared(instance: &Instance, caller: &Caller) -> Declared {
    let Declared { can, beyond } = caller.declares();
    // Where the roots are configured, no client needs to have any.
    Declared { can: can.with(instance.config.answers()).and(BRIDGED), beyond }
}

/// Whether something lasting is wanted in it: who waits for a change calls nothing.
pub(super) fn is_held(side: &Instance) -> bool {
    !side.wanted.subscriptions.is_empty()
}

/// Shows how many there are.
pub(super) fn show(instance: &Instance) {
    let Some(table) = &instance.own else { return };
    let status = &instance.primary.as_deref().unwrap_or(instance).status;
    let open = table.len();
    status.metrics.sessions.set(open as f64);
    status.handle.update(|health| health.sessions = open);
}

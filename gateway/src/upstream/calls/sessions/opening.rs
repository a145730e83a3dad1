//! How a session beside the primary one is opened, and how calls go out in it.

use crate::health::{Cause, CauseCode};
use crate::protocol::capabilities::beyond::Declared;
use crate::upstream::instance::admission::Entry;
use crate::upstream::instance::admission::waiter::Sent;
use crate::upstream::instance::inventory::Offering;
use crate::upstream::peer::{Peer, handshake};
use crate::upstream::transport::exchange::Lost;
use crate::upstream::transport::link::Link;
use std::sync::Arc;

/// Why a session could not be opened.
pub(crate) enum Unopened {
    /// The upstream does not want it.
    Refused(Cause),
    /// It could not be asked, or is not well.
    NotNow(Cause),
}

/// Sends a call that waited.
pub(crate) fn hand(offering: &Offering, peer: &Arc<Peer>, entry: Entry) {
    let sent = peer.send(&entry.call, offering.headers_of(&entry.call), entry.place);
    // Who no longer waits drops the exchange, and that withdraws it.
    entry.turn.send(sent.map(|(exchange, attempt)| Sent { peer: peer.clone(), exchange, attempt }));
}

/// Opens a session that declares a set.
pub(crate) async fn open(link: &Link, set: &Declared) -> Result<Peer, Unopened> {
    let not_now = |lost: &Lost| Unopened::NotNow(lost.text().clone());
    let mut exchange = handshake::initialize(link, set).map_err(|lost| not_now(&lost))?;
    let answer = exchange.answer().await;
    match &answer {
        Err(lost @ (Lost::Unsent(_) | Lost::Busy(_) | Lost::Barred(..) | Lost::Unknown(_) | Lost::Dropped(_))) => {
            return Err(not_now(lost));
        }
        Err(lost @ Lost::Status(refusal)) if refusal.class().proves_nothing() => return Err(not_now(lost)),
        _ => {}
    }
    let offer = handshake::read_initialize(&answer).map_err(|fault| Unopened::Refused(fault.text))?;
    let peer = Peer::new(link.clone(), offer);
    match handshake::initialized(link).await {
        Err(lost @ Lost::Unsent(_)) => Err(not_now(&lost)),
        Err(Lost::Session(text)) => Err(Unopened::Refused(text)),
        // What one client sets there would be set for another, and its end would be the end of both.
        _ if matches!(link, Link::Http(http) if http.shares_id()) => {
            let said = "the upstream gave it the id of another session, so that both would be one";
            let advice = "have it give each session an id of its own, or set `sharing = \"shared\"` where it keeps nothing for a client";
            Err(Unopened::Refused(Cause::new(CauseCode::SessionLost, said).advise(advice)))
        }
        _ => Ok(peer),
    }
}

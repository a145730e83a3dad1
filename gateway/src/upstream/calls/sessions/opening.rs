//! How a session beside the primary one is opened, and how calls go out in it.

use crate::health::{Cause, CauseCode};
use crate::peer::{Peer, handshake};
use crate::protocol::capabilities::beyond::Declared;
use crate::transport::exchange::Lost;
use crate::transport::http::HttpSession;
use crate::transport::link::Link;
use crate::upstream::instance::admission::Entry;
use crate::upstream::instance::admission::waiter::Sent;
use crate::upstream::instance::inventory::Offering;
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
    let sent = peer.send(&entry.call, offering.beside_of(&entry.call), entry.place);
    // Who no longer waits drops the exchange, and that withdraws it.
    entry.turn.send(sent.map(|(exchange, attempt)| Sent { peer: peer.clone(), exchange, attempt }));
}

/// A session that is being opened, with all that were opened for it.
#[derive(Default)]
pub(crate) struct Opening(Vec<Arc<HttpSession>>);

impl Opening {
    /// Opens a session that declares a set and has an id of its own; `make` makes one that is not open yet.
    ///
    /// An upstream that was started again may count its ids anew. It gives the new session an id that another one here has, which it no
    /// longer knows. An upstream that gives all sessions one id does the same at the first look. Which of them it is, an older session tells,
    /// or else one more that is opened.
    pub(crate) async fn open(
        &mut self,
        upstream: &str,
        make: &(impl Fn() -> Arc<HttpSession> + Sync),
        set: &Declared,
    ) -> Result<(Arc<HttpSession>, Peer), Unopened> {
        let (first, peer) = self.one(make, set).await?;
        let Some(before) = first.doubled() else { return Ok((first, peer)) };
        // What was opened before is lost as well, where that is lost.
        if let Some(older) = first.older() {
            match older.clone().goes_on().await {
                Some(false) => older.lose(),
                Some(true) => return Err(doubled()),
                None => {
                    let said = "it cannot be asked just now which of two sessions with one id it knows";
                    return Err(Unopened::NotNow(Cause::new(CauseCode::SessionLost, said)));
                }
            }
        }
        let (next, peer) = self.one(make, set).await?;
        if next.id() == first.id() {
            return Err(doubled());
        }
        tracing::warn!(upstream, "the upstream gives ids of sessions anew that it has lost; those sessions are over");
        before.lose();
        // Calls of the one before may have reached it meanwhile: it is not used, and ended.
        first.claim();
        next.displace();
        Ok((next, peer))
    }

    async fn one(
        &mut self,
        make: &(impl Fn() -> Arc<HttpSession> + Sync),
        set: &Declared,
    ) -> Result<(Arc<HttpSession>, Peer), Unopened> {
        let http = make();
        self.0.push(http.clone());
        let peer = handshaken(&Link::Http(http.clone()), set).await?;
        Ok((http, peer))
    }

    /// Ends those that are of no use, each within its time.
    pub(crate) async fn end_others(self, kept: Option<&Arc<HttpSession>>) {
        for http in self.0.iter().filter(|http| !kept.is_some_and(|kept| Arc::ptr_eq(kept, http))) {
            http.farewell().await;
        }
    }

    /// Whether there are any of no use beside the one that is kept.
    pub(crate) fn has_others(&self) -> bool {
        self.0.len() > 1
    }
}

/// What one client sets there would be set for another, and its end would be the end of both.
fn doubled() -> Unopened {
    let said = "the upstream gave it the id of another session, so that both would be one";
    let advice =
        "have it give each session an id of its own, or set `sharing = \"shared\"` where it keeps nothing for a client";
    Unopened::Refused(Cause::new(CauseCode::SessionLost, said).advise(advice))
}

/// Shakes hands in a session that declares a set.
async fn handshaken(link: &Link, set: &Declared) -> Result<Peer, Unopened> {
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
        _ => Ok(peer),
    }
}

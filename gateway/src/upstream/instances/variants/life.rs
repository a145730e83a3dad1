//! One life of the lists for clients that declare the same: read in a session, or by requests, that declare what they do.

use super::kept::Kept;
use super::missing;
use crate::call::caller::Principal;
use crate::health::{Cause, CauseCode};
use crate::peer::Peer;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::json;
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::transport::exchange::Lost;
use crate::transport::http::{HttpClient, HttpSession};
use crate::upstream::calls::sessions::opening::{Opening, Unopened};
use crate::upstream::declaring::declares_now;
use crate::upstream::instance::Instance;
use crate::upstream::instance::inventory::refresh;
use crate::upstream::instance::inventory::schedule::ListKinds;
use crate::upstream::instance::inventory::{Inventory, Variant};
use crate::upstream::owner::Ownership;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How soon lists that cannot be had are asked for again, at first and at most.
pub(super) const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long its background stream may take to start.
const LISTEN_WAIT: Duration = Duration::from_secs(1);
/// How long a handshake that is under way may take when the life ends: its session could not be ended otherwise.
const LAST_HANDSHAKE: Duration = Duration::from_secs(1);

/// How the upstream is told what the clients declare.
pub(super) enum Way {
    /// By the handshake of a session.
    Session(Arc<HttpClient>),
    /// By each request.
    Requests,
}

/// One life: the instance that serves the clients, whom it has met, and what is declared.
pub(super) struct Life {
    pub(super) home: Arc<Instance>,
    pub(super) peer: Arc<Peer>,
    pub(super) set: Declared,
    pub(super) way: Way,
    pub(super) tasks: Tasks,
}

impl Life {
    /// Begins it; it ends with a loss, or when the guard is dropped. A session of its own has ended when the receiver resolves.
    pub(super) fn start(self, kept: &Arc<Kept>) -> (DropGuard, oneshot::Receiver<()>) {
        let (stop, kept) = (CancellationToken::new(), kept.clone());
        let guard = stop.clone().drop_guard();
        let (ended, end) = oneshot::channel();
        self.tasks.clone().spawn(async move {
            self.run(&kept, stop).await;
            _ = ended.send(());
        });
        (guard, end)
    }

    async fn run(self, kept: &Kept, stop: CancellationToken) {
        // What is told in it outside of calls is for nobody; that lists have changed may be true for all.
        let owner = Ownership::principal(&self.home.config, &Principal::anonymous(), &self.set.beyond);
        let side = Arc::new(Instance::own_session(&self.home, owner, 0));
        let stopped = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.tasks.ending() => {}
            }
        };
        tokio::pin!(stopped);
        let (peer, http) = match &self.way {
            Way::Requests => (self.peer.declaring(&self.set), None),
            Way::Session(wire) => {
                let make = || HttpSession::heard_by(side.clone(), wire.clone(), None);
                let (mut opening, limit) = (Opening::default(), self.home.config.startup_timeout);
                let late = || Err(Unopened::NotNow(Cause::new(CauseCode::TimedOut, "no answer to `initialize`")));
                let opened = tokio::select! {
                    opened = within(limit, opening.open(&self.home.name, &make, &self.set)) =>
                        opened.unwrap_or_else(|_| late()),
                    () = async { stopped.as_mut().await; sleep(LAST_HANDSHAKE).await } => late(),
                };
                match opened {
                    Ok((http, peer)) => {
                        if opening.has_others() {
                            let kept = http.clone();
                            self.tasks.spawn(async move { opening.end_others(Some(&kept)).await });
                        }
                        (peer, Some(http))
                    }
                    Err(Unopened::Refused(why) | Unopened::NotNow(why)) => {
                        tracing::debug!(
                            upstream = &*self.home.name,
                            cause = &*why.full(),
                            "no session for the lists of clients that declare other capabilities; they see everyone's"
                        );
                        kept.is_settled();
                        return opening.end_others(None).await;
                    }
                }
            }
        };
        kept.side.store(Some(side.clone()));
        let lost = tokio::select! {
            biased;
            () = stopped => None,
            lost = self.keep_up(kept, &side, &peer, http.as_ref()) => lost,
        };
        kept.side.store(None);
        kept.is_settled();
        if let Some(lost) = &lost {
            self.lost(lost);
        }
        if let Some(http) = http {
            http.falls_silent().await;
            match lost {
                Some(Lost::Session(_)) => http.release(),
                _ => http.farewell().await,
            }
        }
    }

    /// Reads the lists for as long as that is possible, and shows them; what showed that it no longer is. A session in which they are
    /// everyone's is of no use: then it ends as well.
    async fn keep_up(
        &self,
        kept: &Kept,
        side: &Instance,
        peer: &Peer,
        http: Option<&Arc<HttpSession>>,
    ) -> Option<Lost> {
        let (started, mut start) = watch::channel(false);
        let first = Notify::new();
        let heard = async {
            if let Some(http) = http.filter(|_| tells_of_lists(peer))
                && let Some(lost) = http.clone().listen(started).await
            {
                return lost;
            }
            std::future::pending().await
        };
        let read = async {
            if http.is_some() && tells_of_lists(peer) {
                let _ = within(LISTEN_WAIT, start.wait_for(|is_started| *is_started)).await;
            }
            drop(start);
            let mut pause = AGAIN.0;
            loop {
                let ready = || first.notify_one();
                let kept = refresh::keep((&side.offering, &side.status), &side.config, peer, ready).await;
                match kept {
                    Some(lost @ (Lost::Session(_) | Lost::Unsent(_))) => return lost,
                    Some(lost) if lost.leads_back() => return lost,
                    _ => {}
                }
                // No longer waited for.
                first.notify_one();
                sleep(pause).await;
                pause = (pause * 2).min(AGAIN.1);
            }
        };
        tokio::select! {
            lost = heard => Some(lost),
            lost = read => Some(lost),
            () = self.shown(kept, side, &first) => None,
        }
    }

    /// Shows what is read, once it first was, until a session shows what everyone sees.
    async fn shown(&self, kept: &Kept, side: &Instance, first: &Notify) {
        let (own_lists, everyones) = (&side.offering.inventory, &self.home.offering.inventory);
        let (mut own, mut shared) = (own_lists.subscribe(), everyones.subscribe());
        first.notified().await;
        loop {
            own.mark_unchanged();
            shared.mark_unchanged();
            let (now, all) = (own_lists.borrow().clone(), everyones.borrow().clone());
            match (now, all) {
                (Some(now), all) if !all.as_ref().is_some_and(|all| now.is_same(all)) => {
                    kept.missing.says(all.and_then(|all| self.missing(&all, &now)));
                    self.home.offering.learn(&side.offering);
                    kept.show(Variant::Own(now));
                }
                _ => {
                    kept.missing.says(None);
                    kept.show(Variant::Shared);
                    if matches!(self.way, Way::Session(_)) {
                        return;
                    }
                }
            }
            tokio::select! {
                _ = own.changed() => {}
                // What has changed for all may have changed for these too.
                _ = shared.changed() => side.offering.reads.again(ListKinds::ALL).await,
            }
        }
    }

    /// Which tools are offered to some clients alone, as far as what they can be asked may be the reason.
    fn missing(&self, all: &Inventory, own: &Inventory) -> Option<String> {
        let told = match self.way {
            Way::Session(_) => declares_now(&self.home.owner, &self.home.config).map(|told| told.can),
            // What is read for all declares nothing.
            Way::Requests => Some(Capabilities::NONE),
        };
        missing::told((all, told?), (own, self.set.can))
    }

    /// What it was lost by may have ended the session of the gateway's own, too.
    fn lost(&self, lost: &Lost) {
        match self.way {
            Way::Requests => self.home.admission.retire_if_gone(&self.peer, lost),
            Way::Session(_) => self.home.offering.reads.mark(ListKinds::ALL),
        }
    }
}

/// Whether the upstream tells of lists that change.
fn tells_of_lists(peer: &Peer) -> bool {
    let tells =
        |name| peer.offer.capabilities.find(name).and_then(|raw| json::get(raw, "listChanged")) == Some(b"true");
    ["tools", "prompts", "resources"].into_iter().any(tells)
}

//! What is kept up in one life of a session of a client's own.

use super::kept;
use super::session::{Own, gate, give_up};
use crate::peer::Peer;
use crate::peer::fault::Trouble;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::json;
use crate::runtime::timer::late::within;
use crate::transport::exchange::Lost;
use crate::transport::http::HttpSession;
use crate::upstream::calls::sessions::opening::hand;
use crate::upstream::instance::Instance;
use crate::upstream::instance::inventory::refresh;
use crate::upstream::instance::inventory::schedule::ListKinds;
use crate::upstream::instance::subscriptions::{handshake, log_level};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

/// How long its background stream may take to start.
const LISTEN_WAIT: Duration = Duration::from_secs(1);
/// How soon what could not be kept up is tried again, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// So often a session's lists are read again before its client sees them, since those that all share have changed meanwhile.
const SHARED_CHANGES_MAX: u32 = 4;

/// Whether its background stream is opened with it: where the upstream tells of changed lists, or where it may ask, as some do on that
/// stream alone.
fn needs_stream(own: &Own, peer: &Peer) -> bool {
    let capabilities = &peer.offer.capabilities;
    let tells = |name| capabilities.find(name).and_then(|raw| json::get(raw, "listChanged")) == Some(b"true");
    let may_ask = own.set.can.and(Capabilities::QUESTIONS) != Capabilities::NONE;
    may_ask || ["tools", "prompts", "resources"].into_iter().any(tells)
}

/// What is kept up in one life of a session: it is as verbose as its client wants, tells of what is wanted, and has its own lists once
/// they changed. One task does it all: there may be a thousand sessions.
pub(super) struct UpKeep<'a> {
    pub(super) own: &'a Arc<Own>,
    pub(super) instance: &'a Arc<Instance>,
    pub(super) http: &'a Arc<HttpSession>,
    pub(super) peer: &'a Arc<Peer>,
    pub(super) was_away: bool,
    /// Its client has subscribed in it, or set a level.
    pub(super) has_wishes: AtomicBool,
}

impl UpKeep<'_> {
    /// Never ends by itself.
    pub(super) async fn run(self) {
        let (started, start) = watch::channel(false);
        let started = &started;
        let levels = log_level::keep(&self.own.instance.wanted.levels, self.peer);
        let told = self.subscribed(started);
        tokio::join!(self.opened(start), levels, self.listens(started), told, self.reads_lists(), self.is_kept());
        std::future::pending().await
    }

    /// Has it kept for the next run, and with it whether that has to say that subscriptions and a level are lost.
    async fn is_kept(&self) {
        let wanted = &self.own.instance.wanted;
        self.note();
        tokio::select! {
            () = wanted.subscriptions.begun() => {}
            () = wanted.levels.begun() => {}
        }
        self.has_wishes.store(true, Ordering::Relaxed);
        self.note();
    }

    fn note(&self) {
        let has_wishes = self.has_wishes.load(Ordering::Relaxed);
        kept::note(self.instance, self.own, (self.http, self.peer), has_wishes);
    }

    /// Lets calls through, once it is heard what they may cause.
    async fn opened(&self, mut start: watch::Receiver<bool>) {
        let is_late = needs_stream(self.own, self.peer)
            && within(LISTEN_WAIT, start.wait_for(|is_started| *is_started)).await.is_err();
        let (own, of) = (self.own, self.instance.clone());
        gate(own).open(self.peer, &move |peer, entry| hand(&of.offering, peer, entry));
        // The call that it was opened for need not open it again.
        let mut called = std::pin::pin!(own.called.notified());
        _ = called.as_mut().enable();
        if is_late && start.wait_for(|is_started| *is_started).await.is_ok() {
            // What calls have changed meanwhile was told to nobody.
            own.instance.offering.reads.announced(ListKinds::ALL);
        }
    }

    /// Keeps its background stream open, once it is needed. One that cannot be had just now is no loss of the session.
    async fn listens(&self, started: &watch::Sender<bool>) {
        let wanted = &self.own.instance.wanted;
        if !needs_stream(self.own, self.peer) {
            tokio::select! {
                () = wanted.subscriptions.begun() => {}
                () = wanted.levels.begun() => {}
            }
        }
        let mut pause = AGAIN.0;
        while let Some(lost) = self.http.clone().listen(started.clone()).await {
            if self.is_over(&lost) {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    /// Has the upstream tell of what is wanted. What changes once a subscription was answered is told on the stream.
    async fn subscribed(&self, started: &watch::Sender<bool>) {
        let subscriptions = &self.own.instance.wanted.subscriptions;
        subscriptions.begun().await;
        let mut start = started.subscribe();
        let _ = within(LISTEN_WAIT, start.wait_for(|is_started| *is_started)).await;
        drop(start);
        let (mut pause, mut was_away) = (AGAIN.0, self.was_away);
        while let Trouble::Lost(lost) =
            handshake::keep(subscriptions, self.peer, self.instance.config.ask_limit(), was_away).await
        {
            if self.is_over(&lost) {
                return;
            }
            sleep(pause).await;
            (pause, was_away) = ((pause * 2).min(AGAIN.1), true);
        }
    }

    /// Reads the lists in a handshake session's own once a change of them was announced there: from then on its client sees those.
    async fn reads_lists(&self) {
        let Some(tenant) = &self.own.tenant else { return };
        let side = &self.own.instance;
        side.offering.reads.is_announced().await;
        // What its client sees until then.
        let mut shared = self.instance.offering.inventory.subscribe();
        shared.mark_unchanged();
        let first = Notify::new();
        let shows = async {
            first.notified().await;
            // Its client may have seen what is newer: nobody is shown what was there before.
            for _ in 0..SHARED_CHANGES_MAX {
                match shared.has_changed() {
                    Ok(true) => shared.mark_unchanged(),
                    _ => break,
                }
                side.offering.reads.again(ListKinds::ALL).await;
            }
            self.own.set_has_lists(true);
            tenant.got_instance();
            self.note();
        };
        tokio::join!(self.keeps_lists(|| first.notify_one()), shows);
    }

    async fn keeps_lists(&self, ready: impl Fn() + Send + Sync) {
        let side = &self.own.instance;
        let mut pause = AGAIN.0;
        while let Some(lost) = refresh::keep((&side.offering, &side.status), &side.config, self.peer, &ready).await {
            if self.is_over(&lost) {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    /// Whether a loss is that of the session; then it is given up.
    fn is_over(&self, lost: &Lost) -> bool {
        give_up(self.instance, self.own, self.peer, lost);
        matches!(lost, Lost::Session(_))
    }
}

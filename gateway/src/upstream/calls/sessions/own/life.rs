//! One session of a client's own, from its first call to its end: opened over the connections of its instance, kept up, opened anew where
//! the upstream has lost it, and ended with its client.

use super::kept;
use super::kept::Resumed;
use super::session::{Own, gate, is_held, show};
use super::upkeep::UpKeep;
use crate::health::{Cause, CauseCode};
use crate::peer::Peer;
use crate::peer::loss::Loss;
use crate::runtime::Tasks;
use crate::runtime::timer::late::{passed, within};
use crate::transport::http::{HttpClient, HttpSession};
use crate::upstream::calls::sessions::opening::{Opening, Unopened, hand};
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::gate::Retired;
use crate::upstream::instance::inventory::schedule::ListKinds;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A session that is lost sooner than this is not opened anew at once.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// How soon a session is tried again of which something is wanted that no call waits for, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long a handshake that is under way may take when the upstream ends: its session could not be ended otherwise.
const LAST_HANDSHAKE: Duration = Duration::from_secs(1);

/// Resolves when nobody needs it any more. It is no longer found then.
async fn over(instance: &Instance, own: &Arc<Own>) {
    let Some(table) = &instance.own else { return };
    let unneeded = async {
        match &own.tenant {
            Some(tenant) => tenant.ended().await,
            None => {
                let mut until = Instant::now() + instance.config.instance_idle;
                loop {
                    passed(until).await;
                    match table.remove_idle(own) {
                        Ok(()) => return,
                        Err(later) => until = later,
                    }
                }
            }
        }
    };
    tokio::select! {
        biased;
        // One that was never open keeps nothing.
        () = own.evicted.cancelled(), if own.http.load().is_none() => {}
        () = own.evicted.cancelled() => {
            let upstream = &*instance.name;
            tracing::info!(
                upstream,
                client_session = own.tenant.as_ref().map(|tenant| tenant.mark()),
                "session ended to make room for another; its state at the upstream (roots, log level, tools) is lost, the next call opens a new one"
            );
        }
        () = unneeded => {}
    }
    _ = table.remove(own);
}

/// Keeps a session from its first call to its end.
pub(super) async fn keep(instance: Arc<Instance>, own: Arc<Own>, wire: Arc<HttpClient>, tasks: Tasks) {
    let mut keeper =
        Keeper { instance: &instance, own: &own, wire: &wire, tasks: &tasks, failures: 0, was_open: false };
    keeper.run().await;
    let http = own.http.swap(None);
    let is_left = tasks.is_ending() && kept::is_left(&instance, &own);
    if let Some(table) = &instance.own {
        _ = table.remove(&own);
    }
    show(&instance);
    gate(&own).shut(&Cause::new(CauseCode::SessionLost, "its session was closed"));
    lists_are_gone(&own);
    if let Some(http) = http {
        // Calls of a client that has gone are withdrawn in it.
        http.falls_silent().await;
        match is_left && kept::stays(&http) {
            true => http.release(),
            false => http.farewell().await,
        }
        if !is_left {
            kept::forget(&instance, &own, &http);
        }
    }
    own.instance.status.notices.gone();
    own.instance.stopped.cancel();
}

/// From now on its client sees what everyone sees.
fn lists_are_gone(own: &Own) {
    if own.set_has_lists(false)
        && let Some(tenant) = &own.tenant
    {
        tenant.got_instance();
    }
}

struct Keeper<'a> {
    instance: &'a Arc<Instance>,
    own: &'a Arc<Own>,
    wire: &'a Arc<HttpClient>,
    tasks: &'a Tasks,
    /// How often in a row it could not be opened, or was lost at once.
    failures: u32,
    was_open: bool,
}

impl Keeper<'_> {
    /// Opens it, again and again where it is lost, until nobody needs it.
    async fn run(&mut self) {
        loop {
            let opened = self.opened().await;
            // Those who have called for it are served or refused now: nobody else is waiting for another attempt.
            pin!(self.own.called.notified()).as_mut().enable();
            let has_failed = match opened {
                Ok((http, peer)) => {
                    let begun = Instant::now();
                    let Some(why) = self.live(&http, &peer).await else { return };
                    self.lost(&why);
                    begun.elapsed() < LIFE_MIN
                }
                Err(why) => {
                    if self.is_refused(why) {
                        return;
                    }
                    true
                }
            };
            self.failures = if has_failed { self.failures.saturating_add(1) } else { 0 };
            if !self.is_needed_again().await {
                return;
            }
        }
    }

    /// Opens it. Once begun, that is waited for: a session that nobody knows of could not be ended.
    async fn opened(&mut self) -> Result<(Arc<HttpSession>, Arc<Peer>), Unopened> {
        self.own.tries.begin();
        if let Some((http, peer)) = self.resumed().await? {
            self.own.tries.succeeded();
            return Ok((http, Arc::new(peer)));
        }
        let (side, limit) = (&self.own.instance, self.instance.config.startup_timeout);
        let make = || HttpSession::heard_by(side.clone(), self.wire.clone(), side.owner.share.clone());
        let late = |limit: Duration| {
            let said = format!("no answer to `initialize` within {} s", limit.as_secs_f32());
            Unopened::NotNow(Cause::new(CauseCode::TimedOut, said))
        };
        let mut opening = Opening::default();
        let opened = tokio::select! {
            opened = within(limit, opening.open(&self.instance.name, &make, &self.own.set)) =>
                opened.unwrap_or_else(|_| Err(late(limit))),
            () = async { self.tasks.ending().await; sleep(LAST_HANDSHAKE).await } => Err(late(LAST_HANDSHAKE)),
        };
        match opened {
            Ok((http, peer)) => {
                self.own.tries.succeeded();
                self.own.owed.take().into_iter().for_each(|loss| peer.owed.owe(loss));
                if opening.has_others() {
                    let kept = http.clone();
                    self.tasks.spawn(async move { opening.end_others(Some(&kept)).await });
                }
                Ok((http, Arc::new(peer)))
            }
            Err(why) => {
                self.own.tries.failed();
                opening.end_others(None).await;
                Err(why)
            }
        }
    }

    /// The session that an earlier run of the gateway had for the client. What was lost with it, the client is told.
    async fn resumed(&mut self) -> Result<Option<(Arc<HttpSession>, Peer)>, Unopened> {
        if self.was_open || self.own.owed.is_owed() {
            return Ok(None);
        }
        let resumed = tokio::select! {
            resumed = kept::resume(self.instance, self.own, self.wire) => resumed,
            () = self.tasks.ending() => Resumed::Nothing,
        };
        let (upstream, client_session) = (&*self.instance.name, self.own.tenant.as_ref().map(|tenant| tenant.mark()));
        match resumed {
            Resumed::Nothing => Ok(None),
            Resumed::Open(http, peer) => {
                tracing::debug!(upstream, client_session, "session goes on after the restart");
                self.was_open = true;
                Ok(Some((http, peer)))
            }
            Resumed::NotNow(kept) if self.failures == 0 => {
                kept::give_back(self.instance, self.own, kept);
                let said = "it cannot be asked just now whether it still knows the session";
                self.own.tries.failed();
                Err(Unopened::NotNow(Cause::new(CauseCode::SessionLost, said)))
            }
            lost => {
                let (why, loses_wishes) = match lost {
                    Resumed::NotNow(kept) => {
                        let loses_wishes = kept::are_lost(self.own, Some(kept.has_wishes));
                        kept::end_later(self.instance, (self.wire, self.tasks), kept);
                        ("the upstream cannot be asked", loses_wishes)
                    }
                    Resumed::Lost(why, loses_wishes) => (why, loses_wishes),
                    Resumed::Nothing | Resumed::Open(..) => ("", false),
                };
                self.own.owed.owe(if loses_wishes { Loss::Restart } else { Loss::RestartAlone });
                let also = if loses_wishes { ", log level, subscriptions" } else { "" };
                tracing::info!(
                    upstream,
                    client_session,
                    why,
                    "session of an earlier run lost by the upstream with its state (roots, tools{also}); a new one is opened"
                );
                Ok(None)
            }
        }
    }

    /// One life of it, from when it was opened; why it was lost, `None` where nobody needs it any more.
    async fn live(&mut self, http: &Arc<HttpSession>, peer: &Arc<Peer>) -> Option<Cause> {
        let (own, instance) = (self.own, self.instance);
        let was_away = std::mem::replace(&mut self.was_open, true);
        instance.own.iter().for_each(|table| table.opened());
        own.http.store(Some(http.clone()));
        gate(own).expect(peer);
        let kept_up =
            Box::pin(UpKeep { own, instance, http, peer, was_away, has_wishes: AtomicBool::new(false) }.run());
        let why = tokio::select! {
            biased;
            () = self.tasks.ending() => None,
            () = over(instance, own) => None,
            why = gate(own).retired() => Some(why),
            () = kept_up => None,
        };
        why.map(|why| match why {
            Retired::Session(why) | Retired::Unreachable(why) | Retired::Revision(why) | Retired::Hung(why) => why,
        })
    }

    /// The upstream no longer knows it: its client is to know what that means.
    fn lost(&self, why: &Cause) {
        let upstream = &*self.instance.name;
        tracing::warn!(
            upstream,
            client_session = self.own.tenant.as_ref().map(|tenant| tenant.mark()),
            cause = &*why.full(),
            cause_code = why.code().as_str(),
            "session lost by the upstream with its state (roots, log level, tools); the next call opens a new one"
        );
        self.own.owed.owe(Loss::ByUpstream);
        if let Some(http) = self.own.http.swap(None) {
            kept::forget(self.instance, self.own, &http);
            http.release();
        }
        self.own.instance.status.notices.gone();
        lists_are_gone(self.own);
        // The session of the gateway's own may be gone as well.
        self.instance.offering.reads.mark(ListKinds::ALL);
    }

    /// It could not be opened: calls that wait for it are refused. Whether the upstream bears none beside the gateway's own, and nobody is
    /// wronged by having that.
    fn is_refused(&self, why: Unopened) -> bool {
        let (upstream, session) = (&*self.instance.name, self.own.tenant.as_ref().map(|tenant| tenant.mark()));
        let (cause, is_final) = match why {
            Unopened::NotNow(cause) => (cause, false),
            Unopened::Refused(cause) => (cause, true),
        };
        let table = self.instance.own.as_ref().filter(|table| is_final && !table.has_opened());
        if let Some(table) = table.filter(|table| !table.has_parts()) {
            let text =
                "the upstream refuses a second session; all clients share one, with its roots, log level and tools";
            tracing::warn!(upstream, cause = &*cause.full(), cause_code = cause.code().as_str(), "{text}");
            table.refuse();
            for entry in gate(self.own).clear(&cause) {
                self.instance.admission.gate.queue(entry, &|peer, entry| hand(&self.instance.offering, peer, entry));
            }
            return true;
        }
        let text = "no session could be opened for a client";
        tracing::debug!(upstream, client_session = session, cause = &*cause.full(), "{text}");
        self.instance.status.failed(
            "session",
            cause.code(),
            &Cause::new(cause.code(), format!("{text}: ")).then(&cause).full(),
        );
        self.own.set_shut(true);
        gate(self.own).shut(&Cause::new(CauseCode::SessionLost, "no session of its own: ").then(&cause));
        false
    }

    /// Waits until a call, or what is wanted of it, needs it again; whether it does before it is over.
    async fn is_needed_again(&self) -> bool {
        let pause = (AGAIN.0 * 2_u32.saturating_pow(self.failures.saturating_sub(1)).min(1 << 6)).min(AGAIN.1);
        let wanted = async {
            self.own.instance.wanted.subscriptions.begun().await;
            if self.failures > 0 {
                sleep(pause).await;
            }
        };
        let needed = async {
            // One that is lost again and again is not opened for each call at once.
            if self.failures > 1 {
                // Calls that come meanwhile are bridged, where they can be.
                sleep(if self.own.tries.are_hopeless() { pause } else { LIFE_MIN }).await;
            }
            tokio::select! {
                () = self.own.called.notified() => {}
                () = wanted, if is_held(&self.own.instance) => {}
            }
        };
        tokio::select! {
            biased;
            () = self.tasks.ending() => return false,
            () = over(self.instance, self.own) => return false,
            () = needed => {}
        }
        if self.own.set_shut(false) {
            gate(self.own).close();
        }
        true
    }
}

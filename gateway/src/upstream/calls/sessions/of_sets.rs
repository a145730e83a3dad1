//! Sends each call in the session it belongs to; opens sessions beside the primary one, and keeps them while they are needed.

use super::opening::{Opening, Unopened, hand};
use super::own::{self, Own};
use crate::call::Call;
use crate::health::{Cause, CauseCode};
use crate::peer::Peer;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::revision::Revision;
use crate::runtime::Tasks;
use crate::runtime::timer::late::{passed, within};
use crate::transport::exchange::Lost;
use crate::transport::http::{HttpClient, HttpSession};
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::Entry;
use crate::upstream::instance::admission::sessions::{CallSession, CallSessions, Found, IDLE};
use crate::upstream::instance::inventory::schedule::ListKinds;
use crate::upstream::instance::subscriptions::log_level;
use crate::upstream::owner::{BRIDGED, Holder};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long its background stream may take to start.
const LISTEN_WAIT: Duration = Duration::from_secs(1);
/// A session that is lost sooner than this, twice in a row, is not simply opened anew.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// How one life of a session ended.
enum End {
    Stopped,
    Idle,
    Lost,
}

/// The session that a call goes out in.
pub(crate) enum Route {
    /// The primary one.
    Primary,
    /// That of all who declare the same.
    OfSet(Arc<CallSession>),
    /// That of its client alone.
    Own(Arc<Own>),
    /// It may have none of its own now, and goes out in no other.
    Busy(Cause),
}

/// The session that a call belongs to.
pub(crate) fn session_of(instance: &Arc<Instance>, primary: &Arc<Peer>, call: &Call) -> Route {
    if !own::gives_sessions(primary) {
        return Route::Primary;
    }
    match own::of(instance, &call.caller) {
        Some(Ok(own)) => Route::Own(own),
        Some(Err(why)) => Route::Busy(why),
        None => session_of_set(instance, call).map_or(Route::Primary, Route::OfSet),
    }
}

/// The session of what a call's client declares, where clients share sessions; `None` where that is the primary one.
fn session_of_set(instance: &Arc<Instance>, call: &Call) -> Option<Arc<CallSession>> {
    // Where all calls are one session's, all was declared.
    if matches!(instance.owner.holder, Holder::Session(_)) {
        return None;
    }
    // Where the roots are configured, no client needs to have any.
    let set = call.caller.can().with(instance.config.answers()).and(BRIDGED);
    if set == BRIDGED && call.caller.beyond().is_empty() {
        return None;
    }
    let set = Declared { can: set, beyond: call.caller.beyond().clone() };
    match instance.admission.sessions.find(set, instance.config.queue, &call.caller.share())? {
        Found::Open(session) => Some(session),
        Found::New(session, wire, tasks) => {
            tasks.spawn(keep(instance.clone(), session.clone(), wire, tasks.clone()));
            Some(session)
        }
    }
}

/// Opens the gate of the primary session; what waits goes first, each call to the session that it belongs to.
pub(crate) fn open_gate(instance: &Arc<Instance>, peer: &Arc<Peer>) {
    let of = instance.clone();
    instance.admission.gate.open(peer, &move |peer, entry| pass(&of, peer, entry));
    if let Some(own) = &instance.own {
        own.moved();
    }
}

/// Has calls that wait for a place go on as places become free.
pub(crate) async fn keep_places(instance: Arc<Instance>) {
    let gate = &instance.admission.gate;
    loop {
        gate.freed().await;
        gate.serve_waiting(&|peer, entry| pass(&instance, peer, entry));
    }
}

/// Sends a call that waited, in the session that it belongs to.
fn pass(instance: &Arc<Instance>, peer: &Arc<Peer>, entry: Entry) {
    let pass_on = |peer: &Arc<Peer>, entry| hand(&instance.offering, peer, entry);
    match session_of(instance, peer, &entry.call) {
        Route::Primary => pass_on(peer, entry),
        Route::OfSet(session) => session.gate.queue(entry, &pass_on),
        Route::Own(own) => {
            own::gate(&own).queue(entry, &pass_on);
            own.called.notify_one();
        }
        Route::Busy(why) => entry.turn.send(Err(Lost::Busy(why))),
    }
}

/// A session cannot be had, now or at all: what waits for it is refused, or goes to the primary one.
fn give_up(instance: &Instance, session: &Arc<CallSession>, why: Unopened) {
    let sessions = &instance.admission.sessions;
    let (upstream, wanted) = (&*instance.name, session.set.to_json(Revision::NEWEST_LEGACY));
    let waiting = match why {
        Unopened::NotNow(cause) => {
            let text = "no session could be opened for callers with these capabilities";
            tracing::debug!(upstream, wanted, cause = &*cause.full(), "{text}");
            sessions.remove(session);
            return session.gate.shut(&cause);
        }
        Unopened::Refused(cause) => {
            if sessions.refuse() {
                let text = "the upstream refuses a second session; all clients share one, whatever their capabilities";
                tracing::info!(upstream, cause = &*cause.full(), "{text}");
            }
            sessions.remove(session);
            session.gate.clear(&cause)
        }
    };
    for entry in waiting {
        instance.admission.gate.queue(entry, &|peer, entry| hand(&instance.offering, peer, entry));
    }
}

/// Resolves when a session was without a call for long; it can no longer be found then.
async fn idle(sessions: &CallSessions, session: &Arc<CallSession>, http: &HttpSession) {
    let mut until = Instant::now() + IDLE;
    loop {
        passed(until).await;
        match sessions.remove_idle(session, || http.is_busy()) {
            Ok(()) => return,
            Err(later) => until = later,
        }
    }
}

/// Keeps a session open while it is needed: one that the upstream loses is opened again, once for all who wait.
async fn keep(instance: Arc<Instance>, session: Arc<CallSession>, wire: Arc<HttpClient>, tasks: Tasks) {
    let limit = instance.config.startup_timeout;
    let mut lost_early = 0;
    loop {
        let (mut opening, make) = (Opening::default(), || HttpSession::new(wire.clone()));
        let opened = tokio::select! {
            biased;
            () = tasks.ending() => break,
            opened = within(limit, opening.open(&instance.name, &make, &session.set)) => opened,
        };
        let late = || {
            let said = format!("no answer to `initialize` within {} s", limit.as_secs_f32());
            Err(Unopened::Refused(Cause::new(CauseCode::TimedOut, said)))
        };
        let (http, peer) = match opened.unwrap_or_else(|_| late()) {
            Ok((http, peer)) => (http, Arc::new(peer)),
            Err(why) => return give_up(&instance, &session, why),
        };
        if opening.has_others() {
            let kept = http.clone();
            tasks.spawn(async move { opening.end_others(Some(&kept)).await });
        }
        let life = tasks.child();
        let begun = Instant::now();
        let end = live(&instance, &session, &http, &peer, &life).await;
        life.end();
        life.ended().await;
        match end {
            End::Stopped | End::Idle => {
                http.farewell().await;
                break;
            }
            End::Lost => {
                lost_early = if begun.elapsed() < LIFE_MIN { lost_early + 1 } else { 0 };
                // The primary one may be gone as well.
                instance.offering.reads.mark(ListKinds::ALL);
                if lost_early == 2 {
                    let why = Cause::new(CauseCode::SessionLost, "it lost it again and again");
                    return give_up(&instance, &session, Unopened::Refused(why));
                }
            }
        }
    }
    instance.admission.sessions.remove(&session);
    session.gate.shut(&Cause::new(CauseCode::SessionLost, "its session was closed"));
}

/// One life of a session, from when it was opened.
async fn live(
    instance: &Arc<Instance>,
    session: &Arc<CallSession>,
    http: &Arc<HttpSession>,
    peer: &Arc<Peer>,
    life: &Tasks,
) -> End {
    session.gate.expect(peer);
    let (leveled, of) = (peer.clone(), instance.clone());
    life.spawn_until_end(async move { log_level::keep(&of.wanted.levels, &leveled).await });
    // Older servers ask on this stream, whatever call they do it for, and tell of changed lists.
    let (started, mut start) = watch::channel(false);
    let (listener, owner, listened) = (http.clone(), instance.clone(), peer.clone());
    life.spawn_until_end(async move {
        if let Some(lost) = listener.listen(started).await {
            owner.admission.retire_if_gone(&listened, &lost);
        }
    });
    let _ = within(LISTEN_WAIT, start.wait_for(|is_started| *is_started)).await;
    drop(start);
    let owner = instance.clone();
    session.gate.open(peer, &move |peer, entry| hand(&owner.offering, peer, entry));
    tokio::select! {
        biased;
        () = life.ending() => End::Stopped,
        _ = session.gate.retired() => End::Lost,
        () = idle(&instance.admission.sessions, session, http) => End::Idle,
    }
}

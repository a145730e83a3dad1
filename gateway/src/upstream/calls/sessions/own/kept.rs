//! A session of a client's own that outlives a restart of the gateway: its id is kept on disk, and the next run goes on with it, or says
//! what is lost.

use super::session::Own;
use crate::peer::Peer;
use crate::peer::loss::Loss;
use crate::protocol::revision::Revision;
use crate::runtime::Tasks;
use crate::runtime::timer::late::passed;
use crate::transport::http::{HttpClient, HttpSession};
use crate::transport::link::Link;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::kept::{Earlier, Kept, KeptSessions, Place};
use crate::upstream::instance::inventory::schedule::ListKinds;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep};

/// How often it is looked whether an upstream can be reached at which sessions of an earlier run are to be ended.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What became of the session that an earlier run had for a client.
pub(super) enum Resumed {
    /// There was none.
    Nothing,
    /// It goes on.
    Open(Arc<HttpSession>, Peer),
    /// It does not, and what the upstream kept in it is lost: why, and whether what its client had asked for is lost as well.
    Lost(&'static str, bool),
    /// The upstream cannot be asked just now. The record is the caller's, to be given back or to be ended.
    NotNow(Kept),
}

/// Where a session is kept, where it may outlive the gateway.
fn place(instance: &Instance, own: &Own) -> Option<(Arc<KeptSessions>, Place)> {
    let (store, upstream) = instance.own.as_ref()?.kept.get()?;
    let tenant = own.tenant.as_ref().filter(|tenant| tenant.outlives())?;
    Some((store.clone(), Place { upstream: upstream.clone(), client: tenant.id().clone() }))
}

/// What must be the same for a session to be gone on with.
fn terms(own: &Own, revision: Revision) -> String {
    Kept::terms(revision, &own.set.to_json(revision))
}

/// Keeps a session that is open; `has_wishes` says that its client has subscribed in it, or set a level.
pub(super) fn note(instance: &Instance, own: &Own, (http, peer): (&HttpSession, &Peer), has_wishes: bool) {
    let (Some((store, place)), Some(id)) = (place(instance, own), http.id()) else { return };
    let (terms, id) = (terms(own, peer.revision()), Kept::id_of(id).to_owned());
    store.put(&place, Kept { terms, id, has_wishes, has_lists: own.has_lists() });
}

/// It is no longer, or is opened anew.
pub(super) fn forget(instance: &Instance, own: &Own, http: &HttpSession) {
    if let (Some((store, place)), Some(id)) = (place(instance, own), http.id()) {
        store.gone(&place, Kept::id_of(id));
    }
}

/// Whoever comes next finds the session of an earlier run again.
pub(super) fn give_back(instance: &Instance, own: &Own, kept: Kept) {
    if let Some((store, place)) = place(instance, own) {
        store.give_back(&place, kept);
    }
}

/// Ends the session of an earlier run in whose place another is opened, although its upstream cannot be asked just now: after the time that
/// clients have, or with the gateway.
pub(super) fn end_later(instance: &Arc<Instance>, (wire, tasks): (&Arc<HttpClient>, &Tasks), kept: Kept) {
    let Some((store, _)) = instance.own.as_ref().and_then(|table| table.kept.get()) else { return };
    let (instance, wire, ending, idle) = (instance.clone(), wire.clone(), tasks.clone(), store.idle);
    tasks.spawn(async move {
        tokio::select! {
            () = ending.ending() => {}
            () = passed(Instant::now() + idle) => {}
        }
        end(&instance, wire, &kept, "another was opened in its place").await;
    });
}

/// Whether the gateway ends, and the next run is to know of a session: its client may come back.
pub(super) fn is_left(instance: &Instance, own: &Own) -> bool {
    place(instance, own).is_some_and(|(store, _)| store.is_leaving())
        && own.tenant.as_ref().is_some_and(|tenant| !tenant.has_ended())
}

/// Whether one that is left stays open at its upstream: the next run can go on with it. Else that says that it is lost.
pub(super) fn stays(http: &HttpSession) -> bool {
    http.id().is_some_and(|id| !Kept::id_of(id).is_empty())
}

/// Goes on with the session that an earlier run had for a client, where there was one and its upstream still knows it.
pub(super) async fn resume(instance: &Instance, own: &Own, wire: &Arc<HttpClient>) -> Resumed {
    if !own.tenant.as_ref().is_some_and(|tenant| tenant.is_revived()) {
        return Resumed::Nothing;
    }
    // Where nothing is kept nobody knows whether there was one.
    let Some((store, place)) = place(instance, own) else {
        return Resumed::Lost("no ids of sessions are kept", are_lost(own, None));
    };
    let is_from_elsewhere = own.tenant.as_ref().is_some_and(|tenant| tenant.is_from_elsewhere());
    let kept = match store.take(&place).await {
        None if is_from_elsewhere => {
            return Resumed::Lost("the gateway had another state folder", are_lost(own, None));
        }
        None => return Resumed::Nothing,
        Some(Earlier::GivenUp) => return Resumed::Lost("its client did not come back in time", are_lost(own, None)),
        Some(Earlier::Kept(kept)) if kept.id.is_empty() => {
            let why = "its id was too long to be kept, or the upstream was configured otherwise";
            return Resumed::Lost(why, are_lost(own, Some(kept.has_wishes)));
        }
        Some(Earlier::Kept(kept)) => kept,
    };
    let loses_wishes = are_lost(own, Some(kept.has_wishes));
    let Some(primary) = instance.admission.gate.peer() else { return Resumed::NotNow(kept) };
    let side = &own.instance;
    let http = HttpSession::heard_by(side.clone(), wire.clone(), side.owner.share.clone());
    if kept.terms != terms(own, primary.revision()) || !http.go_on(&kept.id, first_number()) {
        http.release();
        return Resumed::Lost("its id is given anew, or other terms hold", loses_wishes);
    }
    let peer = Peer::new(Link::Http(http.clone()), primary.offer.clone());
    match http.is_still_known().await {
        Some(true) => {
            if loses_wishes {
                peer.owed.owe(Loss::Wishes);
            }
            if kept.has_lists {
                // Its client saw lists of its own, and does again once they are read.
                side.offering.reads.announced(ListKinds::ALL);
            }
            Resumed::Open(http, peer)
        }
        Some(false) => {
            http.release();
            Resumed::Lost("the upstream no longer knows it", loses_wishes)
        }
        None => {
            http.release();
            Resumed::NotNow(kept)
        }
    }
}

/// Whether subscriptions and a log level of the client are lost, where it is known whether it had any there.
pub(super) fn are_lost(own: &Own, had_wishes: Option<bool>) -> bool {
    match (own.tenant.as_ref().and_then(|tenant| tenant.wished_before()), had_wishes) {
        (Some(true), _) | (_, Some(false)) | (Some(false), None) => false,
        (None, _) | (Some(false), Some(true)) => true,
    }
}

/// A number for a request that no earlier run has used: larger than those of a run that counted from an earlier time.
fn first_number() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Ends the sessions of earlier runs with an upstream whose clients have not come back.
pub(crate) async fn end_left_over(instance: Arc<Instance>) {
    let Some((store, upstream)) = instance.own.as_ref().and_then(|table| table.kept.get()).cloned() else { return };
    for (place, kept) in store.left_over(&upstream).await {
        let wire = loop {
            match instance.admission.sessions.way_in().filter(|_| instance.admission.gate.peer().is_some()) {
                Some((wire, _)) => break wire,
                None => sleep(LOOK_EVERY).await,
            }
        };
        end(&instance, wire, &kept, "its client has not come back").await;
        store.gone(&place, &kept.id);
    }
}

/// Ends the session of an earlier run at its upstream.
async fn end(instance: &Instance, wire: Arc<HttpClient>, kept: &Kept, why: &str) {
    let http = HttpSession::new(wire);
    if let Some(revision) = kept.revision()
        && !kept.id.is_empty()
        && http.go_on(&kept.id, first_number())
    {
        http.speak(revision);
        http.farewell().await;
        tracing::debug!(upstream = &*instance.name, "session of an earlier run ended: {why}");
    }
}

//! HTTP+SSE of 2024-11-05: a stream of events down, POSTs up; the stream is the session.

use crate::call::caller::Principal;
use crate::call::refusal::{Reason, Refusal};
use crate::config::Faces;
use crate::edge::Edge;
use crate::edge::client_era::Who;
use crate::http::read::Unread;
use crate::http::respond;
use crate::http::stream::{Body, Fed, Feed, Stream};
use crate::memory::StandingCharge;
use crate::metrics;
use crate::protocol::meta::trace::Carried;
use crate::protocol::revision::Revision;
use crate::runtime::{Keyed, Tasks};
use crate::session::table::new_id;
use crate::stdio::{Client, Connection};
use bytes::Bytes;
use dashmap::DashMap;
use http::{Response, StatusCode};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// Where a stream is opened, and where its messages are posted.
pub(crate) const STREAM: &str = Faces::SSE_PATH;
pub(crate) const MESSAGES: &str = Faces::MESSAGE_PATH;
/// The name of the query's part that says whose message it is.
const SESSION: &str = "sessionId=";
/// So many frames wait for a client that does not read; calls wait then, too.
const QUEUE: usize = 256;
/// What one keeps beside what its client has declared.
const CLIENT_BYTES: usize = 8 * 1024;

/// The clients whose streams are open.
#[derive(Default)]
pub(crate) struct Clients(DashMap<Arc<str>, Arc<Peer>, Keyed>);

/// One client.
pub(crate) struct Peer {
    principal: Principal,
    /// Nothing once its session has ended: then its stream ends when the last answer is on it.
    connection: Mutex<Option<Connection>>,
    /// Its calls: they are dropped, and so cancelled, with its stream.
    calls: Tasks,
    _kept: StandingCharge,
}

impl Clients {
    /// Whose message this is, by the query of its request, where the stream is the principal's own.
    pub(crate) fn find(&self, query: Option<&str>, who: &Who) -> Option<Arc<Peer>> {
        let id = query?.split('&').find_map(|part| part.strip_prefix(SESSION))?;
        let peer = self.0.get(id)?;
        (peer.principal == who.principal).then(|| peer.clone())
    }

    /// Opens a stream; so long it may be silent. Its messages come to a path that its client knows with this before it.
    pub(crate) fn open(
        self: &Arc<Self>,
        edge: &Arc<Edge>,
        who: &Who,
        (keepalive, prefix): (Duration, &str),
    ) -> Response<Body> {
        let Ok(kept) = edge.budget.owned_by(who.share().owner()).stand(CLIENT_BYTES) else {
            let why =
                "what this client keeps has its part of `server.memory_limit`; close some streams, or try again later";
            edge.refusals.turn_away("sessions", &why);
            return respond::refused(None, &Refusal::new(Reason::Busy, why), Revision::NEWEST_LEGACY);
        };
        let id: Arc<str> = new_id().into();
        let (outlet, frames) = mpsc::channel(QUEUE);
        let calls = Tasks::new();
        let client = Client { who: who.clone(), id: id.clone(), transport: "sse" };
        let connection = Connection::new(edge.clone(), outlet, calls.child(), edge.cut(), client);
        let (principal, connection) = (who.principal.clone(), Mutex::new(Some(connection)));
        let peer = Arc::new(Peer { principal, connection, calls, _kept: kept });
        self.0.insert(id.clone(), peer.clone());
        metrics::sessions("sse").increment(1.0);
        edge.tasks.spawn(retire(edge.clone(), self.clone(), id.clone(), Arc::downgrade(&peer)));
        let head = format!("event: endpoint\ndata: {prefix}{MESSAGES}?{SESSION}{id}\n\n").into_bytes();
        let feed = PeerFeed { frames, clients: self.clone(), id, peer };
        respond::stream(Stream::new(feed, head, keepalive, "sse").until(&who.revocation))
    }
}

/// At the end of the face: nothing is begun any more, what runs may finish, and then the stream ends.
async fn retire(edge: Arc<Edge>, clients: Arc<Clients>, id: Arc<str>, peer: Weak<Peer>) {
    let gone = async {
        // The stream keeps it, and ends it.
        let calls = peer.upgrade().map(|peer| peer.calls.clone());
        if let Some(calls) = calls {
            calls.ending().await;
        }
    };
    tokio::select! {
        () = gone => return,
        () = edge.tasks.ending() => {}
    }
    let Some(peer) = peer.upgrade() else { return };
    let ended = peer.lock().as_mut().map(|connection| {
        connection.retire(true);
        connection.ended()
    });
    let Some(ended) = ended else { return };
    tokio::select! {
        () = ended => {}
        () = peer.calls.ending() => {}
    }
    clients.0.remove(&id);
    peer.close();
}

impl Peer {
    /// Takes a message with the rights and the trace context of its request; what there is to say of it is on the stream.
    pub(crate) fn take(
        &self,
        who: &Who,
        read: Result<Bytes, Unread>,
        ambient: Option<Box<Carried>>,
    ) -> Result<Response<Body>, Unread> {
        let text = read?;
        let refused = |reason, why| Ok(respond::refused(None, &Refusal::new(reason, why), Revision::NEWEST_LEGACY));
        match &mut *self.lock() {
            None => refused(Reason::Session, "this session has ended"),
            Some(connection) if !connection.has_room() => {
                refused(Reason::Busy, "as many calls of this client are open as one may have; wait for some to end")
            }
            Some(connection) => {
                connection.take_rights(who);
                connection.take_traced(text, ambient);
                Ok(respond::empty(StatusCode::ACCEPTED))
            }
        }
    }

    /// Ends the session.
    fn close(&self) {
        if let Some(mut connection) = self.lock().take() {
            connection.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one client is told. Dropped with the connection, it ends the session.
struct PeerFeed {
    frames: mpsc::Receiver<Bytes>,
    clients: Arc<Clients>,
    id: Arc<str>,
    peer: Arc<Peer>,
}

impl Feed for PeerFeed {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Fed>> {
        self.frames.poll_recv(cx).map(|frame| Some(Fed { id: None, frame: frame?, is_last: false }))
    }
}

impl Drop for PeerFeed {
    fn drop(&mut self) {
        self.clients.0.remove(&self.id);
        // Nobody can come back for the answers.
        self.peer.calls.end();
        self.peer.close();
        metrics::sessions("sse").decrement(1.0);
    }
}

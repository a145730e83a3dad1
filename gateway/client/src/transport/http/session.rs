//! One session with an HTTP upstream: what its requests say in their headers.

// The ids of sessions.
mod ids;
// Keeps a session's calls behind the level of log messages that was set for them.
mod turnstile;

use super::client::HttpClient;
use super::connection::pool::Outgoing;
use super::connection::{Head, Named};
use crate::call::share::Share;
use crate::health::{Cause, CauseCode, chain};
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Frame, Id};
use crate::protocol::http::headers;
use crate::protocol::revision::Revision;
use crate::runtime::Tasks;
use crate::runtime::watched::Pieces;
use crate::transport::events::LinkEvents;
use crate::transport::exchange::mailbox::Mailbox;
use crate::transport::exchange::{Lost, Request};
use crate::transport::liveness::Liveness;
use crate::transport::questions::{Answer, AnswerTo, Asker, PendingQuestions, asker};
use crate::transport::task_tokens::TaskTokens;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
pub(crate) use ids::HasId;
pub(super) use ids::SessionIds;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
pub(super) use turnstile::Drive;
use turnstile::Turnstile;

/// Headers that belong to one request.
pub(super) type OwnHeaders = Vec<(HeaderName, HeaderValue)>;

const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// One session with an HTTP upstream; a stateless one has none, and is spoken to in the same way.
pub struct HttpSession {
    pub(super) wire: Arc<HttpClient>,
    /// Hears what comes in it and belongs to no exchange.
    pub(super) inbox: Arc<dyn LinkEvents>,
    /// Whose share of the connections it takes for what no call asked for; `None` where it is the gateway's own.
    pub(super) share: Option<Share>,
    next: AtomicU64,
    /// How many exchanges are open in it.
    pub(super) open: AtomicUsize,
    /// How many messages wait to be sent beside them, or are being sent.
    pub(super) beside: AtomicUsize,
    session: OnceLock<HeaderValue>,
    /// Whether no other session has its id, as long as it is not over.
    holds_id: AtomicBool,
    /// Whether another session had its id before it.
    shares_id: AtomicBool,
    version: OnceLock<HeaderValue>,
    revision: OnceLock<Revision>,
    /// What every request says once the revision is known.
    head: OnceLock<Head>,
    /// What the upstream has asked in it.
    pub(super) desk: PendingQuestions,
    /// The tasks that its calls were given.
    pub(super) made: TaskTokens,
    /// The calls that are open and during which a client can be asked.
    calls: Mutex<BTreeMap<u64, Arc<Mailbox>>>,
    /// Keeps calls behind the level that they want.
    pub(super) levels: Turnstile,
    /// Whether the answer to a ping of the upstream waits to be sent.
    pub(super) is_ping_open: AtomicBool,
    /// It was proved that the upstream no longer knows it.
    pub(super) was_lost: AtomicBool,
    /// How often that was asked, and with which of them it was last known.
    pub(super) proofs: AtomicU64,
    pub(super) known_until: tokio::sync::Mutex<u64>,
}

impl HttpSession {
    /// Creates a session that is not opened yet.
    pub fn new(wire: Arc<HttpClient>) -> Arc<Self> {
        let inbox = wire.inbox.clone();
        Self::heard_by(inbox, wire, None)
    }

    /// One whose events have a hearer of their own, and which takes connections as this client.
    pub fn heard_by(inbox: Arc<dyn LinkEvents>, wire: Arc<HttpClient>, share: Option<Share>) -> Arc<Self> {
        Arc::new(Self {
            wire,
            inbox,
            share,
            next: AtomicU64::new(1),
            open: AtomicUsize::new(0),
            beside: AtomicUsize::new(0),
            session: OnceLock::new(),
            holds_id: AtomicBool::new(false),
            shares_id: AtomicBool::new(false),
            version: OnceLock::new(),
            revision: OnceLock::new(),
            head: OnceLock::new(),
            desk: PendingQuestions::default(),
            made: TaskTokens::default(),
            calls: Mutex::default(),
            levels: Turnstile::default(),
            is_ping_open: AtomicBool::new(false),
            was_lost: AtomicBool::new(false),
            proofs: AtomicU64::new(0),
            known_until: tokio::sync::Mutex::default(),
        })
    }

    /// From now on this revision is spoken.
    pub fn speak(&self, revision: Revision) {
        let _ = self.version.set(HeaderValue::from_static(revision.as_str()));
        let _ = self.revision.set(revision);
    }

    /// Whether it is known what is spoken in it.
    pub(super) fn is_met(&self) -> bool {
        self.revision.get().is_some()
    }

    /// Whether it is one of several with its upstream, which clients have and not the gateway.
    pub(super) fn is_of_clients(&self) -> bool {
        !Arc::ptr_eq(&self.inbox, &self.wire.inbox)
    }

    pub(super) fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.is_modern())
    }

    /// A call is open; a stateless upstream never asks during one.
    pub(super) fn opened(&self, id: u64, slot: &Arc<Mailbox>) {
        if slot.caller.is_some() && !self.is_modern() {
            self.open_calls().insert(id, slot.clone());
        }
    }

    /// A call is no longer open: what was asked of it alone is over, and what is said to that.
    pub(super) fn left(&self, id: u64) -> Vec<Bytes> {
        if self.is_modern() {
            return Vec::new();
        }
        let gone = self.open_calls().remove(&id);
        gone.map(|slot| asker::left(self, &slot)).unwrap_or_default()
    }

    /// Whether a request of a handshake session had this number and is over: its progress may come late on another stream than its own.
    pub(super) fn is_over(&self, id: u64) -> bool {
        let was_ours = (1..self.next.load(Ordering::Relaxed)).contains(&id);
        !self.is_modern() && was_ours && !self.open_calls().contains_key(&id)
    }

    /// The number of a call that is open.
    pub(super) fn number_of(&self, slot: &Arc<Mailbox>) -> Option<u64> {
        self.open_calls().iter().find(|(_, open)| Arc::ptr_eq(open, slot)).map(|(id, _)| *id)
    }

    fn open_calls(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Mailbox>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the id of a session that was opened.
    pub(super) fn open_session(self: &Arc<Self>, id: &HeaderValue) {
        if self.session.set(id.clone()).is_ok() {
            self.claim();
        }
    }

    /// Its id is its own from now on, unless another session has it.
    pub fn claim(self: &Arc<Self>) {
        let Some(id) = self.session.get() else { return };
        let this: Arc<dyn HasId> = self.clone();
        let is_alone = self.wire.ids.take(id, &this);
        self.holds_id.store(is_alone, Ordering::Release);
        self.shares_id.store(!is_alone, Ordering::Release);
    }

    /// Goes on with the session of an earlier run that the upstream knows by this id, with numbers from this one on: none is used twice in a
    /// session. Whether that can be, and no other session has that id.
    pub fn go_on(self: &Arc<Self>, id: &str, number: u64) -> bool {
        let Ok(id) = HeaderValue::from_str(id) else { return false };
        self.open_session(&id);
        self.next.store(number, Ordering::Relaxed);
        !self.shares_id()
    }

    /// The id that the upstream has given it.
    pub fn id(&self) -> Option<&str> {
        self.session.get()?.to_str().ok()
    }

    /// Whether the upstream gave it the id of another session, so that the two are one there, or the other is no more.
    pub(crate) fn shares_id(&self) -> bool {
        self.shares_id.load(Ordering::Acquire)
    }

    /// The session that had its id before it.
    pub fn doubled(&self) -> Option<Arc<dyn HasId>> {
        self.wire.ids.holder(self.session.get().filter(|_| self.shares_id())?)
    }

    /// A session that was opened before the one that has its id.
    pub fn older(&self) -> Option<Arc<dyn HasId>> {
        self.wire.ids.older(self.session.get()?)
    }

    /// The upstream has given its id to this session anew: the one that had it is lost there.
    pub fn displace(self: &Arc<Self>) {
        if let Some(before) = self.doubled() {
            before.lose();
        }
        self.claim();
    }

    /// An error once it is known to be lost.
    pub(super) fn is_there(&self) -> Result<(), Lost> {
        match self.was_lost.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Lost::Session(Cause::new(CauseCode::SessionLost, "the upstream no longer knows the session"))),
        }
    }

    /// It is over: its id may be that of another one.
    pub fn release(&self) {
        if self.holds_id.swap(false, Ordering::AcqRel)
            && let Some(id) = self.session.get()
        {
            self.wire.ids.free(id, std::ptr::from_ref::<Self>(self));
        }
    }

    /// The signs of life of the upstream.
    pub(crate) fn pulse(&self) -> &Liveness {
        &self.wire.pulse
    }

    /// Whether any exchange is open in it.
    pub fn is_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Whether the upstream has given it an id.
    pub fn has_session(&self) -> bool {
        self.session.get().is_some()
    }

    /// An id that this session has not used yet.
    pub(super) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The end of the session, where there is one to end.
    pub(super) fn delete(&self) -> Option<Outgoing> {
        // What would end here goes on for another one.
        if !self.has_session() || self.shares_id() || self.is_modern() || self.is_there().is_err() {
            return None;
        }
        let mut request = self.bare(http::Method::DELETE);
        request.headers_mut().remove(CONTENT_TYPE);
        Some(request)
    }

    /// A GET for a stream, resumed behind the event `last`.
    pub(super) fn get(&self, last: Option<&[u8]>) -> Outgoing {
        let mut request = self.bare(http::Method::GET);
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().insert(ACCEPT, STREAM);
        if let Some(last) = last.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            request.headers_mut().insert(headers::LAST_EVENT_ID, last);
        }
        request
    }

    /// A POST; `asked` is the request in its body, where it is one.
    pub(super) fn post(&self, body: Bytes, asked: Option<&Request<'_>>) -> Outgoing {
        let length = body.len();
        let mut request = http::Request::new(Pieces::from(body));
        *request.method_mut() = http::Method::POST;
        // Who it is is asked where its URL has it.
        *request.uri_mut() = if self.is_met() { self.wire.place() } else { self.wire.home.clone() };
        let (length, asked_modern) =
            (headers::number(length as u64), asked.and_then(|asked| Some((asked, asked.envelope?))));
        let named = asked_modern.map(|(asked, _)| Named::of(asked.method, asked.params, asked.name));
        let map = request.headers_mut();
        *map = match (asked, self.revision.get()) {
            (Some(asked), Some(revision)) if asked.envelope.is_some() == revision.is_modern() => {
                self.head.get_or_init(|| Head::new(self.fixed(), revision.is_modern())).filled(length, named)
            }
            // Nothing is agreed on yet, or it is no request and says less.
            _ => {
                let mut map = self.fixed();
                map.insert(CONTENT_LENGTH, length);
                named.into_iter().for_each(|named| named.put(&mut map));
                map
            }
        };
        if asked.is_some_and(|asked| *asked.method == Method::Initialize) {
            map.remove(headers::MCP_PROTOCOL_VERSION);
        }
        if let Some((asked, envelope)) = asked_modern {
            if self.revision.get() != Some(&envelope.revision) {
                map.insert(headers::MCP_PROTOCOL_VERSION, HeaderValue::from_static(envelope.revision.as_str()));
            }
            asked.headers.iter().for_each(|(name, value)| _ = map.insert(name.clone(), value.clone()));
        }
        if let Some(attempt) = asked.and_then(|asked| asked.attempt) {
            attempt.headers().for_each(|(name, value)| _ = map.insert(name, value));
        }
        if let Some((name, value)) = asked.and_then(|asked| asked.identity.as_deref()) {
            map.insert(name.clone(), value.clone());
        }
        request
    }

    /// The POST of a request that was posted before, made from its frame; `own` are the headers that are its own, the last ones whatever is
    /// spoken.
    pub(super) fn post_again(&self, frame: &Bytes, (own, always): (&OwnHeaders, &OwnHeaders)) -> Outgoing {
        let mut request = self.post(frame.clone(), None);
        always.iter().for_each(|(name, value)| _ = request.headers_mut().insert(name.clone(), value.clone()));
        if self.is_modern()
            && let Ok(Frame::Request { method, params, .. }) = Frame::parse(frame)
        {
            let map = request.headers_mut();
            Named::of(&method, &params, None).put(map);
            own.iter().for_each(|(name, value)| _ = map.insert(name.clone(), value.clone()));
        }
        request
    }

    fn bare(&self, method: http::Method) -> Outgoing {
        let mut request = http::Request::new(Pieces::default());
        *request.method_mut() = method;
        *request.uri_mut() = self.wire.place();
        *request.headers_mut() = self.fixed();
        request
    }

    /// The headers that all requests of the session have.
    fn fixed(&self) -> HeaderMap {
        let mut map = self.wire.base.clone();
        map.insert(chain::VIA, chain::own());
        if let Some(version) = self.version.get() {
            map.insert(headers::MCP_PROTOCOL_VERSION, version.clone());
        }
        if let Some(session) = self.session.get() {
            map.insert(headers::MCP_SESSION_ID, session.clone());
        }
        map
    }
}

impl HasId for HttpSession {
    fn goes_on(self: Arc<Self>) -> Pin<Box<dyn Future<Output = Option<bool>> + Send>> {
        Box::pin(async move { self.is_still_known().await })
    }

    fn lose(&self) {
        self.was_lost.store(true, Ordering::Release);
        self.release();
    }
}

impl Drop for HttpSession {
    fn drop(&mut self) {
        self.release();
    }
}

impl Asker for HttpSession {
    fn desk(&self) -> &PendingQuestions {
        &self.desk
    }

    fn calls(&self) -> Vec<Arc<Mailbox>> {
        self.open_calls().values().cloned().collect()
    }

    fn answer(self: Arc<Self>, id: &Id, answer: &Answer, to: AnswerTo<'_>) {
        if !self.is_modern() {
            self.reply(answer.frame(id.raw()), to);
        }
    }

    fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    fn tasks(&self) -> &Tasks {
        &self.wire.tasks
    }
}

//! One session with an HTTP upstream: what its requests say in their headers.

use super::super::asker::{self, Answer, Asker};
use super::super::desk::Desk;
use super::super::made::Made;
use super::super::pulse::Pulse;
use super::super::request::Request;
use super::super::slot::Slot;
use super::turnstile::Turnstile;
use super::wire::Wire;
use crate::lifecycle::{Tasks, chain};
use crate::protocol::{Id, Method, Revision, headers};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body_util::Full;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const NOTHING: HeaderValue = HeaderValue::from_static("");

/// Headers that are made once, and anew when other gateways are known.
struct Head {
    version: u64,
    map: HeaderMap,
}

/// One session with an HTTP upstream; a stateless one has none, and is spoken to in the same way.
pub(crate) struct Http {
    pub(super) wire: Arc<Wire>,
    next: AtomicU64,
    /// How many exchanges are open in it.
    pub(super) open: AtomicUsize,
    session: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    revision: OnceLock<Revision>,
    /// What every request says once the revision is known: cloned whole, with a place for each header that differs.
    head: ArcSwapOption<Head>,
    /// What the upstream has asked in it.
    pub(super) desk: Desk,
    /// The tasks that its calls were given.
    pub(super) made: Made,
    /// The calls that are open and during which a client can be asked.
    calls: Mutex<BTreeMap<u64, Arc<Slot>>>,
    /// Keeps calls behind the level that they want.
    pub(super) levels: Turnstile,
}

impl Http {
    pub(crate) fn new(wire: Arc<Wire>) -> Arc<Self> {
        Arc::new(Self {
            wire,
            next: AtomicU64::new(1),
            open: AtomicUsize::new(0),
            session: OnceLock::new(),
            version: OnceLock::new(),
            revision: OnceLock::new(),
            head: ArcSwapOption::empty(),
            desk: Desk::default(),
            made: Made::default(),
            calls: Mutex::default(),
            levels: Turnstile::default(),
        })
    }

    /// From now on this revision is spoken.
    pub(crate) fn speak(&self, revision: Revision) {
        let _ = self.version.set(HeaderValue::from_static(revision.as_str()));
        let _ = self.revision.set(revision);
    }

    /// Whether it is known what is spoken in it.
    pub(super) fn is_met(&self) -> bool {
        self.revision.get().is_some()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.is_modern())
    }

    /// A call is open; a stateless upstream never asks during one.
    pub(super) fn opened(&self, id: u64, slot: &Arc<Slot>) {
        if slot.caller.is_some() && !self.is_modern() {
            self.open_calls().insert(id, slot.clone());
        }
    }

    /// A call is no longer open: what was asked of it alone is over, and what is said to that.
    pub(super) fn left(&self, id: u64) -> Vec<Bytes> {
        let gone = self.open_calls().remove(&id);
        gone.map(|slot| asker::left(self, &slot)).unwrap_or_default()
    }

    /// The number of a call that is open.
    pub(super) fn number_of(&self, slot: &Arc<Slot>) -> Option<u64> {
        self.open_calls().iter().find(|(_, open)| Arc::ptr_eq(open, slot)).map(|(id, _)| *id)
    }

    fn open_calls(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Slot>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the id of a session that was opened.
    pub(super) fn open_session(&self, id: &HeaderValue) {
        let _ = self.session.set(id.clone());
    }

    /// The signs of life of the upstream.
    pub(crate) fn pulse(&self) -> &Pulse {
        &self.wire.pulse
    }

    /// Whether any exchange is open in it.
    pub(crate) fn is_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Whether the upstream has given it an id.
    pub(crate) fn has_session(&self) -> bool {
        self.session.get().is_some()
    }

    /// An id that this session has not used yet.
    pub(super) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The end of the session, where there is one to end.
    pub(super) fn delete(&self) -> Option<http::Request<Full<Bytes>>> {
        if !self.has_session() || self.is_modern() {
            return None;
        }
        let mut request = self.bare(http::Method::DELETE);
        request.headers_mut().remove(CONTENT_TYPE);
        Some(request)
    }

    /// A GET for a stream, resumed behind the event `last`.
    pub(super) fn get(&self, last: Option<&[u8]>) -> http::Request<Full<Bytes>> {
        let mut request = self.bare(http::Method::GET);
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().insert(ACCEPT, STREAM);
        if let Some(last) = last.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            request.headers_mut().insert(headers::LAST_EVENT_ID, last);
        }
        request
    }

    /// A POST; `asked` is the request in its body, where it is one.
    pub(super) fn post(&self, body: Bytes, asked: Option<&Request<'_>>) -> http::Request<Full<Bytes>> {
        let length = body.len();
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.wire.target.clone();
        let map = request.headers_mut();
        *map = match (asked, self.revision.get()) {
            (Some(asked), Some(revision)) if asked.envelope.is_some() == revision.is_modern() => self.head(*revision),
            // Nothing is agreed on yet, or it is no request and says less.
            _ => self.fixed(),
        };
        map.insert(CONTENT_LENGTH, length.into());
        if asked.is_some_and(|asked| *asked.method == Method::Initialize) {
            map.remove(headers::MCP_PROTOCOL_VERSION);
        }
        if let Some((asked, envelope)) = asked.and_then(|asked| Some((asked, asked.envelope.as_ref()?))) {
            if self.revision.get() != Some(&envelope.revision) {
                map.insert(headers::MCP_PROTOCOL_VERSION, HeaderValue::from_static(envelope.revision.as_str()));
            }
            map.insert(headers::MCP_METHOD, headers::method(asked.method));
            match headers::name_of(asked.method, asked.params) {
                Some(name) => _ = map.insert(headers::MCP_NAME, headers::encode(&name)),
                None => _ = map.remove(headers::MCP_NAME),
            }
            asked.headers.iter().for_each(|(name, value)| _ = map.insert(name.clone(), value.clone()));
        }
        request
    }

    /// The headers of a request, from those that are ready.
    fn head(&self, revision: Revision) -> HeaderMap {
        // Asked for first: what is made then is never older than it says.
        let version = chain::version();
        if let Some(head) = self.head.load().as_ref().filter(|head| head.version == version) {
            return head.map.clone();
        }
        let map = self.placed(revision);
        self.head.store(Some(Arc::new(Head { version, map: map.clone() })));
        map
    }

    /// The headers of a request, with places for those that are each its own: the map never grows.
    fn placed(&self, revision: Revision) -> HeaderMap {
        let mut map = self.fixed();
        let mut place = |name| _ = map.entry(name).or_insert(NOTHING);
        place(CONTENT_LENGTH);
        if revision.is_modern() {
            place(headers::MCP_METHOD);
            place(headers::MCP_NAME);
        }
        map
    }

    fn bare(&self, method: http::Method) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = self.wire.target.clone();
        *request.headers_mut() = self.fixed();
        request
    }

    /// The headers that all requests of the session have.
    fn fixed(&self) -> HeaderMap {
        let mut map = self.wire.base.clone();
        map.insert(chain::HEADER, chain::told());
        if let Some(version) = self.version.get() {
            map.insert(headers::MCP_PROTOCOL_VERSION, version.clone());
        }
        if let Some(session) = self.session.get() {
            map.insert(headers::MCP_SESSION_ID, session.clone());
        }
        map
    }
}

impl Asker for Http {
    fn desk(&self) -> &Desk {
        &self.desk
    }

    fn calls(&self) -> Vec<Arc<Slot>> {
        self.open_calls().values().cloned().collect()
    }

    fn answer(self: Arc<Self>, id: &Id, answer: &Answer, call: Option<&Arc<Slot>>) {
        if !self.is_modern() {
            self.reply(answer.frame(id.raw()), call.cloned());
        }
    }

    fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    fn tasks(&self) -> &Tasks {
        &self.wire.tasks
    }
}

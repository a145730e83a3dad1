//! One session with an HTTP upstream: what its requests say in their headers.

use super::super::asker::{self, Answer, Asker};
use super::super::desk::Desk;
use super::super::request::Request;
use super::super::slot::Slot;
use super::turnstile::Turnstile;
use super::wire::Wire;
use crate::lifecycle::Tasks;
use crate::protocol::{Id, Method, Revision, headers};
use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::Full;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// One session with an HTTP upstream; a stateless one has none, and is spoken to in the same way.
pub(crate) struct Http {
    pub(super) wire: Arc<Wire>,
    next: AtomicU64,
    /// How many exchanges are open in it.
    pub(super) open: AtomicUsize,
    session: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    revision: OnceLock<Revision>,
    /// What the upstream has asked in it.
    pub(super) desk: Desk,
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
            desk: Desk::default(),
            calls: Mutex::default(),
            levels: Turnstile::default(),
        })
    }

    /// From now on this revision is spoken.
    pub(crate) fn speak(&self, revision: Revision) {
        let _ = self.version.set(HeaderValue::from_static(revision.as_str()));
        let _ = self.revision.set(revision);
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

    fn open_calls(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Slot>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the id of a session that was opened.
    pub(super) fn open_session(&self, id: &HeaderValue) {
        let _ = self.session.set(id.clone());
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
        let mut request = self.bare(http::Method::POST);
        *request.body_mut() = Full::new(body);
        let map = request.headers_mut();
        let Some(asked) = asked else { return request };
        if *asked.method == Method::Initialize {
            // Nothing is agreed on yet.
            map.remove(headers::MCP_PROTOCOL_VERSION);
        }
        if let Some(envelope) = &asked.envelope {
            map.insert(headers::MCP_PROTOCOL_VERSION, HeaderValue::from_static(envelope.revision.as_str()));
            map.insert(headers::MCP_METHOD, headers::method(asked.method));
            if let Some(name) = headers::name_of(asked.method, asked.params) {
                map.insert(headers::MCP_NAME, headers::encode(&name));
            }
            asked.headers.iter().for_each(|(name, value)| _ = map.insert(name.clone(), value.clone()));
        }
        request
    }

    fn bare(&self, method: http::Method) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = self.wire.target.clone();
        let map = request.headers_mut();
        map.clone_from(&self.wire.base);
        if let Some(version) = self.version.get() {
            map.insert(headers::MCP_PROTOCOL_VERSION, version.clone());
        }
        if let Some(session) = self.session.get() {
            map.insert(headers::MCP_SESSION_ID, session.clone());
        }
        request
    }
}

impl Asker for Http {
    fn desk(&self) -> &Desk {
        &self.desk
    }

    fn calls(&self) -> Vec<Arc<Slot>> {
        self.open_calls().values().cloned().collect()
    }

    fn answer(self: Arc<Self>, id: &Id, answer: &Answer) {
        if !self.is_modern() {
            self.aside(vec![answer.frame(id.raw())]);
        }
    }

    fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    fn tasks(&self) -> &Tasks {
        &self.wire.tasks
    }
}

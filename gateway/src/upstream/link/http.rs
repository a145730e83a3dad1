//! Streamable HTTP as a link: one POST an exchange, polled in its caller's task.

use super::answer;
use super::dial::Dialer;
use super::inbox::{Answer, Inbox};
use super::pool::Pool;
use super::request::Request;
use super::slot::{Arrival, Lost, Slot};
use crate::lifecycle::Tasks;
use crate::protocol::frame::Decimal;
use crate::protocol::{Method, Object, Revision, headers};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use http_body_util::Full;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How many exchanges may be under way or wait for a connection.
const EXCHANGES_MAX: usize = 4096;
/// How long what nobody waits for may take: a notification, an answer.
const ASIDE_MAX: Duration = Duration::from_secs(10);
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// An HTTP upstream, whatever session there is just now.
pub(crate) struct Wire {
    pub(super) pool: Pool,
    target: http::Uri,
    base: HeaderMap,
    pub(super) max: usize,
    pub(super) inbox: Arc<dyn Inbox>,
    exchanges: AtomicUsize,
    tasks: Tasks,
    over: CancellationToken,
}

impl Wire {
    /// Makes ready to dial; nothing is sent yet. What runs aside belongs to the level.
    pub(crate) fn new(
        url: &http::Uri,
        given: &HeaderMap,
        max: usize,
        inbox: Arc<dyn Inbox>,
        tasks: Tasks,
    ) -> Result<Arc<Self>, String> {
        let over = CancellationToken::new();
        let dialer = Dialer::new(url, tasks.clone(), over.clone())?;
        let authority = url
            .authority()
            .map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default())
            .unwrap_or_default();
        let mut base = HeaderMap::new();
        base.insert(HOST, HeaderValue::from_str(authority).map_err(|_| "its URL names no host")?);
        base.insert(USER_AGENT, HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION"))));
        for name in given.keys() {
            base.remove(name);
            given.get_all(name).iter().for_each(|value| _ = base.append(name.clone(), value.clone()));
        }
        base.insert(ACCEPT, BOTH);
        base.insert(CONTENT_TYPE, JSON);
        let target = url
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str)
            .parse()
            .map_err(|_| "its URL has no path")?;
        Ok(Arc::new(Self {
            pool: Pool::new(dialer),
            target,
            base,
            max,
            inbox,
            exchanges: AtomicUsize::new(0),
            tasks,
            over,
        }))
    }

    /// Closes every connection.
    pub(crate) fn close(&self) {
        self.over.cancel();
    }
}

/// One session with an HTTP upstream; a stateless one has none, and is spoken to in the same way.
pub(crate) struct Http {
    pub(super) wire: Arc<Wire>,
    next: AtomicU64,
    session: OnceLock<HeaderValue>,
    version: OnceLock<HeaderValue>,
    modern: AtomicBool,
}

impl Http {
    pub(crate) fn new(wire: Arc<Wire>) -> Arc<Self> {
        Arc::new(Self {
            wire,
            next: AtomicU64::new(1),
            session: OnceLock::new(),
            version: OnceLock::new(),
            modern: AtomicBool::new(false),
        })
    }

    /// From now on this revision is spoken.
    pub(crate) fn speak(&self, revision: Revision) {
        let _ = self.version.set(HeaderValue::from_static(revision.as_str()));
        self.modern.store(revision.is_modern(), Ordering::Relaxed);
    }

    pub(super) fn is_modern(&self) -> bool {
        self.modern.load(Ordering::Relaxed)
    }

    /// Keeps the id of a session that was opened.
    pub(super) fn open_session(&self, id: &HeaderValue) {
        let _ = self.session.set(id.clone());
    }

    pub(super) fn has_session(&self) -> bool {
        self.session.get().is_some()
    }

    /// Sends a request once it is polled.
    pub(crate) fn exchange(self: &Arc<Self>, request: &Request<'_>) -> Result<HttpExchange, Lost> {
        if self.wire.exchanges.fetch_add(1, Ordering::Relaxed) >= EXCHANGES_MAX {
            self.wire.exchanges.fetch_sub(1, Ordering::Relaxed);
            return Err(Lost::Busy("too many requests are in flight".into()));
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let slot = Arc::new(Slot::new(request.progress, request.logs));
        let mut body = Vec::with_capacity(request.params.raw().len() + request.meta.len() + 128);
        request.write(id, &mut body);
        let posted = self.post(body.into(), Some(request));
        let asks = answer::Asked {
            id,
            is_meeting: matches!(request.method, Method::Initialize | Method::Discover),
            opens: *request.method == Method::Initialize,
        };
        let drive = Box::pin(answer::drive(self.clone(), posted, asks, slot.clone()));
        // A handshake may not be cancelled, and a stateless request is by its stream alone.
        let quiet = *request.method == Method::Initialize || request.envelope.is_some();
        Ok(HttpExchange { http: self.clone(), id, slot, drive: Some(drive), ended: false, quiet })
    }

    /// Sends a notification aside.
    pub(crate) fn notify(self: &Arc<Self>, request: &Request<'_>) {
        let mut body = Vec::new();
        request.write_notification(&mut body);
        self.aside(body.into());
    }

    /// Sends a notification and waits until it was taken.
    pub(crate) async fn tell(self: &Arc<Self>, request: &Request<'_>) -> Result<(), Lost> {
        let mut body = Vec::new();
        request.write_notification(&mut body);
        let posted = self.post(body.into(), None);
        timeout(ASIDE_MAX, answer::told(self, posted))
            .await
            .unwrap_or_else(|_| Err(Lost::Unknown("a notification was not taken in time".into())))
    }

    /// Answers a request of the upstream, aside.
    pub(super) fn answer(self: &Arc<Self>, id: &[u8], answer: &Answer) {
        if !self.is_modern() {
            self.aside(answer.frame(id));
        }
    }

    fn aside(self: &Arc<Self>, body: Bytes) {
        let (posted, http) = (self.post(body, None), self.clone());
        self.wire.tasks.spawn(async move {
            match timeout(ASIDE_MAX, answer::told(&http, posted)).await {
                Ok(Ok(())) => {}
                Ok(Err(lost)) => tracing::debug!(cause = &**lost.text(), "a message to an upstream was not taken"),
                Err(_) => tracing::debug!("a message to an upstream was not taken in time"),
            }
        });
    }

    /// Reads what the rest of a stream holds, aside, so that its connection can be used again.
    pub(super) fn drain(self: &Arc<Self>, rest: impl Future<Output = ()> + Send + 'static) {
        self.wire.tasks.spawn(async move { drop(timeout(Duration::from_secs(1), rest).await) });
    }

    /// Ends the session, where there is one: the upstream may forget it.
    pub(crate) async fn farewell(&self) {
        if self.has_session() && !self.is_modern() {
            let mut request = self.bare(http::Method::DELETE);
            request.headers_mut().remove(CONTENT_TYPE);
            let _ = timeout(Duration::from_secs(1), self.wire.pool.send(request, || ())).await;
        }
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

    fn post(&self, body: Bytes, asked: Option<&Request<'_>>) -> http::Request<Full<Bytes>> {
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
            map.insert(headers::MCP_METHOD, headers::encode(asked.method.as_str()));
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

/// One request over HTTP: its connection is driven by whoever polls it.
pub(crate) struct HttpExchange {
    http: Arc<Http>,
    id: u64,
    slot: Arc<Slot>,
    drive: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    ended: bool,
    quiet: bool,
}

impl HttpExchange {
    /// The next frame that belongs to it. While frames wait nothing more is read: who is slow slows its own upstream stream.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Arrival> {
        let mut arrival = self.slot.pop();
        if let (None, Some(drive)) = (&arrival, &mut self.drive) {
            if drive.as_mut().poll(cx).is_ready() {
                self.drive = None;
            }
            arrival = self.slot.pop();
        }
        match arrival {
            Some(arrival) => {
                self.ended |= matches!(arrival, Arrival::Response(_) | Arrival::Lost(_));
                Poll::Ready(arrival)
            }
            None => Poll::Pending,
        }
    }

    /// Lets it run on unwatched.
    pub(crate) fn detach(mut self) {
        self.ended = true;
        if let Some(drive) = self.drive.take() {
            self.http.wire.tasks.spawn(async move { drop(timeout(ASIDE_MAX, drive).await) });
        }
    }
}

impl Drop for HttpExchange {
    fn drop(&mut self) {
        self.http.wire.exchanges.fetch_sub(1, Ordering::Relaxed);
        let was_sent = self.slot.start() != u64::MAX;
        if self.ended || self.quiet || !was_sent {
            return;
        }
        let mut text = b"{\"requestId\":".to_vec();
        text.extend_from_slice(Decimal::of(self.id).as_bytes());
        text.push(b'}');
        let params = Object::parse(text.into()).unwrap_or_default();
        self.http.notify(&Request::new(&Method::Cancelled, &params, None));
    }
}

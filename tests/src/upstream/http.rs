//! An upstream on loopback: connections, paths, and which era a request belongs to.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::authority::Authority;
use crate::engine::{Engine, Out};
use crate::frame::Frame;
use crate::journal::Order;
use crate::revision::Revision;
use crate::tape::Tape;
use crate::upstream::body::{Answer, refusal, whole};
use crate::upstream::listener::{self, Duplex};
use crate::upstream::two_endpoints::Connections;
use crate::upstream::{Place, Upstream, legacy, modern, socket, two_endpoints};

/// A session of a scripted upstream.
pub(crate) struct Session {
    pub(crate) revision: Revision,
    /// Whether it was opened to be kept, as far as its client has shown that.
    pub(crate) is_kept: bool,
}

/// A scripted upstream behind HTTP.
pub struct Host {
    pub(crate) engine: Arc<Engine>,
    sessions: Mutex<HashMap<String, Session>>,
    pub(crate) cut: Mutex<HashMap<String, mpsc::Receiver<Out>>>,
    /// The clients of HTTP+SSE.
    pub(crate) streams: Connections,
    counter: AtomicU64,
    /// Rung when all sessions are forgotten: their streams end.
    pub(crate) forgotten: Notify,
    /// Who says which requests are let in, where not all are.
    guard: OnceLock<Arc<Authority>>,
    /// Documents that it shows to everybody, by path, each with its status; and what its refusals say besides.
    documents: Mutex<HashMap<String, (u16, String)>>,
    challenge: Mutex<Option<String>>,
    /// What stood behind the `?` of each request that had one.
    pub(crate) queries: Tape<String>,
}

/// What a request's headers say, by lower-case name.
pub(crate) type Headers = Vec<(String, String)>;

impl Host {
    /// A host for an engine.
    #[must_use]
    pub fn new(engine: Arc<Engine>) -> Arc<Host> {
        Arc::new(Host {
            engine,
            sessions: Mutex::default(),
            cut: Mutex::default(),
            streams: Connections::default(),
            counter: AtomicU64::new(1),
            forgotten: Notify::new(),
            guard: OnceLock::new(),
            documents: Mutex::default(),
            challenge: Mutex::default(),
            queries: Tape::default(),
        })
    }

    /// Does what a test orders.
    pub async fn order(&self, order: Order) {
        match order {
            Order::ForgetSessions | Order::CountAnew(_) => {
                self.sessions().clear();
                if let Order::CountAnew(first) = order {
                    self.counter.store(first, Ordering::Relaxed);
                }
                self.streams.forget();
                self.forgotten.notify_waiters();
            }
            order => self.engine.order(order).await,
        }
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on only those are let in that bear a token of this server.
    pub fn guarded_by(&self, authority: Arc<Authority>) {
        assert!(self.guard.set(authority).is_ok(), "one guard is enough");
    }

    /// Shows a document to everybody who asks for this path.
    pub fn shows(&self, path: &str, status: u16, document: &str) {
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        documents.insert(path.to_owned(), (status, document.to_owned()));
    }

    /// Says this in its refusals.
    pub fn challenges(&self, challenge: &str) {
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = Some(challenge.to_owned());
    }

    fn shown(&self, path: &str) -> Option<Answer> {
        let documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        let (status, document) = documents.get(path)?;
        let mut answer = whole(*status, "application/json", document.clone());
        if (300..400).contains(status) {
            answer.headers_mut().insert("location", document.parse().expect("a URL"));
        }
        Some(answer)
    }

    /// Refuses a request of this kind that may not be let in.
    fn refuse(&self, kind: &str, headers: &Headers) -> Option<Answer> {
        let guard = self.guard.get()?;
        let bears = header(headers, "authorization").unwrap_or_default();
        if let Some(scope) = guard.lacks(kind, bears) {
            let mut refusal = whole(403, "text/plain", "not so");
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
            refusal.headers_mut().insert("www-authenticate", challenge.parse().expect("a challenge"));
            return Some(refusal);
        }
        let is_let_in = guard.judge(kind, bears);
        let mut refusal = whole(401, "text/plain", "who are you?");
        refusal.headers_mut().insert("www-authenticate", self.challenge().parse().expect("a challenge"));
        (!is_let_in).then_some(refusal)
    }

    fn challenge(&self) -> String {
        let said = self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone();
        said.unwrap_or_else(|| "Bearer error=\"invalid_token\"".to_owned())
    }

    /// The next number, for session and stream ids.
    pub(crate) fn number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }
}

impl Upstream {
    /// What stood behind the `?` of its address in each request that had one.
    #[must_use]
    pub fn queries(&self) -> Vec<String> {
        match &self.place {
            Place::Loopback { host, .. } => host.queries.all(),
            Place::Child { .. } => Vec::new(),
        }
    }
}

/// Opens the door on a free port of loopback, and on a socket.
pub async fn open(host: Arc<Host>, socket: &Path, stop: CancellationToken) -> SocketAddr {
    let ends = stop.clone();
    listener::open(socket, true, stop, move |stream| connection(host.clone(), stream, ends.clone())).await
}

/// The same behind TLS, for HTTP/2.
pub(crate) async fn open_secured(
    host: Arc<Host>,
    socket: &Path,
    stop: CancellationToken,
    acceptor: TlsAcceptor,
) -> SocketAddr {
    let ends = stop.clone();
    let serve = move |stream| secured(host.clone(), stream, acceptor.clone(), ends.clone());
    listener::open(socket, true, stop, serve).await
}

async fn secured(host: Arc<Host>, stream: Box<dyn Duplex>, acceptor: TlsAcceptor, stop: CancellationToken) {
    let serves = async {
        let Ok(stream) = acceptor.accept(stream).await else { return };
        let service = service_fn(|request| serve(host.clone(), request));
        // A connection that breaks is the peer's affair.
        let _ended = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    };
    tokio::select! { () = serves => {}, () = stop.cancelled() => {} }
}

async fn connection(host: Arc<Host>, stream: Box<dyn Duplex>, stop: CancellationToken) {
    let service = service_fn(|request| serve(host.clone(), request));
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades();
    // A connection that breaks is the peer's affair.
    tokio::select! { _ = connection => {}, () = stop.cancelled() => {} }
}

async fn serve(host: Arc<Host>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let headers: Headers = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let method = request.method().clone();
    let head = head(request.uri(), &headers);
    let query = request.uri().query().unwrap_or_default().to_owned();
    if !query.is_empty() {
        host.queries.push(query.clone());
    }
    if method == Method::GET
        && let Some(document) = host.shown(request.uri().path())
    {
        return Ok(document);
    }
    if method != Method::POST
        && let Some(refusal) = host.refuse(method.as_str(), &headers)
    {
        return Ok(refusal);
    }
    match (request.uri().path(), &method) {
        ("/mcp", _) => {}
        ("/sse", &Method::GET) => return Ok(two_endpoints::open(&host, &headers).await),
        ("/sse", _) => return Ok(whole(405, "", "")),
        ("/ws", &Method::GET) => return Ok(socket::open(&host, &headers, request).await),
        ("/message", &Method::POST) => {
            return Ok(match request.into_body().collect().await {
                Ok(body) => two_endpoints::post(&host, &query, &headers, &body.to_bytes()).await,
                Err(_) => whole(400, "", ""),
            });
        }
        _ => return Ok(whole(404, "text/plain", "nothing here")),
    }
    Ok(match method {
        Method::POST => match request.into_body().collect().await {
            Ok(body) => {
                let body = body.to_bytes();
                match host.refuse(&kind(&body), &headers) {
                    Some(refusal) => refusal,
                    None => post(&host, &headers, &head, &body).await,
                }
            }
            Err(_) => whole(400, "", ""),
        },
        Method::GET if !is_modern_only(&host) => legacy::get(&host, &headers).await,
        Method::DELETE if !is_modern_only(&host) => legacy::delete(&host, &headers).await,
        _ => whole(405, "", ""),
    })
}

/// What a POST is: its method, or that it is an answer.
fn kind(body: &Bytes) -> String {
    let frame: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    frame["method"].as_str().unwrap_or("an answer").to_owned()
}

/// The head of a POST, as text.
fn head(uri: &Uri, headers: &Headers) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    format!("POST {uri}\n{headers}")
}

async fn post(host: &Arc<Host>, headers: &Headers, head: &str, body: &Bytes) -> Answer {
    host.engine.note(body, headers.clone()).await;
    let frame = match Frame::parse(body) {
        Ok(frame) => frame,
        Err(fault) => {
            host.engine.complain(format!("not a frame: {fault}")).await;
            return refusal(400, "null", -32700, &format!("Parse error in {}", host.engine.script.name));
        }
    };
    let accepts = header(headers, "accept").unwrap_or("");
    if !accepts.contains("application/json") || !accepts.contains("text/event-stream") {
        host.engine.complain(format!("accepts only {accepts:?}")).await;
    }
    let claims = frame.meta("io.modelcontextprotocol/protocolVersion").is_some();
    if claims && host.engine.script.is_modern() || is_modern_only(host) {
        modern::post(host, headers, head, frame).await
    } else {
        legacy::post(host, headers, head, frame, claims).await
    }
}

fn is_modern_only(host: &Host) -> bool {
    host.engine.script.negotiate("").is_none()
}

/// One header's value.
pub(crate) fn header<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

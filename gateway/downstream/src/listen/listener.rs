//! The accept loop: connections, each in a task of its own, bounded in number and in patience.

// What connections come from.
mod accept;
// How long a connection is waited for, at its beginning and at its end.
mod patience;
// Connections that bear many requests at once: HTTP/2.
mod multiplexed;
// Connections over a socket of this machine.
mod local;
// The file of a socket.
mod socket_file;

pub use local::LocalListener;
pub use patience::Patience;

use super::certificate;
use super::connections::{Arrival, Connections};
use super::framing::HEAD_BYTES_MAX;
use super::timeouts::{ConnectionWatch, Followed, Sending, Serving};
use super::tls::{Certificates, HTTP2};
use super::upgrade::{Upgrade, Upgraded};
use crate::call::caller::Principal;
use crate::memory::Refusals;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge};
use crate::metrics::edges::Face;
use crate::runtime::Tasks;
use crate::runtime::complaints::{Complaints, left_unsaid};
use crate::runtime::poll::{poll_when_woken, repoll_on_self_wake};
use crate::runtime::timer::late::within;
use crate::runtime::watched::Watched;
use accept::Accept;
use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::server::conn::http1::Parts;
use hyper_util::rt::TokioIo;
use patience::LAST_WORDS;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// What a connection is counted as: its buffers, with a head that comes in.
const CONNECTION_BYTES: usize = 32 * 1024;
/// How long the loop rests when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);
const CLOSE: HeaderValue = HeaderValue::from_static("close");
/// What a connection over the limit is told.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 10\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The most connections that are taken after the end was told: those that the system had established by then.
const LATECOMERS_MAX: usize = 1024;

/// How many connections a listener may have, and how much memory they all may take.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The connections, by whose they are.
    pub room: Arc<Connections>,
    /// The memory.
    pub budget: Budget,
    /// Where it is counted who finds no room.
    pub refusals: Refusals,
    /// Where answers and bytes are counted.
    pub face: Face,
}

/// Serves connections, as many as there is room for, until `tasks` is told to end; returns when the last one has ended. Each
/// connection has a service of its own, which is always ready.
pub async fn serve<L, S, R>(
    listener: L,
    service: impl Fn(&Arrival) -> S,
    patience: Patience,
    bounds: Bounds,
    tasks: Tasks,
) where
    L: Accept,
    S: tower::Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + Unpin,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let level = tasks.child();
    let take = |(stream, peer): (L::Stream, L::End)| match bounds.room.enter(peer) {
        Some(arrival) => {
            L::unhurried(&stream);
            let service = service(&arrival);
            // The memory bounds the number of connections: one is counted, and never refused for want of memory.
            let place = (arrival, bounds.budget.count(Kind::Connection, CONNECTION_BYTES), bounds.face.clone());
            let connection = connection(stream, service, patience.clone(), level.clone(), bounds.budget.clone(), place);
            level.spawn(repoll_on_self_wake(connection));
        }
        None => {
            bounds.refusals.turn_away("connections", &"the connection limit is reached");
            L::tell(&stream, FULL);
        }
    };
    accept(listener, take, &tasks).await;
    level.ended().await;
}

/// Hands connections on, until the level is told to end; then those that are there already.
async fn accept<L: Accept>(listener: L, take: impl Fn((L::Stream, L::End)), tasks: &Tasks) {
    let complaints = Complaints::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.next() => accepted,
            () = tasks.ending() => break,
        };
        match accepted {
            Ok(accepted) => take(accepted),
            Err(error) => rest(&error, &complaints).await,
        }
    }
    listener.latecomers().take(LATECOMERS_MAX).for_each(take);
}

/// As [`serve`], over TLS: a connection has as long for its handshake as for a head.
pub async fn serve_tls<S, R>(
    listener: TcpListener,
    certificates: Arc<Certificates>,
    service: impl Fn(&Arrival) -> S + Clone + Send + Sync + 'static,
    patience: Patience,
    bounds: Bounds,
    tasks: Tasks,
) where
    S: tower::Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + Unpin,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let level = tasks.child();
    let take = |(stream, peer): (TcpStream, SocketAddr)| {
        let Some(arrival) = bounds.room.enter(peer) else {
            return bounds.refusals.turn_away("connections", &"the connection limit is reached");
        };
        TcpListener::unhurried(&stream);
        let (acceptor, service, patience) = (certificates.acceptor(), service.clone(), patience.clone());
        let place = (arrival, bounds.budget.count(Kind::Connection, CONNECTION_BYTES), bounds.face.clone());
        let (below, budget, certificates) = (level.clone(), bounds.budget.clone(), certificates.clone());
        let refusals = bounds.refusals.clone();
        level.spawn(repoll_on_self_wake(async move {
            let shaken = tokio::select! {
                shaken = within(patience.head, acceptor.accept(stream)) => shaken,
                () = place.0.closed() => return,
                () = below.ending() => return,
            };
            let stream = match shaken {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return certificates.failed(peer, Some(&error)),
                Err(_) => return certificates.failed(peer, None),
            };
            if let Some([first, ..]) = stream.get_ref().1.peer_certificates() {
                place.0.certify(Principal::of_certificate(&certificate::subject(first)));
            }
            let service = service(&place.0);
            if stream.get_ref().1.alpn_protocol() == Some(HTTP2) {
                // In a task of its own: this one's wakes may be held back by whoever takes a body, who is in another task there.
                let level = below.clone();
                return below.spawn(multiplexed::serve(stream, service, patience, level, (budget, refusals), place));
            }
            connection(stream, service, patience, below, budget, place).await;
        }));
    };
    accept(listener, take, &tasks).await;
    level.ended().await;
}

/// How many connections a budget allows: all of them keep half of it at most.
pub fn connections_within(budget: &Budget) -> usize {
    budget.limit().map_or(usize::MAX, |limit| (limit / 2 / CONNECTION_BYTES).max(1))
}

async fn connection<I, S, R>(
    stream: I,
    service: S,
    patience: Patience,
    level: Tasks,
    budget: Budget,
    (arrival, _charge, face): (Arrival, Charge, Face),
) where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: tower::Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + Unpin,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let pulse = ConnectionWatch::new(patience.head, arrival.clone(), budget, patience.leaving.clone(), face);
    let pulse = Arc::new(pulse);
    let service = hyper::service::service_fn({
        let pulse = pulse.clone();
        move |request| Answered { serving: Some(pulse.serve()), answer: service.clone().call(request) }
    });
    let mut connection =
        http().serve_connection(TokioIo::new(Watched::new(stream, Followed::new(pulse.clone()))), service);
    let ended = tokio::select! {
        biased;
        _ended = &mut connection => {
            if let Some(upgrade) = arrival.switch().take() {
                let Parts { io, read_buf, .. } = connection.into_parts();
                upgraded(upgrade, io.into_inner(), read_buf, &pulse).await;
            }
            return;
        }
        ended = poll_when_woken(async {
            tokio::select! {
                () = pulse.stalled() => true,
                () = arrival.closed() => true,
                () = level.ending() => false,
            }
        }) => ended,
    };
    if !ended {
        // What comes on it now is answered, and the answer closes it.
        let is_over = tokio::select! {
            _ended = &mut connection => true,
            () = pulse.stalled() => true,
            () = tokio::time::sleep(patience.linger) => false,
            () = patience.cut.ending() => false,
        };
        if is_over {
            return;
        }
        Pin::new(&mut connection).graceful_shutdown();
        tokio::select! {
            _ended = &mut connection => return,
            () = pulse.stalled() => return,
            () = patience.cut.ending() => {}
        }
        // What is still being answered is looked at once more: it finds that its time is over, and says so.
        tokio::select! {
            _ended = connection => {}
            () = pulse.stalled() => {}
            () = tokio::time::sleep(LAST_WORDS) => {}
        }
    }
}

/// How HTTP is read. A closed connection cancels the stateless call on it, so a client that closes only its sending half is taken to be
/// gone too: there is no telling the two apart. The clock for heads is our own: hyper's costs a timer a request and ends idle connections.
fn http() -> http1::Builder {
    let mut http = http1::Builder::new();
    // Head and body go out from one buffer: see `Sending`.
    http.writev(false);
    // hyper's own limit of 100 headers holds: one that is set fills a table by hand for each request, a thousand instructions.
    http.half_close(false).header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX);
    http
}

/// Goes on in another protocol, with the same watch: of a peer that takes nothing of what is written to it the connection is closed.
fn upgraded<I: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    upgrade: Upgrade,
    mut stream: Watched<I, Followed>,
    early: Bytes,
    pulse: &Arc<ConnectionWatch>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    stream.watch().switch();
    let (stream, pulse) = (Box::new(stream), pulse.clone());
    // It is never idle: it may be told of something at any time.
    let serving = pulse.serve();
    Box::pin(async move {
        let _serving = serving;
        tokio::select! {
            () = upgrade(Upgraded { stream, early }) => {}
            () = pulse.stalled() => {}
        }
    })
}

/// A request that is being answered, and watched until its response is sent. Not an async block, which would keep the answer twice.
struct Answered<F> {
    answer: F,
    serving: Option<Serving>,
}

impl<F, R, E> Future for Answered<F>
where
    F: Future<Output = Result<Response<R>, E>> + Unpin,
{
    type Output = Result<Response<Sending<R>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        let serving = self.serving.take().expect("a future is not polled after its end");
        Poll::Ready(answer.map(|response| {
            let response = parting(response, serving.is_last());
            serving.until_sent(response)
        }))
    }
}

/// Closes the connection of a client without a known credential, which may come again on another, and one on which no request may follow.
fn parting<R>(mut response: Response<R>, is_last: bool) -> Response<R> {
    let is_last = is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS;
    if is_last || response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(CONNECTION, CLOSE);
    }
    response
}

/// A connection that was gone before it was accepted is no reason to wait; a full table of files is.
async fn rest(error: &io::Error, complaints: &Complaints) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
        return;
    }
    if let Some(more) = complaints.take("accept") {
        tracing::warn!(%error, more = left_unsaid(more), "cannot accept a connection");
    }
    tokio::time::sleep(NO_ROOM).await;
}

#[cfg(test)]
mod tests;

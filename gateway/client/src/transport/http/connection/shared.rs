//! Connections that bear many exchanges at once: HTTP/2, where the upstream has chosen it in the TLS handshake.

use super::flow::{Flow, HEAD_BYTES_MAX, Unread, broken, broken_reused};
use super::idle::{AGE_MAX, IDLE_MAX_TLS};
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::runtime::watched::{Credit, Frames, Pieces, Watch, Watched};
use crate::transport::exchange::Lost;
use http::header::{CONNECTION, HOST};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The most exchanges at once on one connection, where the upstream does not want fewer.
const EXCHANGES_MAX: usize = 100;
/// The most bytes of one answer that nobody has read yet, and of all answers on a connection. Those of all lie outside the budget of
/// memory, so that they are few; nobody who reads an answer waits for a client meanwhile.
const WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The most bytes of one request that lie in the connection and wait for room at the upstream.
const UNSENT_MAX: usize = 64 * 1024;
/// After so long without a byte, while something is asked, the upstream is pinged, and has so long to say something.
const SILENCE: Duration = Duration::from_secs(20);
const ECHO_MAX: Duration = Duration::from_secs(10);
/// So many frames that are no part of a body are earned with a request: heads, trailers, windows, pings.
const WITH_A_REQUEST: u64 = 16;

pub(super) type Outgoing = Request<Pieces>;

/// A connection that bears many exchanges.
pub(crate) struct Shared {
    requests: SendRequest<Pieces>,
    authority: Authority,
    /// The epoch in which it was opened.
    pub(super) epoch: u64,
    born: Instant,
    open: AtomicUsize,
    /// The most at once, as the upstream wants it.
    most: Arc<AtomicUsize>,
    /// The most at once since it has refused one: as many as were open besides, and one more for each that has ended well.
    bearable: AtomicUsize,
    /// How many frames may come that are no part of a body.
    credit: Arc<Credit>,
    flow: Arc<Flow>,
    /// An exchange was sent on it.
    is_used: AtomicBool,
    /// When the last exchange ended.
    rests_since: Mutex<Instant>,
    /// It takes no more of them.
    is_over: AtomicBool,
}

/// One exchange on a connection of many.
pub(crate) struct Exchange {
    on: Arc<Shared>,
    /// Whether it was too much for the upstream.
    is_refused: AtomicBool,
}

impl Shared {
    /// Begins HTTP/2 on a connection.
    pub(super) async fn open<S>(
        stream: S,
        authority: &str,
        tasks: &Tasks,
        (epoch, over): (u64, CancellationToken),
        (flow, unread): (Arc<Flow>, Arc<Unread>),
    ) -> Result<Self, Cause>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let nowhere = || Cause::new(CauseCode::ConnectionLost, "the URL has no host");
        let authority = authority.parse().map_err(|_| nowhere())?;
        let executor = Executor { tasks: tasks.clone(), over: over.clone() };
        let credit = Arc::<Credit>::default();
        flow.share();
        let followed = Followed { frames: Frames::of_server(), credit: credit.clone(), flow: flow.clone() };
        let (requests, mut connection) = Builder::new(executor)
            .timer(TokioTimer::new())
            .keep_alive_interval(SILENCE)
            .keep_alive_timeout(ECHO_MAX)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .max_send_buf_size(UNSENT_MAX)
            .handshake(TokioIo::new(Watched::new(stream, followed)))
            .await
            .map_err(|error| broken(&error))?;
        let most = Arc::new(AtomicUsize::new(EXCHANGES_MAX));
        let (wanted, watched) = (most.clone(), flow.clone());
        // Not one that is polled again at once when it wakes itself: whoever takes a piece of a body may hold such wakes back.
        tasks.spawn(async move {
            let runs = poll_fn(|cx| {
                let polled = Pin::new(&mut connection).poll(cx);
                wanted.store(connection.current_max_send_streams().min(EXCHANGES_MAX), Ordering::Relaxed);
                polled
            });
            tokio::select! {
                biased;
                // What went wrong is told to whoever waits for a response.
                ended = runs => if let Err(error) = ended { tracing::debug!(%error, "connection closed") },
                () = over.cancelled() => {}
                () = watched.watch(&unread) => {}
            }
        });
        let now = Instant::now();
        Ok(Self {
            requests,
            authority,
            epoch,
            born: now,
            open: AtomicUsize::new(0),
            most,
            bearable: EXCHANGES_MAX.into(),
            credit,
            flow,
            is_used: AtomicBool::new(false),
            rests_since: Mutex::new(now),
            is_over: AtomicBool::new(false),
        })
    }

    /// Whether it may be used for another exchange.
    pub(super) fn is_good(&self) -> bool {
        let now = Instant::now();
        let is_fresh = self.open.load(Ordering::Relaxed) > 0 || now < *lock(&self.rests_since) + IDLE_MAX_TLS;
        !self.is_over.load(Ordering::Relaxed) && !self.requests.is_closed() && now < self.born + AGE_MAX && is_fresh
    }

    /// One more exchange, where there is a place for it.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Exchange> {
        let most = self.most.load(Ordering::Relaxed).min(self.bearable.load(Ordering::Relaxed)).max(1);
        let has_place = |open: usize| (open < most).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_place).ok()?;
        Some(Exchange { on: self.clone(), is_refused: AtomicBool::new(false) })
    }
}

impl Exchange {
    /// The epoch of its connection.
    pub(super) fn epoch(&self) -> u64 {
        self.on.epoch
    }

    /// Sends a request, and waits for the head of its answer.
    pub(super) async fn send(&self, request: Outgoing) -> Result<Response<Incoming>, Lost> {
        let shared = &self.on;
        let request = shared.addressed(request)?;
        shared.credit.earn(WITH_A_REQUEST, request.body().left());
        let is_reused = shared.is_used.swap(true, Ordering::Relaxed);
        if is_reused && shared.open.load(Ordering::Relaxed) == 1 {
            shared.flow.check_end();
        }
        let mark = shared.flow.mark();
        let error = match shared.requests.clone().try_send_request(request).await {
            Ok(response) => return Ok(response),
            Err(mut error) => match error.take_message() {
                Some(_unsent) => {
                    shared.is_over.store(true, Ordering::Relaxed);
                    return Err(Lost::Unsent(closed_at_once()));
                }
                None => error.into_error(),
            },
        };
        let verdict = verdict(&error);
        if verdict == Verdict::Unknown && !shared.flow.has_received_since(mark) {
            shared.is_over.store(true, Ordering::Relaxed);
            return Err(match shared.flow.has_sent_since(mark) {
                false => Lost::Unsent(closed_at_once()),
                true if is_reused => Lost::Unknown(broken_reused(&error)),
                true => Lost::Unknown(broken(&error)),
            });
        }
        match verdict {
            Verdict::Refused => {
                // It is there, and goes on: it has too much to do.
                self.was_too_much();
                Err(Lost::Busy(Cause::new(CauseCode::QueueFull, "the upstream took no more requests at once")))
            }
            Verdict::Left => {
                shared.is_over.store(true, Ordering::Relaxed);
                Err(Lost::Unsent(Cause::new(
                    CauseCode::ConnectionLost,
                    "the upstream took no more requests on the connection",
                )))
            }
            verdict @ (Verdict::Overloaded | Verdict::Unknown) => {
                if verdict == Verdict::Overloaded {
                    self.was_too_much();
                }
                Err(Lost::Unknown(broken(&error)))
            }
        }
    }
}

impl Exchange {
    /// The upstream bears no more on this connection than is on it besides: what comes next finds another one.
    fn was_too_much(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
        let others = self.on.open.load(Ordering::Relaxed).saturating_sub(1);
        self.on.bearable.fetch_min(others.max(1), Ordering::Relaxed);
    }
}

impl Shared {
    /// A request as HTTP/2 has it: with its whole address, and without what concerns a connection of HTTP/1.1.
    fn addressed(&self, mut request: Outgoing) -> Result<Outgoing, Lost> {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        (parts.scheme, parts.authority) = (Some(Scheme::HTTPS), Some(self.authority.clone()));
        let odd = |_| Lost::Unsent(Cause::new(CauseCode::Unknown, "its URL has no path"));
        *request.uri_mut() = Uri::from_parts(parts).map_err(odd)?;
        [HOST, CONNECTION].iter().for_each(|name| _ = request.headers_mut().remove(name));
        Ok(request)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        *lock(&self.on.rests_since) = Instant::now();
        if !self.is_refused.load(Ordering::Relaxed) {
            let one_more = |most: usize| (most < EXCHANGES_MAX).then_some(most + 1);
            _ = self.on.bearable.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        }
        self.on.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an error says of the request that it ended.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It was not looked at.
    Refused,
    /// It was not looked at, nor will be any other on the connection.
    Left,
    /// The upstream has too much to do, and does not say that it was not looked at: it may have run.
    Overloaded,
    /// It may have run.
    Unknown,
}

fn verdict(error: &(dyn Error + 'static)) -> Verdict {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return match error.reason() {
                Some(h2::Reason::REFUSED_STREAM) if error.is_reset() && error.is_remote() => Verdict::Refused,
                Some(h2::Reason::ENHANCE_YOUR_CALM) if error.is_reset() && error.is_remote() => Verdict::Overloaded,
                // Told of those alone whose number is above the last one that the upstream has looked at.
                _ if error.is_go_away() && error.is_remote() => Verdict::Left,
                _ => Verdict::Unknown,
            };
        }
        next = error.source();
    }
    Verdict::Unknown
}

/// What an upstream sends, within TLS.
struct Followed {
    frames: Frames,
    credit: Arc<Credit>,
    flow: Arc<Flow>,
}

impl<S> Watch<S> for Followed {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.flow.receive(bytes.len());
        match self.frames.follow(bytes, &self.credit) {
            0 => Ok(()),
            _ => Err(io::Error::other(
                "the upstream sent too many frames that are no part of a body: interim (1xx) heads, pings, settings",
            )),
        }
    }

    fn wrote(&mut self, _is_pending: bool) {}
}

/// Runs what a connection consists of, until its epoch ends.
#[derive(Clone)]
struct Executor {
    tasks: Tasks,
    over: CancellationToken,
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Executor {
    fn execute(&self, part: F) {
        let over = self.over.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = over.cancelled() => {}
                () = part => {}
            }
        });
    }
}

pub(super) fn closed_at_once() -> Cause {
    Cause::new(CauseCode::ConnectionLost, "it closed the connection at once")
}

pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;

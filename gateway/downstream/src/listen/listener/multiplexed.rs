//! A connection that bears many requests at once: HTTP/2, with bounds of its own.

// The requests that are open on one connection.
mod streams;
// One of them: what its client has not taken of the answer.
mod stream;
// A connection's bytes: a head that never ends, and frames that ask for nothing.
mod followed;

use super::patience::{LAST_WORDS, Patience};
use crate::listen::connections::Arrival;
use crate::listen::framing::HEAD_BYTES_MAX;
use crate::listen::timeouts::{ConnectionWatch, Sending};
use crate::memory::Refusals;
use crate::memory::budget::{Budget, Charge};
use crate::metrics::edges::Face;
use crate::runtime::Tasks;
use crate::runtime::timer::late::passes;
use crate::runtime::watched::{Credit, Watched};
use bytes::Bytes;
use followed::Followed;
use http::header::CONNECTION;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use streams::{Open, Streams};
use tokio::io::{AsyncRead, AsyncWrite};

/// The most requests at once on one connection.
const STREAMS_MAX: u32 = 100;
/// The most bytes of bodies that are on their way to us and that nobody has taken: of one request, and of all on a connection.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 512 * 1024;
/// The most bytes of one answer that lie in the connection and wait for room at the client.
const UNSENT_MAX: usize = 64 * 1024;
/// So many requests that were withdrawn before they were looked at end a connection.
const WITHDRAWN_MAX: usize = 20;
/// So many that break the protocol do.
const BROKEN_MAX: usize = 256;

type Failure = Box<dyn Error + Send + Sync>;

/// Serves a connection whose client has chosen HTTP/2, as others are.
pub(super) async fn serve<I, S, R>(
    stream: I,
    service: S,
    patience: Patience,
    level: Tasks,
    (budget, refusals): (Budget, Refusals),
    (arrival, _charge, face): (Arrival, Charge, Face),
) where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: tower::Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + Unpin,
    S::Error: Into<Failure>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<Failure>,
{
    // Each request is a task of its own.
    arrival.timers().of_many_tasks();
    let watch = ConnectionWatch::new(patience.head, arrival.clone(), budget.clone(), patience.leaving.clone(), face);
    let (watch, credit) = (Arc::new(watch), Arc::<Credit>::default());
    let (streams, floods) =
        (Streams::new(watch.clone(), arrival.clone(), credit.clone(), (budget, refusals.clone())), refusals.clone());
    let service = hyper::service::service_fn({
        let streams = streams.clone();
        move |request| Answered {
            of: streams.clone(),
            open: streams.open().map(|open| (service.clone().call(request), open)),
        }
    });
    let io = TokioIo::new(Watched::new(stream, Followed::new(watch.clone(), credit, refusals)));
    let executor = Executor { streams: streams.clone(), level: level.clone() };
    let mut connection = pin!(http(executor).serve_connection(io, service));
    let is_stalled = loop {
        tokio::select! {
            biased;
            ended = &mut connection => return told(ended, &floods),
            () = streams.parted() => connection.as_mut().graceful_shutdown(),
            () = watch.stalled() => break true,
            () = arrival.closed() => break true,
            () = streams.cut_unread() => {}
            () = level.ending() => break false,
        }
    };
    // The client is told which requests are still served; what was on its way before it could know is one of them.
    streams.part();
    connection.as_mut().graceful_shutdown();
    if !is_stalled {
        tokio::select! {
            ended = &mut connection => return told(ended, &floods),
            () = watch.stalled() => {}
            () = arrival.closed() => {}
            () = streams.cut_unread() => {}
            () = streams.rests(patience.linger.max(LAST_WORDS)) => {}
            () = patience.cut.ending() => {}
        }
    }
    tokio::select! {
        ended = connection => told(ended, &floods),
        () = passes(LAST_WORDS) => {}
    }
}

/// Counts a connection that the library has ended since its client withdraws or breaks too many requests. It tells the client alone.
fn told(ended: hyper::Result<()>, floods: &Refusals) {
    let error = ended.err();
    let error = error.as_ref().and_then(|error| error.source()?.downcast_ref::<h2::Error>());
    if error.is_some_and(|error| error.is_library() && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM)) {
        floods.turn_away("frames", &"a client of HTTP/2 withdraws or breaks too many requests");
    }
}

/// How HTTP/2 is read and written. No other protocol can be asked for within it.
fn http(executor: Executor) -> http2::Builder<Executor> {
    let mut http = http2::Builder::new(executor);
    http.max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(UNSENT_MAX)
        .max_pending_accept_reset_streams(WITHDRAWN_MAX)
        .max_local_error_reset_streams(BROKEN_MAX);
    http
}

/// Serves each request in a task of its own.
#[derive(Clone)]
struct Executor {
    streams: Arc<Streams>,
    level: Tasks,
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Executor {
    fn execute(&self, answered: F) {
        let stream = self.streams.take_newest();
        self.level.spawn(async move {
            let Some(stream) = stream else { return answered.await };
            tokio::select! {
                biased;
                () = answered => {}
                // Dropped, it is reset.
                () = stream.cut() => {}
            }
        });
    }
}

/// A request that is being answered, and watched until its response is sent.
struct Answered<F> {
    of: Arc<Streams>,
    /// None for one that has found no place.
    open: Option<(F, Open)>,
}

impl<F, R, E> Future for Answered<F>
where
    F: Future<Output = Result<Response<R>, E>> + Unpin,
    E: Into<Failure>,
{
    type Output = Result<Response<Sending<R, Open>>, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((answer, _)) = &mut self.open else {
            // Such a request was not looked at, and may be made again.
            return Poll::Ready(Err(h2::Error::from(h2::Reason::REFUSED_STREAM).into()));
        };
        let answer = ready!(Pin::new(answer).poll(cx));
        let (_, open) = self.open.take().expect("it was there a line above");
        let response = answer.map_err(Into::into)?;
        if self.of.is_leaving() || is_last(&response) {
            self.of.part();
        }
        Poll::Ready(Ok(Sending::of(response, open)))
    }
}

/// Whether no request is to follow on the connection: its client has no known credential, or the response says so.
fn is_last<R>(response: &Response<R>) -> bool {
    response.status() == StatusCode::UNAUTHORIZED || response.headers().contains_key(CONNECTION)
}

#[cfg(test)]
mod tests;

//! The accept loop: HTTP/1.1 connections, each in a task of its own, bounded in number and in patience.

use super::config::Config;
use super::pulse::{Pulse, Watched};
use crate::lifecycle::{Tasks, seldom, steadily};
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most connections at once.
const CONNECTIONS_MAX: usize = 10_000;
/// The most headers of a request.
const HEADERS_MAX: usize = 100;
/// The most bytes of a request's head, and of what is read at once.
const BUFFER_BYTES_MAX: usize = 256 * 1024;
/// How long the loop rests when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);
/// What a connection over the limit is told.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 10\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// What a listener may be told.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// How long responses may go on once the listener was told to end.
    pub grace: Duration,
}

impl From<&Config> for Patience {
    fn from(config: &Config) -> Self {
        Self { head: config.header_read_timeout, grace: config.shutdown_grace }
    }
}

/// Serves connections until `tasks` is told to end; returns when the last one has ended.
pub async fn serve<S, R>(listener: TcpListener, service: S, patience: Patience, tasks: Tasks)
where
    S: tower::Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let level = tasks.child();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = tasks.ending() => break,
        };
        match accepted {
            Ok((stream, _)) => match room.clone().try_acquire_owned() {
                Ok(place) => {
                    let connection = connection(stream, service.clone(), patience, level.clone(), place);
                    level.spawn(steadily(connection));
                }
                Err(_) => drop(stream.try_write(FULL)),
            },
            Err(error) => rest(&error).await,
        }
    }
    drop(listener);
    level.ended().await;
}

async fn connection<S, R>(stream: TcpStream, service: S, patience: Patience, level: Tasks, _place: OwnedSemaphorePermit)
where
    S: tower::Service<Request<Incoming>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // Small answers must not wait for more of them. A socket that refuses this is about to fail anyway.
    let _unset = stream.set_nodelay(true);
    let pulse = Arc::new(Pulse::new(patience.head));
    let service = hyper::service::service_fn({
        let pulse = pulse.clone();
        move |request| {
            let (mut service, serving) = (service.clone(), pulse.serve());
            async move {
                let response = async {
                    std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
                    service.call(request).await
                };
                response.await.map(|response: Response<R>| serving.until_sent(response))
            }
        }
    });
    // A closed connection cancels the stateless call on it, so a client that closes only its sending half is taken to be
    // gone too: there is no telling the two apart. The clock for heads is our own: hyper's costs a timer a request and
    // ends idle connections.
    let connection = http1::Builder::new()
        .half_close(false)
        .header_read_timeout(None)
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(Watched::new(stream, pulse.clone())), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        _ended = connection.as_mut() => true,
        ended = seldom(async {
            tokio::select! {
                () = pulse.stalled() => true,
                () = level.ending() => false,
            }
        }) => ended,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            _ended = connection => {}
            () = pulse.stalled() => {}
            () = tokio::time::sleep(patience.grace) => {}
        }
    }
}

/// A connection that was gone before it was accepted is no reason to wait; a full table of files is.
async fn rest(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted) {
        return;
    }
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(NO_ROOM).await;
}

#[cfg(test)]
mod tests;

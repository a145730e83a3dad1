//! A live connection to an upstream, and one request on it with the frames that belong to it.

use super::exchange::mailbox::Arrival;
use super::exchange::{Lost, Request, Withheld};
use super::http::{HttpExchange, HttpSession};
use super::liveness::Liveness;
use super::pipe::{Pipe, PipeExchange};
use crate::health::Cause;
use crate::protocol::frame::message::Body;
use crate::protocol::revision::Revision;
use crate::transport::exchange::Permit;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::Instant;

/// A live connection. Cheap to clone; a closed set of kinds, so that a plain call costs no box.
#[derive(Clone)]
pub enum Link {
    /// A duplex of frames.
    Pipe(Arc<Pipe>),
    /// A session over Streamable HTTP.
    Http(Arc<HttpSession>),
}

/// One request on a link. Dropping it before its end withdraws the request, as its link does that.
pub enum Exchange {
    /// On a pipe.
    Pipe(PipeExchange),
    /// Over HTTP.
    Http(HttpExchange),
}

impl Link {
    /// Sends a request; nothing waits here. Requests reach a pipe's writer in the order of these calls.
    pub(crate) fn exchange(&self, request: &Request<'_>) -> Result<Exchange, Lost> {
        match self {
            Self::Pipe(pipe) => pipe.exchange(request).map(Exchange::Pipe),
            Self::Http(http) => http.exchange(request).map(Exchange::Http),
        }
    }

    /// Sends a notification; nothing waits here.
    pub(crate) fn notify(&self, request: &Request<'_>) -> Result<(), Lost> {
        match self {
            Self::Pipe(pipe) => pipe.notify(request),
            Self::Http(http) => {
                http.notify(request);
                Ok(())
            }
        }
    }

    /// Sends a notification, and waits until what follows cannot overtake it.
    pub(crate) async fn tell(&self, request: &Request<'_>) -> Result<(), Lost> {
        match self {
            Self::Pipe(pipe) => pipe.notify(request),
            Self::Http(http) => http.tell(request).await,
        }
    }

    /// From now on this revision is spoken.
    pub(crate) fn speak(&self, revision: Revision) {
        match self {
            Self::Pipe(pipe) => pipe.speak(revision),
            Self::Http(http) => http.speak(revision),
        }
    }

    /// Whether it is a duplex of frames.
    pub fn is_pipe(&self) -> bool {
        matches!(self, Self::Pipe(_))
    }

    /// The signs of life on it; over HTTP, of all sessions with the upstream.
    pub fn pulse(&self) -> &Liveness {
        match self {
            Self::Pipe(pipe) => &pipe.pulse,
            Self::Http(http) => http.pulse(),
        }
    }

    /// Whether it is gone.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_closed(),
            Self::Http(_) => false,
        }
    }

    /// Resolves when the link is gone, with the cause. Whether an HTTP upstream is gone shows only in its use.
    pub async fn closed(&self) -> Cause {
        match self {
            Self::Pipe(pipe) => pipe.closed().await,
            Self::Http(_) => std::future::pending().await,
        }
    }
}

impl Exchange {
    /// The next frame that belongs to it; not polled again after a response or a loss.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Arrival> {
        match self {
            Self::Pipe(exchange) => exchange.poll(cx),
            Self::Http(exchange) => exchange.poll(cx),
        }
    }

    /// The next frame; dropping the future loses nothing.
    pub async fn next(&mut self) -> Arrival {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    /// Reads to the answer and lets everything else pass by.
    pub async fn answer(&mut self) -> Result<Body, Lost> {
        loop {
            match self.next().await {
                Arrival::Response(body) => return Ok(body),
                Arrival::Lost(lost) => return Err(lost),
                _ => {}
            }
        }
    }

    /// Its number; a later one has a higher number.
    pub fn id(&self) -> u64 {
        match self {
            Self::Pipe(exchange) => exchange.id(),
            Self::Http(exchange) => exchange.id(),
        }
    }

    /// Since when a question is open on it.
    pub fn asked_since(&self) -> Option<Instant> {
        match self {
            Self::Pipe(exchange) => exchange.asked_since(),
            Self::Http(exchange) => exchange.asked_since(),
        }
    }

    /// Has it keep a place until its end.
    pub(crate) fn hold(&self, place: Permit) {
        match self {
            Self::Pipe(exchange) => exchange.slot().hold(place),
            Self::Http(exchange) => exchange.slot().hold(place),
        }
    }

    /// Takes it back, where nothing of it was sent, and says what kept it. Then it never will be.
    pub fn take_back(&mut self) -> Option<Withheld> {
        match self {
            Self::Pipe(exchange) => exchange.take_back().then_some(Withheld::Unread),
            Self::Http(exchange) => exchange.take_back(),
        }
    }

    /// Lets it run on unwatched.
    pub fn detach(self) {
        match self {
            Self::Pipe(exchange) => exchange.detach(),
            Self::Http(exchange) => exchange.detach(),
        }
    }
}

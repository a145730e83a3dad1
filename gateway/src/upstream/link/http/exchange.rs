//! One POST an exchange, polled in its caller's task.

use super::super::request::Request;
use super::super::slot::{Arrival, Lost, Slot};
use super::answer::{self, Asked};
use super::aside::ASIDE_MAX;
use super::session::Http;
use crate::protocol::frame::Decimal;
use crate::protocol::{Method, Object};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::time::timeout;

/// How many exchanges may be under way or wait for a connection.
const EXCHANGES_MAX: usize = 4096;

impl Http {
    /// Sends a request once it is polled.
    pub(crate) fn exchange(self: &Arc<Self>, request: &Request<'_>) -> Result<HttpExchange, Lost> {
        if self.wire.exchanges.fetch_add(1, Ordering::Relaxed) >= EXCHANGES_MAX {
            self.wire.exchanges.fetch_sub(1, Ordering::Relaxed);
            return Err(Lost::Busy("too many requests are in flight".into()));
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        let id = self.next_id();
        let slot = Arc::new(Slot::new(request.progress, request.logs));
        let mut body = Vec::with_capacity(request.params.raw().len() + request.meta.len() + 128);
        request.write(id, &mut body);
        let posted = self.post(body.into(), Some(request));
        let asks = Asked {
            id,
            is_meeting: matches!(request.method, Method::Initialize | Method::Discover),
            opens: *request.method == Method::Initialize,
        };
        let drive = Box::pin(answer::drive(self.clone(), posted, asks, slot.clone()));
        // A handshake may not be cancelled, and a stateless request is by its stream alone.
        let quiet = *request.method == Method::Initialize || request.envelope.is_some();
        Ok(HttpExchange { http: self.clone(), id, slot, drive: Some(drive), ended: false, quiet })
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
        self.http.open.fetch_sub(1, Ordering::Relaxed);
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

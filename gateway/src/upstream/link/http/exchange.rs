//! One POST an exchange, polled in its caller's task.

use super::super::request::Request;
use super::super::slot::{Arrival, Lost, Slot};
use super::answer::{self, Asked};
use super::aside::{ASIDE_MAX, withdrawal};
use super::session::Http;
use crate::protocol::Method;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How many exchanges may be under way or wait for a connection.
const EXCHANGES_MAX: usize = 4096;

impl Http {
    /// Sends a request once it is polled.
    pub(crate) fn exchange(self: &Arc<Self>, request: &Request<'_>) -> Result<HttpExchange, Lost> {
        let trial = self.wire.leave(self.is_met())?;
        if self.wire.exchanges.fetch_add(1, Ordering::Relaxed) >= EXCHANGES_MAX {
            self.wire.exchanges.fetch_sub(1, Ordering::Relaxed);
            return Err(Lost::Busy("too many requests are in flight".into()));
        }
        self.open.fetch_add(1, Ordering::Relaxed);
        let id = self.next_id();
        let slot = Arc::new(Slot::of(request));
        self.opened(id, &slot);
        let mut body = Vec::with_capacity(request.room());
        request.write(id, &mut body);
        let posted = self.post(body.into(), Some(request));
        let asks = Asked {
            id,
            life: self.wire.lives.number(),
            is_meeting: matches!(request.method, Method::Initialize | Method::Discover),
            opens: *request.method == Method::Initialize,
            listens: *request.method == Method::Listen,
        };
        let drive = self.levels.behind(request, answer::drive(self.clone(), posted, asks, slot.clone(), trial));
        // A handshake may not be cancelled, and a stateless request is by its stream alone.
        let quiet = *request.method == Method::Initialize || request.envelope.is_some();
        Ok(HttpExchange { http: self.clone(), id, slot, drive: Some(drive), ended: false, quiet, over: None })
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
    /// Ends its driving, where that was handed over.
    over: Option<DropGuard>,
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
        let can_be_asked = self.slot.caller.is_some() && !self.http.is_modern();
        if arrival.is_none() && (can_be_asked || self.slot.progress) {
            // It can be asked by another stream than its own, and told of its progress later.
            arrival = match self.slot.poll(cx) {
                Poll::Ready(arrival) => Some(arrival),
                Poll::Pending => None,
            };
        }
        match arrival {
            Some(arrival) => {
                if let Arrival::Ask(_) = arrival {
                    self.hand_over();
                }
                if matches!(arrival, Arrival::Response(_) | Arrival::Lost(_)) {
                    self.ended = true;
                    let said = self.http.left(self.id);
                    if !said.is_empty() {
                        self.http.aside(said);
                    }
                }
                Poll::Ready(arrival)
            }
            None => Poll::Pending,
        }
    }

    /// While a person is asked nobody may read the reply: its stream is read all the same, since the upstream can withdraw
    /// the question there, and ask more.
    fn hand_over(&mut self) {
        let Some(drive) = self.drive.take() else { return };
        let over = CancellationToken::new();
        self.over = Some(over.clone().drop_guard());
        let (slot, tasks) = (self.slot.clone(), self.http.wire.tasks.clone());
        self.http.wire.tasks.spawn(async move {
            tokio::select! {
                () = drive => {}
                () = over.cancelled() => {}
                () = tasks.ending() => {
                    slot.finish(Arrival::Lost(Lost::Unknown("it is being stopped".into())));
                }
            }
        });
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Where its frames wait.
    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Since when a question is open on it.
    pub(crate) fn asked_since(&self) -> Option<Instant> {
        self.slot.asked_since()
    }

    /// Lets it run on unwatched.
    pub(crate) fn detach(mut self) {
        self.ended = true;
        if let Some(over) = self.over.take() {
            over.disarm();
        }
        if let Some(drive) = self.drive.take() {
            self.http.wire.tasks.spawn(async move { drop(timeout(ASIDE_MAX, drive).await) });
        }
    }
}

impl Drop for HttpExchange {
    fn drop(&mut self) {
        self.http.wire.exchanges.fetch_sub(1, Ordering::Relaxed);
        self.http.open.fetch_sub(1, Ordering::Relaxed);
        let mut said = self.http.left(self.id);
        let was_sent = self.slot.start() != u64::MAX;
        if !self.ended {
            self.slot.leave();
        }
        if self.ended || self.quiet || !was_sent {
            return;
        }
        // Its questions are answered before it is withdrawn.
        said.push(withdrawal(self.id));
        self.http.aside(said);
    }
}

//! The connections to one HTTP upstream: taken, used for one exchange, put back when its body has ended.

use super::connect::{Connector, Sender, check_head, too_large};
pub(crate) use super::flow::causes;
use super::flow::{FlowMark, HEAD_BYTES_MAX, broken, broken_reused};
use super::idle::{Idle, announced_idle};
use super::room::{FairPermit, FairPermits};
use super::shared::Exchange;
use super::sharing::{Opened, SharedConnections};
use crate::call::share::Share;
use crate::health::{Cause, CauseCode, chain};
use crate::runtime::system::handles;
use crate::runtime::watched::Pieces;
use crate::transport::exchange::Lost;
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many connections there may be at once, fewer where files are scarce; one client gets half of them, and more wait.
const CONNECTIONS: std::ops::RangeInclusive<usize> = 32..=520;
/// How many there may be besides, for what is sent beside the exchanges: those may all wait for just that.
const BESIDE_MAX: usize = 32;

/// A request as it goes out.
pub(crate) type Outgoing = Request<Pieces>;

/// Among which connections a request is sent.
#[derive(Clone, Copy)]
pub(crate) enum Lane<'a> {
    /// Those of the exchanges, in the share of a client; `None` is the gateway's own.
    Exchange(Option<&'a Share>),
    /// Those of what is sent beside the exchanges: it never waits for one of them.
    Beside,
}

/// The connections.
pub(crate) struct Pool {
    dialer: Connector,
    /// Which gateways it leads to.
    below: chain::Below,
    idle: Mutex<Idle<Sender>>,
    /// Those that bear many exchanges at once.
    shared: SharedConnections,
    room: Arc<FairPermits>,
    room_beside: Arc<FairPermits>,
}

/// A connection in use; dropped, it is closed.
pub(crate) struct Held {
    way: Way,
    /// When it was made.
    born: Instant,
    /// The idle time that the upstream announced in the response.
    announced: Option<Duration>,
    room: Option<FairPermit>,
}

/// What a connection in use is.
enum Way {
    /// One of this exchange alone.
    Alone(Sender),
    /// One of others, too: it goes on.
    Shared(#[allow(dead_code, reason = "kept until its answer is read")] Exchange),
}

impl Pool {
    pub(crate) fn new(dialer: Connector) -> Self {
        let most = (handles::limit() / 4).clamp(*CONNECTIONS.start(), *CONNECTIONS.end());
        Self {
            shared: SharedConnections::new(dialer.may_share()),
            dialer,
            below: chain::Below::default(),
            idle: Mutex::default(),
            room: FairPermits::new(most),
            room_beside: FairPermits::new(BESIDE_MAX),
        }
    }

    /// Sends a request, which is taken out of its place, and waits for the head of its response.
    ///
    /// A connection that proves to have been closed before any byte of the request was taken is replaced, and `again` makes the request
    /// for the next one; nothing is ever sent twice. `begun` is called when the request may leave.
    pub(crate) async fn send(
        &self,
        lane: Lane<'_>,
        request: &mut Option<Outgoing>,
        again: &(dyn Fn() -> Outgoing + Sync),
        begun: &(impl Fn() + Sync),
    ) -> Result<(Response<Incoming>, Held), Lost> {
        let (room, whose) = match lane {
            Lane::Exchange(whose) => (&self.room, whose),
            Lane::Beside => (&self.room_beside, None),
        };
        let room = match room.take(whose) {
            Some(room) => room,
            // Boxed, as it is rare: every call has a future of the size of this one.
            None => {
                let epoch = self.dialer.epoch().number();
                let room = Box::pin(room.wait(whose)).await;
                if let Some(why) = self.dialer.epoch().ended(epoch) {
                    return Err(Lost::Unsent(why));
                }
                room.ok_or_else(|| Lost::Unsent(Cause::new(CauseCode::Stopping, "upstream stopping")))?
            }
        };
        loop {
            let kept = self.kept();
            let (mut sender, born, idle) = match kept {
                Some((sender, born, idle)) => (sender, born, Some(idle)),
                None => match Box::pin(self.shared.send(&self.dialer, request, begun)).await? {
                    Opened::Alone(sender) => (sender, Instant::now(), None),
                    Opened::Answered(response, exchange) => {
                        self.below.heard(response.headers());
                        let way = Way::Shared(exchange);
                        return Ok((response, Held { way, born: Instant::now(), announced: None, room: Some(room) }));
                    }
                },
            };
            if sender.requests.ready().await.is_err() {
                if idle.is_none() {
                    return Err(closed_at_once());
                }
                continue;
            }
            let nothing = || Lost::Unsent(Cause::new(CauseCode::Unknown, "there is nothing to send"));
            let sent = request.take().ok_or_else(nothing)?;
            begun();
            sender.flow.begins(sent.body().size_hint().lower());
            let mark = sender.flow.mark();
            if idle.is_some() {
                sender.flow.check_end();
            }
            let error = match sender.requests.try_send_request(sent).await {
                Ok(response) => {
                    // Few heads are measured: one is no longer than all that was read.
                    if sender.flow.answered() > HEAD_BYTES_MAX {
                        check_head(&response)?;
                    }
                    self.below.heard(response.headers());
                    let announced = announced_idle(&response);
                    return Ok((response, Held { way: Way::Alone(sender), born, announced, room: Some(room) }));
                }
                Err(error) => error,
            };
            *request = Some(self.request_after_break(&sender, (mark, idle), error, again)?);
        }
    }

    /// The request for another connection, if a reused one broke before any byte of it was sent; else the loss. A reused connection has an
    /// idle time.
    fn request_after_break(
        &self,
        sender: &Sender,
        (mark, idle): (FlowMark, Option<Duration>),
        mut error: TrySendError<Outgoing>,
        again: &(dyn Fn() -> Outgoing + Sync),
    ) -> Result<Outgoing, Lost> {
        let is_early = !sender.flow.has_received_since(mark);
        let ended = self.dialer.epoch().ended(sender.epoch);
        if let (Some(idle), None, true) = (idle, &ended, is_early) {
            self.dialer.idle_limit().learn(idle);
        }
        match (error.take_message(), idle) {
            (Some(unsent), Some(_)) => Ok(unsent),
            (Some(_), None) => Err(closed_at_once()),
            (None, Some(_)) if !sender.flow.has_sent_since(mark) => {
                ended.map_or_else(|| Ok(again()), |why| Err(Lost::Unsent(why)))
            }
            (None, Some(_)) if is_early => Err(Lost::Unknown(broken_reused(error.error()))),
            (None, _) if error.error().is_parse_too_large() => Err(too_large()),
            (None, _) => Err(Lost::Unknown(broken(error.error()))),
        }
    }

    /// Sends a request on a connection of its own, which its response may have become something else.
    pub(crate) async fn send_alone(&self, request: Outgoing) -> Result<Response<Incoming>, Lost> {
        let response = self.dialer.send_alone(request).await?;
        self.below.heard(response.headers());
        Ok(response)
    }

    /// How many places for connections are taken.
    pub(crate) fn in_use(&self) -> usize {
        self.room.held() + self.room_beside.held()
    }

    /// How many connections wait for their next use.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle().len()
    }

    /// Puts a connection back whose response has been read to its end.
    pub(crate) fn put(&self, held: Held) {
        if let Held { way: Way::Alone(sender), born, announced, .. } = held
            && !sender.requests.is_closed()
        {
            sender.flow.start_idle();
            self.idle().put(sender, born, announced);
        }
    }

    /// A connection that waits for its next use, and its idle time. One of an epoch that has ended is about to be closed, though it may
    /// not look so yet.
    fn kept(&self) -> Option<(Sender, Instant, Duration)> {
        let epoch = self.dialer.epoch().number();
        let is_closed = |sender: &Sender| sender.epoch != epoch || sender.requests.is_closed();
        loop {
            let (sender, born) = self.idle().take(self.dialer.idle_limit(), is_closed)?;
            // A connection that has ended meanwhile has no idle time.
            if let Some(idle) = sender.flow.end_idle() {
                return Some((sender, born, idle));
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle<Sender>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Its place among the connections there may be, to be kept, or given up sooner than it.
    pub(crate) fn room(&mut self) -> Option<FairPermit> {
        self.room.take()
    }
}

fn closed_at_once() -> Lost {
    Lost::Unsent(Cause::new(CauseCode::ConnectionLost, "it closed the connection at once"))
}

#[cfg(test)]
mod tests;

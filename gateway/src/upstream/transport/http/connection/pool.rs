//! The connections to one HTTP upstream: taken, used for one exchange, put back when its body has ended.

use super::connect::{Connector, Sender, check_head, too_large};
pub(crate) use super::flow::causes;
use super::flow::{HEAD_BYTES_MAX, broken};
use super::idle::Idle;
use super::room::{FairPermit, FairPermits};
use super::shared::Exchange;
use super::sharing::{Opened, SharedConnections};
use crate::call::share::Share;
use crate::health::{Cause, CauseCode, chain};
use crate::runtime::system::handles;
use crate::runtime::watched::Pieces;
use crate::upstream::transport::exchange::Lost;
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// A connection that proves to have been closed before any byte of the request was taken is replaced; nothing is
    /// ever sent twice. `begun` is called when the request may leave.
    pub(crate) async fn send(
        &self,
        lane: Lane<'_>,
        request: &mut Option<Outgoing>,
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
            let (mut sender, born, is_new) = match kept {
                Some((sender, born)) => (sender, born, false),
                None => match Box::pin(self.shared.send(&self.dialer, request, begun)).await? {
                    Opened::Alone(sender) => (sender, Instant::now(), true),
                    Opened::Answered(response, exchange) => {
                        self.below.heard(response.headers());
                        let way = Way::Shared(exchange);
                        return Ok((response, Held { way, born: Instant::now(), room: Some(room) }));
                    }
                },
            };
            if sender.requests.ready().await.is_err() {
                if is_new {
                    return Err(closed_at_once());
                }
                continue;
            }
            let nothing = || Lost::Unsent(Cause::new(CauseCode::Unknown, "there is nothing to send"));
            let sent = request.take().ok_or_else(nothing)?;
            begun();
            sender.flow.begins(sent.body().size_hint().lower());
            let mut error = match sender.requests.try_send_request(sent).await {
                Ok(response) => {
                    // Few heads are measured: one is no longer than all that was read.
                    if sender.flow.answered() > HEAD_BYTES_MAX {
                        check_head(&response)?;
                    }
                    self.below.heard(response.headers());
                    return Ok((response, Held { way: Way::Alone(sender), born, room: Some(room) }));
                }
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if !is_new => *request = Some(unsent),
                Some(_) => return Err(closed_at_once()),
                None if error.error().is_parse_too_large() => return Err(too_large()),
                None => {
                    return Err(Lost::Unknown(broken(error.error())));
                }
            }
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
        if let Held { way: Way::Alone(sender), born, .. } = held
            && !sender.requests.is_closed()
        {
            self.idle().put(sender, born);
        }
    }

    /// A connection that waits for its next use. One of an epoch that has ended is about to be closed, though it may not look so yet.
    fn kept(&self) -> Option<(Sender, Instant)> {
        let epoch = self.dialer.epoch().number();
        self.idle().take(|sender| sender.epoch != epoch || sender.requests.is_closed())
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
mod tests {
    use super::super::epoch::ConnectionEpoch;
    use super::super::flow::Unread;
    use super::*;
    use crate::runtime::Tasks;
    use crate::upstream::config::Remote;
    use crate::upstream::tests::rig::{Rig, config};
    use http::HeaderMap;
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A server that answers each request with the number of its connection.
    async fn numbering(listener: tokio::net::TcpListener, level: Tasks) {
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            level.spawn(async move {
                let mut head = [0; 4096];
                while stream.read(&mut head).await.is_ok_and(|read| read > 0) {
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    }

    #[tokio::test]
    async fn a_connection_of_an_epoch_that_has_ended_is_not_used_again() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let level = Tasks::new();
        level.spawn(numbering(listener, level.clone()));
        let epoch = Arc::<ConnectionEpoch>::default();
        let unread = Unread::new(Rig::new(config()).instance);
        let pool = Pool::new(
            Connector::new(&Remote::new(url, HeaderMap::new()), level.clone(), epoch.clone(), unread).unwrap(),
        );
        let ask = async || {
            let request = Request::get("/").header("host", "x").body(Pieces::default()).unwrap();
            let (response, held) = pool.send(Lane::Exchange(None), &mut Some(request), &|| {}).await.unwrap();
            let number = response.into_body().collect().await.unwrap().to_bytes();
            pool.put(held);
            number
        };
        assert_eq!(&ask().await[..], b"0");
        assert_eq!(&ask().await[..], b"0", "one after the other on one connection");
        // Its task has not run yet, so the connection still looks open.
        epoch.end("by order".into());
        assert_eq!(&ask().await[..], b"1");
    }
}

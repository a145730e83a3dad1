//! The connections to one HTTP upstream: taken, used for one exchange, put back when its body has ended.

use super::super::slot::Lost;
use super::dial::{Dialer, Sender};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How many connections there may be at once; who comes later waits.
const CONNECTIONS_MAX: usize = 256;
/// How many there may be besides, for what is sent beside the exchanges: those may all wait for just that.
const ASIDE_MAX: usize = 32;
/// How many wait for their next use.
const IDLE_MAX: usize = 64;
/// How long one waits; servers close theirs after a minute or more.
const IDLE_TIME: Duration = Duration::from_secs(45);

/// The connections.
pub(super) struct Pool {
    dialer: Dialer,
    idle: Mutex<Vec<(Sender, Instant)>>,
    room: Arc<Semaphore>,
    room_aside: Arc<Semaphore>,
}

/// A connection in use; dropped, it is closed.
pub(super) struct Held {
    sender: Sender,
    room: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(super) fn new(dialer: Dialer) -> Self {
        Self {
            dialer,
            idle: Mutex::default(),
            room: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            room_aside: Arc::new(Semaphore::new(ASIDE_MAX)),
        }
    }

    /// Sends a request and waits for the head of its response.
    ///
    /// A connection that proves to have been closed before any byte of the request was taken is replaced; nothing is
    /// ever sent twice. `begun` is called when the request may leave.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        begun: impl Fn(),
    ) -> Result<(Response<Incoming>, Held), Lost> {
        self.send_in(&self.room, request, begun).await
    }

    /// As [`Self::send`], for what is sent beside the exchanges: it never waits for one of them.
    pub(super) async fn send_aside(&self, request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Held), Lost> {
        self.send_in(&self.room_aside, request, || ()).await
    }

    async fn send_in(
        &self,
        room: &Arc<Semaphore>,
        mut request: Request<Full<Bytes>>,
        begun: impl Fn(),
    ) -> Result<(Response<Incoming>, Held), Lost> {
        let room = room.clone().acquire_owned().await.map_err(|_| Lost::Unsent("it is being stopped".into()))?;
        loop {
            let (mut sender, is_new) = match self.take() {
                Some(sender) => (sender, false),
                None => (Box::pin(self.dialer.dial()).await.map_err(|why| Lost::Unsent(why.into()))?, true),
            };
            if sender.ready().await.is_err() {
                if is_new {
                    return Err(Lost::Unsent("it closed the connection at once".into()));
                }
                continue;
            }
            begun();
            let mut error = match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, Held { sender, room: Some(room) })),
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if !is_new => request = unsent,
                Some(_) => return Err(Lost::Unsent("it closed the connection at once".into())),
                None => return Err(Lost::Unknown(format!("the connection broke: {}", causes(error.error())).into())),
            }
        }
    }

    /// Puts a connection back whose response has been read to its end.
    pub(super) fn put(&self, held: Held) {
        if held.sender.is_closed() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push((held.sender, Instant::now()));
        }
    }

    /// The one that was used last, as long as it is likely to be open.
    fn take(&self) -> Option<Sender> {
        let mut idle = self.idle();
        while let Some((sender, since)) = idle.pop() {
            if since.elapsed() >= IDLE_TIME {
                // All that lie below it are older.
                idle.clear();
                return None;
            }
            if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Sender, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Its place among the connections there may be, to be kept, or given up sooner than it.
    pub(super) fn room(&mut self) -> Option<OwnedSemaphorePermit> {
        self.room.take()
    }
}

/// An error with what caused it.
pub(super) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

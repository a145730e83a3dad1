//! The connections to one HTTP upstream: taken, used for one exchange, put back when its body has ended.

use super::super::slot::Lost;
use super::dial::{Dialer, Sender};
use super::idle::Idle;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How many connections there may be at once; who comes later waits.
const CONNECTIONS_MAX: usize = 256;
/// How many there may be besides, for what is sent beside the exchanges: those may all wait for just that.
const ASIDE_MAX: usize = 32;

/// The connections.
pub(super) struct Pool {
    dialer: Dialer,
    idle: Mutex<Idle<Sender>>,
    room: Arc<Semaphore>,
    room_aside: Arc<Semaphore>,
}

/// A connection in use; dropped, it is closed.
pub(super) struct Held {
    sender: Sender,
    /// When it was made.
    born: Instant,
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

    /// Sends a request, which is taken out of its place, and waits for the head of its response.
    ///
    /// A connection that proves to have been closed before any byte of the request was taken is replaced; nothing is
    /// ever sent twice. `begun` is called when the request may leave.
    pub(super) fn send(
        &self,
        request: &mut Option<Request<Full<Bytes>>>,
        begun: impl Fn() + Send,
    ) -> impl Future<Output = Result<(Response<Incoming>, Held), Lost>> + Send {
        self.send_in(&self.room, request, begun)
    }

    /// As [`Self::send`], for what is sent beside the exchanges: it never waits for one of them.
    pub(super) async fn send_aside(&self, request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Held), Lost> {
        self.send_in(&self.room_aside, &mut Some(request), || ()).await
    }

    async fn send_in(
        &self,
        room: &Arc<Semaphore>,
        request: &mut Option<Request<Full<Bytes>>>,
        begun: impl Fn(),
    ) -> Result<(Response<Incoming>, Held), Lost> {
        let room = match room.clone().try_acquire_owned() {
            Ok(room) => room,
            // Boxed, as it is rare: every call has a future of the size of this one.
            Err(_) => {
                let life = self.dialer.lives().number();
                let room = Box::pin(room.clone().acquire_owned()).await;
                if let Some(why) = self.dialer.lives().ended(life) {
                    return Err(Lost::Unsent(why));
                }
                room.map_err(|_| Lost::Unsent("it is being stopped".into()))?
            }
        };
        loop {
            let kept = self.idle().take(Sender::is_closed);
            let (mut sender, born, is_new) = match kept {
                Some((sender, born)) => (sender, born, false),
                None => {
                    let sender = Box::pin(self.dialer.dial()).await.map_err(|why| Lost::Unsent(why.into()))?;
                    (sender, Instant::now(), true)
                }
            };
            if sender.ready().await.is_err() {
                if is_new {
                    return Err(Lost::Unsent("it closed the connection at once".into()));
                }
                continue;
            }
            let Some(sent) = request.take() else { return Err(Lost::Unsent("there is nothing to send".into())) };
            begun();
            let mut error = match sender.try_send_request(sent).await {
                Ok(response) => return Ok((response, Held { sender, born, room: Some(room) })),
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if !is_new => *request = Some(unsent),
                Some(_) => return Err(Lost::Unsent("it closed the connection at once".into())),
                None => return Err(Lost::Unknown(format!("the connection broke: {}", causes(error.error())).into())),
            }
        }
    }

    /// Puts a connection back whose response has been read to its end.
    pub(super) fn put(&self, held: Held) {
        if !held.sender.is_closed() {
            self.idle().put(held.sender, held.born);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle<Sender>> {
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

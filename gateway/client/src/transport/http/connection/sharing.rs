//! Which of the connections that bear many exchanges has a place for one more, and when another one is opened.

use super::connect::{Connector, Dialed, Sender};
use super::shared::{Exchange, Outgoing, Shared, closed_at_once, lock};
use crate::health::{Cause, CauseCode};
use crate::transport::exchange::Lost;
use http::Response;
use hyper::body::Incoming;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// How often one request is sent that the upstream has proven not to have run.
const SENT_MAX: usize = 3;

/// What a request has found that found no connection waiting.
pub(super) enum Opened {
    /// A new connection for it alone, on which it was not sent yet.
    Alone(Sender),
    /// Its answer, on a connection of many.
    Answered(Response<Incoming>, Exchange),
}

/// The connections of many exchanges to one upstream.
pub(super) struct SharedConnections {
    open: Mutex<Vec<Arc<Shared>>>,
    /// Whether the upstream may choose to have such: unknown at first, and asked by one at a time.
    may_be: AtomicBool,
    dialing: tokio::sync::Mutex<()>,
    /// When the last attempt has failed, and why: those who have waited for it fail with it.
    failed: Mutex<Option<(Instant, Cause)>>,
}

impl SharedConnections {
    pub(super) fn new(may_be: bool) -> Self {
        Self {
            open: Mutex::default(),
            may_be: may_be.into(),
            dialing: tokio::sync::Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Sends a request, which is taken out of its place, on one of these; else opens a connection for it alone. One that the upstream
    /// proves not to have run is sent again, a few times.
    pub(super) async fn send(
        &self,
        dialer: &Connector,
        request: &mut Option<Outgoing>,
        begun: &(impl Fn() + Sync),
    ) -> Result<Opened, Lost> {
        let mut sent = 0;
        loop {
            let exchange = match self.find(dialer).await.map_err(Lost::Unsent)? {
                Found::Exchange(exchange) => exchange,
                Found::Alone(sender) => return Ok(Opened::Alone(sender)),
            };
            let nothing = || Lost::Unsent(Cause::new(CauseCode::Unknown, "there is nothing to send"));
            let copy = request.as_ref().ok_or_else(nothing)?.clone();
            begun();
            sent += 1;
            match exchange.send(copy).await {
                Ok(response) => {
                    *request = None;
                    return Ok(Opened::Answered(response, exchange));
                }
                Err(Lost::Unsent(_) | Lost::Busy(_))
                    if sent < SENT_MAX && !dialer.epoch().has_ended(exchange.epoch()) => {}
                Err(lost) => return Err(lost),
            }
        }
    }

    /// A place on a connection, or a new connection.
    async fn find(&self, dialer: &Connector) -> Result<Found, Cause> {
        if !self.may_be.load(Ordering::Relaxed) {
            return self.dialed(dialer).await;
        }
        if let Some(exchange) = self.take(dialer.epoch().number()) {
            return Ok(Found::Exchange(exchange));
        }
        let begun = Instant::now();
        let turn = self.dialing.lock().await;
        if let Some(exchange) = self.take(dialer.epoch().number()) {
            return Ok(Found::Exchange(exchange));
        }
        if !self.may_be.load(Ordering::Relaxed) {
            drop(turn);
            return self.dialed(dialer).await;
        }
        if let Some((at, why)) = &*lock(&self.failed)
            && *at > begun
        {
            return Err(why.clone());
        }
        let found = self.dialed(dialer).await;
        if let Err(why) = &found {
            *lock(&self.failed) = Some((Instant::now(), why.clone()));
        }
        found
    }

    async fn dialed(&self, dialer: &Connector) -> Result<Found, Cause> {
        let shared = match dialer.dial().await? {
            Dialed::Alone(sender) => {
                self.may_be.store(false, Ordering::Relaxed);
                return Ok(Found::Alone(sender));
            }
            Dialed::Shared(shared) => Arc::new(shared),
        };
        self.may_be.store(true, Ordering::Relaxed);
        let exchange = shared.begin().ok_or_else(closed_at_once)?;
        lock(&self.open).push(shared);
        Ok(Found::Exchange(exchange))
    }

    /// A place on a connection that is likely to be open and not too old.
    fn take(&self, epoch: u64) -> Option<Exchange> {
        let mut open = lock(&self.open);
        open.retain(|shared| shared.epoch == epoch && shared.is_good());
        open.iter().find_map(Shared::begin)
    }
}

enum Found {
    Exchange(Exchange),
    Alone(Sender),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Remote;
    use crate::runtime::Tasks;
    use crate::runtime::watched::Pieces;
    use crate::transport::http::connection::epoch::ConnectionEpoch;
    use crate::transport::http::connection::flow::Unread;
    use crate::transport::recorder::Recorder;
    use futures_util::future::join_all;
    use http::{HeaderMap, Request};

    #[tokio::test]
    async fn those_who_find_no_connection_wait_for_the_one_that_is_opened_and_fail_with_it() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let unread = Unread::new(Arc::<Recorder>::default());
        let epoch = Arc::<ConnectionEpoch>::default();
        let remote = Remote::new(url, HeaderMap::new());
        let dialer = Connector::new(&remote, Tasks::new(), epoch, unread).unwrap();
        let connections = SharedConnections::new(true);
        let ask = async || {
            let request = Request::post("/").header("host", "x").body(Pieces::default()).unwrap();
            connections.send(&dialer, &mut Some(request), &|| {}).await
        };
        let mut count = 0;
        // Each connection is closed as soon as it comes, in the middle of TLS.
        let refuse = async {
            loop {
                drop(listener.accept().await.unwrap());
                count += 1;
            }
        };
        let answers = tokio::select! {
            answers = join_all((0..8).map(|_| ask())) => answers,
            () = refuse => unreachable!("it goes on"),
        };
        assert!(answers.iter().all(|answer| matches!(answer, Err(Lost::Unsent(_)))));
        assert_eq!(count, 1);
    }
}

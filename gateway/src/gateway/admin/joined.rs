//! Those that join the gateway by its control socket: each is one client of many. A gateway that was started for them ends once it was
//! without one for a while.

use crate::admin::control::join::{self, Closed, Door, Lines, Serve};
use crate::admin::looks;
use crate::call::reply::Reply;
use crate::call::{Call, Handle, Handler};
use crate::config::Config;
use crate::downstream::listen::Leaving;
use crate::downstream::stdio;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::metrics::edges::Face;
use crate::runtime::Tasks;
use crate::runtime::watched::{Counted, Watched};
use axum::Router;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// So many are served at once.
const CLIENTS_MAX: usize = 256;

/// The first client has so long to join, however short a gateway waits for the next.
const FIRST_WITHIN: Duration = Duration::from_secs(10);

/// Who has joined. Clones are the same.
#[derive(Clone)]
pub(crate) struct Joined {
    state: Arc<watch::Sender<State>>,
    /// Set when the gateway is told to end.
    pub(super) leaving: Leaving,
    /// Where they are served.
    faces: Tasks,
}

/// What those who join are served by.
pub(super) struct Behind {
    pub(super) handler: Handler,
    pub(super) config: Arc<Config>,
    /// What the configuration in force says.
    pub(super) written: looks::Config,
    pub(super) room: (Budget, Refusals),
}

#[derive(Default)]
struct State {
    open: usize,
    /// Nobody joins any more.
    is_closed: bool,
}

/// The place of one that has joined.
struct Place(Joined);

impl Joined {
    /// They are served on this level.
    pub(crate) fn new(leaving: &Leaving, faces: &Tasks) -> Self {
        Self { state: Arc::default(), leaving: leaving.clone(), faces: faces.clone() }
    }

    fn enter(&self) -> Result<Place, Closed> {
        let mut entered = Err(Closed::Ending);
        self.state.send_if_modified(|state| {
            entered = match state {
                State { is_closed: true, .. } => Err(Closed::Ending),
                State { open: CLIENTS_MAX.., .. } => Err(Closed::Full),
                _ => Ok(()),
            };
            state.open += usize::from(entered.is_ok());
            entered.is_ok()
        });
        entered.map(|()| Place(self.clone()))
    }

    /// Resolves once nobody was there for so long; then nobody joins any more.
    pub(crate) async fn left_alone(self, linger: Duration) {
        let mut seen = self.state.subscribe();
        // Whoever has started it has its time to join.
        let _ = timeout(linger.max(FIRST_WITHIN), seen.wait_for(|state| state.open > 0)).await;
        loop {
            // Its sender is here.
            let _ = seen.wait_for(|state| state.open == 0).await;
            tokio::select! {
                _ = seen.wait_for(|state| state.open > 0) => continue,
                () = sleep(linger) => {}
            }
            // Whoever was quicker is served.
            if self.state.send_if_modified(|state| {
                state.is_closed = state.open == 0;
                state.is_closed
            }) {
                return;
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.open -= 1);
    }
}

/// They belong to the operator, who is told what others are not.
struct InFull(Handler);

impl Handle for InFull {
    fn handle(&self, call: Call) -> Reply {
        self.0.handle(call).in_full()
    }
}

impl Joined {
    /// The way in for those that would share this gateway.
    pub(super) fn way_in(&self, behind: Behind) -> Router {
        let (joined, behind) = (self.clone(), Arc::new(Behind { handler: Arc::new(InFull(behind.handler)), ..behind }));
        let door: Door = Arc::new(move |identity| {
            let (joined, behind) = (joined.clone(), behind.clone());
            Box::pin(async move { joined.let_in(identity, behind).await })
        });
        join::router(door, self.faces.clone())
    }

    async fn let_in(self, identity: String, behind: Arc<Behind>) -> Result<Serve, Closed> {
        if self.leaving.is_asked() {
            return Err(Closed::Ending);
        }
        if identity != join::ANY && (behind.written)().await.identity() != identity {
            return Err(Closed::Other);
        }
        let place = self.enter()?;
        Ok(Box::new(move |lines: Lines| {
            Box::pin(async move {
                let lines = Watched::new(lines, Counted(Face::new("stdio").bytes().clone()));
                let (handler, room) = (behind.handler.clone(), (&behind.room.0, &behind.room.1));
                let served = stdio::serve_joined(handler, &behind.config.server, lines, self.faces.clone(), room);
                if let Err(error) = served.await {
                    tracing::debug!(%error, "a client that had joined is gone");
                }
                drop(place);
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn joined() -> Joined {
        Joined::new(&Leaving::default(), &Tasks::new())
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_left_alone_once_nobody_was_there_for_a_while_and_lets_nobody_in_then() {
        let (joined, linger) = (joined(), Duration::from_secs(30));
        let began = Instant::now();
        let clients = async {
            let first = joined.enter().expect("it is open");
            sleep(Duration::from_secs(100)).await;
            drop(first);
            sleep(Duration::from_secs(29)).await;
            // The next one is in time.
            let next = joined.enter().expect("it is still open");
            sleep(Duration::from_secs(100)).await;
            drop(next);
        };
        tokio::join!(joined.clone().left_alone(linger), clients);
        assert_eq!(began.elapsed(), Duration::from_secs(100 + 29 + 100 + 30));
        assert_eq!(joined.enter().err(), Some(Closed::Ending));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_started_it_has_its_time_to_join() {
        let (joined, began) = (joined(), Instant::now());
        joined.clone().left_alone(Duration::ZERO).await;
        assert_eq!(began.elapsed(), FIRST_WITHIN);
    }

    #[test]
    fn so_many_are_served_at_once() {
        let joined = joined();
        let mut places: Vec<_> = (0..CLIENTS_MAX).map(|_| joined.enter().expect("there is room")).collect();
        assert_eq!(joined.enter().err(), Some(Closed::Full));
        places.pop();
        assert!(joined.enter().is_ok());
    }
}

//! How many children are started at once: each holds a start from its spawn to its first byte, and not for long where none comes.

use super::link::Pipe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

/// So many starts for each core that there is.
const PER_CORE: usize = 2;
/// A child that says nothing for so long starts no longer, it hangs.
const SILENCE: Duration = Duration::from_secs(2);
/// Where others wait, a child is looked at so often: one that does nothing keeps no core from them.
const LOOK: Duration = Duration::from_millis(25);

/// The starts that all upstreams of a gateway have in common, given out in the order in which they are asked for.
#[derive(Debug, Clone)]
pub struct Starts(Arc<Semaphore>);

/// A start that comes in its turn.
pub(crate) enum Ticket {
    Now(Start),
    Later(Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + Sync>>),
}

/// A start; dropped, it is somebody else's.
pub(crate) struct Start(Option<OwnedSemaphorePermit>);

impl Starts {
    /// As many as this machine bears.
    pub fn of_this_machine() -> Self {
        Self::new(PER_CORE * std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }

    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Takes a place among those who wait, now, whenever it is waited for.
    pub(crate) fn ticket(&self) -> Ticket {
        let mut coming = Box::pin(self.0.clone().acquire_owned());
        // The first look is what gives it its place.
        match coming.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Ticket::Now(Start(permit.ok())),
            Poll::Pending => Ticket::Later(coming),
        }
    }
}

impl Ticket {
    /// Its turn.
    pub(crate) async fn turn(self) -> Start {
        match self {
            Self::Now(start) => start,
            Self::Later(coming) => Start(coming.await.ok()),
        }
    }
}

impl Start {
    /// Holds it until the child has said something, has ended, or says nothing for long; while others wait, also no longer than it
    /// does something. `worked` tells how much it has done, or that it is at work.
    pub(crate) async fn hold(self, pipe: Arc<Pipe>, worked: impl Fn() -> Option<u64>) {
        let (begun, mut before) = (Instant::now(), None);
        while begun.elapsed() < SILENCE {
            tokio::select! {
                () = pipe.heard() => break,
                _ = pipe.closed() => break,
                () = sleep(LOOK) => {}
            }
            let now = if self.others_wait() { worked() } else { None };
            if now.is_some() && now == before {
                break;
            }
            before = now;
        }
    }

    fn others_wait(&self) -> bool {
        self.0.as_ref().is_some_and(|permit| permit.semaphore().available_permits() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rig::{Rig, config};
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn starts_are_given_out_in_the_order_of_the_tickets_and_held_to_the_first_byte_or_for_two_seconds() {
        let starts = Starts::new(1);
        let tickets: Vec<_> = (0..4).map(|_| starts.ticket()).collect();
        let mut tickets = tickets.into_iter();
        let mut next = || tickets.next().unwrap();
        let begun = Instant::now();
        let (first, second, third, last) = (next(), next(), next(), next());
        // Whoever is waited for first has no advantage.
        let last = async {
            last.turn().await;
            begun.elapsed()
        };
        let others = async {
            let mut speaks = Rig::new(config());
            let start = first.turn().await;
            let (held, ()) = tokio::join!(
                async {
                    start.hold(speaks.pipe.clone(), || None).await;
                    begun.elapsed()
                },
                speaks.far.write("a word, whatever it is")
            );
            assert_eq!(held, Duration::ZERO, "a word is enough");
            let hangs = Rig::new(config());
            second.turn().await.hold(hangs.pipe.clone(), || None).await;
            assert_eq!(begun.elapsed(), SILENCE);
            let ends = Rig::new(config());
            ends.pipe.close("it ended");
            third.turn().await.hold(ends.pipe.clone(), || None).await;
        };
        assert_eq!(tokio::join!(last, others).0, SILENCE);
        // Who no longer waits is nobody's hindrance.
        let (taken, given_up, waits) = (starts.ticket(), starts.ticket(), starts.ticket());
        drop((taken, given_up));
        waits.turn().await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_nothing_keeps_nobody_waiting_and_who_works_is_waited_for() {
        let rig = Rig::new(config());
        let held = async |starts: &Starts, worked: &dyn Fn() -> Option<u64>| {
            let begun = Instant::now();
            starts.ticket().turn().await.hold(rig.pipe.clone(), worked).await;
            begun.elapsed()
        };
        let (alone, busy) = (Starts::new(2), Starts::new(1));
        assert_eq!(held(&alone, &|| Some(7)).await, SILENCE, "there is room for others");
        assert_eq!(held(&busy, &|| Some(7)).await, LOOK * 2, "it did nothing from one look to the next");
        let done = std::cell::Cell::new(0);
        let more = || Some(done.replace(done.get() + 1));
        assert_eq!(held(&busy, &more).await, SILENCE);
    }
}

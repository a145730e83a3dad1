//! How many children are started at once: each holds a start from its spawn to its first byte, and not for long where none comes.

use crate::call::share::Share;
use crate::runtime::system::cores;
use crate::transport::pipe::Pipe;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// So many starts for each core that there is.
const PER_CORE: usize = 2;
/// A child that says nothing for so long starts no longer, it hangs.
const SILENCE: Duration = Duration::from_secs(2);
/// Where others wait, a child is looked at so often: one that does nothing keeps no core from them.
const LOOK: Duration = Duration::from_millis(25);

/// The starts that all upstreams of a gateway have in common, given out in the order in which they are asked for; those that a call
/// waits for first, and among these the instances of each client by turns.
#[derive(Debug, Clone)]
pub struct StartLimit(Arc<Mutex<Turns>>);

#[derive(Debug)]
struct Turns {
    free: usize,
    tickets: u64,
    waiting: VecDeque<Waiting>,
    /// When each share of those that wait last had a start, counted in starts.
    served: HashMap<Option<Share>, u64>,
    given: u64,
}

/// A ticket that waits.
#[derive(Debug)]
struct Waiting {
    number: u64,
    is_urgent: bool,
    /// Whose instance it is for; `None`: it is for all.
    share: Option<Share>,
    turn: oneshot::Sender<StartPermit>,
}

/// A start that comes in its turn; dropped, it gives up its place.
pub struct StartTicket {
    starts: StartLimit,
    number: u64,
    turn: oneshot::Receiver<StartPermit>,
}

/// A start; dropped, it is somebody else's.
#[derive(Debug)]
pub struct StartPermit(Option<StartLimit>);

impl StartLimit {
    /// As many as this machine bears.
    pub fn of_this_machine() -> Self {
        Self::new(PER_CORE * cores())
    }

    /// Allows so many starts at once.
    pub fn new(count: usize) -> Self {
        let turns = Turns { free: count, tickets: 0, waiting: VecDeque::new(), served: HashMap::new(), given: 0 };
        Self(Arc::new(Mutex::new(turns)))
    }

    /// Takes a place among those who wait, now, whenever it is waited for; `share` says whose instance it is for.
    pub(crate) fn ticket(&self, share: Option<Share>) -> StartTicket {
        let (sender, turn) = oneshot::channel();
        let mut turns = self.lock();
        turns.tickets += 1;
        let number = turns.tickets;
        turns.waiting.push_back(Waiting { number, is_urgent: false, share, turn: sender });
        drop(turns);
        self.give();
        StartTicket { starts: self.clone(), number, turn }
    }

    /// Puts a ticket before those that no call waits for.
    fn hurry(&self, number: u64) {
        let mut turns = self.lock();
        let Some(at) = turns.waiting.iter().position(|waiting| waiting.number == number) else { return };
        let Some(own) = turns.waiting.remove(at) else { return };
        let first = turns.waiting.iter().position(|waiting| !waiting.is_urgent).unwrap_or(turns.waiting.len());
        turns.waiting.insert(first, Waiting { is_urgent: true, ..own });
    }

    /// Hands out what is free.
    fn give(&self) {
        loop {
            let mut turns = self.lock();
            if turns.free == 0 {
                return;
            }
            let Some(first) = turns.next() else { return };
            turns.free -= 1;
            drop(turns);
            // One that is no longer waited for comes back by its drop.
            drop(first.turn.send(StartPermit(Some(self.clone()))));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    /// Whose turn it is, taken out.
    fn next(&mut self) -> Option<Waiting> {
        self.waiting.retain(|waiting| !waiting.turn.is_closed());
        let is_urgent = self.waiting.front()?.is_urgent;
        let first = self.waiting.iter().enumerate().filter(|(_, waiting)| waiting.is_urgent == is_urgent);
        let served = |share| self.served.get(share).copied().unwrap_or_default();
        let (at, _) = first.min_by_key(|(_, waiting)| served(&waiting.share))?;
        let next = self.waiting.remove(at)?;
        self.given += 1;
        self.served.retain(|share, _| self.waiting.iter().any(|waiting| waiting.share == *share));
        self.served.insert(next.share.clone(), self.given);
        Some(next)
    }
}

impl StartTicket {
    /// Its turn, which comes sooner once a call waits for it.
    pub async fn turn(mut self, urgent: impl Future<Output = ()>) -> StartPermit {
        tokio::select! {
            biased;
            start = &mut self.turn => return start.unwrap_or(StartPermit(None)),
            () = urgent => self.starts.hurry(self.number),
        }
        (&mut self.turn).await.unwrap_or(StartPermit(None))
    }
}

impl Drop for StartTicket {
    fn drop(&mut self) {
        let mut turns = self.starts.lock();
        let at = turns.waiting.iter().position(|waiting| waiting.number == self.number);
        let given_up = at.and_then(|at| turns.waiting.remove(at));
        drop(turns);
        drop(given_up);
    }
}

impl Drop for StartPermit {
    fn drop(&mut self) {
        if let Some(starts) = self.0.take() {
            starts.lock().free += 1;
            starts.give();
        }
    }
}

impl StartPermit {
    /// Holds it until the child has said something, has ended, or says nothing for long; while others wait, also no longer than it
    /// does something. `worked` tells how much it has done, or that it is at work.
    pub async fn hold(self, pipe: Arc<Pipe>, worked: impl Fn() -> Option<u64>) {
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
        self.0.as_ref().is_some_and(|starts| starts.lock().free == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Tasks;
    use crate::transport::pipe::read;
    use crate::transport::recorder::Recorder;
    use std::future::{pending, ready};
    use tokio::time::Instant;

    fn pipe() -> Arc<Pipe> {
        Pipe::new(Arc::<Recorder>::default(), Tasks::new())
    }

    #[test]
    fn one_clients_instances_are_started_by_turns_with_anothers() {
        let starts = StartLimit::new(1);
        let share = |name: &str| Some(Share::Principal(crate::call::caller::Principal::named(name)));
        let mut now = starts.ticket(share("a"));
        let mut flood: Vec<_> = (0..3).map(|_| starts.ticket(share("a"))).collect();
        let mut other = starts.ticket(share("b"));
        let first = now.turn.try_recv().expect("it is free");
        drop(first);
        let second = other.turn.try_recv().expect("the other client's turn");
        assert!(flood.iter_mut().all(|ticket| ticket.turn.try_recv().is_err()));
        drop(second);
        assert!(flood[0].turn.try_recv().is_ok() && flood[1].turn.try_recv().is_ok(), "and then in their order");
    }

    #[tokio::test(start_paused = true)]
    async fn starts_are_given_out_in_the_order_of_the_tickets_and_held_to_the_first_byte_or_for_two_seconds() {
        let starts = StartLimit::new(1);
        let tickets: Vec<_> = (0..4).map(|_| starts.ticket(None)).collect();
        let mut tickets = tickets.into_iter();
        let mut next = || tickets.next().unwrap();
        let begun = Instant::now();
        let (first, second, third, last) = (next(), next(), next(), next());
        // Whoever is waited for first has no advantage.
        let last = async {
            last.turn(pending()).await;
            begun.elapsed()
        };
        let others = async {
            let speaks = pipe();
            let start = first.turn(pending()).await;
            let (held, ()) = tokio::join!(
                async {
                    start.hold(speaks.clone(), || None).await;
                    begun.elapsed()
                },
                async { drop(read(&speaks, &b"a word, whatever it is\n"[..], 4096).await) }
            );
            assert_eq!(held, Duration::ZERO, "a word is enough");
            let hangs = pipe();
            second.turn(pending()).await.hold(hangs.clone(), || None).await;
            assert_eq!(begun.elapsed(), SILENCE);
            let ends = pipe();
            ends.close("it ended".into());
            third.turn(pending()).await.hold(ends.clone(), || None).await;
        };
        assert_eq!(tokio::join!(last, others).0, SILENCE);
        // Who no longer waits is nobody's hindrance.
        let (taken, given_up, waits) = (starts.ticket(None), starts.ticket(None), starts.ticket(None));
        drop((taken, given_up));
        waits.turn(pending()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_that_a_call_waits_for_comes_before_those_that_nobody_waits_for() {
        let starts = StartLimit::new(1);
        let order = Arc::new(Mutex::new(Vec::new()));
        let taken = starts.ticket(None).turn(pending()).await;
        let turn = |name: &'static str, is_urgent: bool, after: u64| {
            let (ticket, order) = (starts.ticket(None), order.clone());
            async move {
                let urgent = async {
                    match is_urgent {
                        true => sleep(Duration::from_millis(after)).await,
                        false => pending().await,
                    }
                };
                let _start = ticket.turn(urgent).await;
                order.lock().unwrap().push(name);
                sleep(Duration::from_millis(100)).await;
            }
        };
        let freed = async {
            sleep(Duration::from_millis(50)).await;
            drop(taken);
        };
        // The second call comes when the first of them is being started.
        tokio::join!(
            turn("a", false, 0),
            turn("b", false, 0),
            turn("late", true, 60),
            turn("c", true, 10),
            turn("d", true, 20),
            freed
        );
        assert_eq!(*order.lock().unwrap(), ["c", "d", "late", "a", "b"]);
        let spare = starts.ticket(None).turn(ready(())).await;
        drop((starts.ticket(None), spare));
        starts.ticket(None).turn(pending()).await;
        let turns = starts.lock();
        assert_eq!((turns.free, turns.waiting.len()), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_nothing_keeps_nobody_waiting_and_who_works_is_waited_for() {
        let quiet = pipe();
        let held = async |starts: &StartLimit, worked: &dyn Fn() -> Option<u64>| {
            let begun = Instant::now();
            starts.ticket(None).turn(pending()).await.hold(quiet.clone(), worked).await;
            begun.elapsed()
        };
        let (alone, busy) = (StartLimit::new(2), StartLimit::new(1));
        assert_eq!(held(&alone, &|| Some(7)).await, SILENCE, "there is room for others");
        assert_eq!(held(&busy, &|| Some(7)).await, LOOK * 2, "it did nothing from one look to the next");
        let done = std::cell::Cell::new(0);
        let more = || Some(done.replace(done.get() + 1));
        assert_eq!(held(&busy, &more).await, SILENCE);
    }
}

//! One of the machine's upstreams: where it stands, what it has done, and whether it is sick.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cable::Cable;
use crate::journal::{Event, Order, What};
use crate::machine::siege::GATE;
use crate::process;
use crate::upstream::{Upstream, Way};
use crate::within::until;

/// How long an order may take to be obeyed on a crowded machine, and how often that is looked for.
const MOMENT: Duration = Duration::from_secs(10);
const LOOKS: Duration = Duration::from_millis(2);

/// An upstream with what is known of it.
pub struct Place {
    /// The upstream.
    pub upstream: Upstream,
    /// What lies between the gateway and an HTTP upstream.
    pub cable: Option<Cable>,
    book: Mutex<Book>,
    /// How many sessions it had when it forgot them.
    had: AtomicUsize,
    /// Odd while it has a fault that may cost calls their answers.
    sickness: AtomicU64,
}

/// What was read off its tape.
#[derive(Default)]
struct Book {
    pids: Vec<u32>,
    ran: Vec<(String, u64)>,
    /// The ids of the calls that wait there for what never comes.
    waiting: Vec<String>,
    /// The gates at which calls have come to wait.
    reached: Vec<String>,
    /// How many calls of sieges have come to wait.
    besieged: usize,
    /// How often it has reported.
    reports: usize,
}

impl Place {
    /// A place for an upstream.
    #[must_use]
    pub fn new(upstream: Upstream, cable: Option<Cable>) -> Place {
        Place { upstream, cable, book: Mutex::default(), had: AtomicUsize::new(0), sickness: AtomicU64::new(0) }
    }

    /// Takes down what it has told, which is then forgotten on its tape.
    fn read(&self) -> MutexGuard<'_, Book> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        for Event { what, at, .. } in self.upstream.events.take() {
            match what {
                What::Started { pid } => {
                    book.pids.push(pid);
                    book.waiting.clear();
                }
                What::Waiting { gate, .. } if gate == GATE => book.besieged += 1,
                What::Waiting { id, gate } => {
                    book.waiting.push(id);
                    book.reached.push(gate);
                }
                What::Cancelled { id, .. } => book.waiting.retain(|waits| *waits != id),
                What::Report { .. } => book.reports += 1,
                What::Executed { nonce } => book.ran.push((nonce, at)),
                _ => {}
            }
        }
        book
    }

    /// The id of its latest process.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.read().pids.last().copied()
    }

    /// The nonces of all calls that it ever ran, each with when.
    #[must_use]
    pub fn ran(&self) -> Vec<(String, u64)> {
        self.read().ran.clone()
    }

    /// Whether a call has come to wait at this gate; told once.
    #[must_use]
    pub fn has_reached(&self, gate: &str) -> bool {
        let mut book = self.read();
        let at = book.reached.iter().position(|reached| reached == gate);
        at.map(|at| book.reached.swap_remove(at)).is_some()
    }

    /// How many calls of sieges have come to wait there.
    #[must_use]
    pub(crate) fn besieged(&self) -> usize {
        self.read().besieged
    }

    /// How many calls wait there for what never comes, and were not withdrawn. Over HTTP that is not asked: there the fault may
    /// have swallowed the withdrawal, and ids are of sessions.
    #[must_use]
    pub fn waits(&self) -> usize {
        if self.cable.is_none() { self.read().waiting.len() } else { 0 }
    }

    /// What it is known by: the ids of all its processes, or of its sessions that are there to stay. Other connections have no name.
    #[must_use]
    pub fn identity(&self) -> Vec<String> {
        match self.upstream.way() {
            Way::Stdio => self.read().pids.iter().map(ToString::to_string).collect(),
            Way::Http | Way::Secured => self.upstream.kept_sessions(),
            _ => Vec::new(),
        }
    }

    /// Tells it what to do, and waits until it is obeyed, a moment long where nobody may be alive to obey. The tape is no place to
    /// wait for that: whatever is read off it here is forgotten there.
    pub async fn order_now(&self, order: Order) {
        let before = self.read().reports;
        self.upstream.order(order).await;
        self.upstream.order(Order::Report).await;
        let obeyed = async {
            while self.read().reports == before {
                tokio::time::sleep(LOOKS).await;
            }
        };
        let _ = tokio::time::timeout(MOMENT, obeyed).await;
    }

    /// Forgets all sessions.
    pub async fn forgets(&self) {
        self.had.store(self.upstream.sessions().len(), Ordering::SeqCst);
        self.upstream.order(Order::ForgetSessions).await;
    }

    /// Waits until it has the sessions again that are in use: that of the lists, and that of the calls. What it had beside
    /// them was left behind by earlier faults.
    pub async fn is_known_again(&self) {
        let had = self.had.load(Ordering::SeqCst).min(2);
        let what = format!("{} has {had} sessions again", self.upstream.name);
        until(&what, || async { (self.upstream.sessions().len() >= had).then_some(()) }).await;
    }

    /// Sends its process a signal.
    pub fn signal(&self, name: &str) {
        let pid = self.pid().expect("it has been started");
        if process::is_alive(pid) {
            process::signal(pid, name);
        }
    }

    /// From now on it is sick, or well.
    pub fn falls_ill(&self, is_ill: bool) {
        let before = self.sickness();
        if is_ill != (before % 2 == 1) {
            self.sickness.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether it has a fault that may cost calls their answers.
    #[must_use]
    pub fn is_ill(&self) -> bool {
        self.sickness() % 2 == 1
    }

    /// A number that grows whenever it falls ill or recovers, odd while it is ill.
    #[must_use]
    pub fn sickness(&self) -> u64 {
        self.sickness.load(Ordering::SeqCst)
    }
}

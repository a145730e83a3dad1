//! What waits for a stateless client's retry: live replies above all; each until its time, and for one retry alone.

use super::key;
use super::seal::Way;
use crate::call::reply::Reply;
use crate::call::reply::ask::Answer;
use crate::call::share::SharePermit;
use crate::memory::account::Hold;
use crate::memory::budget::Charge;
use crate::metrics;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::frame::Method;
use crate::protocol::payload::input::Embedded;
use crate::protocol::value::Object;
use crate::runtime::Tasks;
use crate::runtime::timer::late::passed;
use ::metrics::Gauge;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Between "there is no answer" and the end of the call, so that the upstream can end it by itself.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The calls that wait; bounded by the places that each of them has.
pub(crate) struct Parked {
    /// This run of the gateway, so that what an earlier one gave out is known as such.
    instance: u64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    serial: u64,
    entries: HashMap<u64, Entry>,
    /// Nobody can come back any more.
    is_closed: bool,
}

struct Entry {
    kept: Kept,
    /// Counts the call and its questions.
    _charge: Charge,
    /// Dropped, it ends the wait for the entry's time.
    _wait: oneshot::Sender<()>,
    _counted: Counted,
}

/// What is kept for a retry.
pub(crate) struct Kept {
    pub(crate) work: Work,
    /// Its place among all calls that wait for answers.
    pub(crate) place: SharePermit,
    /// What can take the memory of a large request away: then the call is given up.
    pub(crate) held: Option<Hold>,
}

/// What the retry goes on with.
pub(crate) enum Work {
    /// A call under way. Its questions go first when it is dropped: then the upstream hears that there is no answer.
    Call {
        /// The questions that are not answered yet.
        open: Vec<Open>,
        reply: Box<Reply>,
    },
    /// A call that did not run: the person must visit pages first, and then it is made again.
    Pages(Vec<Embedded>),
}

/// A live question that is put to the client.
pub(crate) struct Open {
    /// What the client knows it by.
    pub(crate) key: String,
    /// What a client must have declared to be asked it.
    pub(crate) need: Capabilities,
    pub(crate) method: Method,
    /// In the client's words.
    pub(crate) params: Object,
    /// When the upstream asked.
    pub(crate) since: Instant,
    pub(crate) answer: Answer,
}

/// Why nothing is kept under a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// An earlier run of the gateway kept it, or another instance does.
    Elsewhere,
    /// It was taken, or given up.
    Taken,
}

impl Open {
    /// As it is embedded in a result.
    pub(crate) fn embedded(&self) -> Embedded {
        Embedded { key: self.key.clone(), method: self.method.clone(), params: self.params.clone() }
    }
}

impl Parked {
    pub(crate) fn new() -> Self {
        Self { instance: u64::from_be_bytes(key::random()), table: Mutex::default() }
    }

    /// Keeps it until a time, and says the way back to it; gives it back where nobody can come back any more.
    pub(crate) fn keep(
        self: &Arc<Self>,
        (kept, charge): (Kept, Charge),
        until: Instant,
        tasks: &Tasks,
    ) -> Result<Way, Box<Kept>> {
        let (wait, taken) = oneshot::channel();
        let mut table = self.lock();
        if table.is_closed {
            return Err(Box::new(kept));
        }
        table.serial += 1;
        let id = table.serial;
        let give_up = Waker::from(Arc::new(GiveUp(Arc::downgrade(self), id)));
        let is_lost = kept.held.as_ref().is_some_and(|held| held.give_up_by(&give_up).is_ready());
        if is_lost || charge.give_up_by(&give_up).is_ready() {
            return Err(Box::new(kept));
        }
        table.entries.insert(id, Entry { kept, _charge: charge, _wait: wait, _counted: Counted::new() });
        drop(table);
        tasks.spawn_until_end(self.clone().expire(id, until, taken));
        Ok(Way::Kept { instance: self.instance, id })
    }

    /// Takes what is kept; whoever comes second finds nothing.
    pub(crate) fn take(&self, instance: u64, id: u64) -> Result<Kept, Gone> {
        if instance != self.instance {
            return Err(Gone::Elsewhere);
        }
        let kept = self.remove(id).ok_or(Gone::Taken)?;
        metrics::unparked("retried").increment(1);
        Ok(kept)
    }

    /// Drops everything, and keeps nothing more: nobody can come back.
    pub(crate) fn close(&self) {
        let mut table = self.lock();
        table.is_closed = true;
        let entries = std::mem::take(&mut table.entries);
        drop(table);
        metrics::unparked("closed").increment(entries.len() as u64);
        if !entries.is_empty() {
            tracing::debug!(calls = entries.len(), "parked calls cancelled: their clients can no longer retry");
        }
    }

    /// Whether nothing is kept any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    async fn expire(self: Arc<Self>, id: u64, until: Instant, taken: oneshot::Receiver<()>) {
        tokio::select! {
            _ = taken => return,
            () = passed(until) => {}
        }
        let Some(Kept { work, place, .. }) = self.remove(id) else { return };
        metrics::unparked("expired").increment(1);
        tracing::debug!(id, "parked call cancelled: its client did not retry in time");
        if let Work::Call { open, reply } = work {
            drop(open);
            tokio::time::sleep(LAST_WORDS).await;
            drop(reply);
        }
        drop(place);
    }

    fn remove(&self, id: u64) -> Option<Kept> {
        let entry = self.lock().entries.remove(&id);
        entry.map(|entry| entry.kept)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a parked call up when it is woken: its questions have no answer.
struct GiveUp(Weak<Parked>, u64);

impl Wake for GiveUp {
    fn wake(self: Arc<Self>) {
        if let Some(kept) = self.0.upgrade().and_then(|parked| parked.remove(self.1)) {
            metrics::unparked("memory").increment(1);
            drop(kept);
        }
    }
}

/// Shows one parked call for as long as it is.
struct Counted(Gauge);

impl Counted {
    fn new() -> Self {
        let gauge = metrics::parked();
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

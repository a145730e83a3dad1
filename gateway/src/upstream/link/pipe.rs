//! Many exchanges over one duplex of frames.

use super::super::identity::{self, NO_CAPABILITIES};
use super::asker::{self, Answer, Asker};
use super::desk::Desk;
use super::inbox::Inbox;
use super::made::Made;
use super::noise::Noise;
use super::pending::Pending;
use super::pulse::Pulse;
use super::request::Request;
use super::slot::{Arrival, Lost, Slot};
use crate::lifecycle::Tasks;
use crate::protocol::frame::Decimal;
use crate::protocol::{Id, Method, Object, Revision};
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How much may wait to be written; one frame may pass it, and what must be said (an answer, a withdrawal) by a little.
const OUT_MAX: usize = 4 * 1024 * 1024;
/// By how much what must be said may pass it.
const OUT_SLACK: usize = 64 * 1024;

/// A duplex of frames, as the callers see it; its reader and writer stand in `pump`.
pub(crate) struct Pipe {
    pending: Mutex<Pending>,
    out: Mutex<Out>,
    /// Tells the writer that there is something to write.
    pub(super) filled: Notify,
    pub(super) inbox: Arc<dyn Inbox>,
    /// Whether anything was heard.
    pub(super) pulse: Pulse,
    revision: OnceLock<Revision>,
    /// What the upstream has asked.
    pub(super) desk: Desk,
    /// The tasks that its calls were given.
    pub(super) made: Made,
    /// What came before any message.
    pub(super) noise: Noise,
    tasks: Tasks,
    /// Something has come.
    heard: CancellationToken,
    closed: CancellationToken,
    cause: OnceLock<Arc<str>>,
}

#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
    /// How much was ever handed to the writer.
    taken: u64,
    closed: bool,
}

impl Pipe {
    /// A pipe whose questions wait at this level.
    pub(crate) fn new(inbox: Arc<dyn Inbox>, tasks: Tasks) -> Arc<Self> {
        Arc::new(Self {
            pending: Mutex::default(),
            made: Made::default(),
            noise: Noise::default(),
            out: Mutex::default(),
            filled: Notify::new(),
            inbox,
            pulse: Pulse::default(),
            revision: OnceLock::new(),
            desk: Desk::default(),
            tasks,
            heard: CancellationToken::new(),
            closed: CancellationToken::new(),
            cause: OnceLock::new(),
        })
    }

    /// From now on this revision is spoken.
    pub(crate) fn speak(&self, revision: Revision) {
        let _ = self.revision.set(revision);
    }

    /// Sends a request. Frames are written in the order of these calls.
    pub(crate) fn exchange(self: &Arc<Self>, request: &Request<'_>) -> Result<PipeExchange, Lost> {
        let slot = Arc::new(Slot::of(request));
        let Some(id) = self.pending().insert(slot.clone()) else {
            return Err(self.busy("too many requests are in flight"));
        };
        let mut out = self.out();
        if out.closed || out.bytes.len() > OUT_MAX {
            let lost = if out.closed { self.unsent() } else { self.busy("it does not read what it is sent") };
            drop(out);
            self.pending().remove(id);
            return Err(lost);
        }
        slot.enqueued_at(out.taken + out.bytes.len() as u64);
        request.write(id, &mut out.bytes);
        out.bytes.push(b'\n');
        drop(out);
        self.filled.notify_one();
        // A handshake may not be cancelled.
        let quiet = *request.method == Method::Initialize;
        Ok(PipeExchange { pipe: self.clone(), id, slot, ended: false, quiet })
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, request: &Request<'_>) -> Result<(), Lost> {
        let mut out = self.out();
        if out.closed {
            return Err(self.unsent());
        }
        if out.bytes.len() > OUT_MAX + OUT_SLACK {
            return Err(self.busy("it does not read what it is sent"));
        }
        request.write_notification(&mut out.bytes);
        out.bytes.push(b'\n');
        drop(out);
        self.filled.notify_one();
        Ok(())
    }

    /// Writes answers to what the upstream asked. A stateless one is never answered: it may not ask.
    fn answered(&self, frames: &[Bytes]) {
        if self.is_modern() || frames.is_empty() {
            return;
        }
        let mut out = self.out();
        for frame in frames {
            if !out.closed && out.bytes.len() <= OUT_MAX + OUT_SLACK {
                out.bytes.extend_from_slice(frame);
                out.bytes.push(b'\n');
            }
        }
        drop(out);
        self.filled.notify_one();
    }

    /// A call is no longer open: what was asked of it alone is answered for it.
    pub(super) fn left(&self, gone: &Arc<Slot>) {
        self.answered(&asker::left(self, gone));
    }

    /// Whether a stateless revision is spoken.
    pub(super) fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.is_modern())
    }

    /// Hands all that waits to the writer, which gives back an empty buffer; `None` when the pipe is closed.
    pub(super) fn take(&self, empty: Vec<u8>) -> Option<Vec<u8>> {
        let mut out = self.out();
        if out.closed {
            return None;
        }
        out.taken += out.bytes.len() as u64;
        Some(std::mem::replace(&mut out.bytes, empty))
    }

    /// Ends the pipe and every exchange on it, at once. The first cause stays.
    pub(crate) fn close(&self, cause: impl Into<Arc<str>>) {
        let cause = self.cause.get_or_init(|| cause.into()).clone();
        let taken = {
            let mut out = self.out();
            out.closed = true;
            out.bytes = Vec::new();
            out.taken
        };
        let slots = self.pending().drain();
        for slot in slots {
            let lost = if slot.start() >= taken { Lost::Unsent(cause.clone()) } else { Lost::Unknown(cause.clone()) };
            slot.finish(Arrival::Lost(lost));
        }
        self.desk.clear();
        self.closed.cancel();
    }

    /// The first bytes have come.
    pub(super) fn hears(&self) {
        self.heard.cancel();
    }

    /// Resolves when anything has come.
    pub(crate) async fn heard(&self) {
        self.heard.cancelled().await;
    }

    /// Resolves when the pipe is closed.
    pub(crate) async fn closed(&self) -> Arc<str> {
        self.closed.cancelled().await;
        self.cause().unwrap_or_default()
    }

    /// Why it is closed.
    pub(crate) fn cause(&self) -> Option<Arc<str>> {
        self.cause.get().cloned()
    }

    /// Whether it is closed, or about to be.
    pub(crate) fn is_closed(&self) -> bool {
        self.cause.get().is_some()
    }

    /// How many exchanges are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.pending().len()
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsent(&self) -> Lost {
        Lost::Unsent(self.cause().unwrap_or_else(|| "it has ended".into()))
    }

    fn busy(&self, why: &str) -> Lost {
        Lost::Busy(why.into())
    }

    /// Tells the upstream that an answer is no longer wanted.
    fn withdraw(&self, id: u64) {
        let mut text = b"{\"requestId\":".to_vec();
        text.extend_from_slice(Decimal::of(id).as_bytes());
        text.push(b'}');
        let params = Object::parse(text.into()).unwrap_or_default();
        // A stateless upstream has nothing but the message itself to see its era by.
        let envelope = self.is_modern().then(|| identity::envelope(Revision::NEWEST_MODERN, NO_CAPABILITIES, None));
        let _ = self.notify(&Request::new(&Method::Cancelled, &params, envelope));
    }
}

impl Asker for Pipe {
    fn desk(&self) -> &Desk {
        &self.desk
    }

    fn calls(&self) -> Vec<Arc<Slot>> {
        self.pending().calls()
    }

    fn answer(self: Arc<Self>, id: &Id, answer: &Answer, _call: Option<&Arc<Slot>>) {
        self.answered(&[answer.frame(id.raw())]);
    }

    fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }
}

/// One request on a pipe. Dropping it before its end withdraws the request.
pub(crate) struct PipeExchange {
    pipe: Arc<Pipe>,
    id: u64,
    slot: Arc<Slot>,
    ended: bool,
    quiet: bool,
}

impl PipeExchange {
    /// The next frame that belongs to it.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Arrival> {
        let arrival = self.slot.poll(cx);
        self.ended |= matches!(arrival, Poll::Ready(Arrival::Response(_) | Arrival::Lost(_)));
        arrival
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Where its frames wait.
    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Since when a question is open on it.
    pub(crate) fn asked_since(&self) -> Option<Instant> {
        self.slot.asked_since()
    }

    /// Lets it run on unwatched: its answer is taken and forgotten.
    pub(crate) fn detach(mut self) {
        self.ended = true;
    }
}

impl Drop for PipeExchange {
    fn drop(&mut self) {
        // Where it is not in the table any more its answer has come, and there is nothing to withdraw.
        if !self.ended && self.pipe.pending().remove(self.id).is_some() && !self.quiet {
            self.pipe.left(&self.slot);
            self.pipe.withdraw(self.id);
            self.slot.leave();
        }
    }
}

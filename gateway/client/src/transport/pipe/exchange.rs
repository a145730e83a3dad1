//! Many exchanges over one duplex of frames.

use super::in_flight::Pending;
use super::outbox::{FrameClass, Outbox, PutError, TakenBack};
use crate::health::{Cause, CauseCode};
use crate::metrics::sampled;
use crate::protocol::frame::Decimal;
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Id;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::runtime::Tasks;
use crate::transport::events::LinkEvents;
use crate::transport::exchange::mailbox::{Arrival, Mailbox};
use crate::transport::exchange::{Lost, Request};
use crate::transport::identity;
use crate::transport::identity::NO_CAPABILITIES;
use crate::transport::liveness::Liveness;
use crate::transport::questions::{Answer, AnswerTo, Asker, PendingQuestions, asker};
use crate::transport::stdio::StrayOutput;
use crate::transport::task_tokens::TaskTokens;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A duplex of frames, as the callers see it; its reader and writer stand in `pump`.
pub struct Pipe {
    pending: Mutex<Pending>,
    out: Mutex<Outbox>,
    /// Tells the writer that there is something to write.
    pub(crate) filled: Notify,
    pub(crate) inbox: Arc<dyn LinkEvents>,
    /// Whether anything was heard.
    pub(crate) pulse: Liveness,
    revision: OnceLock<Revision>,
    /// What the upstream has asked.
    pub(crate) desk: PendingQuestions,
    /// The tasks that its calls were given.
    pub(super) made: TaskTokens,
    /// What came before any message.
    pub(crate) noise: StrayOutput,
    /// Whether it is shown that the upstream does not read.
    unread: AtomicBool,
    /// Whether calls of tools are all that the other side knows, each by itself.
    is_bare: bool,
    tasks: Tasks,
    /// Something has come.
    heard: CancellationToken,
    closed: CancellationToken,
    cause: OnceLock<Cause>,
}

impl Pipe {
    /// A pipe whose questions wait at this level.
    pub fn new(inbox: Arc<dyn LinkEvents>, tasks: Tasks) -> Arc<Self> {
        Arc::new(Self::of(inbox, tasks, false))
    }

    /// The same, where calls of tools are all that the other side knows, each by itself.
    pub(crate) fn bare(inbox: Arc<dyn LinkEvents>, tasks: Tasks) -> Arc<Self> {
        Arc::new(Self::of(inbox, tasks, true))
    }

    fn of(inbox: Arc<dyn LinkEvents>, tasks: Tasks, is_bare: bool) -> Self {
        Self {
            pending: Mutex::default(),
            made: TaskTokens::default(),
            noise: StrayOutput::default(),
            unread: AtomicBool::new(false),
            out: Mutex::new(Outbox::new(inbox.budget().clone())),
            filled: Notify::new(),
            inbox,
            pulse: Liveness::default(),
            revision: OnceLock::new(),
            desk: PendingQuestions::default(),
            is_bare,
            tasks,
            heard: CancellationToken::new(),
            closed: CancellationToken::new(),
            cause: OnceLock::new(),
        }
    }

    /// From now on this revision is spoken.
    pub(crate) fn speak(&self, revision: Revision) {
        let _ = self.revision.set(revision);
    }

    /// Sends a request. Frames are written in the order of these calls.
    pub(crate) fn exchange(self: &Arc<Self>, request: &Request<'_>) -> Result<PipeExchange, Lost> {
        let slot = Arc::new(Mailbox::of(request));
        let Some(id) = self.pending().insert(slot.clone()) else {
            return Err(self.busy("too many requests are in flight"));
        };
        if let Err(lost) = self.enqueue(request, id, &slot) {
            self.pending().remove(id);
            return Err(lost);
        }
        self.filled.notify_one();
        // A handshake may not be cancelled.
        let quiet = *request.method == Method::Initialize;
        Ok(PipeExchange { pipe: self.clone(), id, slot, ended: false, quiet })
    }

    /// Queues a request. Its start is noted under the lock, since the end of the pipe looks at it.
    fn enqueue(&self, request: &Request<'_>, id: u64, slot: &Mailbox) -> Result<(), Lost> {
        let mut out = self.out();
        if out.is_closed() {
            return Err(self.unsent());
        }
        if self.is_bare && *request.method != Method::ToolsCall {
            let said = "nothing but a tool call can be sent to it (`dialect = \"bare\"`)";
            return Err(Lost::Odd(Cause::new(CauseCode::ResponseInvalid, said)));
        }
        let queued =
            out.put((FrameClass::Request, request.room()), request.share.clone(), |bytes| match self.is_bare {
                false => request.write(id, bytes),
                true => request.write_bare(id, bytes),
            });
        slot.enqueued_at(queued.map_err(|why| self.full(why))?);
        Ok(())
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, request: &Request<'_>) -> Result<(), Lost> {
        if self.is_bare {
            return Ok(());
        }
        let mut out = self.out();
        if out.is_closed() {
            return Err(self.unsent());
        }
        let class = (FrameClass::Message, request.room());
        out.put(class, request.share.clone(), |bytes| request.write_notification(bytes))
            .map_err(|why| self.full(why))?;
        drop(out);
        self.filled.notify_one();
        Ok(())
    }

    /// Writes answers to requests of the upstream. A stateless upstream is never answered, since it may not ask. The error is the
    /// reason for which an answer is dropped.
    fn write_answers(
        &self,
        frames: &[Bytes],
        put: impl Fn(&mut Outbox, &Bytes) -> Result<(), PutError>,
    ) -> Result<(), PutError> {
        let mut out = self.out();
        if self.is_modern() || frames.is_empty() || out.is_closed() {
            return Ok(());
        }
        let written = frames.iter().try_for_each(|frame| put(&mut out, frame));
        drop(out);
        self.filled.notify_one();
        written.inspect_err(|why| {
            let what = "an answer to a request of the upstream was dropped";
            self.inbox.failed("one_way_full", why.code(), &format_args!("{what}: {why}"));
        })
    }

    /// A call is no longer open: what was asked of it alone is answered for it.
    pub(crate) fn left(&self, gone: &Arc<Mailbox>) {
        let _reported =
            self.write_answers(&asker::left(self, gone), |out, frame| put_answer(out, FrameClass::Message, frame));
    }

    /// Ends one exchange that will have no answer.
    pub(crate) fn lose(&self, id: u64, lost: Lost) {
        let slot = self.pending().remove(id);
        if let Some(slot) = slot {
            self.left(&slot);
            slot.finish(Arrival::Lost(lost));
        }
    }

    /// Ends a call that cannot go on without an answer that was dropped.
    fn abandon(&self, call: &Arc<Mailbox>, why: PutError) {
        let Some(id) = self.pending().id_of(call) else { return };
        let said = format!("the answer to its question was not accepted: {why}");
        self.lose(id, Lost::Unknown(Cause::new(CauseCode::MessageRefused, said)));
        self.withdraw(id);
    }

    /// Shows how many of its requests are in flight in the metrics, for as long as it is there.
    pub(crate) fn count_for(self: &Arc<Self>, upstream: &str) {
        let counted = Arc::downgrade(self);
        sampled::pending(upstream, move || Some(counted.upgrade()?.in_flight()));
    }

    /// Whether calls of tools are all that the other side knows.
    pub(crate) fn is_bare(&self) -> bool {
        self.is_bare
    }

    /// Whether a stateless revision is spoken.
    pub(crate) fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.is_modern())
    }

    /// Takes a request back of which nothing was written; says whether that is so. One that is written in part stays where it is.
    fn take_back(&self, slot: &Mailbox) -> bool {
        self.out().take_back(slot.start()) == TakenBack::Whole
    }

    /// Ends the pipe and every exchange on it, at once. The first cause stays.
    pub fn close(&self, cause: Cause) {
        let cause = self.cause.get_or_init(|| cause).clone();
        let whole = self.out().close();
        let slots = self.pending().drain();
        for slot in slots {
            let lost = if slot.start() >= whole { Lost::Unsent(cause.clone()) } else { Lost::Unknown(cause.clone()) };
            slot.finish(Arrival::Lost(lost));
        }
        self.desk.clear();
        self.closed.cancel();
    }

    /// The first bytes have come.
    pub(crate) fn hears(&self) {
        self.heard.cancel();
    }

    /// Resolves when anything has come.
    pub(crate) async fn heard(&self) {
        self.heard.cancelled().await;
    }

    /// Resolves when the pipe is closed.
    pub async fn closed(&self) -> Cause {
        self.closed.cancelled().await;
        self.cause().unwrap_or_default()
    }

    /// Why it is closed.
    pub(crate) fn cause(&self) -> Option<Cause> {
        self.cause.get().cloned()
    }

    /// Whether it is closed, or about to be.
    pub fn is_closed(&self) -> bool {
        self.cause.get().is_some()
    }

    /// How many exchanges are in flight.
    pub fn in_flight(&self) -> usize {
        self.pending().len()
    }

    pub(crate) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What waits to be written.
    pub(crate) fn out(&self) -> MutexGuard<'_, Outbox> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsent(&self) -> Lost {
        Lost::Unsent(self.cause().unwrap_or_else(|| Cause::new(CauseCode::PipeClosed, "it has ended")))
    }

    /// Shows that the upstream does not read, or does again.
    pub(crate) fn set_unread(&self, is_unread: bool) {
        self.unread.store(is_unread, Ordering::Relaxed);
    }

    /// The queue is full, and why: a healthy upstream gets more than it reads, or it does not read.
    fn full(&self, why: PutError) -> Lost {
        match (self.unread.load(Ordering::Relaxed), why) {
            (true, PutError::Full(full)) => self.busy(&format!("input not read; {full}")),
            (_, why) => self.busy(&why.to_string()),
        }
    }

    fn busy(&self, why: &str) -> Lost {
        Lost::Busy(Cause::new(CauseCode::QueueFull, why))
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
    fn desk(&self) -> &PendingQuestions {
        &self.desk
    }

    fn calls(&self) -> Vec<Arc<Mailbox>> {
        self.pending().calls()
    }

    fn answer(self: Arc<Self>, id: &Id, answer: &Answer, to: AnswerTo<'_>) {
        let written = self.write_answers(&[answer.frame(id.raw())], |out, frame| match to {
            AnswerTo::Ping => out.put_pong(frame),
            AnswerTo::AtOnce(_) => put_answer(out, FrameClass::AtOnce, frame),
            AnswerTo::Question(_) => put_answer(out, FrameClass::Message, frame),
        });
        if let (Err(why), AnswerTo::AtOnce(Some(call)) | AnswerTo::Question(Some(call))) = (written, to) {
            self.abandon(call, why);
        }
    }

    fn revision(&self) -> Option<Revision> {
        self.revision.get().copied()
    }

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }
}

fn put_answer(out: &mut Outbox, class: FrameClass, frame: &Bytes) -> Result<(), PutError> {
    out.put((class, frame.len()), None, |bytes| bytes.extend_from_slice(frame)).map(drop)
}

/// One request on a pipe. Dropping it before its end withdraws the request.
pub struct PipeExchange {
    pipe: Arc<Pipe>,
    id: u64,
    slot: Arc<Mailbox>,
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
    pub(crate) fn slot(&self) -> &Mailbox {
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

    /// Takes it back, where nothing of it was sent; whether that is so. Then it never will be.
    pub(crate) fn take_back(&mut self) -> bool {
        let is_back = !self.ended && self.pipe.take_back(&self.slot);
        if is_back {
            self.ended = true;
            self.pipe.pending().remove(self.id);
            self.pipe.left(&self.slot);
            self.slot.leave();
        }
        is_back
    }
}

impl Drop for PipeExchange {
    fn drop(&mut self) {
        // What was not sent need not be withdrawn.
        if self.take_back() {
            return;
        }
        // Where it is not in the table any more its answer has come, and there is nothing to withdraw.
        if !self.ended && self.pipe.pending().give_up(self.id).is_some() && !self.quiet {
            self.pipe.left(&self.slot);
            self.pipe.withdraw(self.id);
            self.slot.leave();
        }
    }
}

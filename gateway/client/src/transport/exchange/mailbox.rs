//! Where the frames of one exchange wait for whoever reads it: bounded, no task, no channel.

use super::lost::Lost;
use super::request::Request;
use crate::call::LogLevel;
use crate::call::caller::{Caller, ClientSession};
use crate::call::reply::ask::Ask;
use crate::call::share::Share;
use crate::memory::account::Kind;
use crate::memory::budget::{Budget, Charge, Spent};
use crate::protocol::frame::message::Body;
use crate::protocol::json;
use crate::protocol::value::Object;
use crate::transport::exchange::Permit;
use crate::transport::exchange::ProgressRate;
use crate::transport::http::FairPermit;
use http::{HeaderName, HeaderValue};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::time::Instant;

/// How many events wait at most.
const EVENTS_MAX: usize = 64;

/// A frame that belongs to an exchange, or its end.
#[derive(Debug)]
pub enum Arrival {
    /// The parameters of a progress notification.
    Progress(Object),
    /// The parameters of a log message.
    Log(LogLevel, Object),
    /// The parameters of the notice that a listen call was taken.
    Acknowledged(Object),
    /// The parameters of the notice how a task stands, on a listen call.
    Task(Object),
    /// A question to whoever made the call.
    Ask(Box<Ask>),
    /// The answer; nothing comes after it.
    Response(Body),
    /// There will be no answer; nothing comes after it.
    Lost(Lost),
}

impl Arrival {
    /// How much of a peer's is in an event.
    fn bytes(&self) -> usize {
        match self {
            Self::Progress(params) | Self::Log(_, params) | Self::Acknowledged(params) | Self::Task(params) => {
                params.raw().len()
            }
            Self::Ask(_) | Self::Response(_) | Self::Lost(_) => 0,
        }
    }
}

/// The place of one exchange.
#[derive(Debug)]
pub struct Mailbox {
    inner: Mutex<Inner>,
    /// Where its frame starts in all that the link was ever given to write.
    start: AtomicU64,
    /// Whether progress was asked for.
    pub(crate) progress: bool,
    /// The level from which on log messages were asked for.
    pub(crate) logs: Option<LogLevel>,
    /// Who makes the call, where it is one during which a client can be asked.
    pub caller: Option<Arc<Caller>>,
    /// Whose share of the link it takes; `None`: it is a request of our own.
    pub(crate) share: Option<Share>,
    /// The header that says whose call it is, where each frame is posted by itself.
    pub(crate) identity: Option<Box<(HeaderName, HeaderValue)>>,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<Arrival>,
    /// What peers have put into them.
    bytes: usize,
    charge: Charge,
    end: Option<Arrival>,
    ended: bool,
    waker: Option<Waker>,
    last_progress: Option<f64>,
    pace: ProgressRate,
    /// How many questions that were put on it are open.
    questions: usize,
    /// Since when any is.
    asked_since: Option<Instant>,
    was_asked: bool,
    /// Its place among the connections there may be, until it ends or is asked: then it waits for a person.
    room: Option<FairPermit>,
    /// Its place among the calls that the upstream may have at once; lent while a person is asked.
    place: Option<Permit>,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It waits.
    Yes,
    /// It was not wanted, came too late, or did not move on.
    No,
    /// It took the place of an older one.
    Instead,
}

impl Mailbox {
    pub(crate) fn new(progress: bool, logs: Option<LogLevel>) -> Self {
        let (inner, start) = (Mutex::default(), AtomicU64::new(u64::MAX));
        Self { inner, start, progress, logs, caller: None, share: None, identity: None }
    }

    /// The place of a request.
    pub(crate) fn of(request: &Request<'_>) -> Self {
        let (caller, share, identity) = (request.caller.cloned(), request.share.clone(), request.identity.clone());
        Self { caller, share, identity, ..Self::new(request.progress, request.logs) }
    }

    /// Whether a log message may be of its making, wanted or not.
    pub(crate) fn speaks(&self) -> bool {
        self.caller.is_some() || self.logs.is_some()
    }

    /// Whether a log message of this level is wanted.
    pub(crate) fn wants(&self, level: LogLevel) -> bool {
        self.logs.is_some_and(|wanted| level >= wanted)
    }

    /// Whether it is a call of this session.
    pub fn is_of(&self, tenant: &ClientSession) -> bool {
        self.tenant().is_some_and(|own| own.id() == tenant.id())
    }

    /// The session whose call it is.
    pub fn tenant(&self) -> Option<&Arc<ClientSession>> {
        self.caller.as_ref()?.tenant.as_ref()
    }

    /// Notes where the frame starts.
    pub(crate) fn enqueued_at(&self, start: u64) {
        self.start.store(start, Ordering::Release);
    }

    /// Where the frame starts; beyond everything while it was not enqueued.
    pub(crate) fn start(&self) -> u64 {
        self.start.load(Ordering::Acquire)
    }

    /// Takes a question.
    pub fn ask(&self, ask: Box<Ask>) -> Kept {
        self.take(Arrival::Ask(ask), None)
    }

    /// Takes an event that belongs to the exchange, where there is memory for it.
    pub(crate) fn push(&self, event: Arrival, budget: &Budget) -> Kept {
        self.take(event, Some(budget))
    }

    fn take(&self, event: Arrival, budget: Option<&Budget>) -> Kept {
        let mut inner = self.lock();
        if inner.ended {
            return Kept::No;
        }
        let mut bytes = inner.bytes + event.bytes();
        if budget.is_some_and(|budget| self.count(&mut inner.charge, budget, bytes).is_err()) {
            return Kept::No;
        }
        if let Arrival::Progress(params) = &event {
            let value = json::get(params.raw(), "progress").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
            if !self.progress || value.is_none() || value <= inner.last_progress {
                return Kept::No;
            }
            inner.last_progress = value;
            if !inner.pace.admits(inner.events.len())
                && let Some(last @ Arrival::Progress(_)) = inner.events.back_mut()
            {
                // Nobody was told of that one, and whoever reads knows already that there is something.
                let before = std::mem::replace(last, event).bytes();
                inner.counts(bytes - before);
                return Kept::Yes;
            }
        }
        // How a task stands now says all that was said of it before.
        if let Arrival::Task(params) = &event {
            let id = params.find("taskId");
            let is_same = |old: &Arrival| matches!(old, Arrival::Task(before) if before.find("taskId") == id);
            bytes -= inner.events.iter().filter(|old| is_same(old)).map(Arrival::bytes).sum::<usize>();
            inner.events.retain(|old| !is_same(old));
        }
        inner.bytes = bytes;
        let mut kept = Kept::Yes;
        let is_question = matches!(event, Arrival::Ask(_));
        if !is_question && inner.events.len() >= EVENTS_MAX {
            // A full queue keeps the latest progress, and otherwise loses its oldest log message.
            kept = Kept::Instead;
            let is_progress = matches!(event, Arrival::Progress(_));
            let alike = |old: &Arrival| match old {
                Arrival::Progress(_) => is_progress,
                Arrival::Ask(_) | Arrival::Acknowledged(_) => false,
                _ => !is_progress,
            };
            let at = inner.events.iter().position(alike);
            // Questions are never dropped, and fewer than may wait in all.
            let at = at.or_else(|| inner.events.iter().position(|old| !matches!(old, Arrival::Ask(_))));
            let gone = at.and_then(|at| inner.events.remove(at)).map_or(0, |gone| gone.bytes());
            let bytes = inner.bytes - gone;
            inner.counts(bytes);
        }
        inner.events.push_back(event);
        let waker = inner.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
        kept
    }

    /// The budget, as the client's whose call it is.
    pub(crate) fn budget(&self, budget: &Budget) -> Budget {
        self.share.as_ref().map_or_else(|| budget.clone(), |share| budget.owned_by(share.owner()))
    }

    /// Counts so many bytes of events for the client whose call it is.
    fn count(&self, charge: &mut Charge, budget: &Budget, bytes: usize) -> Result<(), Spent> {
        charge.grow(&self.budget(budget), Kind::Reply, bytes)
    }

    /// How far it has come, as far as it was told.
    pub(crate) fn progressed(&self) -> Option<f64> {
        self.lock().last_progress
    }

    /// Takes an event that came behind its end, while nobody has read that; says whether nobody has.
    pub(crate) fn push_before_end(&self, event: Arrival) -> bool {
        let mut inner = self.lock();
        let is_unread = inner.end.is_some();
        if is_unread && inner.events.len() < EVENTS_MAX {
            inner.events.push_back(event);
        }
        is_unread
    }

    /// A question is open on it, or may be its: whoever keeps its time is told.
    pub(crate) fn question_opened(&self) {
        let mut inner = self.lock();
        inner.questions += 1;
        inner.asked_since.get_or_insert_with(Instant::now);
        inner.was_asked = true;
        inner.room = None;
        inner.place.as_mut().into_iter().for_each(Permit::lend);
        let waker = inner.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Keeps the exchange's place among the connections there may be, where it was never asked.
    pub(crate) fn keep_room(&self, room: Option<FairPermit>) {
        let mut inner = self.lock();
        if !inner.was_asked {
            inner.room = room;
        }
    }

    /// Keeps its place among the calls that the upstream may have at once, where it has not ended already.
    pub(crate) fn hold(&self, mut place: Permit) {
        let mut inner = self.lock();
        if inner.questions > 0 {
            place.lend();
        }
        if !inner.ended {
            inner.place = Some(place);
        }
    }

    /// Nobody waits for its end any more: its place is free.
    pub(crate) fn leave(&self) {
        self.lock().place = None;
    }

    /// A question is no longer open: whoever waits for the last of them is told.
    pub(crate) fn question_closed(&self) {
        let mut inner = self.lock();
        inner.questions = inner.questions.saturating_sub(1);
        let mut waker = None;
        if inner.questions == 0 {
            inner.asked_since = None;
            inner.place.as_mut().into_iter().for_each(Permit::resume);
            waker = inner.waker.take();
        }
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    /// Since when a question is open on it.
    pub(crate) fn asked_since(&self) -> Option<Instant> {
        self.lock().asked_since
    }

    /// Ends the exchange; false where it had ended.
    pub(crate) fn finish(&self, end: Arrival) -> bool {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.ended, true) {
            return false;
        }
        inner.end = Some(end);
        (inner.room, inner.place) = (None, None);
        let waker = inner.waker.take();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
        true
    }

    /// The next frame, where one waits.
    pub(crate) fn pop(&self) -> Option<Arrival> {
        self.lock().next()
    }

    /// The next frame, where one waits. Where none does, whoever reads is about to look for one, and needs no wake-up until it polls.
    pub(crate) fn pop_or_look(&self) -> Option<Arrival> {
        let mut inner = self.lock();
        let next = inner.next();
        if next.is_none() {
            inner.waker = None;
        }
        next
    }

    /// The next frame, or a wake-up when it is there.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Arrival> {
        let mut inner = self.lock();
        if let Some(arrival) = inner.next() {
            return Poll::Ready(arrival);
        }
        if !inner.events.is_empty() {
            inner.pace.poll(cx);
        }
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// What is next; progress that is alone waits until it may be told.
    fn next(&mut self) -> Option<Arrival> {
        let is_alone = self.events.len() == 1 && self.end.is_none();
        let is_progress = matches!(self.events.front(), Some(Arrival::Progress(_)));
        if is_progress && is_alone && !self.pace.admits(0) {
            return None;
        }
        if is_progress {
            self.pace.told();
        }
        let Some(event) = self.events.pop_front() else { return self.end.take() };
        self.counts(self.bytes.saturating_sub(event.bytes()));
        Some(event)
    }

    /// So many bytes wait by now.
    fn counts(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.charge.shrink(bytes);
    }
}

#[cfg(test)]
mod tests;

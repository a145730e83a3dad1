//! The questions that are open at a handshake client: numbered by us, answered by their numbers, withdrawn, bounded.

use super::task_tokens::TaskTokens;
use super::waiting::WaitingMessages;
use crate::call::reply::ask::{Answer, Answered, Ask};
use crate::memory::StandingCharge;
use crate::memory::budget::Budget;
use crate::metrics;
use crate::protocol::capabilities::{Capabilities, need};
use crate::protocol::frame::Method;
use crate::protocol::frame::message::{Body, Id};
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::protocol::{frame, translate};
use crate::response::Label;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The most questions that may be open at one client.
const OPEN_MAX: usize = 256;

/// A session's questions. They outlive the calls on whose streams they were put.
#[derive(Debug)]
pub(crate) struct ClientQuestions {
    /// What the client reads.
    revision: Revision,
    label: Label,
    /// Where it is counted what waits for the client, as the client's.
    budget: Budget,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    open: BTreeMap<u64, Open>,
    /// The number before the first question. It is random: another replica, or another run, that has this session uses other numbers.
    start: u64,
    /// The number of the newest question; numbers are never given twice.
    newest: u64,
    /// Frames for the stream of the notices that are no questions.
    told: WaitingMessages,
    /// How far tasks have come, for the same stream.
    progress: TaskTokens,
    /// Whoever reads the notices.
    reader: Option<Waker>,
    closed: bool,
}

#[derive(Debug)]
struct Open {
    answer: Answer,
    place: Place,
}

/// Where a question stands.
#[derive(Debug)]
enum Place {
    /// On the stream of a call, which watches for its withdrawal.
    Call,
    /// It waits for a stream of the notices.
    Unsent { frame: Vec<u8>, _counted: StandingCharge },
    /// On the stream of the notices, or on that of a call which has ended: withdrawn among the notices.
    Notices,
}

/// A question as it was put: its number, and the frame to be sent.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) id: u64,
    pub(crate) frame: Vec<u8>,
    /// What the client will know a web page's visit by, where we had to give it a name.
    pub(crate) visit: Option<String>,
}

/// Why a question cannot be put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unput {
    /// Too many are open, or the client has gone.
    Full,
    /// It cannot be said in the client's revision.
    Unsayable,
}

/// A response to a question that this process has not put in this session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ForeignAnswer;

impl Unput {
    /// The end of a sentence that says what was asked for.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Full => "and too many questions are open at this client already",
            Self::Unsayable => "which cannot be asked in this client's revision",
        }
    }
}

impl ClientQuestions {
    pub(crate) fn new(revision: Revision, label: Label, budget: Budget) -> Self {
        let start = random_start();
        let inner = Inner {
            open: BTreeMap::new(),
            start,
            newest: start,
            told: WaitingMessages::new(&budget),
            progress: TaskTokens::default(),
            reader: None,
            closed: false,
        };
        Self { revision, label, budget, inner: Mutex::new(inner) }
    }

    /// The budget of what waits for the client.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Puts a question on the stream of a call, whose number goes back to [`Self::poll_withdrawn`] or [`Self::leave`].
    pub(crate) fn put(&self, ask: Ask) -> Result<Put, Unput> {
        let (params, visit) = self.words(&ask).ok_or(Unput::Unsayable)?;
        let mut inner = self.lock();
        let id = inner.number().ok_or(Unput::Full)?;
        inner.open.insert(id, Open { answer: ask.answer, place: Place::Call });
        Ok(Put { id, frame: request(id, &ask.method, &params), visit })
    }

    /// Puts a question that belongs to no call; gives it back where it cannot be put.
    pub(crate) fn queue(&self, ask: Box<Ask>) -> Result<(), Box<Ask>> {
        let Some((params, _)) = self.words(&ask) else { return Err(ask) };
        let mut inner = self.lock();
        let Some(id) = inner.number() else { return Err(ask) };
        let frame = request(id, &ask.method, &params);
        let Ok(_counted) = self.budget.stand(frame.len()) else { return Err(ask) };
        let place = Place::Unsent { frame, _counted };
        inner.open.insert(id, Open { answer: ask.answer, place });
        inner.wake();
        Ok(())
    }

    /// Tells the client something that belongs to no call, where its revision knows it.
    pub(crate) fn tell(&self, method: &Method, params: &Object) {
        let mut inner = self.lock();
        if inner.closed || (*method == Method::ElicitationComplete && self.revision != Revision::V2025_11_25) {
            return;
        }
        if *method == Method::Progress {
            inner.progress.told(params);
            return inner.wake();
        }
        if *method == Method::TaskStatus {
            inner.progress.stands(params);
        }
        inner.told.push(frame::message::one_line(Vec::from(frame::message::notification(method, params.raw()))));
        inner.wake();
    }

    /// The client was given a task: progress of that comes under the token of the call that made it.
    pub(crate) fn keep_token(&self, task: Box<str>, token: &[u8]) {
        self.lock().progress.keep(task, token);
    }

    /// Hands a client's response to the caller of the question. A response to a question that is over is dropped.
    pub(crate) fn answer(&self, id: Option<&Id>, body: Body) -> Result<(), ForeignAnswer> {
        let mut inner = self.lock();
        let number = id.and_then(Id::number);
        let Some(Open { answer, .. }) = number.and_then(|number| inner.open.remove(&number)) else {
            // An error without an id answers no question in particular.
            let is_own =
                id.is_none() || number.is_some_and(|number| (inner.start + 1..=inner.newest).contains(&number));
            metrics::unasked(if is_own { "ended" } else { "foreign" }).increment(1);
            return if is_own { Ok(()) } else { Err(ForeignAnswer) };
        };
        drop(inner);
        let body = match body {
            Body::Result(result) if result.doubled().is_none() => Ok(result),
            Body::Error(raw) => Err(RpcError::from_raw(raw)),
            // Dropped without a word: there is no answer, or two of them.
            Body::Result(_) | Body::Odd(_) | Body::Neither => return Ok(()),
        };
        // Withdrawn this very moment: that is a race, not a fault.
        let _too_late = answer.give(Answered { revision: self.revision, body });
        Ok(())
    }

    /// The withdrawals of a call's questions that are due; those that are over leave `ids`.
    pub(crate) fn poll_withdrawn(&self, ids: &mut Vec<u64>, due: &mut VecDeque<Vec<u8>>, cx: &mut Context<'_>) {
        let mut inner = self.lock();
        ids.retain(|id| match inner.open.get_mut(id).map(|open| open.answer.poll_closed(cx)) {
            Some(Poll::Pending) => true,
            Some(Poll::Ready(())) => {
                inner.open.remove(id);
                due.push_back(withdrawal(*id));
                false
            }
            None => false,
        });
    }

    /// The withdrawals of a call's questions that nobody waits for any more; those are over and leave `ids`.
    pub(crate) fn withdraw_closed(&self, ids: &mut Vec<u64>, due: &mut VecDeque<Vec<u8>>) {
        if ids.is_empty() {
            return;
        }
        let mut inner = self.lock();
        ids.retain(|id| {
            let is_closed = inner.open.get(id).is_some_and(|open| open.answer.is_closed());
            if is_closed {
                inner.open.remove(id);
                due.push_back(withdrawal(*id));
            }
            !is_closed
        });
    }

    /// Gives a call's questions up, without an answer.
    pub(crate) fn withdraw(&self, ids: &mut Vec<u64>, due: &mut VecDeque<Vec<u8>>) {
        let mut inner = self.lock();
        for id in ids.drain(..) {
            if inner.open.remove(&id).is_some() {
                due.push_back(withdrawal(id));
            }
        }
    }

    /// The call of these questions has ended, and they go on without it.
    pub(crate) fn leave(&self, ids: &[u64]) {
        if ids.is_empty() {
            return;
        }
        let mut inner = self.lock();
        for id in ids {
            if let Some(open) = inner.open.get_mut(id) {
                open.place = Place::Notices;
            }
        }
        inner.wake();
    }

    /// The next frame for the stream of the notices.
    pub(crate) fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let mut inner = self.lock();
        if let Some(frame) = inner.next(cx).or_else(|| inner.notice()) {
            return Poll::Ready(frame);
        }
        inner.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether nobody waits for an answer of the client.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().open.values().all(|open| open.answer.is_closed())
    }

    /// Asks nothing more, and gives up what no open call watches; what to tell the client of that.
    pub(crate) fn retire(&self) -> Vec<Vec<u8>> {
        let mut inner = self.lock();
        inner.closed = true;
        let open = std::mem::take(&mut inner.open);
        let (kept, given_up): (BTreeMap<_, _>, BTreeMap<_, _>) =
            open.into_iter().partition(|(_, open)| matches!(open.place, Place::Call));
        inner.open = kept;
        drop(inner);
        let sent = given_up.iter().filter(|(_, open)| matches!(open.place, Place::Notices));
        sent.map(|(id, _)| withdrawal(*id)).collect()
    }

    /// The client has gone: nothing will be answered, and nothing more asked.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.told.clear();
        let open = std::mem::take(&mut inner.open);
        drop(inner);
        drop(open);
    }

    /// A question in the client's words, and the name that a web page's visit was given.
    fn words(&self, ask: &Ask) -> Option<(Object, Option<String>)> {
        let params = translate::question(&ask.method, &ask.request, ask.revision, self.revision)?;
        let params = self.label.put(&ask.upstream, &ask.method, params);
        let is_page = need::of(&ask.method, &params) == Some(Capabilities::URL);
        if !is_page || params.find("elicitationId").is_some() {
            return Some((params, None));
        }
        let name = new_name();
        let named = [format!("{{\"elicitationId\":\"{name}\",").as_bytes(), &params.raw()[1..]].concat();
        Some((Object::parse(named.into()).ok()?, Some(name)))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The next notice; how far a task has come is said before how it ended.
    fn notice(&mut self) -> Option<Vec<u8>> {
        self.progress.next().or_else(|| self.told.pop())
    }

    /// A number for another question; `None` where there is no room.
    fn number(&mut self) -> Option<u64> {
        if self.open.len() >= OPEN_MAX {
            self.prune();
        }
        if self.closed || self.open.len() >= OPEN_MAX {
            return None;
        }
        self.newest += 1;
        Some(self.newest)
    }

    /// Forgets what was withdrawn and has nobody who would tell the client so.
    fn prune(&mut self) {
        self.open.retain(|_, open| matches!(open.place, Place::Call) || !open.answer.is_closed());
    }

    /// What is due on the stream of the notices: questions in their order, and withdrawals.
    fn next(&mut self, cx: &mut Context<'_>) -> Option<Vec<u8>> {
        let mut due = None;
        let mut gone = Vec::new();
        for (id, open) in &mut self.open {
            let is_withdrawn = !matches!(open.place, Place::Call) && open.answer.poll_closed(cx).is_ready();
            match &mut open.place {
                Place::Call => {}
                Place::Unsent { .. } if is_withdrawn => gone.push(*id),
                Place::Unsent { frame, .. } => {
                    due = Some(std::mem::take(frame));
                    open.place = Place::Notices;
                    break;
                }
                Place::Notices if is_withdrawn => {
                    due = Some(withdrawal(*id));
                    gone.push(*id);
                    break;
                }
                Place::Notices => {}
            }
        }
        for id in gone {
            self.open.remove(&id);
        }
        due
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

fn request(id: u64, method: &Method, params: &Object) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.raw().len() + 96);
    frame::message::open_request(id, method, &mut out);
    out.extend_from_slice(params.raw());
    frame::message::close(&mut out);
    frame::message::one_line(out)
}

fn withdrawal(id: u64) -> Vec<u8> {
    let params = format!("{{\"requestId\":{id},\"reason\":\"no request is waiting for this answer\"}}");
    frame::message::notification(&Method::Cancelled, params.as_bytes()).into()
}

/// A random number below 2^30, so that numbers stay below 2^31: clients read ids into 32 bits, too.
fn random_start() -> u64 {
    if cfg!(test) {
        // The frames of unit tests are literal.
        return 0;
    }
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).expect("the system's random source does not fail once it has worked");
    u64::from(u32::from_be_bytes(bytes) >> 2)
}

/// 128 random bits: such names are meant to be unique everywhere.
fn new_name() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system's random source does not fail once it has worked");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! How a stateless client is asked: its call is parked with the questions that came, and its retry brings the answers.

use super::{pages, passing};
use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::ask::Ask;
use crate::call::reply::{Failure, Outcome, Reply};
use crate::call::share::SharePermit;
use crate::edge::{CallContext, Edge};
use crate::memory::account::Kind;
use crate::metrics;
use crate::parking::parked::{Kept, Open, Work};
use crate::parking::{FULL, Origin};
use crate::protocol::capabilities::{Capabilities, need};
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::payload::input;
use crate::protocol::payload::input::Embedded;
use crate::protocol::revision::Revision;
use crate::protocol::translate;
use crate::response::steps::Turn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Questions go out together once none has come for so long.
const QUIET: Duration = Duration::from_millis(20);
/// The first one waits for others so long at most.
const TOGETHER_MAX: Duration = Duration::from_millis(100);
/// The most questions that are open in one call.
const OPEN_MAX: usize = 16;

/// What a call takes that is parked, beside its questions: its request, in the buffer that was read with it, and its own state.
const CALL_BYTES: usize = 48 * 1024;

/// The questions of one call of a stateless client.
pub(crate) struct ParkQuestions {
    origin: Origin,
    /// Those that are to go out.
    gathered: Option<Box<Gathered>>,
    /// It was taken up again when nobody waited for its answers any more.
    was_left: bool,
}

struct Gathered {
    open: Vec<Open>,
    place: SharePermit,
    first: Instant,
    due: Pin<Box<Sleep>>,
}

impl ParkQuestions {
    /// That of a call which begins.
    pub(crate) fn new(call: &Call) -> Self {
        Self { origin: Origin::of(call), gathered: None, was_left: false }
    }

    /// That of a call which is taken up again: what is `open` still is asked once more.
    pub(crate) fn resumed(call: &Call, open: Vec<Open>, place: SharePermit, was_left: bool) -> Self {
        let gathered = (!open.is_empty()).then(|| Box::new(Gathered::new(open, place)));
        Self { origin: Origin::of(call), gathered, was_left }
    }

    /// Takes a live question.
    pub(crate) fn ask(&mut self, ask: Box<Ask>, line: &CallContext<'_>) {
        let upstream = ask.upstream.clone();
        // A question that is dropped is told its upstream to have no answer.
        if let Err(why) = self.gather(ask, line.edge) {
            metrics::not_put(why).increment(1);
            if why == "full" {
                line.edge.refusals.turn_away("questions", &turned_away(&upstream));
            }
            tracing::debug!(upstream = &*upstream, why, "question not sent to its client");
        }
    }

    #[allow(clippy::boxed_local, reason = "as events bear it, which are small for the sake of all others")]
    fn gather(&mut self, ask: Box<Ask>, edge: &Edge) -> Result<(), &'static str> {
        let caller = &self.origin.caller;
        let need = need::of(&ask.method, &ask.request).ok_or("unknown")?;
        if !caller.can().has(need) {
            return Err("undeclared");
        }
        let params = translate::question(&ask.method, &ask.request, ask.revision, caller.revision);
        let params = edge.label.put(&ask.upstream, &ask.method, params.ok_or("untranslatable")?);
        let Ask { key, method, answer, revision, .. } = *ask;
        let is_full = self.gathered.as_ref().is_some_and(|gathered| gathered.open.len() >= OPEN_MAX);
        let place = match &self.gathered {
            None if edge.parked.is_closed() => return Err("ending"),
            None => edge.quota.enter(&caller.share()),
            Some(_) => None,
        };
        if is_full || (place.is_none() && self.gathered.is_none()) {
            answer.refuse(revision, FULL);
            return Err("full");
        }
        let open = Open { key: format!("q{key}"), need, method, params, since: Instant::now(), answer };
        match &mut self.gathered {
            Some(gathered) => gathered.add(open),
            None => self.gathered = place.map(|place| Box::new(Gathered::new(vec![open], place))),
        }
        Ok(())
    }

    /// Parks the call once its questions are together.
    pub(crate) fn poll(&mut self, line: &mut CallContext<'_>, cx: &mut Context<'_>) -> Poll<Turn> {
        let Some(gathered) = &mut self.gathered else { return Poll::Pending };
        gathered.open.retain_mut(|open| open.answer.poll_closed(cx).is_pending());
        if !gathered.open.is_empty() {
            ready!(gathered.due.as_mut().poll(cx));
        }
        match self.gathered.take().filter(|gathered| !gathered.open.is_empty()) {
            Some(gathered) => self.park(*gathered, line).map_or(Poll::Pending, Poll::Ready),
            None => Poll::Pending,
        }
    }

    /// Nothing where it cannot be parked: then the call goes on, and its questions have no answer.
    fn park(&self, Gathered { open, place, .. }: Gathered, line: &mut CallContext<'_>) -> Option<Turn> {
        let revision = self.origin.caller.revision;
        let questions: Vec<_> = open.iter().map(Open::embedded).collect();
        let since = open.iter().map(|open| open.since).min().unwrap_or_else(Instant::now);
        let upstream = line.reply.owner().cloned().unwrap_or_default();
        let parked = Reply::refuse(revision, Refusal::new(Reason::Internal, "the call is parked"));
        let reply = Box::new(std::mem::replace(line.reply, parked));
        let kept = Kept { work: Work::Call { open, reply }, place, held: line.held.take() };
        match keep(line.edge, &self.origin, &upstream, kept, (&questions, since)) {
            Ok(outcome) => Some(Turn::End(line.asked.answer(outcome, revision, None, &line.edge.identity))),
            Err(kept) => {
                *line.held = kept.held;
                if let Work::Call { reply, .. } = kept.work {
                    *line.reply = *reply;
                }
                None
            }
        }
    }

    /// What the client is answered for an outcome, and the revision that this is written in.
    pub(crate) fn outcome(&mut self, outcome: Outcome, line: &CallContext<'_>) -> (Outcome, Revision) {
        let (from, revision) = (line.reply.revision(), self.origin.caller.revision);
        let nobody = Arc::default();
        let upstream = line.reply.owner().unwrap_or(&nobody);
        match outcome {
            Outcome::InputRequired(result) => (passing::pass(line.edge, &self.origin, upstream, result), from),
            Outcome::Error(Failure::Upstream(error)) => match self.pages(&error, line.edge, upstream, from) {
                Some(outcome) => (outcome, revision),
                None => (Outcome::Error(Failure::Upstream(error)), from),
            },
            Outcome::Error(Failure::Refused(refusal)) if self.was_left => (lost(refusal).into(), from),
            Outcome::Error(Failure::Refused(refusal)) if refusal.page.is_some() => {
                // As a handshake client is told of it, which is as upstreams tell of theirs.
                let (told_in, upstream) = (Revision::NEWEST_LEGACY, refusal.upstream.as_ref().unwrap_or(upstream));
                let pages = self.pages(&refusal.to_rpc(told_in), line.edge, upstream, told_in);
                (pages.unwrap_or_else(|| Refusal { page: None, ..refusal }.into()), revision)
            }
            outcome => (outcome, from),
        }
    }

    /// Where the upstream would have the person visit pages first: the questions to the client; `None` for other errors.
    fn pages(&self, error: &RpcError, edge: &Arc<Edge>, upstream: &Arc<str>, from: Revision) -> Option<Outcome> {
        let caller = &self.origin.caller;
        let questions = pages::of(error, upstream, edge.label, from, caller.revision)?;
        if !caller.can().has(Capabilities::URL) {
            return Some(passing::lacking(upstream, Capabilities::URL, caller.revision).into());
        }
        let place = edge.quota.enter(&caller.share());
        if place.is_none() {
            edge.refusals.turn_away("questions", &turned_away(upstream));
        }
        Some(match place.map(|place| ask_for_pages(edge, &self.origin, upstream, questions, place)) {
            Some(outcome) => outcome,
            None => full(upstream).into(),
        })
    }
}

/// Has a client visit pages before its call is made again.
pub(crate) fn ask_for_pages(
    edge: &Arc<Edge>,
    origin: &Origin,
    upstream: &Arc<str>,
    questions: Vec<Embedded>,
    place: SharePermit,
) -> Outcome {
    let kept = Kept { work: Work::Pages(questions.clone()), place, held: None };
    keep(edge, origin, upstream, kept, (&questions, Instant::now())).unwrap_or_else(|_| full(upstream).into())
}

/// Keeps what the retry goes on with, and says what the client is asked meanwhile.
fn keep(
    edge: &Arc<Edge>,
    origin: &Origin,
    upstream: &Arc<str>,
    kept: Kept,
    (questions, since): (&[Embedded], Instant),
) -> Result<Outcome, Box<Kept>> {
    let until = since + edge.questions.timeout_of(upstream);
    let bytes = CALL_BYTES + questions.iter().map(|question| question.params.raw().len()).sum::<usize>();
    let budget = edge.budget.owned_by(origin.caller.share().owner());
    let Ok(charge) = budget.charge(Kind::Body, bytes) else { return Err(Box::new(kept)) };
    let way = edge.parked.keep((kept, charge), until, &edge.tasks)?;
    let state = edge.states.give_out(origin, upstream, way, until);
    tracing::debug!(upstream = &**upstream, questions = questions.len(), "call parked");
    Ok(Outcome::InputRequired(input::required(questions, Some(&state))))
}

/// Why a question of an upstream is not put, for the log.
pub(super) fn turned_away(upstream: &str) -> String {
    format!("upstream {upstream} asks for input, and too many calls wait for input already (`questions.max_open`)")
}

fn full(upstream: &Arc<str>) -> Refusal {
    let why = format!(
        "upstream {upstream} asks for input, and too many calls wait for input already; the call did not run: try again later"
    );
    Refusal::of_upstream(Reason::Busy, upstream, why)
}

/// An upstream that failed while its call was parked: there is nothing to come back to.
fn lost(refusal: Refusal) -> Refusal {
    match refusal.reason {
        Reason::Unavailable | Reason::Stopped | Reason::Login | Reason::OutcomeUnknown => {
            let why = format!("`requestState` is no longer valid: {}", refusal.message);
            Refusal { reason: Reason::InvalidParams, message: why, ..refusal }
        }
        _ => refusal,
    }
}

impl Gathered {
    fn new(open: Vec<Open>, place: SharePermit) -> Self {
        let first = Instant::now();
        Self { open, place, first, due: Box::pin(tokio::time::sleep_until(first + QUIET)) }
    }

    fn add(&mut self, open: Open) {
        self.open.push(open);
        let due = (Instant::now() + QUIET).min(self.first + TOGETHER_MAX);
        self.due.as_mut().reset(due);
    }
}

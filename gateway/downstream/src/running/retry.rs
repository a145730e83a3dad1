//! The retry of a stateless client's call: what its state leads back to, and what its answers do there.

use super::call::RunningCall;
use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::ask::Answered;
use crate::call::reply::{Outcome, Reply};
use crate::call::share::SharePermit;
use crate::edge::Edge;
use crate::edge::client_era::invalid;
use crate::edge::open_calls::OpenCall;
use crate::memory::joined;
use crate::metrics;
use crate::parking::Origin;
use crate::parking::parked::{Gone, Kept, Open, Work};
use crate::parking::seal::{Unopened, Way};
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::payload::input;
use crate::protocol::payload::input::Embedded;
use crate::protocol::value::{Key, Object};
use crate::questions::{ParkQuestions, Said, pages, park};
use crate::response::ResponseEncoder;
use bytes::Bytes;
use std::sync::Arc;

/// What a retry's state leads to.
enum Found {
    /// The upstream's own business: passed as it is.
    Foreign,
    /// The state of an upstream, unsealed.
    Passed(Arc<str>, Bytes),
    /// What was kept here for it, by an upstream's question.
    Kept(Arc<str>, Kept),
}

/// Why a state leads nowhere: the label of the metric, and what the client is told.
type Refused = (&'static str, &'static str);

const UNKNOWN: Refused =
    ("unknown", "`requestState` is unknown: it was altered, or issued to another client or by another gateway");
const OTHER: Refused = (
    "other_call",
    "`requestState` belongs to another call: retry with the method and parameters that it was issued for",
);
const EXPIRED: Refused =
    ("expired", "`requestState` has expired: its call was cancelled and is not repeated automatically");
const LOST: Refused = (
    "lost",
    "`requestState` was issued by another process of the gateway, which holds the call: retries must reach that \
     process; if it has ended, the call has ended with it and is not repeated automatically; it may or may not have run",
);
const USED: Refused = ("used", "`requestState` was already used: each allows one retry");

/// Goes on with the call that a request with a state is the retry of.
pub(crate) fn begin(edge: &Arc<Edge>, asked: ResponseEncoder, mut call: Call, open: Option<OpenCall>) -> RunningCall {
    match find(edge, &call) {
        Err((label, why)) => {
            metrics::state_refused(label).increment(1);
            tracing::debug!(reason = label, "retry refused");
            RunningCall::refused(edge, asked, invalid(why))
        }
        Ok(Found::Foreign) => RunningCall::stateless(edge, asked, call, open),
        Ok(Found::Passed(upstream, state)) => {
            let dialogue = ParkQuestions::new(&call);
            call.params = call.params.set_by(Key::RequestState, &state, joined);
            call.bound_to = Some(upstream);
            RunningCall::made(edge, asked, call, open, dialogue)
        }
        Ok(Found::Kept(_, Kept { work: Work::Call { open: questions, reply }, place, held })) => {
            let dialogue = hand_over(&call, questions, place);
            let mut running = RunningCall::resumed(edge, asked, *reply, open, dialogue);
            running.hold(held);
            running
        }
        Ok(Found::Kept(upstream, Kept { work: Work::Pages(pages), place, .. })) => {
            visited(edge, asked, call, open, (upstream, pages, place))
        }
    }
}

/// Reads the state, and takes what it leads to if it is this very request's.
fn find(edge: &Edge, call: &Call) -> Result<Found, Refused> {
    let origin = Origin::of(call);
    let is_alone = origin.caller.principal.is_anonymous();
    let text = call.params.text(Key::RequestState);
    let (state, holds) = match text.as_deref().map_or(Err(Unopened::Foreign), |text| edge.states.read(text)) {
        Ok(read) => read,
        // Where there are several principals, every state was given out sealed.
        Err(Unopened::Foreign) if is_alone => return Ok(Found::Foreign),
        Err(Unopened::Foreign | Unopened::Broken) => return Err(UNKNOWN),
    };
    let bond = origin.bond();
    if state.bond.principal != bond.principal {
        return Err(UNKNOWN);
    }
    if state.bond != bond {
        return Err(OTHER);
    }
    if !holds {
        return Err(EXPIRED);
    }
    match state.way {
        Way::Passed(inner) => Ok(Found::Passed(state.upstream, inner)),
        Way::Kept { instance, id } => match edge.parked.take(instance, id) {
            Ok(kept) => Ok(Found::Kept(state.upstream, kept)),
            Err(Gone::Elsewhere) => Err(LOST),
            Err(Gone::Taken) => Err(USED),
        },
    }
}

/// Hands the answers of a retry to whoever waits for them. What was withdrawn meanwhile is not asked again; what was not
/// answered is.
fn hand_over(call: &Call, questions: Vec<Open>, place: SharePermit) -> ParkQuestions {
    let (can, revision) = (call.caller.can(), call.revision());
    let was_left = questions.iter().all(|question| question.answer.is_closed());
    let mut open = Vec::new();
    for question in questions.into_iter().filter(|question| !question.answer.is_closed()) {
        match input::answer(&call.params, &question.key) {
            Some(answer) => {
                let _withdrawn = question.answer.give(Answered { revision, body: Ok(answer) });
            }
            None if can.has(question.need) => open.push(question),
            // It can no longer be asked.
            None => {}
        }
    }
    ParkQuestions::resumed(call, open, place, was_left)
}

/// Makes a call again whose upstream had the person visit pages first, if they were.
fn visited(
    edge: &Arc<Edge>,
    asked: ResponseEncoder,
    mut call: Call,
    open: Option<OpenCall>,
    (upstream, pages, place): (Arc<str>, Vec<Embedded>, SharePermit),
) -> RunningCall {
    let revision = call.revision();
    let outcome = match pages::said(&call.params, &pages) {
        Said::Accepted => {
            drop(place);
            call.params = input::retry(&call.params, &[], None);
            call.bound_to = Some(upstream);
            return RunningCall::stateless(edge, asked, call, open);
        }
        Said::Missing => park::ask_for_pages(edge, &Origin::of(&call), &upstream, pages, place),
        Said::Declined => declined(&call.method, &upstream),
    };
    RunningCall::new(edge, asked, Reply::ready(revision, outcome), open)
}

/// The end of a call that was not made: a tool says it to the model, everything else to the program.
fn declined(method: &Method, upstream: &str) -> Outcome {
    let why =
        format!("Upstream {upstream} asks for a web page to be visited first, and that was declined; nothing was run.");
    if *method != Method::ToolsCall {
        return Refusal::new(Reason::Cancelled, why).into();
    }
    let text = format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"isError\":true}}", json::quote(&why));
    Outcome::Complete(Object::parse(text.into()).expect("what we write is an object"))
}

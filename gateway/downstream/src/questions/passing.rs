//! A stateless upstream's questions on their way to a stateless client: checked, labelled, their state bound to its request.

use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::Outcome;
use crate::edge::Edge;
use crate::memory::joined;
use crate::parking::seal::Way;
use crate::parking::{Origin, seal};
use crate::protocol::capabilities::{Capabilities, need};
use crate::protocol::json;
use crate::protocol::payload::input;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a state holds that leads to an upstream: we keep nothing for it.
const HOLDS: Duration = Duration::from_secs(24 * 3600);

/// What a client is answered for an `input_required` result.
pub(crate) fn pass(edge: &Edge, origin: &Origin, upstream: &Arc<str>, result: Object) -> Outcome {
    let bad = |why: &str| {
        let why = format!("upstream {upstream} asks for input in a way that the protocol does not have: {why}");
        Outcome::from(Refusal::of_upstream(Reason::BadAnswer, upstream, why))
    };
    let questions = match input::questions(&result) {
        Ok(questions) => questions,
        Err(why) => return bad(why),
    };
    if questions.is_empty() && result.get(Key::RequestState).is_none() {
        return bad("there is neither a question nor a `requestState`");
    }
    let mut needed = Capabilities::NONE;
    for question in &questions {
        match need::of(&question.method, &question.params) {
            Some(need) => needed = needed.with(need),
            None => return bad("a question is of no kind that is known"),
        }
    }
    let caller = &origin.caller;
    if !caller.can().has(needed) {
        return lacking(upstream, needed, caller.revision).into();
    }
    let result = edge.label.put_all(upstream, result);
    let Some(state) = result.share(Key::RequestState) else { return Outcome::InputRequired(result) };
    if caller.principal.is_anonymous() && !looks_like_ours(&state) {
        return Outcome::InputRequired(result);
    }
    let sealed = edge.states.give_out(origin, upstream, Way::Passed(state), Instant::now() + HOLDS);
    Outcome::InputRequired(result.set_by(Key::RequestState, json::quote(&sealed).as_bytes(), joined))
}

/// The refusal of a question that the client has not declared that it can be asked.
pub(crate) fn lacking(upstream: &Arc<str>, needed: Capabilities, revision: Revision) -> Refusal {
    let why = format!("upstream {upstream} asks for {}, which this request does not declare", need::words(needed));
    let reason = Reason::MissingCapability(needed.to_json(revision).into());
    Refusal { upstream: Some(upstream.clone()), ..Refusal::new(reason, why) }
}

/// An upstream that is a gateway as we are seals as we do: to tell its states from ours, they are sealed once more.
fn looks_like_ours(state: &[u8]) -> bool {
    json::unquote(state).is_some_and(|text| text.starts_with(seal::PREFIX))
}

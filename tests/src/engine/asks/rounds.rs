//! Questions of a stateless upstream: `input_required`, a state of its own, and the same call again with answers.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::engine::asks::{Asking, outcome, progress, words};
use crate::engine::said::Said;
use crate::engine::{Engine, Outlet, lock};
use crate::frame::{Frame, fields, quote};
use crate::journal::What;
use crate::revision::Revision;
use crate::script::plan::Kind;

/// What comes before a state: bytes that whoever carries it must leave alone.
const AWKWARD: &str = "état \"\\/\t\u{1F600} = ";

/// What a state stands for.
#[derive(Serialize, Deserialize)]
struct State {
    /// Makes every state one of its kind.
    number: usize,
    round: usize,
    done: Vec<String>,
}

/// The states that were given, each with the call that it belongs to.
#[derive(Default)]
pub(crate) struct States(Mutex<HashMap<String, String>>);

/// What one turn comes to.
pub(crate) enum Turn {
    /// All was asked.
    Over(Vec<String>),
    /// This is said now.
    Said(Said),
    /// The frame of an error that goes with an HTTP status of its own.
    Refused(String),
}

/// Takes one turn of a call.
pub(crate) async fn run(engine: &Engine, asking: &Asking, frame: &Frame, outlet: &Outlet) -> Turn {
    let responses = frame.param("inputResponses").map(|raw| fields(&raw));
    let (mut round, mut done) = (0, Vec::new());
    match frame.param_text("requestState") {
        None if responses.is_some() => engine.complain("answers without the state that was given").await,
        None => {}
        Some(text) => {
            let Some(state) = given(engine, frame, &text).await else {
                return Turn::Said(Said::error(-32602, "Unknown requestState", None));
            };
            (round, done) = (state.round, state.done);
            match heard(engine, asking, round, &responses.unwrap_or_default()).await {
                Some(outcomes) => {
                    done.push(outcomes);
                    round += 1;
                }
                None => engine.complain("a retry without all the answers").await,
            }
        }
    }
    if round >= asking.plan.rounds.len() {
        return Turn::Over(done);
    }
    progress(asking, frame, round, outlet).await;
    ask(engine, asking, frame, round, done).await
}

/// The state that a retry brings, if it is one of ours for this very call.
async fn given(engine: &Engine, frame: &Frame, text: &str) -> Option<State> {
    let call = lock(&engine.states.0).get(text).cloned();
    match call {
        None => {
            engine.complain(format!("a state that was never given: {text:?}")).await;
            return None;
        }
        Some(call) if call != subject(frame) => {
            engine.complain(format!("the state of {call} comes with {}", subject(frame))).await;
        }
        Some(_) => {}
    }
    serde_json::from_str(text.strip_prefix(AWKWARD)?).ok()
}

/// What came of a round; nothing if an answer is missing.
async fn heard(
    engine: &Engine,
    asking: &Asking,
    round: usize,
    responses: &BTreeMap<String, Box<RawValue>>,
) -> Option<String> {
    let mut outcomes = Vec::new();
    let mut known = Vec::new();
    for (index, ask) in asking.plan.rounds.get(round)?.iter().enumerate().filter(|(_, ask)| asked(ask.kind)) {
        let answer = responses.get(&key(round, index))?;
        outcomes.push(outcome(ask.kind.word(), "answer", answer.get()));
        known.push(key(round, index));
    }
    for stranger in responses.keys().filter(|key| !known.contains(key)) {
        engine.complain(format!("an answer to what this round did not ask: {stranger}")).await;
    }
    Some(format!("[{}]", outcomes.join(",")))
}

async fn ask(engine: &Engine, asking: &Asking, frame: &Frame, round: usize, done: Vec<String>) -> Turn {
    let capabilities = frame.meta("io.modelcontextprotocol/clientCapabilities");
    let capabilities = capabilities.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let mut questions = Vec::new();
    for (index, ask) in asking.plan.rounds[round].iter().enumerate().filter(|(_, ask)| asked(ask.kind)) {
        if !ask.blunt && !ask.kind.is_declared(&capabilities) {
            let data = format!("{{\"requiredCapabilities\":{}}}", ask.kind.needs());
            let said = Said::error(-32021, &format!("the client has no {}", ask.kind.word()), Some(&data));
            return Turn::Refused(said.into_frame(frame.id_text()));
        }
        let (key, method) = (key(round, index), ask.kind.method());
        let params = words::params(ask.kind, Revision::MODERN, &asking.who, &format!("{}-{key}", asking.nonce));
        questions.push(format!("\"{key}\":{{\"method\":\"{method}\",\"params\":{params}}}"));
        let (id, who) = (frame.id_text().to_owned(), asking.who.clone());
        engine.journal.tell(What::Asked { id, method: method.into(), who }).await;
    }
    let state = give(engine, frame, round, done);
    let asks =
        if questions.is_empty() { String::new() } else { format!("\"inputRequests\":{{{}}},", questions.join(",")) };
    Turn::Said(Said::result(format!("{{\"resultType\":\"input_required\",{asks}\"requestState\":{}}}", quote(&state))))
}

fn give(engine: &Engine, frame: &Frame, round: usize, done: Vec<String>) -> String {
    let mut states = lock(&engine.states.0);
    let state = State { number: states.len(), round, done };
    let text = format!("{AWKWARD}{}", serde_json::to_string(&state).expect("plain data"));
    states.insert(text.clone(), subject(frame));
    text
}

/// What a call is about, byte for byte: the same in every round.
fn subject(frame: &Frame) -> String {
    let parts =
        ["name", "uri", "arguments"].map(|name| frame.param(name).map_or_else(String::new, |raw| raw.to_string()));
    format!("{} {}", frame.method.as_deref().unwrap_or(""), parts.join(" "))
}

fn asked(kind: Kind) -> bool {
    !kind.method().is_empty()
}

fn key(round: usize, index: usize) -> String {
    format!("q{round}.{index}")
}

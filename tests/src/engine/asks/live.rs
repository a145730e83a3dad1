//! Live questions of an upstream with a handshake: sent on the call's own way, answered by frames of their own.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;

use crate::engine::asks::{Asking, outcome, progress, words};
use crate::engine::change::Change;
use crate::engine::said::Said;
use crate::engine::{Engine, Out, Outlet, checks, lock};
use crate::frame::Frame;
use crate::journal::What;
use crate::revision::Revision;
use crate::script::plan::{Ask, Kind, Plan};

/// The questions that are open.
#[derive(Default)]
pub(crate) struct Questions {
    counter: AtomicU64,
    open: Mutex<HashMap<String, Entry>>,
    over: Mutex<HashSet<String>>,
    required: Mutex<HashSet<String>>,
    capabilities: Mutex<HashMap<String, serde_json::Value>>,
}

struct Entry {
    session: Option<String>,
    method: &'static str,
    revision: Revision,
    sender: oneshot::Sender<String>,
}

/// A question on its way; an answer that comes when nobody waits any more is no fault.
struct Pending<'a> {
    questions: &'a Questions,
    id: String,
    ask: Ask,
    answer: oneshot::Receiver<String>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        lock(&self.questions.open).remove(&self.id);
        lock(&self.questions.over).insert(self.id.clone());
    }
}

impl Questions {
    /// An id that no other question has; every second one is a text.
    fn id(&self) -> String {
        let number = self.counter.fetch_add(1, Ordering::Relaxed) + 1;
        if number.is_multiple_of(2) { format!("\"ask {number}\"") } else { number.to_string() }
    }

    /// Keeps what a session declared.
    pub(crate) fn declare(&self, session: &str, frame: &Frame) {
        let declared = frame.param("capabilities").and_then(|raw| serde_json::from_str(raw.get()).ok());
        lock(&self.capabilities).insert(session.to_owned(), declared.unwrap_or_default());
    }

    /// What a session declared.
    pub(crate) fn declared(&self, session: &str) -> serde_json::Value {
        lock(&self.capabilities).get(session).cloned().unwrap_or_default()
    }

    /// The sessions that declared such.
    pub(crate) fn those(&self, fits: impl Fn(&serde_json::Value) -> bool) -> Vec<String> {
        lock(&self.capabilities).iter().filter(|(_, declared)| fits(declared)).map(|(id, _)| id.clone()).collect()
    }
}

/// Takes the answer to a question; `session` is where it came.
pub(crate) async fn answered(engine: &Engine, frame: &Frame, session: &str) {
    let id = frame.id_text().to_owned();
    let body = match (&frame.result, &frame.error) {
        (Some(result), None) => format!("\"answer\":{result}"),
        (None, Some(error)) => format!("\"error\":{error}"),
        _ => return engine.complain(format!("neither an answer nor an error: {frame:?}")).await,
    };
    let entry = lock(&engine.questions.open).remove(&id);
    engine.journal.tell(What::Answered { id: id.clone(), body: format!("{{{body}}}") }).await;
    match entry {
        Some(entry) => {
            checks::schema(engine, frame, Some(entry.method), entry.revision).await;
            if entry.session.as_deref().is_some_and(|asked| asked != session) {
                engine.complain(format!("{session} answers {id}, which {:?} was asked", entry.session)).await;
            }
            lock(&engine.questions.over).insert(id);
            // The call may have been cancelled meanwhile.
            let _ = entry.sender.send(body);
        }
        None if lock(&engine.questions.over).contains(&id) => {}
        None => engine.complain(format!("an answer to no question: {id}")).await,
    }
}

/// Asks what belongs to no call; what comes back stands in the journal.
pub(crate) async fn outside(engine: &Engine, kind: Kind, who: &str) {
    let id = engine.questions.id();
    let revision = engine.script.negotiate("").unwrap_or(Revision::R2025_11_25);
    let (sender, _) = oneshot::channel();
    lock(&engine.questions.open).insert(id.clone(), Entry { session: None, method: kind.method(), revision, sender });
    engine.journal.tell(What::Asked { id: id.clone(), method: kind.method().into(), who: who.into() }).await;
    let params = words::params(kind, revision, who, &mark(engine, &id));
    engine.announce(Change { id: Some(id), ..Change::new(kind.method(), &params) });
}

/// Asks round by round, and gives what came of each.
pub(crate) async fn run(
    engine: &Engine,
    asking: &Asking,
    frame: &Frame,
    revision: Revision,
    outlet: &Outlet,
) -> Result<Vec<String>, Said> {
    let declared = engine.questions.declared(outlet.session());
    let mut rounds = Vec::new();
    for (number, round) in asking.plan.rounds.iter().enumerate() {
        let (mut texts, mut waiting, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for ask in round {
            match ask.kind {
                Kind::State => continue,
                Kind::Required => {
                    required(engine, asking, revision)?;
                    continue;
                }
                kind if !kind.is_in(revision) => waiting.push(Err(outcome(kind.word(), "unknown", "true"))),
                kind if !ask.blunt && !kind.is_declared(&declared) => {
                    waiting.push(Err(outcome(kind.word(), "undeclared", "true")));
                }
                kind => {
                    let pending = open(engine, *ask, revision, outlet);
                    let mark = mark(engine, &pending.id);
                    let params = asking.tied(words::params(kind, revision, &asking.who, &mark));
                    let method = kind.method();
                    texts.push(format!(
                        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{method}\",\"params\":{params}}}",
                        pending.id
                    ));
                    let (id, who) = (pending.id.clone(), asking.who.clone());
                    told.push(What::Asked { id, method: method.into(), who });
                    waiting.push(Ok(pending));
                }
            }
        }
        for what in told {
            engine.journal.tell(what).await;
        }
        if !texts.is_empty() {
            outlet.send(Out::Together(texts)).await;
        }
        progress(asking, frame, number, outlet).await;
        let mut outcomes = Vec::new();
        for one in waiting {
            outcomes.push(match one {
                Ok(pending) => settle(engine, pending, frame, outlet).await,
                Err(outcome) => outcome,
            });
        }
        rounds.push(format!("[{}]", outcomes.join(",")));
    }
    Ok(rounds)
}

/// Asks for roots on a call; what came back, as text.
pub(crate) async fn roots(engine: &Engine, frame: &Frame, revision: Revision, outlet: &Outlet) -> String {
    let plan = Plan::parse("roots").expect("a plan");
    let asking = Asking { plan, who: String::new(), nonce: String::new(), progress: false, task: None };
    let rounds = run(engine, &asking, frame, revision, outlet).await;
    rounds.map_or_else(|_| "refused".to_owned(), |rounds| rounds.concat())
}

fn open<'a>(engine: &'a Engine, ask: Ask, revision: Revision, outlet: &Outlet) -> Pending<'a> {
    let (sender, answer) = oneshot::channel();
    let id = engine.questions.id();
    let session = Some(outlet.session().to_owned());
    lock(&engine.questions.open).insert(id.clone(), Entry { session, method: ask.kind.method(), revision, sender });
    Pending { questions: &engine.questions, id, ask, answer }
}

/// Waits for the answer, or withdraws the question.
async fn settle(engine: &Engine, mut pending: Pending<'_>, frame: &Frame, outlet: &Outlet) -> String {
    let word = pending.ask.kind.word();
    if !pending.ask.withdrawn {
        let body = (&mut pending.answer).await.unwrap_or_else(|_| "\"lost\":true".into());
        return format!("{{\"kind\":\"{word}\",{body}}}");
    }
    let gate = "withdraw".to_owned();
    engine.journal.tell(What::Waiting { gate: gate.clone(), id: frame.id_text().into() }).await;
    engine.gates.pass(&gate).await;
    let params = format!("{{\"requestId\":{},\"reason\":\"no longer needed\"}}", pending.id);
    outlet.send(Out::Notice(Change::new("notifications/cancelled", &params).frame())).await;
    engine.journal.tell(What::Withdrawn { id: pending.id.clone() }).await;
    outcome(word, "withdrawn", "true")
}

/// The error in place of a question: once for each call.
fn required(engine: &Engine, asking: &Asking, revision: Revision) -> Result<(), Said> {
    if !Kind::Required.is_in(revision) || !lock(&engine.questions.required).insert(asking.nonce.clone()) {
        return Ok(());
    }
    let mark = format!("required-{}", asking.nonce);
    let question = words::params(Kind::Url, revision, &asking.who, &mark);
    Err(Said::error(-32042, "Consent is needed first", Some(&format!("{{\"elicitations\":[{question}]}}"))))
}

fn mark(engine: &Engine, id: &str) -> String {
    format!("{}-{}", engine.script.name, id.trim_matches('"').replace(' ', "-"))
}

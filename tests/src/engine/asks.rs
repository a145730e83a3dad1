//! What asks before it answers: the tool and the prompt `ask`, and the resources `script://NAME/ask/PLAN/WHO`.
//!
//! The plan ([`Plan`]) says what is asked; every question names the one for whom it is, and the answer tells who
//! was asked what and what came back: `{"who":…,"rounds":[[{"kind":…,"answer":…}]]}`, as text.

use serde_json::value::RawValue;

use crate::engine::said::Said;
use crate::engine::{Engine, Out, Outlet, tasks};
use crate::frame::{Frame, fields, quote, text, with_meta};
use crate::revision::Revision;
use crate::script::plan::Plan;

pub(crate) mod live;
pub(crate) mod rounds;
pub(crate) mod words;

/// What is to be asked on behalf of a request.
pub(crate) struct Asking {
    pub(crate) plan: Plan,
    /// For whom it is asked; stands in every question.
    pub(crate) who: String,
    /// The mark that tells one call from another.
    pub(crate) nonce: String,
    /// Whether progress is told while questions are open.
    pub(crate) progress: bool,
    /// The task on whose behalf it is asked.
    pub(crate) task: Option<String>,
}

impl Asking {
    /// The parameters of a question, which name the task that it is asked for.
    fn tied(&self, params: String) -> String {
        match &self.task {
            Some(task) => {
                let related = format!("\"{}\":{{\"taskId\":{}}}", tasks::RELATED, quote(task));
                with_meta(&params, &[related])
            }
            None => params,
        }
    }
}

/// What is asked on behalf of this request, if anything is.
pub(crate) fn of(engine: &Engine, frame: &Frame) -> Option<Asking> {
    if !engine.script.asks {
        return None;
    }
    if frame.method.as_deref() == Some("resources/read") {
        let uri = frame.param_text("uri")?;
        let path = uri.strip_prefix(&format!("script://{}/ask/", engine.script.authority()))?;
        let (plan, who) = path.split_once('/')?;
        return Some(Asking {
            plan: Plan::parse(plan)?,
            who: who.into(),
            nonce: who.into(),
            progress: false,
            task: None,
        });
    }
    let asks = matches!(frame.method.as_deref(), Some("tools/call" | "prompts/get"));
    if !asks || frame.param_text("name").as_deref() != Some("ask") {
        return None;
    }
    let arguments = fields(&frame.param("arguments")?);
    let said = |name: &str| arguments.get(name).and_then(|raw| text(raw));
    let who = said("who").unwrap_or_default();
    let id = frame.id_text().replace(['"', ' ', '\\'], "");
    let nonce = said("nonce").unwrap_or_else(|| format!("{who}-{id}"));
    let progress = arguments.contains_key("progress");
    Some(Asking { plan: Plan::parse(&said("plan")?)?, who, nonce, progress, task: None })
}

/// Asks, and answers with what came back.
pub(crate) async fn run(
    engine: &Engine,
    asking: &Asking,
    frame: &Frame,
    revision: Revision,
    outlet: &Outlet,
) -> Option<Said> {
    let is_tool = frame.method.as_deref() == Some("tools/call");
    if is_tool && frame.param("requestState").is_none() {
        engine.executed(asking.nonce.clone()).await;
    }
    let rounds = if revision.is_modern() {
        match rounds::run(engine, asking, frame, outlet).await {
            rounds::Turn::Over(rounds) => rounds,
            rounds::Turn::Said(said) => return Some(said),
            rounds::Turn::Refused(text) => {
                outlet.send(Out::Refused(400, text)).await;
                return None;
            }
        }
    } else {
        match live::run(engine, asking, frame, revision, outlet).await {
            Ok(rounds) => rounds,
            Err(said) => return Some(said),
        }
    };
    let report = format!("{{\"who\":{},\"rounds\":[{}]}}", quote(&asking.who), rounds.join(","));
    let report = quote(&report);
    let (cacheable, body) = match frame.method.as_deref() {
        Some("resources/read") => {
            let uri = frame.param("uri").map_or_else(String::new, |raw| RawValue::get(&raw).to_owned());
            (true, format!("{{\"contents\":[{{\"uri\":{uri},\"text\":{report}}}]}}"))
        }
        Some("prompts/get") => {
            let content = format!("{{\"type\":\"text\",\"text\":{report}}}");
            (false, format!("{{\"messages\":[{{\"role\":\"user\",\"content\":{content}}}]}}"))
        }
        _ => (false, format!("{{\"content\":[{{\"type\":\"text\",\"text\":{report}}}]}}")),
    };
    Some(Said::dressed(&engine.script, revision, cacheable, &body))
}

/// Tells of progress, where the request asked for it: the number of the round.
async fn progress(asking: &Asking, frame: &Frame, round: usize, outlet: &Outlet) {
    let Some(token) = frame.meta("progressToken").filter(|_| asking.progress) else { return };
    let params = format!("{{\"progressToken\":{token},\"progress\":{}}}", round + 1);
    let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{params}}}");
    outlet.send(Out::Notice(text)).await;
}

/// What came of one question.
fn outcome(kind: &str, what: &str, value: &str) -> String {
    format!("{{\"kind\":\"{kind}\",\"{what}\":{value}}}")
}

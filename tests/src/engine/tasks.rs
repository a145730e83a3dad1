//! The tool `task`, which runs as a task only: made, asked after, asking, ended; in the form of either revision.
//!
//! Its arguments: `polls`, so often it is still at work (2); `plan` and `who`, what it asks then; `nonce`.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::engine::asks::{self, Asking, words};
use crate::engine::change::Change;
use crate::engine::said::Said;
use crate::engine::{Engine, Out, Outlet, lock};
use crate::frame::{Frame, fields, quote, text};
use crate::revision::Revision;
use crate::script::plan::Plan;

/// The extension of the stateless era.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The field of `_meta` that ties a message to its task.
pub(crate) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// What a stateless listener is told of a task.
pub(crate) const CHANGED: &str = "notifications/tasks";

/// The tasks that were made.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Task>>);

#[derive(Clone)]
struct Task {
    id: String,
    /// Whose it is: it is asked after in the session in which it was made.
    session: String,
    polls: usize,
    plan: Option<Plan>,
    who: String,
    /// What came of its questions.
    report: Option<String>,
    is_cancelled: bool,
    /// The raw progress token of the call that made it, and how far it has come.
    token: Option<String>,
    reached: u64,
}

impl Task {
    fn status(&self) -> &'static str {
        match self {
            Task { is_cancelled: true, .. } => "cancelled",
            Task { polls: 1.., .. } => "working",
            Task { plan: Some(_), report: None, .. } => "input_required",
            _ => "completed",
        }
    }

    fn fields(&self, revision: Revision) -> String {
        let (ttl, poll) = if revision.is_modern() { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
        let at = "\"2026-01-01T00:00:00Z\"";
        format!(
            "\"taskId\":{},\"status\":\"{}\",\"createdAt\":{at},\"lastUpdatedAt\":{at},\"{ttl}\":60000,\"{poll}\":50",
            quote(&self.id),
            self.status()
        )
    }

    /// What the tool answers in the end, without the braces.
    fn result(&self) -> String {
        let report = self.report.clone().unwrap_or_else(|| "task done".into());
        format!("\"content\":[{{\"type\":\"text\",\"text\":{}}}]", quote(&report))
    }

    /// What it asks of a stateless client, by key.
    fn questions(&self) -> String {
        let asks = self.plan.iter().flat_map(|plan| plan.rounds.iter().flatten()).enumerate();
        let one = |(index, ask): (usize, &crate::script::plan::Ask)| {
            let params = words::params(ask.kind, Revision::MODERN, &self.who, &format!("{}-{index}", self.id));
            format!("\"t{index}\":{{\"method\":\"{}\",\"params\":{params}}}", ask.kind.method())
        };
        asks.map(one).collect::<Vec<_>>().join(",")
    }
}

/// Whether a request is about tasks.
pub(crate) fn concerns(engine: &Engine, frame: &Frame) -> bool {
    let method = frame.method.as_deref().unwrap_or("");
    let is_made = method == "tools/call" && frame.param_text("name").as_deref() == Some("task");
    engine.script.tasks && (is_made || method.starts_with("tasks/"))
}

/// Serves a request about tasks.
pub(crate) async fn run(engine: &Engine, frame: &Frame, revision: Revision, outlet: &Outlet) -> Option<Said> {
    let method = frame.method.as_deref().unwrap_or("");
    if revision.is_modern() && !is_declared(frame) {
        let data = format!("{{\"requiredCapabilities\":{{\"extensions\":{{\"{EXTENSION}\":{{}}}}}}}}");
        let said = Said::error(-32021, "this runs as a task only", Some(&data));
        outlet.send(Out::Refused(400, said.into_frame(frame.id_text()))).await;
        return None;
    }
    if method == "tools/call" {
        return Some(make(engine, frame, revision, outlet).await);
    }
    let id = frame.param_text("taskId").unwrap_or_default();
    let Some(task) = lock(&engine.tasks.0).get(&id).cloned() else {
        return Some(Said::error(-32602, "Unknown task", None));
    };
    if task.session != outlet.session() {
        engine.complain(format!("{method} of a task of session {:?} in {:?}", task.session, outlet.session())).await;
    }
    Some(match method {
        "tasks/get" => get(engine, &task, revision, outlet).await,
        "tasks/cancel" => cancel(engine, &task, revision, outlet).await,
        "tasks/result" if !revision.is_modern() => result(engine, task, frame, revision, outlet).await,
        "tasks/update" if revision.is_modern() => update(engine, &task, frame),
        other => Said::error(-32601, &format!("Method not found: {other}"), None),
    })
}

fn is_declared(frame: &Frame) -> bool {
    let declared = frame.meta("io.modelcontextprotocol/clientCapabilities");
    let declared = declared.and_then(|raw| serde_json::from_str::<serde_json::Value>(raw.get()).ok());
    declared.is_some_and(|declared| declared["extensions"][EXTENSION].is_object())
}

async fn make(engine: &Engine, frame: &Frame, revision: Revision, outlet: &Outlet) -> Said {
    if !revision.is_modern() && frame.param("task").is_none() {
        return Said::error(-32601, "this runs as a task only", None);
    }
    let arguments = frame.param("arguments").map(|raw| fields(&raw)).unwrap_or_default();
    let said = |name: &str| arguments.get(name).and_then(|raw| text(raw));
    engine.executed(said("nonce").unwrap_or_else(|| format!("id {}", frame.id_text()))).await;
    let mut tasks = lock(&engine.tasks.0);
    let task = Task {
        id: format!("own-{}", tasks.len()),
        session: outlet.session().into(),
        polls: arguments.get("polls").and_then(|raw| raw.get().parse().ok()).unwrap_or(2),
        plan: said("plan").and_then(|plan| Plan::parse(&plan)),
        who: said("who").unwrap_or_default(),
        report: None,
        is_cancelled: false,
        token: frame.meta("progressToken").map(|raw| raw.get().to_owned()),
        reached: 0,
    };
    tasks.insert(task.id.clone(), task.clone());
    match revision.is_modern() {
        true => Said::result(format!("{{\"resultType\":\"task\",{}}}", task.fields(revision))),
        false => Said::result(format!("{{\"task\":{{{}}}}}", task.fields(revision))),
    }
}

/// In the handshake's form it tells how far it has come, each time.
async fn get(engine: &Engine, task: &Task, revision: Revision, outlet: &Outlet) -> Said {
    if let Some(kept) = lock(&engine.tasks.0).get_mut(&task.id) {
        kept.polls = kept.polls.saturating_sub(1);
        kept.reached += 1;
    }
    if !revision.is_modern() {
        if let Some(token) = &task.token {
            let params = format!("{{\"progressToken\":{token},\"progress\":{}}}", task.reached + 1);
            outlet.send(Out::Notice(Change::new("notifications/progress", &params).frame())).await;
        }
        return Said::result(format!("{{{}}}", task.fields(revision)));
    }
    let more = match task.status() {
        "completed" => format!(",\"result\":{{\"resultType\":\"complete\",{}}}", task.result()),
        "input_required" => format!(",\"inputRequests\":{{{}}}", task.questions()),
        _ => String::new(),
    };
    Said::result(format!("{{\"resultType\":\"complete\",{}{more}}}", task.fields(revision)))
}

/// It tells of the end too: whoever listens, or in the handshake's form the session.
async fn cancel(engine: &Engine, task: &Task, revision: Revision, outlet: &Outlet) -> Said {
    let told = crate::journal::What::Cancelled { id: task.id.clone(), how: "task".into() };
    engine.journal.tell(told).await;
    let task = Task { is_cancelled: true, ..task.clone() };
    lock(&engine.tasks.0).insert(task.id.clone(), task.clone());
    if revision.is_modern() {
        engine.announce(Change::new(CHANGED, &format!("{{{}}}", task.fields(revision))));
        return Said::result("{\"resultType\":\"complete\"}");
    }
    let stands = format!("{{{}}}", task.fields(revision));
    outlet.send(Out::Notice(Change::new("notifications/tasks/status", &stands).frame())).await;
    Said::result(stands)
}

/// Asks what it has to ask on the stream of its result, then gives that.
async fn result(engine: &Engine, mut task: Task, frame: &Frame, revision: Revision, outlet: &Outlet) -> Said {
    if let (Some(plan), None) = (task.plan.clone(), &task.report) {
        let (who, nonce, tied) = (task.who.clone(), task.id.clone(), Some(task.id.clone()));
        let asking = Asking { plan, who, nonce, progress: false, task: tied };
        match asks::live::run(engine, &asking, frame, revision, outlet).await {
            Ok(rounds) => task.report = Some(rounds.join(",")),
            Err(said) => return said,
        }
        lock(&engine.tasks.0).insert(task.id.clone(), task.clone());
    }
    let id = quote(&task.id);
    Said::result(format!("{{{},\"_meta\":{{\"{RELATED}\":{{\"taskId\":{id}}}}}}}", task.result()))
}

fn update(engine: &Engine, task: &Task, frame: &Frame) -> Said {
    let answers = frame.param("inputResponses").map_or_else(|| "{}".to_owned(), |raw| raw.get().to_owned());
    if let Some(kept) = lock(&engine.tasks.0).get_mut(&task.id) {
        kept.report = Some(answers);
    }
    Said::result("{\"resultType\":\"complete\"}")
}

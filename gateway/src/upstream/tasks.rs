//! Drives a task to its end where the caller knows none: made, asked after, its result fetched; withdrawn with its call.

use super::limits::Limits;
use super::standing::Standing;
use super::words;
use crate::call::{Call, Caller, Outcome, Refusal, Reply, Source, Step};
use crate::protocol::object::{Edit, Key};
use crate::protocol::{Method, Object, Revision, json, translate};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The one revision whose tools may have to be called as tasks.
const REVISION: Revision = Revision::V2025_11_25;
/// How often a task is asked after where the upstream does not say, and within which bounds it may.
const POLL: Duration = Duration::from_secs(1);
const POLL_MIN: Duration = Duration::from_millis(50);
const POLL_MAX: Duration = Duration::from_secs(60);
/// The `_meta` key that ties a message to its task.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A plain call of a tool that runs as a task only.
pub(crate) struct Driven {
    standing: Arc<Standing>,
    /// As its caller made it, in the words of the upstream.
    call: Call,
    stage: Stage,
    /// The parameters that name the task, once it was made and until its end.
    task: Option<Object>,
    /// What it was last said to be.
    said: Option<Object>,
    limits: Limits,
    revision: Revision,
}

enum Stage {
    Making(Reply),
    Resting(Pin<Box<Sleep>>),
    Looking(Reply),
    Fetching(Reply),
    Over,
}

impl Driven {
    /// Calls the tool as a task.
    pub(crate) fn start(standing: &Arc<Standing>, call: &Call) -> Self {
        // What the caller can be asked was said in its own revision.
        call.caller.can();
        let caller = Arc::new(Caller { revision: REVISION, ..(*call.caller).clone() });
        let params = translate::params(&call.method, &call.params, call.revision(), REVISION);
        let call = Call { params, caller, ..call.clone() };
        let mut limits = Limits::new(standing, &call);
        limits.begin(Instant::now());
        let making = Call { params: as_task(&call.params), ..call.clone() };
        let stage = Stage::Making(standing.take(making));
        Self { standing: standing.clone(), call, stage, task: None, said: None, limits, revision: REVISION }
    }

    fn done(&mut self, outcome: impl Into<Outcome>) -> Poll<Step> {
        self.stage = Stage::Over;
        self.task = None;
        Poll::Ready(Step::Done(outcome.into()))
    }

    /// The answer to the call: a task, or, from who does not keep to its word, the result.
    fn made(&mut self, result: Object) -> Option<Poll<Step>> {
        let Some(task) = result.find("task").filter(|task| task.starts_with(b"{")) else {
            return Some(self.done(Outcome::Complete(result)));
        };
        let Some(id) = json::get(task, "taskId").filter(|id| id.starts_with(b"\"")) else {
            let refusal = words::bad_answer(&self.standing.name, &self.call, "its task has no id");
            return Some(self.done(refusal));
        };
        let named = [&b"{\"taskId\":"[..], id, b"}"].concat();
        self.task = Object::parse(named.into()).ok();
        let task = Object::parse(result.raw().slice_ref(task)).ok()?;
        self.look(&task)
    }

    /// What a task is said to be decides what comes next.
    fn look(&mut self, task: &Object) -> Option<Poll<Step>> {
        if self.said.as_ref().is_none_or(|said| said.raw() != task.raw()) {
            self.limits.extend(Instant::now());
            self.said = Some(task.clone());
        }
        let status = task.find("status").and_then(json::unquote);
        self.stage = match status.as_deref() {
            // Its questions come on the stream of its result.
            Some("completed" | "failed" | "cancelled" | "input_required") => {
                Stage::Fetching(self.ask(Method::TasksResult))
            }
            Some("working") => Stage::Resting(Box::pin(tokio::time::sleep(pause(task)))),
            _ => {
                let refusal = words::bad_answer(&self.standing.name, &self.call, "its task has no known status");
                return Some(self.done(refusal));
            }
        };
        None
    }

    /// A request of the same caller about the task.
    fn ask(&self, method: Method) -> Reply {
        let params = self.task.clone().unwrap_or_default();
        self.standing.take(Call { method, params, progress: false, param_headers: None, ..self.call.clone() })
    }

    fn expired(&mut self) -> Poll<Step> {
        let refusal: Refusal = words::timeout(&self.standing.name, &self.call, self.limits.limit());
        self.withdraw();
        self.done(refusal)
    }

    /// Nobody waits for the task any longer.
    fn withdraw(&mut self) {
        let (Some(task), Some(peer)) = (self.task.take(), self.standing.gate.peer()) else { return };
        if let Ok(exchange) = peer.start(&Method::TasksCancel, &task) {
            exchange.detach();
        }
    }

    /// The reply that is read now has ended.
    fn ended(&mut self, outcome: Outcome) -> Option<Poll<Step>> {
        match (&self.stage, outcome) {
            (Stage::Making(_), Outcome::Complete(result)) => self.made(result),
            (Stage::Looking(_), Outcome::Complete(task)) => self.look(&task),
            (_, Outcome::Complete(result)) => Some(self.done(Outcome::Complete(unrelated(result)))),
            (_, outcome) => Some(self.done(outcome)),
        }
    }
}

impl Source for Driven {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        loop {
            // Whoever makes it or fetches its result has time limits of its own.
            let is_bounded = matches!(this.stage, Stage::Making(_) | Stage::Fetching(_));
            let step = match &mut this.stage {
                Stage::Making(reply) | Stage::Looking(reply) | Stage::Fetching(reply) => reply.poll_step(cx),
                Stage::Resting(sleep) => match sleep.as_mut().poll(cx) {
                    Poll::Ready(()) => {
                        this.stage = Stage::Looking(this.ask(Method::TasksGet));
                        continue;
                    }
                    Poll::Pending => Poll::Pending,
                },
                Stage::Over => return this.expired(),
            };
            match step {
                Poll::Pending if is_bounded => return Poll::Pending,
                Poll::Pending => {
                    ready!(this.limits.poll(cx));
                    return this.expired();
                }
                Poll::Ready(Step::Event(event)) => return Poll::Ready(Step::Event(event)),
                Poll::Ready(Step::Done(outcome)) => {
                    if let Some(step) = this.ended(outcome) {
                        return step;
                    }
                }
            }
        }
    }

    fn revision(&self) -> Revision {
        self.revision
    }

    fn upstream_time(&self) -> Duration {
        Duration::ZERO
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// The parameters of a call that is made as a task.
fn as_task(params: &Object) -> Object {
    let raw = params.raw();
    let rest = raw[1..].trim_ascii_start();
    let comma: &[u8] = if rest == b"}" { b"" } else { b"," };
    let written = [&b"{\"task\":{}"[..], comma, rest].concat();
    Object::parse(written.into()).unwrap_or_else(|_| params.clone())
}

/// How long a task is left alone.
fn pause(task: &Object) -> Duration {
    let said = task.find("pollInterval").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
    said.map_or(POLL, Duration::from_millis).clamp(POLL_MIN, POLL_MAX)
}

/// The result without the name of the task, which its caller knows nothing of.
fn unrelated(result: Object) -> Object {
    let Some(meta) = result.get(Key::Meta).filter(|meta| json::get(meta, RELATED).is_some()) else { return result };
    let kept: Vec<_> = json::Members::of(meta)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|member| json::unquote(&meta[member.start..member.key_end]).as_deref() != Some(RELATED))
        .map(|member| &meta[member.start..member.end])
        .collect();
    let rest = [&b"{"[..], &kept.join(&b','), b"}"].concat();
    let edit = if kept.is_empty() { Edit::Drop } else { Edit::Set(&rest) };
    Object::parse(result.with(&[(Key::Meta, edit)])).unwrap_or(result)
}

impl Standing {
    /// Whether a tool runs as a task only, and its caller did not ask for one.
    pub(crate) fn must_drive(&self, call: &Call) -> bool {
        let tools = self.as_tasks.load();
        if tools.is_empty() || call.method != Method::ToolsCall {
            return false;
        }
        let asks = call.revision() == REVISION && call.params.find("task").is_some();
        !asks && call.params.text(Key::Name).is_some_and(|name| tools.contains(&*name))
    }
}

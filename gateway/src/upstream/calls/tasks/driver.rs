//! Drives a task to its end where the caller knows none: made, asked after, its result fetched; withdrawn with its call.

use super::questions::{Next, TaskQuestions};
use crate::call::Call;
use crate::call::caller::{Caller, Can};
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Event, Failure, Outcome, Reply, Source, Step};
use crate::health::{Cause, CauseCode};
use crate::protocol::frame::Method;
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::payload::task;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Object, TaskStatus};
use crate::protocol::{json, translate};
use crate::upstream::calls::admit::admit;
use crate::upstream::calls::failure::{CallFailure, fail};
use crate::upstream::calls::plain::plain;
use crate::upstream::calls::{Deadlines, messages};
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::gate::Sending;
use crate::upstream::instance::masked;
use crate::upstream::instance::task_progress::ProgressListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// How often a task is asked after where the upstream does not say, and within which bounds it may.
const POLL: Duration = Duration::from_secs(1);
const POLL_MIN: Duration = Duration::from_millis(50);
const POLL_MAX: Duration = Duration::from_secs(60);
/// The one revision in which a tool says itself that it must be called as a task.
const REVISION: Revision = Revision::V2025_11_25;
/// A plain call of a tool that runs as a task only.
pub(crate) struct TaskDriver {
    instance: Arc<Instance>,
    /// As its caller made it, in the words of the upstream.
    call: Call,
    stage: Stage,
    /// The parameters that name the task, once it was made and until its end.
    task: Option<Object>,
    /// What it was last said to be.
    said: Option<Object>,
    /// Who made the call, as it came: whom the task may ask.
    asker: Arc<Caller>,
    asks: TaskQuestions,
    /// Hears how far the task has come, where its caller wants to know.
    progress: Option<ProgressListener>,
    limits: Deadlines,
    revision: Revision,
}

enum Stage {
    Making(Reply),
    Resting(Pin<Box<Sleep>>),
    Looking(Reply),
    Fetching(Reply),
    /// The caller has questions to answer.
    Asking,
    /// The answers are on their way.
    Telling(Reply),
    Over,
}

impl TaskDriver {
    /// Calls a tool as a task that says that it must be called so.
    pub(crate) fn start(instance: &Arc<Instance>, call: &Call) -> Self {
        // What the caller can be asked was said in its own revision.
        call.caller.can();
        let caller = Caller { revision: REVISION, ..(*call.caller).clone() };
        let mut driven = Self::new(instance, call, caller);
        let making = Call { params: task::as_task(&driven.call.params), ..driven.call.clone() };
        driven.stage = Stage::Making(plain(instance, making));
        driven
    }

    /// Calls a tool of a stateless upstream once more, which has refused to run as anything but a task.
    pub(crate) fn declared(instance: &Arc<Instance>, call: &Call, revision: Revision) -> Self {
        let capabilities = match call.revision().is_modern() {
            true => task::declaring(&call.caller.capabilities),
            false => task::declaring(call.caller.can().to_json(revision).as_bytes()),
        };
        let caller = Caller { revision, capabilities, can: Can::default(), ..(*call.caller).clone() };
        let mut driven = Self::new(instance, call, caller);
        driven.stage = Stage::Making(plain(instance, driven.call.clone()));
        driven
    }

    /// What drives a call in the words of `caller`, nothing sent yet.
    fn new(instance: &Arc<Instance>, call: &Call, caller: Caller) -> Self {
        let revision = caller.revision;
        let params = translate::params(&call.method, &call.params, call.revision(), revision)
            .unwrap_or_else(|| call.params.clone());
        let asker = call.caller.clone();
        let call = Call { params, caller: Arc::new(caller), ..call.clone() };
        let mut limits = Deadlines::new(&instance.config, &instance.admission.timers, &call);
        limits.begin(Instant::now());
        Self {
            instance: instance.clone(),
            call,
            stage: Stage::Over,
            task: None,
            said: None,
            asker,
            asks: TaskQuestions::default(),
            progress: None,
            limits,
            revision,
        }
    }

    fn done(&mut self, outcome: impl Into<Outcome>) -> Poll<Step> {
        self.stage = Stage::Over;
        self.task = None;
        Poll::Ready(Step::Done(outcome.into()))
    }

    /// The answer to the call: a task, or, from who does not keep to its word, the result.
    fn made(&mut self, result: Object) -> Option<Poll<Step>> {
        match task::made(&result, self.revision) {
            None => Some(self.done(Outcome::Complete(result))),
            Some(Err(why)) => Some(self.odd(why)),
            Some(Ok((task, named))) => {
                let id = named.find("taskId").and_then(json::unquote).unwrap_or_default();
                self.progress = self.call.progress.then(|| self.instance.task_progress.listen(&id));
                self.task = Some(named);
                self.look(&task)
            }
        }
    }

    /// What a task is said to be decides what comes next.
    fn look(&mut self, task: &Object) -> Option<Poll<Step>> {
        if self.said.as_ref().is_none_or(|said| said.raw() != task.raw()) {
            self.limits.extend(Instant::now());
            self.said = Some(task.clone());
        }
        match TaskStatus::of(task) {
            None => return Some(self.odd("its task has no known status")),
            Some(TaskStatus::Working) => self.rest(),
            // Its questions come on the stream of its result.
            Some(_) if !self.revision.is_modern() => {
                self.stage = Stage::Fetching(self.ask(Method::TasksResult));
            }
            Some(TaskStatus::InputRequired) => return self.asked(task),
            Some(status) => return self.over(task, status),
        }
        None
    }

    /// The task is left alone for a while.
    fn rest(&mut self) {
        self.stage = Stage::Resting(Box::pin(tokio::time::sleep(pause(self.said.as_ref()))));
    }

    /// A task of a stateless upstream has questions. That it had their answers it may learn later.
    fn asked(&mut self, task: &Object) -> Option<Poll<Step>> {
        match self.asks.take(task, &self.instance.config, &self.asker) {
            Ok(true) => {
                self.limits.stop(Instant::now());
                self.stage = Stage::Asking;
            }
            // What the first answer says of a task may leave out what it asks.
            Ok(false) => self.rest(),
            Err(why) => return Some(self.unanswered(&why)),
        }
        None
    }

    /// A task of a stateless upstream has come to its end.
    fn over(&mut self, task: &Object, status: TaskStatus) -> Option<Poll<Step>> {
        let member = |key: &str| task.find(key).map(|raw| task.raw().slice_ref(raw));
        Some(match status {
            TaskStatus::Completed => match member("result").and_then(|raw| Object::parse(raw).ok()) {
                Some(result) => self.done(Outcome::Complete(task::unrelated(result))),
                // The answer to the call has no room for it.
                None if matches!(self.stage, Stage::Making(_)) => {
                    self.stage = Stage::Looking(self.ask(Method::TasksGet));
                    return None;
                }
                None => self.odd("its task has ended without a result"),
            },
            TaskStatus::Failed => match member("error") {
                Some(raw) => match RpcError::checked(raw) {
                    Ok(error) => self.done(Outcome::Error(Failure::Upstream(masked::without_secrets(error)))),
                    Err(_) => self.odd("its task has failed with an error that has no integer `code` or no `message`"),
                },
                None => self.odd("its task has failed without an error"),
            },
            _ => {
                let refusal =
                    fail(&self.instance.config, &self.instance.status, &self.call, CallFailure::TaskCancelled);
                self.done(refusal)
            }
        })
    }

    fn odd(&mut self, why: &str) -> Poll<Step> {
        let refusal = fail(
            &self.instance.config,
            &self.instance.status,
            &self.call,
            CallFailure::BadAnswer(Cause::new(CauseCode::ResponseInvalid, why)),
        );
        self.withdraw();
        self.done(refusal)
    }

    /// A question has no answer, and a stateless upstream cannot be told so.
    fn unanswered(&mut self, why: &str) -> Poll<Step> {
        let (upstream, what) = (&self.instance.name, messages::what(&self.call));
        let why = format!("{what} was given up: questions of upstream `{upstream}` {why}");
        let refusal = Refusal::of_upstream(Reason::OutcomeUnknown, upstream, why);
        self.withdraw();
        self.done(refusal)
    }

    /// A request of the same caller about the task.
    fn ask(&self, method: Method) -> Reply {
        self.say(method, self.task.clone().unwrap_or_default())
    }

    fn say(&self, method: Method, params: Object) -> Reply {
        plain(&self.instance, Call { method, params, progress: false, param_headers: None, ..self.call.clone() })
    }

    fn expired(&mut self) -> Poll<Step> {
        let refusal: Refusal =
            fail(&self.instance.config, &self.instance.status, &self.call, CallFailure::Timeout(self.limits.limit()));
        self.withdraw();
        self.done(refusal)
    }

    /// Nobody waits for the task any longer.
    fn withdraw(&mut self) {
        let Some(params) = self.task.take() else { return };
        self.stage = Stage::Over;
        // In the session in which it was made.
        let cancel =
            Call { method: Method::TasksCancel, params, progress: false, param_headers: None, ..self.call.clone() };
        if let Ok(Sending::Sent(sent)) = admit(&self.instance, &cancel) {
            sent.detach();
        }
    }

    fn is_of_another(&self, answer: &Object) -> bool {
        self.task.as_ref().is_some_and(|named| task::is_of_another(answer, named))
    }

    /// The reply that is read now has ended.
    fn ended(&mut self, outcome: Outcome) -> Option<Poll<Step>> {
        match (&self.stage, outcome) {
            (Stage::Making(_), Outcome::Complete(result)) => self.made(result),
            (Stage::Looking(_) | Stage::Fetching(_), Outcome::Complete(answer)) if self.is_of_another(&answer) => {
                Some(self.odd("what was said of its task is about another one"))
            }
            (Stage::Looking(_), Outcome::Complete(task)) => self.look(&task),
            (Stage::Telling(_), Outcome::Complete(_)) => {
                self.rest();
                None
            }
            (_, Outcome::Complete(result)) => Some(self.done(Outcome::Complete(task::unrelated(result)))),
            (_, outcome) => Some(self.done(outcome)),
        }
    }
}

impl Source for TaskDriver {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        if let Some(Poll::Ready(params)) = this.progress.as_ref().map(|ear| ear.poll(cx)) {
            this.limits.extend(Instant::now());
            return Poll::Ready(Step::Event(Event::Progress(masked::notification(params))));
        }
        loop {
            // Whoever makes it or fetches its result has time limits of its own.
            let is_bounded = matches!(this.stage, Stage::Making(_) | Stage::Fetching(_));
            let step = match &mut this.stage {
                Stage::Making(reply) | Stage::Looking(reply) | Stage::Fetching(reply) | Stage::Telling(reply) => {
                    reply.poll_step(cx)
                }
                Stage::Asking => match ready!(this.asks.poll(cx)) {
                    Next::Put(ask) => return Poll::Ready(Step::Event(Event::Ask(ask))),
                    Next::Never(why) => return this.unanswered(&why),
                    Next::Answered(answers) => {
                        this.limits.go_on(&this.instance.status.metrics);
                        let task = this.task.clone().unwrap_or_default();
                        let update = this.say(Method::TasksUpdate, task::update(&task, &answers));
                        this.stage = Stage::Telling(update);
                        continue;
                    }
                },
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

impl Drop for TaskDriver {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// How long a task is left alone.
fn pause(task: Option<&Object>) -> Duration {
    let said = task.and_then(|task| task.find("pollInterval").or_else(|| task.find("pollIntervalMs")));
    let said = said.and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
    said.map_or(POLL, Duration::from_millis).clamp(POLL_MIN, POLL_MAX)
}

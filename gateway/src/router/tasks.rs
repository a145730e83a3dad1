//! Tasks of upstreams as clients see them: their ids are wrapped, lead back to their upstream, and are nobody else's.

use super::catalog::Catalog;
use super::splice;
use super::statuses::RELATED;
use super::stopwatch::Stopwatch;
use crate::call::{Call, Caller, Event, Outcome, Reason, Refusal, Reply, Source, Step};
use crate::protocol::capability::Capabilities;
use crate::protocol::object::Key;
use crate::protocol::{Method, Object, Revision, json};
use smallvec::SmallVec;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What a stateless caller must declare who wants to know of tasks.
const REQUIRED: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
/// What is said of a task that is not there for its caller.
const UNKNOWN: &str = "Unknown task";

/// Whether a caller could be given a task by this upstream: both know the same form of tasks, and it was asked for.
pub(super) fn may_make(catalog: &Catalog, member: usize, call: &Call) -> bool {
    let Some(known) = catalog.known[member].as_ref().filter(|known| known.supports.tasks) else { return false };
    call.method == Method::ToolsCall && known.revision == call.revision() && knows(&call.caller)
}

/// Whether a caller knows tasks in the form of its revision.
fn knows(caller: &Caller) -> bool {
    match caller.revision {
        Revision::V2025_11_25 => true,
        revision => revision.is_modern() && caller.can().has(Capabilities::TASKS),
    }
}

/// `tasks/get` and its like: to the upstream that has the task.
pub(super) fn one(catalog: &Arc<Catalog>, mut call: Call) -> Reply {
    let revision = call.revision();
    let refuse = |reason, why: &str| Reply::refuse(revision, Refusal::new(reason, why));
    if !has(revision, &call.method) {
        return refuse(Reason::UnknownMethod, &format!("Method not found: {}", call.method.as_str()));
    }
    if !knows(&call.caller) {
        return Reply::refuse(revision, undeclared());
    }
    let raw = call.params.raw();
    let Some((public, place)) = splice::text(raw, &["taskId"]) else {
        return refuse(Reason::InvalidParams, "`taskId` must be a string");
    };
    let Some((member, own)) = find(catalog, &call.caller, &public) else {
        return refuse(Reason::InvalidParams, UNKNOWN);
    };
    let own = splice::replace(raw, &[(place, json::quote(&own))]);
    call.params = Object::parse(own.into()).expect("a string in place of a string keeps an object one");
    let owner = &catalog.members[member].owner;
    let named = Named::new(catalog, member, call.caller.clone());
    Wrapped::reply(named, call, |call| owner.call(call)).owned_by(owner.name())
}

/// Whether a caller who wants to listen to tasks may not, since it did not say that it knows them.
pub(super) fn refuse_listening(caller: &Caller) -> Option<Refusal> {
    (!knows(caller)).then(undeclared)
}

fn undeclared() -> Refusal {
    let why = "the extension io.modelcontextprotocol/tasks was not declared by this request";
    Refusal::new(Reason::MissingCapability(REQUIRED.into()), why)
}

/// Which upstream has a task, and what it is called there. Another's is not there; nor is one of the form of another revision,
/// which this caller was never given.
pub(super) fn find(catalog: &Catalog, caller: &Caller, public: &str) -> Option<(usize, String)> {
    let names = catalog.members.iter().map(|member| &**member.owner.name());
    let (member, own) = catalog.rules.wrap.open(public, &caller.principal, names)?;
    let is_readable = catalog.known[member].as_ref().is_none_or(|known| known.revision == caller.revision);
    is_readable.then_some((member, own))
}

/// Whether a revision has this method of tasks.
fn has(revision: Revision, method: &Method) -> bool {
    match method {
        Method::TasksGet | Method::TasksCancel => revision >= Revision::V2025_11_25,
        Method::TasksResult => revision == Revision::V2025_11_25,
        _ => revision.is_modern(),
    }
}

/// Whose tasks are told of, and to whom.
pub(super) struct Named {
    catalog: Arc<Catalog>,
    member: usize,
    caller: Arc<Caller>,
}

impl Named {
    pub(super) fn new(catalog: &Arc<Catalog>, member: usize, caller: Arc<Caller>) -> Self {
        Self { catalog: catalog.clone(), member, caller }
    }

    /// The public id of a task.
    fn close(&self, own: &str) -> String {
        let upstream = self.catalog.members[self.member].owner.name();
        self.catalog.rules.wrap.close(upstream, &self.caller.principal, own)
    }

    /// The object with the public id at each of these paths that names a task.
    fn publish(&self, object: &Object, paths: &[&[&str]]) -> Option<Object> {
        let raw = object.raw();
        let change =
            |path: &&[&str]| splice::text(raw, path).map(|(own, place)| (place, json::quote(&self.close(&own))));
        let mut changes: Vec<_> = paths.iter().filter_map(change).collect();
        changes.sort_by_key(|(place, _)| place.start);
        (!changes.is_empty()).then(|| Object::parse(splice::replace(raw, &changes).into()).ok()).flatten()
    }
}

/// Where any message may name the task that it belongs to.
const TIED: &[&str] = &["_meta", RELATED, "taskId"];

/// A reply whose ids of tasks are wrapped.
pub(super) struct Wrapped {
    reply: Reply,
    watch: Stopwatch,
    named: Named,
    method: Method,
    /// The call asks for a task, in the handshake's form.
    asks: bool,
}

impl Wrapped {
    /// The reply of a member, seen from outside.
    pub(super) fn reply(named: Named, call: Call, made: impl FnOnce(Call) -> Reply) -> Reply {
        let method = call.method.clone();
        let asks = method == Method::ToolsCall && !call.revision().is_modern() && call.params.find("task").is_some();
        let (reply, watch) = Stopwatch::on(made(call));
        Reply::live(Self { reply, watch, named, method, asks })
    }

    fn result(&self, result: Object) -> Outcome {
        let is_modern = self.reply.revision().is_modern();
        if self.method != Method::ToolsCall && is_modern != self.named.caller.revision.is_modern() {
            // The upstream has changed its revision: no task is told of in words that its caller cannot know.
            return Refusal::new(Reason::InvalidParams, UNKNOWN).into();
        }
        let place: Option<&[&str]> = match &self.method {
            Method::ToolsCall if is_modern => is_task(&result).then_some(&["taskId"]),
            Method::ToolsCall => self.asks.then_some(&["task", "taskId"]),
            Method::TasksGet | Method::TasksCancel => Some(&["taskId"]),
            // What a tool says in the end it says as it likes.
            _ => None,
        };
        if self.asks {
            self.note(&result);
        }
        let paths: SmallVec<[&[&str]; 2]> = place.into_iter().chain([TIED]).collect();
        Outcome::Complete(self.named.publish(&result, &paths).unwrap_or(result))
    }

    /// Where this is the answer that gives a task in the handshake's form, its caller is told how that stands, and may list it.
    fn note(&self, result: &Object) {
        if let Some((own, _)) = splice::text(result.raw(), &["task", "taskId"]) {
            let Named { catalog, member, caller } = &self.named;
            let upstream = catalog.members[*member].owner.name();
            catalog.rules.statuses.given(upstream, caller, &own, &self.named.close(&own));
            catalog.rules.ledger.given(upstream, caller, &own);
        }
    }
}

/// Whether a stateless upstream gives a task, and not the result; programs are known that put empty content beside it.
fn is_task(result: &Object) -> bool {
    result.text(Key::ResultType).as_deref() == Some("task")
}

/// How a task of a member stands, as a listener is told it.
pub(super) fn publish(catalog: &Arc<Catalog>, member: usize, caller: &Arc<Caller>, told: Object) -> Object {
    Named::new(catalog, member, caller.clone()).publish(&told, &[&["taskId"], TIED]).unwrap_or(told)
}

impl Source for Wrapped {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let step = self.reply.poll_step(cx);
        step.map(|step| match step {
            Step::Done(Outcome::Complete(result)) => Step::Done(self.result(result)),
            Step::Event(Event::Ask(mut ask)) => {
                if let Some(request) = self.named.publish(&ask.request, &[TIED]) {
                    ask.request = request;
                }
                Step::Event(Event::Ask(ask))
            }
            other => other,
        })
    }

    fn revision(&self) -> Revision {
        self.reply.revision()
    }

    fn upstream_time(&self) -> Duration {
        self.watch.time()
    }
}

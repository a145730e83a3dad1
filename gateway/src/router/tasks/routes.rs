//! Requests about a task: its id leads back to its upstream, and is nobody else's.

use crate::call::Call;
use crate::call::caller::Caller;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Event, Outcome, Reply, Source, Step};
use crate::memory::joined;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::protocol::value::spelling::RELATED_TASK as RELATED;
use crate::protocol::value::splice;
use crate::protocol::value::{Key, Object, TaskStatus};
use crate::protocol::{json, meta};
use crate::router::calls::Stopwatch;
use crate::router::catalog::snapshot::Catalog;
use crate::router::names::MemberId;
use crate::router::tasks::ids::TaskIds;
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
pub(crate) fn may_make(catalog: &Catalog, member: MemberId, call: &Call) -> bool {
    let Some(known) = catalog.known[member].as_ref().filter(|_| call.method == Method::ToolsCall) else { return false };
    let is_of_form = known.revision == call.revision() && known.supports.tasks;
    // What it offers in the other era is not read yet when the first call of that opens it.
    let may_be = || {
        let (era, owner) = (call.revision().era(), &catalog.members[member].owner);
        known.revision.era() != era && asks(call) && owner.inventory_of_era(era).is_some()
    };
    knows(&call.caller) && (is_of_form || may_be())
}

/// Whether a call asks for a task; a stateless client that knows them may always be given one.
fn asks(call: &Call) -> bool {
    call.revision().is_modern() || call.params.get(Key::Task).is_some()
}

/// Whether a caller knows tasks in the form of its revision.
fn knows(caller: &Caller) -> bool {
    match caller.revision {
        Revision::V2025_11_25 => true,
        revision => revision.is_modern() && caller.can().has(Capabilities::TASKS),
    }
}

/// `tasks/get` and its like: to the upstream that has the task.
pub(crate) fn one(catalog: &Arc<Catalog>, mut call: Call) -> Reply {
    let revision = call.revision();
    let refuse = |reason, why: &str| Reply::refuse(revision, Refusal::new(reason, why));
    if !has(revision, &call.method) {
        return refuse(Reason::UnknownMethod, &format!("Method not found: {}", call.method.as_str()));
    }
    if !knows(&call.caller) {
        return Reply::refuse(revision, undeclared());
    }
    let Some(public) = call.params.text(Key::TaskId) else {
        return refuse(Reason::InvalidParams, "`taskId` must be a string");
    };
    let Some((member, own)) = find(catalog, &call.caller, &public) else {
        return refuse(Reason::InvalidParams, UNKNOWN);
    };
    drop(public);
    if let Err(refusal) = resolve(catalog, member, &mut call) {
        return Reply::refuse(revision, refusal);
    }
    call.params = call.params.set_by(Key::TaskId, json::quote(&own).as_bytes(), joined);
    let owner = &catalog.members[member].owner;
    let named = Named::new(catalog, member, call.caller.clone()).about(own);
    Wrapped::reply(named, call, |call| owner.handle(call)).owned_by(owner.name())
}

/// Whether a caller who wants to listen to tasks may not, since it did not say that it knows them.
pub(crate) fn refuse_listening(caller: &Caller) -> Option<Refusal> {
    (!knows(caller)).then(undeclared)
}

fn undeclared() -> Refusal {
    let why = "the extension io.modelcontextprotocol/tasks was not declared by this request";
    Refusal::new(Reason::MissingCapability(REQUIRED.into()), why)
}

/// Which upstream has a task, and what it is called there. Another's is not there; nor is one of the form of another revision,
/// which this caller was never given, or of an upstream of which it may see nothing.
pub(crate) fn find(catalog: &Catalog, caller: &Caller, public: &str) -> Option<(MemberId, String)> {
    let names = catalog.members.iter().map(|(id, member)| (id, &**member.owner.name()));
    let (member, own) = catalog.rules.wrap.open(public, &caller.principal, names)?;
    let is_readable = catalog.known[member].as_ref().is_none_or(|known| {
        let era = caller.revision.era();
        let speaks = || known.revision.era() != era && catalog.members[member].owner.speaks_beside(era);
        known.revision == caller.revision || speaks()
    });
    (is_readable && catalog.sees(member, &caller.grants)).then_some((member, own))
}

/// Gives the task that the `_meta` of a call names the name that its owner knows it by; `member` is who is called.
pub(crate) fn resolve(catalog: &Catalog, member: MemberId, call: &mut Call) -> Result<(), Refusal> {
    let Some((task, rest)) = meta::related(&call.meta) else { return Ok(()) };
    let (public, place) = splice::text(&task, &["taskId"])
        .ok_or_else(|| Refusal::new(Reason::InvalidParams, format!("`taskId` in `{RELATED}` must be a string")))?;
    let (_, own) = find(catalog, &call.caller, &public)
        .filter(|(owner, _)| *owner == member)
        .ok_or_else(|| Refusal::new(Reason::InvalidParams, UNKNOWN))?;
    call.meta = meta::tied(&splice::replace(&task, &[(place, json::quote(&own))]), &rest);
    Ok(())
}

/// The call without the name of a task in its `_meta`: who is called is several, or nobody.
pub(crate) fn untied(call: Call) -> Call {
    match meta::related(&call.meta) {
        Some((_, rest)) => Call { meta: rest, ..call },
        None => call,
    }
}

/// Whether a revision has this method of tasks.
fn has(revision: Revision, method: &Method) -> bool {
    match method {
        Method::TasksGet | Method::TasksCancel => revision >= Revision::V2025_11_25,
        Method::TasksResult => revision == Revision::V2025_11_25,
        _ => revision.is_modern(),
    }
}

/// Whose tasks are told of, and to whom. A public id is a proof that the task is the caller's: it is given only for a task
/// that the caller is given now, has asked for by its public id, or was given before.
pub(crate) struct Named {
    catalog: Arc<Catalog>,
    member: MemberId,
    caller: Arc<Caller>,
    /// The own id of the task that was asked for.
    asked: Option<String>,
}

impl Named {
    pub(crate) fn new(catalog: &Arc<Catalog>, member: MemberId, caller: Arc<Caller>) -> Self {
        Self { catalog: catalog.clone(), member, caller, asked: None }
    }

    /// The same, for what is said of one task, by its own id.
    pub(crate) fn about(self, own: String) -> Self {
        Self { asked: Some(own), ..self }
    }

    /// Whether a task that an upstream names is its caller's.
    fn is_theirs(&self, own: &str) -> bool {
        let Self { catalog, member, caller, asked } = self;
        asked.as_deref() == Some(own) || catalog.rules.ledger.has(caller, catalog.members[*member].owner.name(), own)
    }

    /// Whether an id is one that a task of the caller's upstream can be found by again.
    fn fits(&self, own: &str) -> bool {
        TaskIds::fit(self.catalog.members[self.member].owner.name(), own)
    }

    /// The public id of a task.
    fn close(&self, own: &str) -> String {
        let upstream = self.catalog.members[self.member].owner.name();
        self.catalog.rules.wrap.close(upstream, &self.caller.principal, own)
    }

    /// The object with the public id at each of these paths that names a task of the caller's, or the one that is `given` now.
    fn publish(&self, object: &Object, paths: &[&[&str]], given: Option<&str>) -> Option<Object> {
        let raw = object.raw();
        let change = |path: &&[&str]| {
            let (own, place) = splice::text(raw, path)?;
            let is_theirs = given == Some(&*own) || self.is_theirs(&own);
            is_theirs.then(|| (place, json::quote(&self.close(&own))))
        };
        let mut changes: Vec<_> = paths.iter().filter_map(change).collect();
        changes.sort_by_key(|(place, _)| place.start);
        (!changes.is_empty()).then(|| Object::parse(splice::replace(raw, &changes).into()).ok()).flatten()
    }
}

/// Where any message may name the task that it belongs to.
const TIED: &[&str] = &["_meta", RELATED, "taskId"];

/// A reply whose ids of tasks are wrapped.
pub(crate) struct Wrapped {
    reply: Reply,
    watch: Stopwatch,
    named: Named,
    method: Method,
    /// The call asks for a task, in the handshake's form.
    asks: bool,
}

impl Wrapped {
    /// The reply of a member, seen from outside.
    pub(crate) fn reply(named: Named, call: Call, made: impl FnOnce(Call) -> Reply) -> Reply {
        let method = call.method.clone();
        let asks = method == Method::ToolsCall && !call.revision().is_modern() && call.params.get(Key::Task).is_some();
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
            Method::ToolsCall => (self.asks && gives_task(&result)).then_some(&["task", "taskId"]),
            Method::TasksGet | Method::TasksCancel => Some(&["taskId"]),
            // What a tool says in the end it says as it likes, but not whose end it is.
            Method::TasksResult => Some(TIED),
            _ => None,
        };
        let told = place.and_then(|place| splice::text(result.raw(), place)).map(|(own, _)| own);
        if self.method != Method::ToolsCall {
            if told.as_ref().is_some_and(|own| self.named.asked.as_ref() != Some(own)) {
                return self.bad("about another task");
            }
            // A stateless upstream acknowledges a cancellation and says no more.
            let says_how_it_stands =
                self.method == Method::TasksGet || (self.method == Method::TasksCancel && !is_modern);
            if says_how_it_stands && let Err(why) = self.check(&result, &["taskId"], told.as_deref()) {
                return self.bad(&format!("with a task that cannot be used: {why}"));
            }
        } else if let Some(place) = place {
            if let Err(why) = self.check(&result, place, told.as_deref()) {
                self.withdraw(told.as_deref());
                return self.bad(&format!("with a task that cannot be used: {why}"));
            }
            if self.asks {
                self.note(&result);
            }
        }
        let own = place.filter(|place| *place != TIED);
        let paths: SmallVec<[&[&str]; 2]> = own.into_iter().chain([TIED]).collect();
        Outcome::Complete(self.named.publish(&result, &paths, told.as_deref()).unwrap_or(result))
    }

    /// Whether its caller can use the task that the answer to a call gives; else what is wrong with it.
    fn check(&self, result: &Object, place: &[&str], own: Option<&str>) -> Result<(), String> {
        let Some(own) = own else { return Err("its `taskId` is missing or no text".into()) };
        if !self.named.fits(own) {
            return Err(format!("its `taskId` is too long ({} bytes)", own.len()));
        }
        let task = match place {
            ["task", ..] => result.find("task").and_then(|raw| Object::parse(result.raw().slice_ref(raw)).ok()),
            _ => Some(result.clone()),
        };
        let status = task.as_ref().and_then(TaskStatus::of);
        status.map(drop).ok_or_else(|| "its `status` is none that the protocol has".into())
    }

    /// Nobody is given this task, so that nobody can end it: its upstream is told that it need not go on.
    fn withdraw(&self, own: Option<&str>) {
        let Some(params) =
            own.and_then(|own| Object::parse(format!("{{\"taskId\":{}}}", json::quote(own)).into()).ok())
        else {
            return;
        };
        let Named { catalog, member, caller, .. } = &self.named;
        catalog.members[*member].owner.withdraw(&Call::about(Method::TasksCancel, params, caller.clone()));
    }

    /// The answer breaks the protocol: its caller is told how, and so is whoever looks after the upstream.
    fn bad(&self, how: &str) -> Outcome {
        let owner = &self.named.catalog.members[self.named.member].owner;
        let (upstream, method) = (owner.name(), self.method.as_str());
        owner.misbehaved(&format!("`{method}` was answered {how}"));
        let why = format!("upstream `{upstream}` answered `{method}` {how}");
        Refusal::of_upstream(Reason::BadAnswer, upstream, why).into()
    }

    /// Where this is the answer that gives a task in the handshake's form, its caller is told how that stands, and may list it.
    fn note(&self, result: &Object) {
        if let Some((own, _)) = splice::text(result.raw(), &["task", "taskId"]) {
            let Named { catalog, member, caller, .. } = &self.named;
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

/// Whether an answer in the handshake's form gives a task; an upstream may have ignored that one was asked for.
fn gives_task(result: &Object) -> bool {
    result.find("task").is_some_and(|task| task != b"null")
}

/// How a task of a member stands, as a listener is told it; nothing where it is none that was `listened` to.
pub(crate) fn publish(
    catalog: &Arc<Catalog>,
    member: MemberId,
    caller: &Arc<Caller>,
    told: Object,
    listened: impl Fn(&str) -> bool,
) -> Option<Object> {
    let (own, _) = splice::text(told.raw(), &["taskId"]).filter(|(own, _)| listened(own))?;
    let named = Named::new(catalog, member, caller.clone()).about(own);
    Some(named.publish(&told, &[&["taskId"], TIED], None).unwrap_or(told))
}

impl Source for Wrapped {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let step = self.reply.poll_step(cx);
        step.map(|step| match step {
            Step::Done(Outcome::Complete(result)) => Step::Done(self.result(result)),
            Step::Event(Event::Ask(mut ask)) => {
                if let Some(request) = self.named.publish(&ask.request, &[TIED], None) {
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

    fn queue_time(&self) -> Duration {
        self.watch.queued()
    }
}

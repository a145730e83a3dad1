//! Tasks of upstreams as clients see them: their ids are wrapped, lead back to their upstream, and are nobody else's.

use super::catalog::Catalog;
use super::splice;
use super::statuses::RELATED;
use super::stopwatch::Stopwatch;
use crate::call::{Call, Caller, Event, Outcome, Reason, Refusal, Reply, Source, Step};
use crate::protocol::capability::Capabilities;
use crate::protocol::object::Key;
use crate::protocol::{Method, Object, Revision, json};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// What a stateless caller must declare who wants to know of tasks.
const REQUIRED: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

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
        let why = "the extension io.modelcontextprotocol/tasks was not declared by this request";
        return refuse(Reason::MissingCapability(REQUIRED.into()), why);
    }
    let raw = call.params.raw();
    let Some((public, place)) = splice::text(raw, &["taskId"]) else {
        return refuse(Reason::InvalidParams, "`taskId` must be a string");
    };
    let Some((member, own)) =
        catalog.rules.wrap.open(&public, &call.caller.principal, catalog.members.iter().map(|m| &**m.owner.name()))
    else {
        return refuse(Reason::InvalidParams, "Unknown task");
    };
    let own = splice::replace(raw, &[(place, json::quote(&own))]);
    call.params = Object::parse(own.into()).expect("a string in place of a string keeps an object one");
    let (caller, owner) = (call.caller.clone(), &catalog.members[member].owner);
    Wrapped::reply(owner.call(call), catalog, member, caller).owned_by(owner.name())
}

/// Whether a revision has this method of tasks.
fn has(revision: Revision, method: &Method) -> bool {
    match method {
        Method::TasksGet | Method::TasksCancel => revision >= Revision::V2025_11_25,
        Method::TasksResult => revision == Revision::V2025_11_25,
        _ => revision.is_modern(),
    }
}

/// A reply whose ids of tasks are wrapped.
pub(super) struct Wrapped {
    reply: Reply,
    watch: Stopwatch,
    catalog: Arc<Catalog>,
    member: usize,
    caller: Arc<Caller>,
}

impl Wrapped {
    /// The reply of a member, seen from outside.
    pub(super) fn reply(reply: Reply, catalog: &Arc<Catalog>, member: usize, caller: Arc<Caller>) -> Reply {
        let (reply, watch) = Stopwatch::on(reply);
        Reply::live(Self { reply, watch, catalog: catalog.clone(), member, caller })
    }

    /// The public id of a task.
    fn close(&self, own: &str) -> String {
        let upstream = self.catalog.members[self.member].owner.name();
        self.catalog.rules.wrap.close(upstream, &self.caller.principal, own)
    }

    /// Where this is the answer that gives a task in the handshake's form, its caller is told how that stands.
    fn note(&self, result: &Object) {
        let Some((own, _)) = splice::text(result.raw(), &["task", "taskId"]) else { return };
        if result.get(Key::Content).is_none() {
            let upstream = self.catalog.members[self.member].owner.name();
            self.catalog.rules.statuses.given(upstream, &self.caller, &own, &self.close(&own));
        }
    }

    fn publish(&self, object: Object) -> Object {
        let raw = object.raw();
        let change = |place: Range<usize>| {
            let own = json::unquote(&raw[place.clone()])?;
            Some((place, json::quote(&self.close(&own))))
        };
        let mut changes: Vec<_> = places(&object).into_iter().filter_map(change).collect();
        changes.sort_by_key(|(place, _)| place.start);
        match changes.is_empty() {
            true => object,
            false => Object::parse(splice::replace(raw, &changes).into()).unwrap_or(object),
        }
    }
}

/// Where a result or a question names its task.
fn places(object: &Object) -> Vec<Range<usize>> {
    let raw = object.raw();
    let mut found: Vec<_> = splice::find(raw, &["_meta", RELATED, "taskId"]).into_iter().collect();
    // What has content is a tool's result, and says what it likes.
    if object.get(Key::Content).is_none() {
        found.extend(splice::find(raw, &["taskId"]));
        found.extend(splice::find(raw, &["task", "taskId"]));
    }
    found
}

impl Source for Wrapped {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let step = self.reply.poll_step(cx);
        step.map(|step| match step {
            Step::Done(Outcome::Complete(result)) => {
                self.note(&result);
                Step::Done(Outcome::Complete(self.publish(result)))
            }
            Step::Event(Event::Ask(mut ask)) => {
                ask.request = self.publish(std::mem::take(&mut ask.request));
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

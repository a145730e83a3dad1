//! What concerns one upstream: calls by name, by URI, by reference.

use super::rewrite::Rewritten;
use super::{extensions, held, login, unseen};
use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::Reply;
use crate::call::share::{Part, Shares};
use crate::health::row::State;
use crate::memory::joined;
use crate::protocol::http::param_headers::Unfit;
use crate::protocol::json;
use crate::protocol::value::splice;
use crate::protocol::value::{Key, Object};
use crate::router::catalog::snapshot::{Catalog, Found};
use crate::router::catalog::{Current, Kind};
use crate::router::names::{MemberId, suggest, uri};
use crate::router::tasks::{Named, Wrapped, routes};
use crate::upstream::inventory::Inventory;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// So many calls may wait so; those of one client alone may be half of them.
pub(crate) const WAITING_MAX: usize = 2048;

/// Routes to one upstream, by the catalog that is in force for the caller.
pub(crate) struct Routes {
    waiting: Arc<Shares>,
}

/// Where a call leads by one catalog.
enum Way {
    /// An answer, or its owner's reply.
    Ready(Reply),
    /// Nobody known owns it; upstreams that were never seen may.
    Unseen(Box<Call>, Refusal),
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self { waiting: Shares::new(WAITING_MAX, Part::OfFree) }
    }

    /// `tools/call` and `prompts/get`.
    pub(crate) fn named(&self, current: &Arc<Current>, kind: Kind, call: Call) -> Reply {
        let way = by_name(&current.load(), kind, call);
        self.follow(current, way, move |catalog, call| by_name(catalog, kind, call))
    }

    /// `resources/read`.
    pub(crate) fn read(&self, current: &Arc<Current>, call: Call) -> Reply {
        let way = by_uri(&current.load(), call);
        self.follow(current, way, by_uri)
    }

    /// `completion/complete`.
    pub(crate) fn complete(&self, current: &Arc<Current>, call: Call) -> Reply {
        let way = by_reference(&current.load(), call);
        self.follow(current, way, by_reference)
    }

    /// What no list names: to the one upstream without a prefix.
    pub(crate) fn unknown(current: &Current, call: Call) -> Reply {
        let catalog = current.load();
        let owner = catalog.bare().or_else(|| extensions::owner(&catalog, &call.method, &call.caller.grants));
        // What no list names is in no role but one that has the whole upstream.
        let has_whole = |id: &MemberId| call.caller.grants.has_whole(catalog.members[*id].owner.name());
        match owner.filter(has_whole) {
            Some(member) => hand_over(&catalog, member, call),
            None => {
                let method = suggest::shown(call.method.as_str());
                refuse(&call, Refusal::new(Reason::UnknownMethod, format!("Method not found: {method}")))
            }
        }
    }

    /// Waits for upstreams that were never seen, where one of them may own it, and looks once more.
    fn follow<F>(&self, current: &Arc<Current>, way: Way, again: F) -> Reply
    where
        F: Fn(&Arc<Catalog>, Call) -> Way + Send + 'static,
    {
        let (call, refusal) = match way {
            Way::Ready(reply) => return reply,
            Way::Unseen(call, refusal) => (*call, refusal),
        };
        let owners = owners_of(&current.load(), &call);
        let is_awaited = |id: &MemberId| {
            let catalog = current.load();
            is_open(&catalog, *id) && catalog.members[*id].owner.cause_for(&call.caller.principal).is_none()
        };
        if !owners.iter().any(is_awaited) {
            return refuse(&call, refusal);
        }
        let Some(permit) = self.waiting.take(&call.caller.share()) else {
            let why = "Too many calls of this client wait for upstreams that are starting; try again in a few seconds";
            return refuse(&call, Refusal::new(Reason::Busy, why));
        };
        let current = current.clone();
        let mut wait = Duration::ZERO;
        for member in owners.iter().filter_map(|id| current.load().members.get(*id).cloned()) {
            wait = wait.max(member.owner.start_wait());
            // One that rests until it is needed is needed now.
            member.owner.refresh(&call);
        }
        let limit = Instant::now() + wait;
        Reply::deferred(async move {
            let _permit = permit;
            // A missing login changes no catalog. Other failures may pass while the call waits.
            let is_awaited = |now: &Catalog, id| is_open(now, id) && !login::is_needed(now, id, &call.caller.principal);
            let catalog = current.until(limit, |now| !owners.iter().any(|id| is_awaited(now, *id))).await;
            match again(&catalog, call.clone()) {
                Way::Ready(reply) => reply,
                // How they stand by now.
                Way::Unseen(call, refusal) => refuse(&call, refusal),
            }
        })
    }
}

/// Returns true while the first inventory of an upstream may still arrive, for everybody or for one principal.
fn is_open(catalog: &Catalog, id: MemberId) -> bool {
    catalog.is_awaited(id) || login::is_all(catalog, id)
}

/// The upstreams that were never seen and may own what a call asks for.
fn owners_of(catalog: &Catalog, call: &Call) -> Vec<MemberId> {
    let grants = &call.caller.grants;
    match call.params.text(Key::Name) {
        Some(name) => catalog.unseen_owners(&name, grants).chain(login::wanted(catalog, &name, grants)).collect(),
        None => catalog.unseen().filter(|id| catalog.sees(*id, grants)).collect(),
    }
}

fn by_name(catalog: &Arc<Catalog>, kind: Kind, mut call: Call) -> Way {
    let Some(name) = call.params.text(Key::Name) else {
        return Way::Ready(refuse(&call, invalid("`name` must be a string".to_owned())));
    };
    let Some(entry) = catalog.find(kind, &name, &call.caller.grants) else {
        let name = name.into_owned();
        return no_such_name(catalog, kind, &name, call);
    };
    if let Some(paths) = &entry.headers
        && let Err(unfit) = paths.check(call.params.get(Key::Arguments), call.param_headers.as_deref())
    {
        let refusal = match unfit {
            Unfit::Arguments(why) => invalid(why),
            Unfit::Headers(why) => Refusal::new(Reason::HeaderMismatch, why),
        };
        return Way::Ready(refuse(&call, refusal));
    }
    if let Some(own) = &entry.own_raw {
        call.target_name = Some(own.clone());
        call.public = Some(entry.public.clone());
    }
    Way::Ready(hand_over(catalog, entry.member, call))
}

/// A name that the catalog does not have. One that the caller may not use takes the very same way.
fn no_such_name(catalog: &Arc<Catalog>, kind: Kind, name: &str, mut call: Call) -> Way {
    let grants = &call.caller.grants;
    if let Some(owner) = login::by_tool(catalog, name, grants).filter(|_| kind == Kind::Tools) {
        call.target_name = Some(json::quote(Inventory::LOGIN).into());
        call.public = Some(name.into());
        return Way::Ready(hand_over(catalog, owner, call));
    }
    if let Some(refusal) = held::refusal(catalog, kind, name, &call) {
        return Way::Ready(refuse(&call, refusal));
    }
    // What no list names has nobody approved.
    let passes = |id: &MemberId| catalog.may_have(*id, kind, name, grants) && !(kind == Kind::Tools && catalog.holds());
    if let Some(only) = catalog.transparent().filter(passes) {
        return Way::Ready(hand_over(catalog, only, call));
    }
    // A client that knows it from before is told to log in. Who has logged in just now waits for what is offered then: a name that is not
    // known to be of an upstream is not sent there.
    if let Some(owner) = login::wanted(catalog, name, grants).filter(passes) {
        let refusal = unseen::refusal(catalog, std::iter::once(owner), &call, name);
        return match login::is_needed(catalog, owner, &call.caller.principal) {
            true => Way::Ready(refuse(&call, refusal)),
            false => Way::Unseen(Box::new(call), refusal),
        };
    }
    let mut why = format!("Unknown {}: {}", kind.noun(), suggest::shown(name));
    let unknown = || catalog.unseen_owners(name, grants).chain(catalog.empty_owners(kind, name, grants));
    if unknown().next().is_some() {
        let refusal = unseen::refusal(catalog, unknown(), &call, name);
        return Way::Unseen(Box::new(call), refusal);
    }
    let partly: Vec<_> = catalog.partly_seen_owners(name, grants).collect();
    // What one may have that is not well is no slip of the pen for what another one has.
    let now = grants.now();
    let near = catalog.shelf(kind).view(now.rights());
    let near = near.filter(|entry| partly.is_empty() || partly.contains(&entry.member));
    if let Some(nearest) = suggest::nearest(name, near) {
        why.push_str(&format!(" (did you mean {nearest}?)"));
    }
    if let [only] = partly[..] {
        let only = &catalog.members[only];
        let cause = only.owner.cause().map(|cause| format!(": {}", cause.public())).unwrap_or_default();
        let (upstream, state) = (only.owner.name(), only.owner.state().as_str());
        why.push_str(&format!(" (upstream {upstream} may have it, but is {state}{cause})"));
        return Way::Ready(refuse(&call, Refusal::of_upstream(Reason::InvalidParams, upstream, why)));
    }
    // What is told is the same; who looks at the gateway sees the difference.
    let is_denied = catalog.shelf(kind).find(name).is_some();
    Way::Ready(refuse(&call, invalid(why).denied(is_denied)))
}

fn by_uri(catalog: &Arc<Catalog>, mut call: Call) -> Way {
    let Some(uri) = call.params.text(Key::Uri).map(String::from) else {
        return Way::Ready(refuse(&call, invalid("`uri` must be a string".to_owned())));
    };
    if let Some(refusal) = uri::refuse_long(&uri) {
        return Way::Ready(refuse(&call, refusal));
    }
    let Some(Found { member, own }) = catalog.find_uri(&uri, &call.caller.grants) else {
        return no_such_uri(catalog, &uri, call);
    };
    if own != uri {
        call.params = call.params.set_by(Key::Uri, json::quote(&own).as_bytes(), joined);
        call.public = Some(uri.as_str().into());
    }
    Way::Ready(hand_over(catalog, member, call))
}

fn no_such_uri(catalog: &Catalog, uri: &str, call: Call) -> Way {
    // One that is not to run says nothing of what it may have: nearly every URI would be its own.
    let grants = &call.caller.grants;
    let is_stopped = |id: MemberId| catalog.members[id].owner.state() == State::Stopped;
    let unseen = || catalog.unseen().filter(|id| !is_stopped(*id) && catalog.may_read(*id, uri, grants));
    if unseen().next().is_some() {
        let refusal = unseen::refusal(catalog, unseen(), &call, uri);
        return Way::Unseen(Box::new(call), refusal);
    }
    let why = format!("Resource not found: {}", suggest::shown(uri));
    Way::Ready(refuse(&call, Refusal::new(Reason::ResourceNotFound(uri.into()), why)))
}

fn by_reference(catalog: &Arc<Catalog>, mut call: Call) -> Way {
    let raw = call.params.raw();
    let kind = splice::text(raw, &["ref", "type"]).map(|(kind, _)| kind);
    let (key, is_prompt) = match kind.as_deref() {
        Some("ref/prompt") => ("name", true),
        Some("ref/resource") => ("uri", false),
        _ => return Way::Ready(refuse(&call, invalid("`ref.type` must be ref/prompt or ref/resource".to_owned()))),
    };
    let Some((public, place)) = splice::text(raw, &["ref", key]) else {
        return Way::Ready(refuse(&call, invalid(format!("`ref.{key}` must be a string"))));
    };
    if let Some(refusal) = uri::refuse_long(&public).filter(|_| !is_prompt) {
        return Way::Ready(refuse(&call, refusal));
    }
    let grants = &call.caller.grants;
    let listed = if is_prompt { Kind::Prompts } else { Kind::Templates };
    let found = match catalog.find(listed, &public, grants) {
        Some(entry) => Some((entry.member, entry.own.to_string())),
        None if is_prompt => None,
        None => catalog.find_uri(&public, grants).map(|found| (found.member, found.own.into_owned())),
    };
    let Some((member, own)) = found else {
        return match is_prompt {
            true => no_such_name(catalog, Kind::Prompts, &public, call),
            false => no_such_uri(catalog, &public, call),
        };
    };
    let upstream = catalog.members[member].owner.name();
    if let Some(rights) = grants.now().rights().filter(|_| !is_prompt)
        && !template_values(call.params.raw()).all(|value| rights.has_template_value(upstream, &value))
    {
        let why = "a value of `argument` or `context.arguments` leads out of the resources of this client's roles";
        return Way::Ready(refuse(&call, invalid(why.to_owned())));
    }
    if own != public {
        let changed = splice::replace(call.params.raw(), &[(place, json::quote(&own))]);
        call.params = Object::parse(changed.into()).expect("a string in place of a string keeps an object one");
    }
    Way::Ready(hand_over(catalog, member, call))
}

/// The values that a completion has for the expressions of a template.
fn template_values(params: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let argument = json::get(params, "argument").and_then(|argument| json::get(argument, "value"));
    let context = json::get(params, "context").and_then(|context| json::get(context, "arguments"));
    let others = context.into_iter().flat_map(|raw| {
        let members = json::Members::of(raw).into_iter().flatten().filter_map(Result::ok);
        members.map(|member| &raw[member.value..member.end])
    });
    argument.into_iter().chain(others).filter_map(json::unquote_lossy)
}

/// Gives the call, in its owner's words, to its owner.
fn hand_over(catalog: &Arc<Catalog>, member: MemberId, mut call: Call) -> Reply {
    let owner = &catalog.members[member].owner;
    if let Err(refusal) = routes::resolve(catalog, member, &mut call) {
        return refuse(&call, refusal);
    }
    if call.bound_to.as_ref().is_some_and(|upstream| upstream != owner.name()) {
        let why = "`requestState` is unknown to the upstream that has this name now: another upstream issued it";
        return refuse(&call, invalid(why.to_owned()));
    }
    if routes::may_make(catalog, member, &call) {
        let named = Named::new(catalog, member, call.caller.clone());
        return Wrapped::reply(named, call, |call| rewritten(catalog, member, call)).owned_by(owner.name());
    }
    rewritten(catalog, member, call)
}

/// The owner's reply, with its URIs as clients know them.
fn rewritten(catalog: &Arc<Catalog>, member: MemberId, call: Call) -> Reply {
    let owner = &catalog.members[member].owner;
    if catalog.marked(member).is_none() {
        return owner.handle(call);
    }
    let method = call.method.clone();
    Rewritten::reply(owner.handle(call), catalog.clone(), member, method).owned_by(owner.name())
}

fn refuse(call: &Call, refusal: Refusal) -> Reply {
    Reply::refuse(call.revision(), refusal)
}

fn invalid(why: String) -> Refusal {
    Refusal::new(Reason::InvalidParams, why)
}

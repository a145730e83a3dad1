//! Answers every call: by itself, by one upstream, or by all of them.

// What becomes of each call: answered here, by one upstream, or by all of them.
mod calls;
// What the gateway offers: the merged inventories under their public names, an immutable snapshot that is swapped whole.
mod catalog;
// What reads names, URIs and ids here, as plain functions: see [`crate::fuzzing`].
#[doc(hidden)]
pub mod fuzzing;
// Listen calls: who hears of which change.
mod listen;
// Public names and URIs: how one is made, and how it leads back to its owner.
mod names;
// Tasks of upstreams as clients see them.
mod tasks;
// The tools of a catalog, for who looks at the gateway.
mod offered;
// Tools that somebody has to approve by their definitions.
mod approval;
// How names are merged and lists are served: checked values, made from the files by `config`.
pub mod config;

pub use catalog::Owner;
pub use listen::Listeners;
pub use offered::{HiddenTool, Offered, OfferedTool};
pub use tasks::Secret;

use crate::call::caller::Grants;
use crate::call::caller::rights::Rights;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::Reply;
use crate::call::{Call, Handle};
use crate::protocol::frame::Method;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::Object;
use crate::router::catalog::snapshot::{Catalog, Rules};
use crate::router::names::ByMember;
use crate::runtime::Tasks;
use calls::Routes;
use calls::Unread;
use catalog::Current;
use catalog::Keeper;
use catalog::Kind;
use catalog::Member;
use catalog::views::{DeclaredView, DeclaredViews, EraViews, PersonalView, PersonalViews, SessionView, SessionViews};
use config::Naming;
use listen::Sees;
use std::sync::Arc;
use std::time::Duration;
use tasks::GrantedTasks;
use tasks::TaskIds;

/// What a router is made with, beside its upstreams.
#[derive(Debug, Clone)]
pub struct Terms {
    /// How names are merged.
    pub naming: Naming,
    /// Items on one page of a list.
    pub page_size: usize,
    /// How long first lists wait for inventories that were never known.
    pub first_list_wait: Duration,
    /// Put before the instructions of the upstreams.
    pub instructions: String,
    /// What becomes of extensions that the gateway does not know.
    pub unknown: config::Unknown,
    /// What is asked of tools before clients are offered them.
    pub pins: config::Pins,
    /// What the ids of tasks are wrapped with.
    pub secret: Secret,
}

/// Knows whose everything is. A [`Handle`] that never waits: what must wait does so in its own reply.
pub struct Router {
    current: Arc<Current>,
    keeper: Arc<Keeper>,
    /// What clients of each era see in its place.
    eras: EraViews,
    /// What those see in its place who declare the same.
    declared: DeclaredViews,
    /// What principals see in its place that have logins of their own.
    personal: PersonalViews,
    /// What sessions see in its place that have instances to themselves.
    views: SessionViews,
    routes: Routes,
    listeners: Listeners,
    first_list_wait: Duration,
    unknown: config::Unknown,
}

impl Router {
    /// A router over these upstreams, in configuration order; its tasks live in `tasks`.
    pub fn start(upstreams: Vec<Arc<dyn Owner>>, terms: Terms, listeners: Listeners, tasks: &Tasks) -> Self {
        let members = Arc::new(ByMember::numbered(upstreams.into_iter().map(|one| Arc::new(Member::new(one)))));
        let Terms { naming, page_size, first_list_wait, instructions, unknown, pins, secret } = terms;
        let wrap = Arc::new(TaskIds::new(secret));
        let statuses = listeners.statuses().clone();
        let ledger = Arc::new(GrantedTasks::default());
        let budget = listeners.budget().clone();
        let rules = Arc::new(Rules { naming, page_size, instructions, unknown, pins, wrap, statuses, ledger, budget });
        let current = Arc::new(Current::new(Catalog::build(&members, &rules, None).counted()));
        let keeper = Keeper::start(&current, &listeners, tasks);
        let eras = EraViews::start(&current, &listeners, tasks);
        let bases = [Era::Legacy, Era::Modern].map(|era| eras.of(era).clone());
        let personal = PersonalViews::new(bases.clone(), &listeners, tasks);
        let declared = DeclaredViews::new(bases, &listeners, tasks);
        // Sessions are of handshake clients.
        let views = SessionViews::new(eras.of(Era::Legacy), &listeners, tasks);
        let routes = Routes::new();
        Self { current, keeper, eras, declared, personal, views, routes, listeners, first_list_wait, unknown }
    }

    /// From now on it is a router over these upstreams, in this order. Those that were among them before are not touched; to one that
    /// no longer is nothing leads but the calls that it has, each of which may hold it.
    pub fn set(&self, upstreams: Vec<Arc<dyn Owner>>) {
        self.keeper.set(upstreams, None);
        self.look();
    }

    /// The upstreams are others, or offer something else.
    fn look(&self) {
        self.eras.refresh(&self.current);
        self.declared.look();
        self.personal.look();
        self.views.look();
    }

    /// From now on this is asked of tools before clients are offered them.
    pub fn set_pins(&self, pins: &config::Pins) {
        if self.keeper.set_pins(pins) {
            self.look();
        }
    }

    /// What is asked of tools now.
    pub fn pins(&self) -> config::Pins {
        self.current.keep().rules.pins.clone()
    }

    /// The tools that somebody is to approve, at most so many.
    pub fn to_approve(&self, most: usize) -> approval::to_approve::ToApprove {
        let of_eras = [Era::Legacy, Era::Modern].map(|era| self.eras.of(era).keep());
        let of_some = self.declared.catalogs().into_iter().chain(self.personal.catalogs());
        let all: Vec<_> = [self.current.keep()].into_iter().chain(of_eras).chain(of_some).collect();
        approval::to_approve::of(&all, most)
    }

    /// What handshake clients are offered now.
    pub fn offered(&self) -> Offered {
        Offered(self.current.keep())
    }

    /// What a list waits for that is not what everyone sees.
    fn unread(&self, views: &Views, call: &Call) -> Option<Unread> {
        let Views { declared, personal, own } = views;
        let (caller, wait) = (&call.caller, self.first_list_wait);
        let settles = personal.as_ref().and_then(|view| self.personal.settled(view, caller, wait));
        let awaited = declared.as_ref().and_then(|view| Some((view.clone(), view.awaited(&caller.grants, wait)?)));
        if settles.is_none() && awaited.is_none() {
            return None;
        }
        let renew = own.as_ref().map(|own| self.views.renewal(caller, own));
        let (views, of_era) = (views.clone(), self.eras.of(call.revision().era()).clone());
        Some(Box::pin(async move {
            if let Some((view, awaited)) = awaited {
                view.until_settled(awaited).await;
            }
            if let Some(settles) = settles {
                settles.await;
            }
            renew.into_iter().for_each(|renew| renew());
            views.shown().cloned().unwrap_or(of_era)
        }))
    }

    /// Those with these rights could see what `before` admits: they are told of the lists that differ.
    pub fn regranted(&self, grants: &Grants, before: Option<&Arc<Rights>>) {
        let now = grants.keep();
        self.listeners.levels().look_again();
        let differ = |era, sees: &Sees, session: Option<&str>| {
            let own = match sees {
                Sees::Era => None,
                Sees::Declared(held) => self.declared.kept(held).or_else(|| self.personal.kept(held)),
                Sees::Session => session.and_then(|id| self.views.kept(id)),
            };
            own.unwrap_or_else(|| self.eras.of(era).clone()).keep().differences(before, now.as_ref())
        };
        self.listeners.tell_regranted(grants, differ);
    }

    fn notify(&self, call: Call) -> Reply {
        let revision = call.revision();
        if call.method == Method::RootsChanged {
            let members = &self.current.keep().members;
            let call = tasks::untied(call);
            let seen = members.values().filter(|member| call.caller.grants.sees(member.owner.name()));
            seen.for_each(|member| drop(member.owner.handle(call.clone())));
            return Reply::complete(revision, Object::empty());
        }
        // What else the gateway knows ends here: its upstreams have notices of their own to send.
        if let Method::Other(_) = call.method
            && self.current.load().bare().is_some()
        {
            return Routes::unknown(&self.current, call);
        }
        Reply::complete(revision, Object::empty())
    }
}

impl Handle for Router {
    fn handle(&self, call: Call) -> Reply {
        self.listeners.note(&call.caller.principal);
        if call.is_notification {
            return self.notify(call);
        }
        let (revision, listens) = (call.revision(), call.method == Method::Listen);
        let (era, listed) = (revision.era(), Kind::listed_by(&call.method));
        let declared = match listens || listed.is_some() {
            true => self.declared.look_up(era, &call.caller, !listens),
            false => self.declared.find(era, &call.caller),
        };
        let personal = self.personal.of(era, &call.caller, declared.as_ref());
        let of_many = declared.as_ref().map(|view| view.beneath());
        let beneath = personal.as_ref().map(|view| view.beneath()).or(of_many);
        let own = self.views.of(&call.caller, beneath, listens);
        let views = Views { declared, personal, own };
        let shown = views.shown().unwrap_or_else(|| self.eras.of(era));
        let of_listener = views.of_listener().filter(|_| listens);
        let current = of_listener.unwrap_or(shown);
        let call = match calls::admit(call, self.unknown) {
            Ok(call) => call,
            Err(refusal) => return Reply::refuse(revision, refusal),
        };
        match &call.method {
            // One upstream.
            Method::ToolsCall => self.routes.named(current, Kind::Tools, call),
            Method::PromptsGet => self.routes.named(current, Kind::Prompts, call),
            Method::ResourcesRead => self.routes.read(current, call),
            Method::Complete => self.routes.complete(current, call),
            Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
                tasks::one(&current.load(), call)
            }
            Method::TasksList => {
                tasks::list(&current.load(), &tasks::untied(call.clone())).unwrap_or_else(|| here(&call))
            }
            Method::Other(_) => Routes::unknown(current, call),
            // All of them.
            Method::Listen => listen::listen((current, shown), &self.listeners, tasks::untied(call), views.sees()),
            Method::Discover => {
                let catalog = current.load();
                let grants = &call.caller.grants;
                let seen = catalog.members.iter().filter(|(id, _)| catalog.sees(*id, grants));
                seen.for_each(|(_, member)| member.owner.expect_era(era));
                let kept = &catalog.discovered[usize::from(call.revision().is_modern())];
                let result = |grants: &Grants| calls::result(&catalog, era, grants);
                // There may be thousands of views, and each is asked for it seldom.
                let is_own = views.is_own() || !grants.is_all();
                let result = if is_own { result(grants) } else { kept.get_or_init(|| result(&Grants::all())).clone() };
                Reply::complete(Revision::NEWEST_MODERN, result)
            }
            _ => match listed {
                Some(kind) => {
                    let unread = self.unread(&views, &call);
                    calls::list(current, kind, &call, (self.first_list_wait, unread))
                }
                None => here(&call),
            },
        }
    }
}

/// What a caller sees in place of what all of its era do, each made of the one before.
#[derive(Clone)]
struct Views {
    declared: Option<Arc<DeclaredView>>,
    personal: Option<Arc<PersonalView>>,
    own: Option<Arc<SessionView>>,
}

impl Views {
    /// The catalog that it sees; `None` where that is the one of its era.
    fn shown(&self) -> Option<&Arc<Current>> {
        let personal = || self.personal.as_ref().map(|view| view.current());
        let declared = || self.declared.as_ref().and_then(|view| view.differing());
        self.own.as_ref().map(|view| view.current()).or_else(personal).or_else(declared)
    }

    /// The catalog whose changes it hears of with others.
    fn of_listener(&self) -> Option<&Arc<Current>> {
        self.declared.as_ref().filter(|_| !self.is_own()).map(|view| view.current())
    }

    /// By what it is found where that changes.
    fn sees(&self) -> Sees {
        match self {
            Self { own: Some(_), .. } => Sees::Session,
            Self { personal: Some(view), .. } => Sees::Declared(view.hold()),
            Self { declared: Some(view), .. } => Sees::Declared(view.hold()),
            _ => Sees::Era,
        }
    }

    /// Whether few others see the same.
    fn is_own(&self) -> bool {
        self.own.is_some() || self.personal.is_some()
    }
}

/// What is answered here.
fn here(call: &Call) -> Reply {
    let revision = call.revision();
    match &call.method {
        Method::Ping if !revision.is_modern() => Reply::complete(revision, Object::empty()),
        other => {
            let why = format!("Method not found: {}", other.as_str());
            Reply::refuse(revision, Refusal::new(Reason::UnknownMethod, why))
        }
    }
}

#[cfg(test)]
mod tests;

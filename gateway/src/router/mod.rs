//! Answers every call: by itself, by one upstream, or by all of them.

mod app;
mod catalog;
pub mod config;
mod current;
mod discover;
mod encoded;
mod entry;
mod extensions;
mod fanout;
mod hint;
mod keeper;
mod kind;
mod later;
mod ledger;
mod listen;
mod listeners;
mod namespace;
mod owner;
mod page;
mod quota;
mod rewrite;
mod route;
mod shelf;
mod splice;
mod statuses;
mod stock;
mod stopwatch;
mod task_list;
mod tasks;
mod template;
mod uri;
mod views;
mod wrap;

pub use listeners::Listeners;
pub use owner::Owner;
pub use wrap::Secret;

use crate::call::{Call, Handle, Reason, Refusal, Reply};
use crate::lifecycle::Tasks;
use crate::protocol::{Method, Object, Revision};
use catalog::{Catalog, Rules};
use config::Naming;
use current::Current;
use kind::Kind;
use ledger::Ledger;
use owner::Member;
use route::Routes;
use std::sync::Arc;
use std::time::Duration;
use views::Views;
use wrap::Wrap;

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
    /// What the ids of tasks are wrapped with.
    pub secret: Secret,
}

/// Knows whose everything is. A [`Handle`] that never waits: what must wait does so in its own reply.
pub struct Router {
    current: Arc<Current>,
    /// What sessions see in its place that have instances to themselves.
    views: Views,
    routes: Routes,
    listeners: Listeners,
    first_list_wait: Duration,
    unknown: config::Unknown,
}

impl Router {
    /// A router over these upstreams, in configuration order; its tasks live in `tasks`.
    pub fn start(upstreams: Vec<Arc<dyn Owner>>, terms: Terms, listeners: Listeners, tasks: &Tasks) -> Self {
        let members: Arc<[Member]> = upstreams.into_iter().map(Member::new).collect();
        let Terms { naming, page_size, first_list_wait, instructions, unknown, secret } = terms;
        let wrap = Wrap::new(secret);
        let statuses = listeners.statuses().clone();
        let ledger = Ledger::default();
        let rules = Arc::new(Rules { naming, page_size, instructions, unknown, wrap, statuses, ledger });
        let current = Arc::new(Current::new(Catalog::build(&members, &rules, None)));
        keeper::start(&current, &listeners, tasks);
        let views = Views::new(&current, &listeners, tasks);
        Self { current, views, routes: Routes::new(), listeners, first_list_wait, unknown }
    }

    fn notify(&self, call: Call) -> Reply {
        let revision = call.revision();
        if call.method == Method::RootsChanged {
            let members = &self.current.keep().members;
            members.iter().for_each(|member| drop(member.owner.call(call.clone())));
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
        let own = self.views.of(&call.caller);
        let current = own.as_ref().unwrap_or(&self.current);
        let revision = call.revision();
        let call = match extensions::admit(call, self.unknown) {
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
            Method::TasksList => task_list::list(&current.load(), &call).unwrap_or_else(|| here(&call)),
            Method::Other(_) => Routes::unknown(current, call),
            // All of them.
            Method::Listen => listen::listen(current, &self.listeners, call, own.is_some()),
            Method::Discover => {
                let catalog = current.load();
                let era = call.revision().era();
                let kept = &catalog.discovered[usize::from(call.revision().is_modern())];
                let result = kept.get_or_init(|| discover::result(&catalog, era));
                Reply::complete(Revision::NEWEST_MODERN, result.clone())
            }
            method => match Kind::listed_by(method) {
                Some(kind) => fanout::list(current, kind, &call, self.first_list_wait),
                None => here(&call),
            },
        }
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

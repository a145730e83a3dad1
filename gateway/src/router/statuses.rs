//! Who is told how a task stands: the handshake session that was given it, by the id that it was given.

use super::splice;
use crate::call::{Caller, Principal, Tenant};
use crate::protocol::{Method, Object, Revision, json};
use crate::upstream::Audience;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many tasks are remembered; the oldest is forgotten.
const TASKS_MAX: usize = 1024;
/// Tasks with longer ids are not remembered.
const ID_BYTES_MAX: usize = 4096;
/// The `_meta` key that ties a message to its task.
pub(super) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The tasks that sessions were given and that may not be over.
#[derive(Default)]
pub(super) struct Statuses(Mutex<VecDeque<Given>>);

/// A task that a session was given.
struct Given {
    upstream: Arc<str>,
    own: Box<str>,
    /// What the session calls it.
    public: Box<str>,
    principal: Principal,
    tenant: Weak<Tenant>,
}

impl Given {
    /// Whether an instance of an upstream that tells things to these has made it.
    fn is_of(&self, upstream: &str, whose: &Audience) -> bool {
        let is_theirs = || match whose {
            Audience::Everyone => true,
            Audience::Session(id) => self.tenant.upgrade().is_some_and(|tenant| tenant.id() == id),
            Audience::Principal(principal) => self.principal == *principal,
        };
        *self.upstream == *upstream && is_theirs()
    }

    fn is_live(&self) -> bool {
        self.tenant.upgrade().is_some_and(|tenant| !tenant.has_ended())
    }
}

impl Statuses {
    /// A caller was given a task. Only sessions of the one revision that has these notifications are told of them.
    pub(super) fn given(&self, upstream: &Arc<str>, caller: &Caller, own: &str, public: &str) {
        let Some(tenant) = caller.tenant.as_ref().filter(|_| caller.revision == Revision::V2025_11_25) else { return };
        if own.len() > ID_BYTES_MAX {
            return;
        }
        let tenant = Arc::downgrade(tenant);
        let mut given = self.lock();
        given.retain(|known| {
            let is_same = known.upstream == *upstream && *known.own == *own && known.tenant.ptr_eq(&tenant);
            !is_same && known.is_live()
        });
        if given.len() >= TASKS_MAX {
            given.pop_front();
        }
        let (upstream, principal) = (upstream.clone(), caller.principal.clone());
        given.push_back(Given { upstream, own: own.into(), public: public.into(), principal, tenant });
    }

    /// An upstream tells how a task stands: whoever was given it hears, and nobody else. Where two sessions were given
    /// tasks of one id, nothing says whose it is.
    pub(super) fn told(&self, upstream: &str, whose: &Audience, params: &Object) {
        let raw = params.raw();
        let Some((own, place)) = splice::text(raw, &["taskId"]) else { return };
        let status = params.find("status").and_then(json::unquote);
        let is_over = matches!(status.as_deref(), Some("completed" | "failed" | "cancelled"));
        let mut given = self.lock();
        let Some(at) = place_of(&given, upstream, whose, &own) else { return };
        let (tenant, public) = (given[at].tenant.upgrade(), json::quote(&given[at].public));
        if is_over {
            given.remove(at);
        }
        drop(given);
        let mut changes = vec![(place, public.clone())];
        let related = splice::text(raw, &["_meta", RELATED, "taskId"]).filter(|(id, _)| *id == own);
        changes.extend(related.map(|(_, place)| (place, public)));
        changes.sort_by_key(|(place, _)| place.start);
        if let (Some(tenant), Ok(params)) = (tenant, Object::parse(splice::replace(raw, &changes).into())) {
            tenant.tell(&Method::TaskStatus, &params);
        }
    }

    /// An upstream tells how far a task has come: whoever was given it hears, under a token that is the task's public id.
    pub(super) fn progressed(&self, upstream: &str, whose: &Audience, own: &str, params: &Object) {
        let given = self.lock();
        let Some(at) = place_of(&given, upstream, whose, own) else { return };
        let (tenant, public) = (given[at].tenant.upgrade(), json::quote(&given[at].public));
        drop(given);
        let raw = params.raw();
        let mut changes: Vec<_> =
            splice::find(raw, &["progressToken"]).map(|place| (place, public.clone())).into_iter().collect();
        let related = splice::text(raw, &["_meta", RELATED, "taskId"]).filter(|(id, _)| *id == own);
        changes.extend(related.map(|(_, place)| (place, public)));
        changes.sort_by_key(|(place, _)| place.start);
        if let (Some(tenant), Ok(params)) = (tenant, Object::parse(splice::replace(raw, &changes).into())) {
            tenant.tell(&Method::Progress, &params);
        }
    }

    /// An instance of an upstream is gone: its next process may give out the same ids anew.
    pub(super) fn gone(&self, upstream: &str, whose: &Audience) {
        self.lock().retain(|given| !given.is_of(upstream, whose));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Given>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the one task stands that an upstream can mean; none where two sessions were given tasks of one id.
fn place_of(given: &VecDeque<Given>, upstream: &str, whose: &Audience, own: &str) -> Option<usize> {
    let mut those = (0..given.len()).filter(|&at| *given[at].own == *own && given[at].is_of(upstream, whose));
    those.next().filter(|_| those.next().is_none())
}

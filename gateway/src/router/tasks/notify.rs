//! Who is told how a task stands: the handshake session that was given it, by the id that it was given.

use crate::call::Ledger;
use crate::call::caller::{Caller, ClientSession, Principal};
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::spelling::RELATED_TASK as RELATED;
use crate::protocol::value::splice;
use crate::protocol::value::{Object, TaskStatus};
use crate::upstream::notice::Audience;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many tasks are remembered; then the oldest of the client that has most is forgotten.
const TASKS_MAX: usize = 1024;
/// Tasks with longer ids are not remembered.
const ID_BYTES_MAX: usize = 4096;

/// The tasks that sessions were given and that may not be over.
pub(crate) struct TaskNotifier(Mutex<Ledger<Given>>);

impl Default for TaskNotifier {
    fn default() -> Self {
        Self(Mutex::new(Ledger::new(TASKS_MAX)))
    }
}

/// A task that a session was given.
struct Given {
    upstream: Arc<str>,
    own: Box<str>,
    /// What the session calls it.
    public: Box<str>,
    principal: Principal,
    tenant: Weak<ClientSession>,
}

impl Given {
    /// Whether an instance of an upstream that tells things to these has made it.
    fn is_of(&self, upstream: &str, whose: &Audience) -> bool {
        let is_theirs = || match whose {
            Audience::Everyone | Audience::Others(_) => true,
            Audience::Session(id) => self.tenant.upgrade().is_some_and(|tenant| tenant.id() == id),
            Audience::Principal(whose) => whose.includes(&self.principal),
        };
        *self.upstream == *upstream && is_theirs()
    }

    /// The session that it was given to, while that may see its upstream.
    fn told(&self) -> Option<Arc<ClientSession>> {
        let may_see =
            |session: &Arc<ClientSession>| session.rights().is_none_or(|rights| rights.grants.sees(&self.upstream));
        self.tenant.upgrade().filter(may_see)
    }

    fn is_live(&self) -> bool {
        self.tenant.upgrade().is_some_and(|tenant| !tenant.has_ended())
    }
}

impl TaskNotifier {
    /// A caller was given a task. Only sessions of the one revision that has these notifications are told of them.
    pub(crate) fn given(&self, upstream: &Arc<str>, caller: &Caller, own: &str, public: &str) {
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
        let (upstream, principal) = (upstream.clone(), caller.principal.clone());
        given.push(&caller.share(), Given { upstream, own: own.into(), public: public.into(), principal, tenant });
    }

    /// An upstream tells how a task stands: whoever was given it hears, and nobody else. Where two sessions were given
    /// tasks of one id, nothing says whose it is.
    pub(crate) fn told(&self, upstream: &str, whose: &Audience, params: &Object) {
        let raw = params.raw();
        let Some((own, place)) = splice::text(raw, &["taskId"]) else { return };
        let is_over = TaskStatus::of(params).is_some_and(TaskStatus::is_final);
        let mut given = self.lock();
        let Some((at, one)) = find(&given, upstream, whose, &own) else { return };
        let (tenant, public) = (one.told(), json::quote(&one.public));
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
    pub(crate) fn progressed(&self, upstream: &str, whose: &Audience, own: &str, params: &Object) {
        let given = self.lock();
        let Some((_, one)) = find(&given, upstream, whose, own) else { return };
        let (tenant, public) = (one.told(), json::quote(&one.public));
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
    pub(crate) fn gone(&self, upstream: &str, whose: &Audience) {
        self.lock().retain(|given| !given.is_of(upstream, whose));
    }

    fn lock(&self) -> MutexGuard<'_, Ledger<Given>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one task that an upstream can mean, and its place; none where two sessions were given tasks of one id.
fn find<'a>(given: &'a Ledger<Given>, upstream: &str, whose: &Audience, own: &str) -> Option<(usize, &'a Given)> {
    let mut those = given.iter().enumerate().filter(|(_, one)| *one.own == *own && one.is_of(upstream, whose));
    those.next().filter(|_| those.next().is_none())
}

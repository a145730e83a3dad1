//! What a session sees that has instances of upstreams to itself: the catalog with their lists in place of the primary ones'.

use super::declared::Beneath;
use crate::call::caller::{Caller, ClientSession};
use crate::call::share::{Part, Share, Shares};
use crate::memory::budget::{Budget, Spent};
use crate::router::catalog::current::Current;
use crate::router::catalog::owner::Owner;
use crate::router::catalog::rebuild::Told;
use crate::router::catalog::snapshot::{Catalog, weight};
use crate::router::listen::Listeners;
use crate::router::names::MemberId;
use crate::runtime::{Tasks, aside};
use crate::upstream::inventory::Inventory;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use tokio::sync::watch;

/// So many sessions have a view of their own, of one client alone half as many; further ones see what is everyone's.
const VIEWS_MAX: usize = 4096;

/// The views of all sessions that have one.
pub(crate) struct SessionViews {
    shared: Arc<Shared>,
    tasks: Tasks,
}

struct Shared {
    /// What everyone sees.
    base: Arc<Current>,
    /// Whether there are upstreams of which sessions have instances; mostly there are none.
    has_private: AtomicBool,
    /// Whether there are some of which sessions may come to have lists of their own.
    may_have_private: AtomicBool,
    listeners: Listeners,
    table: Mutex<HashMap<Arc<str>, Arc<SessionView>>>,
    places: Arc<Shares>,
}

/// What one session sees.
pub(crate) struct SessionView {
    current: Arc<Current>,
    /// What those see who are as it is, and have no instance of an upstream to themselves.
    base: Arc<Current>,
    /// Keeps that from being given up.
    _held: Option<Arc<()>>,
    /// Held while it is brought up to date: nobody puts what is older in its place.
    renewing: Mutex<()>,
}

/// What an instance offers, as it changes.
type Offer = (MemberId, watch::Receiver<Option<Arc<Inventory>>>);

impl SessionViews {
    /// No view yet; their tasks live in `tasks`.
    pub(crate) fn new(base: &Arc<Current>, listeners: &Listeners, tasks: &Tasks) -> Self {
        let (base, listeners) = (base.clone(), listeners.clone());
        let places = Shares::new(VIEWS_MAX, Part::OfFree);
        let [has_private, may_have_private] = [false; 2].map(AtomicBool::new);
        let shared = Shared { base, has_private, may_have_private, listeners, table: Mutex::default(), places };
        let views = Self { shared: Arc::new(shared), tasks: tasks.clone() };
        views.look();
        views
    }

    /// Looks again whether there is any upstream of which sessions have instances.
    pub(crate) fn look(&self) {
        let base = self.shared.base.load();
        let has = |is_so: fn(&dyn Owner) -> bool| base.members.values().any(|member| is_so(&*member.owner));
        self.shared.has_private.store(has(Owner::is_per_session), Ordering::Release);
        self.shared.may_have_private.store(has(Owner::may_be_per_session), Ordering::Release);
    }

    /// The catalog that a session has to itself.
    pub(crate) fn kept(&self, session: &str) -> Option<Arc<Current>> {
        self.shared.lock().get(session).map(|view| view.current.clone())
    }

    /// What a caller's session sees; `None` where that is what those see who declare the same, which may have a view. Who listens may come
    /// to see something else.
    pub(crate) fn of(&self, caller: &Caller, beneath: Option<Beneath<'_>>, listens: bool) -> Option<Arc<SessionView>> {
        let has_private = self.shared.has_private.load(Ordering::Acquire);
        if !has_private && !self.shared.may_have_private.load(Ordering::Acquire) {
            return None;
        }
        let tenant = caller.tenant.as_ref()?;
        if !has_private && !listens && !tenant.has_lists() {
            return None;
        }
        let mut table = self.shared.lock();
        if let Some(view) = table.get(tenant.id()) {
            return Some(view.clone());
        }
        if tenant.has_ended() {
            return None;
        }
        let share = caller.share();
        let place = self.shared.places.take(&share)?;
        let base = beneath.map_or(&self.shared.base, |(current, _)| current).clone();
        let view = Arc::new(SessionView {
            current: Arc::new(Current::new(base.keep())),
            base,
            _held: beneath.map(|(_, held)| held.clone()),
            renewing: Mutex::default(),
        });
        table.insert(tenant.id().clone(), view.clone());
        drop(table);
        let (shared, tenant, kept) = (self.shared.clone(), tenant.clone(), view.clone());
        self.tasks.spawn_until_end(async move {
            tokio::select! {
                biased;
                () = tenant.ended() => {}
                () = shared.keep(&kept, &tenant, &share) => {}
            }
            shared.lock().remove(tenant.id());
            drop(place);
        });
        Some(view)
    }

    /// Brings the view of a caller's session up to date, in place of soon.
    pub(crate) fn renewal(&self, caller: &Caller, view: &Arc<SessionView>) -> impl FnOnce() + Send + 'static {
        let (shared, view, share) = (self.shared.clone(), view.clone(), caller.share());
        let tenant = caller.tenant.clone();
        move || {
            let budget = shared.listeners.budget().owned_by(share.owner());
            tenant.iter().for_each(|tenant| drop(shared.renew(&view, tenant, &budget)));
        }
    }
}

impl SessionView {
    /// Its catalog.
    pub(crate) fn current(&self) -> &Arc<Current> {
        &self.current
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<SessionView>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a session's view up to date, and tells the session of what changed in it.
    async fn keep(&self, view: &SessionView, tenant: &Arc<ClientSession>, share: &Share) {
        let mut swaps = view.base.swaps();
        let budget = self.listeners.budget().owned_by(share.owner());
        let mut told = Told::of(&view.current);
        loop {
            swaps.mark_unchanged();
            let mut offers = self.renew(view, tenant, &budget);
            told.tell(&view.current, |now, changes| self.listeners.tell_session(tenant.id(), now, changes));
            tokio::select! {
                () = tenant.next_instance() => {}
                // It does not end before this does: its sender is held here.
                _ = swaps.changed() => {}
                () = any(&mut offers) => {}
                () = told.due(&view.current) => {}
            }
        }
    }

    /// Brings a session's view up to date; what it is made of, as that changes. No catalog is kept while that is waited for: one that
    /// has gone would keep the upstreams that have.
    fn renew(&self, view: &SessionView, tenant: &Arc<ClientSession>, budget: &Budget) -> Vec<Offer> {
        let _alone = view.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        let base = view.base.keep();
        // An instance may have come, or have gone and another one come in its place.
        let own = |(id, owner): (MemberId, &dyn Owner)| Some((id, owner.inventory_of(tenant)?));
        let mut offers: Vec<Offer> = private(&base).filter_map(own).collect();
        let next = overlay(&base, &mut offers, budget);
        if !next.is(&view.current.load()) {
            view.current.swap(next);
        }
        offers
    }
}

/// The upstreams of which sessions have instances.
fn private(catalog: &Catalog) -> impl Iterator<Item = (MemberId, &dyn Owner)> {
    let all = catalog.members.iter().map(|(id, member)| (id, &*member.owner));
    all.filter(|(_, owner)| owner.is_per_session() || owner.may_be_per_session())
}

/// The catalog with the lists of a session's instances; itself, where they are the same, or where there is no room for more.
fn overlay(base: &Arc<Catalog>, offers: &mut [Offer], budget: &Budget) -> Arc<Catalog> {
    let mut known = base.known.clone();
    let mut differs = false;
    for (id, offer) in offers.iter_mut() {
        let Some(own) = offer.borrow_and_update().clone() else { continue };
        let Some(known) = known.get_mut(*id) else { continue };
        let is_same = |primary: &Arc<Inventory>| primary.is_same(&own) && primary.announced == own.announced;
        if !known.as_ref().is_some_and(is_same) {
            (*known, differs) = (Some(own), true);
        }
    }
    if !differs {
        return base.clone();
    }
    let view = aside(weight(&known), || Catalog::of(known, &base.members, &base.rules, Some(base)).standing(budget));
    view.map_or_else(
        |_: Spent| {
            let members = offers.iter().filter_map(|(id, _)| base.members.get(*id));
            let names: Vec<_> = members.map(|member| &**member.owner.name()).collect();
            tracing::warn!(
                upstreams = names.join(", "),
                "no memory for the lists of a session; it sees the shared lists"
            );
            base.clone()
        },
        Arc::new,
    )
}

/// Resolves when what an instance offers has changed, or when an instance has gone.
pub(super) async fn any(offers: &mut [Offer]) {
    let mut waits: Vec<_> = offers.iter_mut().map(|(_, offer)| Box::pin(offer.changed())).collect();
    poll_fn(|cx| match waits.iter_mut().any(|wait| wait.as_mut().poll(cx).is_ready()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

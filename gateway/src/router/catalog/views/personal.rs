//! What a principal sees that has logins of its own: the view of those who declare the same, with what upstreams offer to it alone.

use super::declared::{Beneath, DeclaredView, overlaid};
use super::session::any;
use super::usage::Usage;
use crate::call::caller::{Caller, Principal};
use crate::call::share::{Part, Share, SharePermit, Shares};
use crate::memory::budget::Spent;
use crate::protocol::revision::Era;
use crate::router::catalog::current::Current;
use crate::router::catalog::rebuild::Told;
use crate::router::catalog::snapshot::Catalog;
use crate::router::listen::Listeners;
use crate::router::names::MemberId;
use crate::runtime::Tasks;
use crate::runtime::timer::late::{passed, within_until};
use crate::upstream::inventory::Inventory;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// So many views there are, of one client alone half as many; who comes beyond that sees nothing of what is each one's own.
const VIEWS_MAX: usize = 4096;
/// A view that nobody has looked at for so long is given up.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// The views of all principals.
pub(crate) struct PersonalViews {
    shared: Arc<Shared>,
    tasks: Tasks,
}

struct Shared {
    /// What clients of each era see.
    bases: [Arc<Current>; 2],
    listeners: Listeners,
    /// Whether there are upstreams with logins of each principal; mostly that is all that a call looks at.
    is_any: AtomicBool,
    table: Mutex<HashMap<Key, Arc<PersonalView>>>,
    places: Arc<Shares>,
}

/// Whose a view is: of a principal's clients of one era that declare the same.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    principal: Principal,
    era: Era,
    /// What tells the view apart that it is made of.
    declared: usize,
}

/// What clients of a principal see.
pub(crate) struct PersonalView {
    key: Key,
    current: Arc<Current>,
    /// What those see who are as they are, of upstreams that have nothing of their own for them.
    base: Arc<Current>,
    /// Keeps that from being given up.
    _base_held: Option<Arc<()>>,
    usage: Usage,
    /// When its first list was asked for.
    asked: OnceLock<Instant>,
    /// Held while it is brought up to date: nobody puts what is older in its place.
    renewing: Mutex<()>,
    share: Share,
    _place: SharePermit,
}

/// What is offered to a principal, as it changes.
type Offer = (MemberId, watch::Receiver<Option<Arc<Inventory>>>);

impl PersonalViews {
    /// No view yet; their tasks live in `tasks`.
    pub(crate) fn new(bases: [Arc<Current>; 2], listeners: &Listeners, tasks: &Tasks) -> Self {
        let (listeners, is_any, table) = (listeners.clone(), AtomicBool::new(false), Mutex::default());
        let places = Shares::new(VIEWS_MAX, Part::OfFree);
        let views = Self { shared: Arc::new(Shared { bases, listeners, is_any, table, places }), tasks: tasks.clone() };
        views.look();
        views
    }

    /// Looks again whether there is any upstream with logins of each principal.
    pub(crate) fn look(&self) {
        let base = self.shared.bases[0].load();
        let is_any = base.members.values().any(|member| member.owner.is_personal());
        self.shared.is_any.store(is_any, Ordering::Release);
    }

    /// The catalogs of all views.
    pub(crate) fn catalogs(&self) -> Vec<Arc<Catalog>> {
        self.shared.lock().values().map(|view| view.current.keep()).collect()
    }

    /// The catalog of a view that listeners hold.
    pub(crate) fn kept(&self, held: &Arc<()>) -> Option<Arc<Current>> {
        self.shared.lock().values().find(|view| Arc::ptr_eq(view.usage.held(), held)).map(|view| view.current.clone())
    }

    /// What a caller sees, made where there is none; `None` where that is what all do who declare the same.
    pub(crate) fn of(
        &self,
        era: Era,
        caller: &Caller,
        declared: Option<&Arc<DeclaredView>>,
    ) -> Option<Arc<PersonalView>> {
        if !self.shared.is_any.load(Ordering::Acquire) {
            return None;
        }
        let held = declared.map(|view| view.hold());
        let declared_by = held.as_ref().map_or(0, |held| Arc::as_ptr(held) as usize);
        let key = Key { principal: caller.principal.clone(), era, declared: declared_by };
        let mut table = self.shared.lock();
        if let Some(view) = table.get(&key) {
            view.usage.is_used();
            return Some(view.clone());
        }
        let share = caller.share();
        let place = self.shared.places.take(&share)?;
        let base = declared.map_or(&self.shared.bases[era as usize], |view| view.current()).clone();
        let view = Arc::new(PersonalView {
            key: key.clone(),
            current: Arc::new(Current::new(base.keep())),
            base,
            _base_held: held,
            usage: Usage::new(),
            asked: OnceLock::new(),
            renewing: Mutex::default(),
            share,
            _place: place,
        });
        table.insert(key, view.clone());
        drop(table);
        self.shared.renew(&view);
        self.tasks.spawn_until_end(self.shared.clone().keep(view.clone()));
        Some(view)
    }

    /// Waits until it is known what is offered to a caller, for so long from its first list on; `None` where it need not.
    pub(crate) fn settled(
        &self,
        view: &Arc<PersonalView>,
        caller: &Arc<Caller>,
        wait: Duration,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let until = *view.asked.get_or_init(Instant::now) + wait;
        let base = view.base.keep();
        let is_seen = |id: MemberId| base.sees(id, &caller.grants);
        let open: Vec<_> = offers(&base, &view.key)
            .filter(|(id, offer)| is_seen(*id) && offer.borrow().is_none())
            .map(|(_, offer)| offer)
            .collect();
        if open.is_empty() || until <= Instant::now() {
            return None;
        }
        let (shared, view) = (self.shared.clone(), view.clone());
        Some(async move {
            for mut offer in open {
                let _in_time = within_until(until, offer.wait_for(Option::is_some)).await;
            }
            shared.renew(&view);
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<PersonalView>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a view up to date, and tells its clients of what changed in it, until it was not looked at for long.
    async fn keep(self: Arc<Self>, view: Arc<PersonalView>) {
        let (mut swaps, mut told) = (view.base.swaps(), Told::of(&view.current));
        loop {
            swaps.mark_unchanged();
            let mut offers = self.renew(&view);
            told.tell(&view.current, |now, changes| self.listeners.tell_declared(view.usage.held(), now, changes));
            let idle = view.usage.looked() + IDLE;
            tokio::select! {
                swapped = swaps.changed() => if swapped.is_err() { break },
                () = any(&mut offers) => {}
                () = told.due(&view.current) => {}
                () = passed(idle) => if self.gives_up(&view) { return },
            }
        }
        self.lock().remove(&view.key);
    }

    /// Whether a view is given up, since nobody has looked at it for long.
    fn gives_up(&self, view: &PersonalView) -> bool {
        let mut table = self.lock();
        let is_over = view.usage.is_over(IDLE);
        if is_over {
            table.remove(&view.key);
        }
        is_over
    }

    /// Brings a view up to date; what it is made of, as that changes.
    fn renew(&self, view: &PersonalView) -> Vec<Offer> {
        let _alone = view.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        let base = view.base.keep();
        let mut offers: Vec<Offer> = offers(&base, &view.key).collect();
        let before = view.current.keep();
        let (mut known, mut differs) = (base.known.clone(), false);
        for (id, offer) in &mut offers {
            // What is not known yet is waited for, as what was never seen of an upstream is.
            if let Some(known) = known.get_mut(*id) {
                (*known, differs) = (offer.borrow_and_update().clone(), true);
            }
        }
        let budget = self.listeners.budget().owned_by(view.share.owner());
        let charge = |next: Catalog| next.standing(&budget).map_err(|_: Spent| no_memory(&view.key.principal)).ok();
        if let Some(next) = overlaid(&base, &before, (known, differs), charge) {
            view.current.swap(next);
        }
        offers
    }
}

fn no_memory(principal: &Principal) {
    let principal = principal.name();
    tracing::warn!(principal, "no memory for the lists of a principal; it sees nothing of what it has logged in to");
}

/// What is offered to a principal alone.
fn offers<'a>(catalog: &'a Catalog, of: &'a Key) -> impl Iterator<Item = Offer> + 'a {
    let all = catalog.members.iter().filter(|(_, member)| member.owner.is_personal());
    all.filter_map(|(id, member)| Some((id, member.owner.offered_to(&of.principal, of.era)?)))
}

impl PersonalView {
    /// Its catalog.
    pub(crate) fn current(&self) -> &Arc<Current> {
        &self.current
    }

    /// Its catalog, and what keeps it from being given up.
    pub(crate) fn beneath(&self) -> Beneath<'_> {
        (&self.current, self.usage.held())
    }

    /// What keeps it from being given up, and tells its listeners from others.
    pub(crate) fn hold(&self) -> Arc<()> {
        self.usage.held().clone()
    }
}

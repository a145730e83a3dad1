//! What the clients see that declare the same: the view of their era with the lists that upstreams give to those who declare it.

use super::usage::Usage;
use crate::call::caller::{Caller, Grants};
use crate::call::share::{Part, Share, SharePermit, Shares};
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::revision::Era;
use crate::router::catalog::build::Known;
use crate::router::catalog::current::Current;
use crate::router::catalog::rebuild::Told;
use crate::router::catalog::snapshot::{Catalog, weight};
use crate::router::listen::Listeners;
use crate::router::names::MemberId;
use crate::runtime::timer::late::{passed, within_until};
use crate::runtime::{Tasks, aside};
use crate::upstream::inventory::Variant;
use arc_swap::ArcSwap;
use std::collections::{HashMap, HashSet};
use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// So many sets of capabilities have a view of their own; clients that declare others see what all of their era do.
const VIEWS_MAX: usize = 8;
/// Those of one client alone are not so many: there is always room for what another one declares.
const OF_ONE_MAX: usize = 6;
/// A view that nobody has looked at for so long makes room for another one …
const ROOM_AFTER: Duration = Duration::from_secs(60);
/// … and is given up after so long.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// The views of all sets of capabilities that have one.
pub(crate) struct DeclaredViews {
    shared: Arc<Shared>,
    tasks: Tasks,
}

struct Shared {
    /// What clients of each era see.
    bases: [Arc<Current>; 2],
    listeners: Listeners,
    /// Whether there are upstreams whose lists may differ; mostly that is all that a call looks at.
    may_vary: AtomicBool,
    /// Whether any view shows something else than its base.
    differs: AtomicBool,
    views: ArcSwap<Vec<Arc<DeclaredView>>>,
    /// Held while views come and go.
    changing: Mutex<()>,
    places: Arc<Shares>,
}

/// What the clients of one era see that declare the same.
pub(crate) struct DeclaredView {
    era: Era,
    set: Declared,
    current: Arc<Current>,
    /// Whether it shows something else than its base.
    differs: AtomicBool,
    /// Since when clients look at lists of which upstreams: of those that they may see.
    wanted: watch::Sender<HashMap<MemberId, Instant>>,
    /// Of which of these it was read what they offer to these clients, or cannot be.
    settled: watch::Sender<HashSet<MemberId>>,
    usage: Usage,
    level: Tasks,
    /// In whose name it was made.
    share: Share,
    place: Mutex<Option<SharePermit>>,
}

/// The view that another one is made of: its catalog, and what keeps it from being given up.
pub(crate) type Beneath<'a> = (&'a Arc<Current>, &'a Arc<()>);

/// What upstreams offer to the clients of a view, as it changes.
type Offers = Vec<(MemberId, watch::Receiver<Variant>)>;

impl DeclaredViews {
    /// No view yet; their tasks live in `tasks`.
    pub(crate) fn new(bases: [Arc<Current>; 2], listeners: &Listeners, tasks: &Tasks) -> Self {
        let shared = Shared {
            bases,
            listeners: listeners.clone(),
            may_vary: AtomicBool::new(false),
            differs: AtomicBool::new(false),
            views: ArcSwap::default(),
            changing: Mutex::default(),
            places: Shares::new(VIEWS_MAX, Part::AtMost(OF_ONE_MAX)),
        };
        let views = Self { shared: Arc::new(shared), tasks: tasks.clone() };
        views.look();
        views
    }

    /// The catalogs of all views.
    pub(crate) fn catalogs(&self) -> Vec<Arc<Catalog>> {
        self.shared.views.load().iter().map(|view| view.current.keep()).collect()
    }

    /// The catalog of a view that listeners hold.
    pub(crate) fn kept(&self, held: &Arc<()>) -> Option<Arc<Current>> {
        let views = self.shared.views.load();
        views.iter().find(|view| Arc::ptr_eq(view.usage.held(), held)).map(|view| view.current.clone())
    }

    /// Looks again whether there is any upstream whose lists may differ.
    pub(crate) fn look(&self) {
        let base = self.shared.bases[0].load();
        let may_vary = base.members.values().any(|member| member.owner.may_vary());
        self.shared.may_vary.store(may_vary, Ordering::Release);
    }

    /// The view in which the names of a caller's call are looked up; `None` where that is the one of its era.
    pub(crate) fn find(&self, era: Era, caller: &Caller) -> Option<Arc<DeclaredView>> {
        if !self.shared.differs.load(Ordering::Acquire) {
            return None;
        }
        let views = self.shared.views.load();
        let view = views.iter().find(|view| view.is_of(era, caller)).filter(|view| view.differing().is_some())?;
        view.usage.is_used();
        Some(view.clone())
    }

    /// The view of a caller that looks at lists or listens, made where there is none; `None` where it sees what all of its era do. What
    /// upstreams offer to such clients is read once one of them looks at lists who may see the upstream.
    pub(crate) fn look_up(&self, era: Era, caller: &Caller, is_list: bool) -> Option<Arc<DeclaredView>> {
        if !is_list {
            return self.view(era, caller);
        }
        let base = self.shared.bases[era as usize].load();
        let seen = || base.members.iter().filter(|(id, _)| base.sees(*id, &caller.grants));
        if !caller.grants.is_all() && !seen().any(|(_, member)| member.owner.may_vary()) {
            return None;
        }
        let view = self.view(era, caller)?;
        let is_new = |(id, _): &(MemberId, _)| !view.wanted.borrow().contains_key(id);
        if seen().any(|one| is_new(&one)) {
            let now = Instant::now();
            view.wanted.send_modify(|wanted| seen().for_each(|(id, _)| _ = wanted.entry(id).or_insert(now)));
        }
        Some(view)
    }

    fn view(&self, era: Era, caller: &Caller) -> Option<Arc<DeclaredView>> {
        if !self.shared.may_vary.load(Ordering::Acquire) {
            return None;
        }
        let known = |views: &[Arc<DeclaredView>]| views.iter().find(|view| view.is_of(era, caller)).cloned();
        if let Some(view) = known(&self.shared.views.load()) {
            view.usage.is_used();
            return Some(view);
        }
        let shared = &self.shared;
        let _alone = shared.changing();
        let views = shared.views.load_full();
        if let Some(view) = known(&views) {
            return Some(view);
        }
        let (mut views, share) = (Vec::clone(&views), caller.share());
        let place = shared.places.take(&share).or_else(|| shared.make_room(&mut views, &share))?;
        let base = &shared.bases[era as usize];
        let view = Arc::new(DeclaredView {
            era,
            set: caller.declares(),
            current: Arc::new(Current::new(base.keep())),
            differs: AtomicBool::new(false),
            wanted: watch::Sender::default(),
            settled: watch::Sender::default(),
            usage: Usage::new(),
            level: self.tasks.child(),
            share,
            place: Mutex::new(Some(place)),
        });
        views.push(view.clone());
        shared.set(views);
        view.level.spawn_until_end(shared.clone().keep(view.clone()));
        Some(view)
    }
}

impl Shared {
    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, views: Vec<Arc<DeclaredView>>) {
        self.differs.store(views.iter().any(|view| view.differs.load(Ordering::Acquire)), Ordering::Release);
        self.views.store(Arc::new(views));
    }

    /// The place of the view that was longest looked at by nobody: of this share, where that has its part already.
    fn make_room(&self, views: &mut Vec<Arc<DeclaredView>>, share: &Share) -> Option<SharePermit> {
        let has_part = self.places.held() < VIEWS_MAX;
        let gives = |view: &&Arc<DeclaredView>| view.usage.is_unused(ROOM_AFTER) && (!has_part || view.share == *share);
        let oldest = views.iter().filter(gives).min_by_key(|view| view.usage.looked())?.clone();
        views.retain(|view| !Arc::ptr_eq(view, &oldest));
        oldest.ends();
        self.places.take(share)
    }

    /// Keeps a view up to date, and tells its clients of what changed in it, until it was not looked at for long.
    async fn keep(self: Arc<Self>, view: Arc<DeclaredView>) {
        let base = &self.bases[view.era as usize];
        let (mut swaps, mut told) = (base.swaps(), Told::of(&view.current));
        let (mut offers, mut wanted) = (Offers::new(), view.wanted.subscribe());
        loop {
            wanted.mark_unchanged();
            swaps.mark_unchanged();
            view.refresh(base, &mut offers, || self.note());
            told.tell(&view.current, |now, changes| self.listeners.tell_declared(view.usage.held(), now, changes));
            let idle = view.usage.looked() + IDLE;
            tokio::select! {
                swapped = swaps.changed() => if swapped.is_err() { return },
                _ = wanted.changed() => {}
                () = any(&mut offers) => {}
                () = told.due(&view.current) => {}
                () = passed(idle) => if self.gives_up(&view) { return },
            }
        }
    }

    /// Whether a view is given up, since nobody has looked at it for long.
    fn gives_up(&self, view: &Arc<DeclaredView>) -> bool {
        let _alone = self.changing();
        if !view.usage.is_over(IDLE) {
            return false;
        }
        let mut views = Vec::clone(&self.views.load());
        views.retain(|one| !Arc::ptr_eq(one, view));
        self.set(views);
        view.ends();
        true
    }

    /// A view has come to show something else than its base, or no longer does.
    fn note(&self) {
        let _alone = self.changing();
        self.set(Vec::clone(&self.views.load()));
    }
}

impl DeclaredView {
    fn is_of(&self, era: Era, caller: &Caller) -> bool {
        self.era == era && caller.has_declared(&self.set)
    }

    /// It is given up, and another one may have its place.
    fn ends(&self) {
        self.level.end();
        drop(self.place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Its catalog.
    pub(crate) fn current(&self) -> &Arc<Current> {
        &self.current
    }

    /// The same where it shows something else than the view of its era does.
    pub(crate) fn differing(&self) -> Option<&Arc<Current>> {
        self.differs.load(Ordering::Acquire).then_some(&self.current)
    }

    /// Its catalog, and what keeps it from being given up.
    pub(crate) fn beneath(&self) -> Beneath<'_> {
        (&self.current, self.usage.held())
    }

    /// What keeps it from being given up, and tells its listeners from others.
    pub(crate) fn hold(&self) -> Arc<()> {
        self.usage.held().clone()
    }

    /// The upstreams for whose lists one waits who may see them, and until when: so long after the first list; `None` where it need not.
    pub(crate) fn awaited(&self, grants: &Grants, wait: Duration) -> Option<(Vec<MemberId>, Instant)> {
        let catalog = self.current.load();
        let (wanted, settled) = (self.wanted.borrow(), self.settled.borrow());
        let is_seen = |id: MemberId| catalog.members.get(id).is_some() && catalog.sees(id, grants);
        let open = wanted.iter().filter(|(id, _)| !settled.contains(*id) && is_seen(**id));
        let open: Vec<_> =
            open.map(|(id, since)| (*id, *since + wait)).filter(|(_, at)| *at > Instant::now()).collect();
        let until = open.iter().map(|(_, until)| *until).max()?;
        Some((open.iter().map(|(id, _)| *id).collect(), until))
    }

    /// Waits for them, until the time is over.
    pub(crate) async fn until_settled(&self, (those, until): (Vec<MemberId>, Instant)) {
        let mut settled = self.settled.subscribe();
        // One that has gone meanwhile is wanted no more.
        let is_settled = |settled: &HashSet<MemberId>| {
            let wanted = self.wanted.borrow();
            those.iter().all(|id| settled.contains(id) || !wanted.contains_key(id))
        };
        let _in_time = within_until(until, settled.wait_for(is_settled)).await;
    }

    /// Has it show what is offered now; `note` is told where it comes to differ from its base, or no longer does.
    fn refresh(&self, base: &Current, offers: &mut Offers, note: impl FnOnce()) {
        let (now, before) = (base.keep(), self.current.keep());
        offers.retain(|(id, _)| now.members.get(*id).is_some());
        self.wanted.send_if_modified(|wanted| {
            wanted.retain(|id, _| now.members.get(*id).is_some());
            false
        });
        let mut settled: HashSet<_> = self.wanted.borrow().keys().copied().collect();
        for (id, member) in now.members.iter().filter(|(id, _)| settled.contains(id)) {
            if !offers.iter().any(|(known, _)| *known == id)
                && let Some(offer) = member.owner.variant(self.era, &self.set)
            {
                offers.push((id, offer));
            }
        }
        let (mut known, mut differs) = (now.known.clone(), false);
        for (id, offer) in offers.iter_mut() {
            match (&*offer.borrow_and_update(), known.get_mut(*id)) {
                (Variant::Own(own), Some(known)) => (*known, differs) = (Some(own.clone()), true),
                (Variant::Coming, _) => _ = settled.remove(id),
                _ => {}
            }
        }
        if let Some(next) = overlaid(&now, &before, (known, differs), |next| Some(next.counted())) {
            self.current.swap(next);
        }
        if self.differs.swap(differs, Ordering::AcqRel) != differs {
            note();
        }
        self.settled.send_if_modified(|was| {
            let differs = *was != settled;
            *was = settled;
            differs
        });
    }
}

/// The base with what is known to these clients, where `charge` finds room for it; `None` where the view is that already.
pub(super) fn overlaid(
    base: &Arc<Catalog>,
    before: &Arc<Catalog>,
    (known, differs): (Known, bool),
    charge: impl FnOnce(Catalog) -> Option<Catalog>,
) -> Option<Arc<Catalog>> {
    let is_base = Arc::ptr_eq(base, before);
    if !differs && (is_base || base.version > before.version) {
        return (!is_base).then(|| base.clone());
    }
    let next = aside(weight(&known), || Catalog::of(known, &base.members, &base.rules, Some(before)));
    if next.is(before) {
        return None;
    }
    Some(charge(next.after(base.version)).map_or_else(|| base.clone(), Arc::new))
}

/// Resolves when what an upstream offers has changed, or when it offers nothing any more.
async fn any(offers: &mut Offers) {
    let mut waits: Vec<_> = offers.iter_mut().map(|(_, offer)| Box::pin(offer.changed())).collect();
    poll_fn(|cx| match waits.iter_mut().any(|wait| wait.as_mut().poll(cx).is_ready()) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

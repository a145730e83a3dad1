//! What the clients of one era see: the catalog with what upstreams offer in that era, where that was read.

use super::session::any;
use crate::protocol::revision::Era;
use crate::router::catalog::build::Known;
use crate::router::catalog::current::Current;
use crate::router::catalog::owner::Member;
use crate::router::catalog::rebuild::Told;
use crate::router::catalog::snapshot::{Catalog, weight};
use crate::router::listen::Listeners;
use crate::router::names::MemberId;
use crate::runtime::{Tasks, aside};
use crate::upstream::inventory::Inventory;
use std::sync::Arc;
use tokio::sync::watch;

/// The view of each era. Where no upstream is spoken to in both, they are one.
pub(crate) struct EraViews([Arc<Current>; 2]);

/// What an upstream offers in an era, as it changes.
type Offer = (MemberId, watch::Receiver<Option<Arc<Inventory>>>);

impl EraViews {
    /// Views of what everyone would see; their tasks live in `tasks`.
    pub(crate) fn start(base: &Arc<Current>, listeners: &Listeners, tasks: &Tasks) -> Self {
        Self([Era::Legacy, Era::Modern].map(|era| {
            let view = Arc::new(Current::new(base.keep()));
            let (base, kept, listeners) = (base.clone(), view.clone(), listeners.clone());
            tasks.spawn_until_end(keep(era, base, kept, listeners));
            view
        }))
    }

    /// Has them show what is offered now, in place of soon.
    pub(crate) fn refresh(&self, base: &Current) {
        [Era::Legacy, Era::Modern].into_iter().for_each(|era| drop(refresh(era, base, self.of(era))));
    }

    /// What clients of an era see.
    pub(crate) fn of(&self, era: Era) -> &Arc<Current> {
        &self.0[era as usize]
    }
}

/// Keeps a view up to date, and tells its clients of what changed in it.
async fn keep(era: Era, base: Arc<Current>, view: Arc<Current>, listeners: Listeners) {
    let mut swaps = base.swaps();
    let mut told = Told::of(&view);
    loop {
        swaps.mark_unchanged();
        let mut offers = refresh(era, &base, &view);
        told.tell(&view, |now, changes| listeners.tell_era(era, now, changes));
        tokio::select! {
            swapped = swaps.changed() => if swapped.is_err() { return },
            () = any(&mut offers) => {}
            () = told.due(&view) => {}
        }
    }
}

/// Has the view show what is offered now; gives what may change that. No catalog is held meanwhile.
fn refresh(era: Era, base: &Current, view: &Current) -> Vec<Offer> {
    let (now, before) = (base.keep(), view.keep());
    let own = |(id, member): (MemberId, &Arc<Member>)| Some((id, member.owner.inventory_of_era(era)?));
    let mut offers: Vec<Offer> = now.members.iter().filter_map(own).collect();
    if let Some(next) = overlay(&now, &before, &mut offers) {
        view.swap(next);
    }
    offers
}

/// The catalog with what is offered in an era; `None` where the view is that already.
fn overlay(base: &Arc<Catalog>, before: &Arc<Catalog>, offers: &mut [Offer]) -> Option<Arc<Catalog>> {
    let mut known: Known = base.known.clone();
    let mut differs = false;
    for (id, offer) in offers.iter_mut() {
        if let (Some(own), Some(known)) = (offer.borrow_and_update().clone(), known.get_mut(*id)) {
            (*known, differs) = (Some(own), true);
        }
    }
    let is_base = Arc::ptr_eq(base, before);
    if !differs && (is_base || base.version > before.version) {
        return (!is_base).then(|| base.clone());
    }
    let next = aside(weight(&known), || Catalog::of(known, &base.members, &base.rules, Some(before)));
    (!next.is(before)).then(|| Arc::new(next.after(base.version).counted()))
}

//! Keeps the catalog: on each change of an inventory, or of who is among the upstreams, it is built anew and swapped.

use super::current::Current;
use super::kind::Kind;
use super::list::ItemList;
use super::owner::{Member, Owner};
use super::snapshot::{Catalog, Members, Rules, Versions, weight};
use crate::call::caller::rights::Rights;
use crate::router::approval::remark;
use crate::router::config::Pins;
use crate::router::listen::Listeners;
use crate::router::names::overlap;
use crate::runtime::{Tasks, aside};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// After listeners were told of a change, further ones are joined for this long.
const JOINED_FOR: Duration = Duration::from_millis(250);
/// After so many notices in a row, changes do not end by themselves soon …
const IN_A_ROW: u32 = 6;
/// … and are joined for this long, until nothing has changed for as long.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// Keeps the catalog in force up to date.
pub(crate) struct Keeper {
    current: Arc<Current>,
    listeners: Listeners,
    changed: Arc<Notify>,
    /// Held while a catalog is built: what is built on another one must not miss a third.
    building: Mutex<()>,
    tasks: Tasks,
}

impl Keeper {
    /// Starts the tasks that keep it.
    pub(crate) fn start(current: &Arc<Current>, listeners: &Listeners, tasks: &Tasks) -> Arc<Self> {
        let (current, listeners, tasks) = (current.clone(), listeners.clone(), tasks.clone());
        let keeper = Arc::new(Self { current, listeners, changed: Arc::default(), building: Mutex::default(), tasks });
        keeper.current.load().members.values().for_each(|member| keeper.watch(member));
        // An inventory that came between the first catalog and these tasks.
        keeper.changed.notify_one();
        keeper.tasks.spawn_until_end(keeper.clone().keep());
        keeper.tasks.spawn_until_end(pass_levels(keeper.current.clone(), keeper.listeners.clone()));
        keeper
    }

    /// From now on these are the upstreams, in this order, merged by these rules. What was there before stays what it was; nothing leads
    /// to what is no longer there but the calls that it has.
    pub(crate) fn set(&self, owners: Vec<Arc<dyn Owner>>, rules: Option<Arc<Rules>>) {
        self.rebuild(|before| {
            let values = owners.into_iter().map(|owner| {
                let known = before.members.iter().find(|(_, member)| Arc::ptr_eq(&member.owner, &owner));
                match known {
                    Some((id, member)) => (Some(id), member.clone()),
                    None => {
                        let member = Arc::new(Member::new(owner));
                        self.watch(&member);
                        member.owner.want_levels(self.listeners.levels());
                        (None, member)
                    }
                }
            });
            let members = Arc::new(before.members.followed_by(values));
            (members, rules.unwrap_or_else(|| before.rules.clone()))
        });
        self.changed.notify_one();
    }

    /// From now on this is asked of tools before clients are offered them; whether that is something else than before.
    pub(crate) fn set_pins(&self, pins: &Pins) -> bool {
        let mut differs = false;
        self.rebuild(|before| {
            differs = before.rules.pins != *pins;
            let rules = match differs {
                true => Arc::new(Rules { pins: pins.clone(), ..(*before.rules).clone() }),
                false => before.rules.clone(),
            };
            (before.members.clone(), rules)
        });
        differs
    }

    /// Has the catalog follow what a member offers, for as long as some catalog has that.
    fn watch(&self, member: &Arc<Member>) {
        let (mut inventory, level) = (member.inventory.clone(), self.tasks.child());
        member.ends(level.guard());
        let changed = self.changed.clone();
        self.tasks.spawn(async move {
            let changes = async {
                while inventory.changed().await.is_ok() {
                    changed.notify_one();
                }
            };
            tokio::select! {
                () = level.ending() => {}
                () = changes => {}
            }
        });
    }

    async fn keep(self: Arc<Self>) {
        overlap::remark(&self.current.keep());
        remark::remark(&self.current.keep(), None);
        self.current.keep().shows_itself();
        loop {
            self.changed.notified().await;
            self.rebuild(|before| (before.members.clone(), before.rules.clone()));
        }
    }

    /// Builds the catalog anew, and swaps it where anything differs.
    fn rebuild(&self, of: impl FnOnce(&Catalog) -> (Members, Arc<Rules>)) {
        let _alone = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current.keep();
        let (members, rules) = of(&before);
        let known = members.map(|member| member.inventory.borrow().clone());
        aside(weight(&known), || {
            let next = Catalog::of(known, &members, &rules, Some(&before));
            if !next.is(&before) {
                warn_of_hidden(&next, &before);
                remark::remark(&next, Some(&before));
                overlap::remark(&next);
                next.shows_itself();
                self.current.swap(Arc::new(next.counted()));
            }
        });
    }
}

/// What listeners were last told of. It keeps no upstream that has gone.
pub(crate) struct Told {
    catalog: Weak<Catalog>,
    lists: [Arc<ItemList>; 4],
    joined_until: Instant,
    /// How often they were told in a row.
    in_a_row: u32,
}

impl Told {
    /// Nothing has changed yet.
    pub(crate) fn of(current: &Current) -> Self {
        let catalog = current.keep();
        let lists = catalog.lists();
        Self { catalog: Arc::downgrade(&catalog), lists, joined_until: Instant::now(), in_a_row: 0 }
    }

    /// Resolves when something that was not told yet is to be; never, where all was.
    pub(crate) async fn due(&self, current: &Current) {
        match Weak::ptr_eq(&self.catalog, &Arc::downgrade(&current.keep())) {
            true => std::future::pending().await,
            // Boxed: each session has a task that waits here, and seldom for this.
            false => Box::pin(tokio::time::sleep_until(self.joined_until)).await,
        }
    }

    /// Tells what changed, unless that is to be joined with what may follow. `tell` says whether anybody was told.
    pub(crate) fn tell(
        &mut self,
        current: &Current,
        tell: impl FnOnce(&Versions, &dyn Fn(Option<&Arc<Rights>>) -> Vec<Kind>) -> bool,
    ) {
        if Instant::now() < self.joined_until {
            return;
        }
        let (now, before) = (current.keep(), &self.lists);
        if tell(&now.versions(), &|rights| now.changes(before, rights)) {
            let was_quiet = self.joined_until.elapsed() >= BUSY_FOR;
            self.in_a_row = if was_quiet { 1 } else { self.in_a_row + 1 };
            let is_busy = self.in_a_row > IN_A_ROW;
            self.joined_until = Instant::now() + if is_busy { BUSY_FOR } else { JOINED_FOR };
        }
        (self.catalog, self.lists) = (Arc::downgrade(&now), now.lists());
    }
}

/// Says what became hidden: `flat` gives a contested name to the first upstream that has it.
fn warn_of_hidden(now: &Catalog, before: &Catalog) {
    for (id, member) in now.members.iter() {
        let of = |catalog: &Catalog| catalog.hidden.iter().filter(|(whose, _)| *whose == id).count();
        if of(now) > of(before)
            && let Some((_, first)) = now.hidden.iter().find(|(whose, _)| *whose == id)
        {
            let upstream = &**member.owner.name();
            tracing::warn!(
                upstream,
                hidden = of(now),
                first = &**first,
                "names hidden: an earlier upstream has them, too"
            );
        }
    }
}

/// Passes the wanted log levels on to all upstreams.
async fn pass_levels(current: Arc<Current>, listeners: Listeners) {
    let levels = listeners.levels();
    let mut changes = levels.changes();
    while changes.changed().await.is_ok() {
        for member in current.keep().members.values() {
            member.owner.want_levels(levels);
        }
    }
}

//! Keeps the catalog: on each change of an inventory it is built anew and swapped, and listeners are told.

use super::current::Current;
use super::kind::Kind;
use super::snapshot::{Catalog, weight};
use crate::call::caller::Grants;
use crate::router::listen::Listeners;
use crate::router::names::overlap;
use crate::runtime::{Tasks, aside};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// After listeners were told of a change, further ones are joined for this long.
const JOINED_FOR: Duration = Duration::from_millis(250);
/// After so many notices in a row, changes do not end by themselves soon …
const IN_A_ROW: u32 = 6;
/// … and are joined for this long, until nothing has changed for as long.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// Starts the tasks that keep the catalog in force up to date.
pub(crate) fn start(current: &Arc<Current>, listeners: &Listeners, tasks: &Tasks) {
    let changed = Arc::new(Notify::new());
    for member in current.load().members.values() {
        let (mut inventory, changed) = (member.inventory.clone(), changed.clone());
        tasks.spawn_until_end(async move {
            while inventory.changed().await.is_ok() {
                changed.notify_one();
            }
        });
    }
    // An inventory that came between the first catalog and these tasks.
    changed.notify_one();
    tasks.spawn_until_end(keep(current.clone(), listeners.clone(), changed));
    tasks.spawn_until_end(pass_levels(current.clone(), listeners.clone()));
}

async fn keep(current: Arc<Current>, listeners: Listeners, changed: Arc<Notify>) {
    let mut told = Told::of(&current);
    overlap::remark(&current.keep());
    loop {
        tokio::select! {
            () = changed.notified() => {
                let before = current.keep();
                let known = before.members.map(|member| member.inventory.borrow().clone());
                aside(weight(&known), || {
                    let next = Catalog::of(known, &before.members, &before.rules, Some(&before));
                    if !next.is(&before) {
                        warn_of_hidden(&next, &before);
                        overlap::remark(&next);
                        current.swap(Arc::new(next.counted()));
                    }
                });
            }
            () = told.due(&current) => {}
        }
        told.tell(&current, |version, changes| listeners.tell(version, changes));
    }
}

/// The catalog that listeners were last told of.
pub(crate) struct Told {
    catalog: Arc<Catalog>,
    joined_until: Instant,
    /// How often they were told in a row.
    in_a_row: u32,
}

impl Told {
    /// Nothing has changed yet.
    pub(crate) fn of(current: &Current) -> Self {
        Self { catalog: current.keep(), joined_until: Instant::now(), in_a_row: 0 }
    }

    /// Resolves when something that was not told yet is to be; never, where all was.
    pub(crate) async fn due(&self, current: &Current) {
        match Arc::ptr_eq(&self.catalog, &current.keep()) {
            true => std::future::pending().await,
            false => tokio::time::sleep_until(self.joined_until).await,
        }
    }

    /// Tells what changed, unless that is to be joined with what may follow. `tell` says whether anybody was told.
    pub(crate) fn tell(&mut self, current: &Current, tell: impl FnOnce(u64, &dyn Fn(&Grants) -> Vec<Kind>) -> bool) {
        if Instant::now() < self.joined_until {
            return;
        }
        let (now, before) = (current.keep(), &self.catalog);
        if tell(now.version, &|grants| now.changes(before, grants).collect()) {
            let was_quiet = self.joined_until.elapsed() >= BUSY_FOR;
            self.in_a_row = if was_quiet { 1 } else { self.in_a_row + 1 };
            let is_busy = self.in_a_row > IN_A_ROW;
            self.joined_until = Instant::now() + if is_busy { BUSY_FOR } else { JOINED_FOR };
        }
        self.catalog = now;
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
                "names that an earlier upstream has too are hidden"
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

//! Keeps on disk what an upstream offers, as it changes; and takes it from there, until it was read anew.

use super::admission::kept::KeptSessions;
use super::inventory::{CachedInventory, Inventory, InventoryCache, refresh};
use super::parts::Instance;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::revision::Era;
use crate::runtime::Tasks;
use crate::upstream::declaring::{declares_now, declares_of};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// An upstream whose lists change all the time is kept so often.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// A disk that does not answer holds the end up for so long.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// What the upstream offered when it was last read stands as its inventory, until it is read; where that depends on what a client
/// says, not before it is said. Blocks: for the start, before anybody waits.
pub(crate) fn recall(instance: &Instance, store: &Arc<InventoryCache>) {
    // What one principal is offered is for no other, and is not kept.
    if instance.stands_apart() {
        return;
    }
    let stored = CachedInventory::new(store, &instance.config, instance.status.handle.budget());
    let _is_first = instance.offering.cached.set(stored);
    if let Some(declared) = declares_now(&instance.owner, &instance.config) {
        recall_now(instance, (instance.owner.era(), &declared));
    }
}

/// The ids of the sessions that clients have to themselves are kept from now on. What another configuration or name has kept is not of it.
pub(crate) fn keep_sessions(instance: &Instance, store: &Arc<KeptSessions>) {
    let Some(own) = &instance.own else { return };
    let upstream: Arc<str> = format!("{} {}", instance.name, InventoryCache::digest_of(&instance.config)).into();
    store.is_of(&upstream);
    let _is_first = own.kept.set((store.clone(), upstream));
}

/// The one client of the gateway is of this era, and declares this: what was offered when that was last so stands as the inventory.
/// Blocks: its first frame waits.
pub(crate) fn recall_said(instance: &Instance, (era, said): (Era, &Declared)) {
    let declared = declares_of(&instance.config, said);
    recall_now(instance, (Some(era), &declared));
}

/// What is kept for these stands as the inventory, in place of what was kept for others. Blocks.
fn recall_now(instance: &Instance, whom: (Option<Era>, &Declared)) {
    let Some(stored) = instance.offering.cached.get().filter(|stored| stored.declares(whom)) else { return };
    let is_of_others = stored.was_asked();
    let Some(inventory) = stored.load(&instance.config, whom) else {
        if is_of_others {
            refresh::withdraw(&instance.offering, &instance.status);
        }
        return;
    };
    refresh::publish((&instance.offering, &instance.status), instance.config.is_http(), inventory);
    let [tools, resources, templates, prompts] = instance.status.handle.health().items.unwrap_or_default();
    tracing::debug!(
        upstream = &*instance.name,
        tools,
        resources,
        templates,
        prompts,
        "serving the cached inventory until the upstream answers"
    );
}

/// What another upstream offers stands as the inventory of the one that comes in its place, until that is read. Not where it has one, or
/// admits other tools.
pub(crate) fn inherit(instance: &Instance, other: &Instance) {
    let is_known = instance.offering.inventory.borrow().is_some() || other.stands_apart();
    let offered = other.offering.inventory.borrow().clone();
    if let Some(inventory) = offered.filter(|_| !is_known && instance.config.tools == other.config.tools) {
        refresh::publish((&instance.offering, &instance.status), instance.config.is_http(), (*inventory).clone());
    }
}

/// The handshake declares this: what was kept for others gives way to what was kept for these.
pub(crate) async fn recall_for(instance: &Arc<Instance>, declared: &Declared) {
    let (reading, declared) = (instance.clone(), declared.clone());
    let stored = instance.offering.cached.get();
    if stored.is_some_and(|stored| stored.declares((instance.owner.era(), &declared))) {
        // What it could not do, it has said.
        let _ = tokio::task::spawn_blocking(move || recall_now(&reading, (reading.owner.era(), &declared))).await;
    }
}

/// Writes the inventory whenever it is another one than when this was called, to the end of this level.
pub(crate) fn keep(instance: Arc<Instance>, tasks: Tasks) -> impl Future<Output = ()> + Send {
    // What stands now was read from there; what is read before the task first runs is not.
    let inventory = instance.offering.inventory.subscribe();
    let before = inventory.borrow().clone();
    write_changes(instance, (before, inventory), tasks)
}

async fn write_changes(
    instance: Arc<Instance>,
    (mut before, mut inventory): (Option<Arc<Inventory>>, watch::Receiver<Option<Arc<Inventory>>>),
    tasks: Tasks,
) {
    loop {
        tokio::select! {
            biased;
            () = tasks.ending() => break,
            changed = inventory.changed() => if changed.is_err() { break },
        }
        let now = inventory.borrow_and_update().clone();
        let is_same = now.as_ref().zip(before.as_ref()).is_some_and(|(now, before)| now.is_same(before));
        before = now;
        if is_same {
            continue;
        }
        write(&instance).await;
        tokio::select! {
            () = sleep(WRITE_EVERY) => {}
            () = tasks.ending() => {}
        }
    }
    if inventory.has_changed().unwrap_or_default() {
        let _in_time = timeout(LAST_WRITE, write(&instance)).await;
    }
}

async fn write(instance: &Arc<Instance>) {
    if !instance.offering.reads.are_whole() {
        // What is missing now would be missing from the start the next time.
        return;
    }
    let instance = instance.clone();
    let save = move || {
        let inventory = instance.offering.inventory.borrow().clone();
        if let (Some(stored), Some(inventory)) = (instance.offering.cached.get(), inventory) {
            stored.save(&inventory);
        }
    };
    // What it could not do, it has said.
    let _ = tokio::task::spawn_blocking(save).await;
}

#[cfg(test)]
mod tests;

//! Keeps on disk what an upstream offers, as it changes; and takes it from there, until it was read anew.

use super::cache::{CachedInventory, InventoryCache};
use super::contents::Inventory;
use super::refresh;
use crate::protocol::capabilities::beyond::Declared;
use crate::runtime::Tasks;
use crate::upstream::instance::Instance;
use crate::upstream::peer::declares_always;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// An upstream whose lists change all the time is kept so often.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// A disk that does not answer holds the end up for so long.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// What the upstream offered when it was last read stands as its inventory, until it is read. Blocks: for the start, before
/// anybody waits.
pub(crate) fn recall(instance: &Arc<Instance>, store: &Arc<InventoryCache>) {
    let stored = CachedInventory::new(store, &instance.config, instance.status.handle.budget());
    if let Some(inventory) = stored.load(&instance.config, declares_always(&instance.owner, &instance.config).as_ref())
    {
        refresh::publish((&instance.offering, &instance.status), instance.config.is_http(), inventory);
        let [tools, resources, templates, prompts] = instance.status.handle.health().items.unwrap_or_default();
        tracing::debug!(
            upstream = &*instance.name,
            tools,
            resources,
            templates,
            prompts,
            "serving the kept inventory until the upstream answers"
        );
    }
    let _is_first = instance.offering.cached.set(stored);
}

/// The handshake declares this: what was offered to others gives way to what was offered for them.
pub(crate) async fn recall_for(instance: &Arc<Instance>, declared: &Declared) {
    if !instance.offering.cached.get().is_some_and(|stored| stored.declares(declared)) {
        return;
    }
    let (reading, declared) = (instance.clone(), declared.clone());
    let load = move || reading.offering.cached.get()?.load(&reading.config, Some(&declared));
    if let Ok(Some(inventory)) = tokio::task::spawn_blocking(load).await {
        refresh::publish((&instance.offering, &instance.status), instance.config.is_http(), inventory);
    }
}

/// Writes the inventory whenever it is another one than when this was called, to the end of this level.
pub(crate) fn keep(instance: Arc<Instance>, tasks: Tasks) -> impl Future<Output = ()> + Send {
    // What stands now was read from there; what is read before the task first runs is not.
    let inventory = instance.offering.inventory.subscribe();
    write_changes(instance, inventory, tasks)
}

async fn write_changes(instance: Arc<Instance>, mut inventory: watch::Receiver<Option<Arc<Inventory>>>, tasks: Tasks) {
    loop {
        tokio::select! {
            biased;
            () = tasks.ending() => break,
            changed = inventory.changed() => if changed.is_err() { break },
        }
        inventory.borrow_and_update();
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

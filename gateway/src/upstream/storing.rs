//! Keeps on disk what an upstream offers, as it changes; and takes it from there, until it was read anew.

use super::inventory::Inventory;
use super::keeping;
use super::standing::Standing;
use super::stored::{Store, Stored};
use crate::lifecycle::Tasks;
use crate::protocol::beyond::Declared;
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
pub(crate) fn recall(standing: &Arc<Standing>, store: &Arc<Store>) {
    let stored = Stored::new(store, &standing.config);
    if let Some(inventory) = stored.load(&standing.config, standing.declares_always().as_ref()) {
        keeping::publish(standing, inventory);
        let [tools, resources, templates, prompts] = standing.seat.health().items.unwrap_or_default();
        tracing::debug!(
            upstream = &*standing.name,
            tools,
            resources,
            templates,
            prompts,
            "what the upstream offered last stands until it is read"
        );
    }
    let _is_first = standing.stored.set(stored);
}

/// The handshake declares this: what was offered to others gives way to what was offered for them.
pub(crate) async fn recall_for(standing: &Arc<Standing>, declared: &Declared) {
    if !standing.stored.get().is_some_and(|stored| stored.declares(declared)) {
        return;
    }
    let (reading, declared) = (standing.clone(), declared.clone());
    let load = move || reading.stored.get()?.load(&reading.config, Some(&declared));
    if let Ok(Some(inventory)) = tokio::task::spawn_blocking(load).await {
        keeping::publish(standing, inventory);
    }
}

/// Writes the inventory whenever it is another one than when this was called, to the end of this level.
pub(crate) fn keep(standing: Arc<Standing>, tasks: Tasks) -> impl Future<Output = ()> + Send {
    // What stands now was read from there; what is read before the task first runs is not.
    let inventory = standing.inventory.subscribe();
    write_changes(standing, inventory, tasks)
}

async fn write_changes(standing: Arc<Standing>, mut inventory: watch::Receiver<Option<Arc<Inventory>>>, tasks: Tasks) {
    loop {
        tokio::select! {
            biased;
            () = tasks.ending() => break,
            changed = inventory.changed() => if changed.is_err() { break },
        }
        inventory.borrow_and_update();
        write(&standing).await;
        tokio::select! {
            () = sleep(WRITE_EVERY) => {}
            () = tasks.ending() => {}
        }
    }
    if inventory.has_changed().unwrap_or_default() {
        let _in_time = timeout(LAST_WRITE, write(&standing)).await;
    }
}

async fn write(standing: &Arc<Standing>) {
    if !standing.reads.are_whole() {
        // What is missing now would be missing from the start the next time.
        return;
    }
    let standing = standing.clone();
    let save = move || {
        let inventory = standing.inventory.borrow().clone();
        if let (Some(stored), Some(inventory)) = (standing.stored.get(), inventory) {
            stored.save(&inventory);
        }
    };
    // What it could not do, it has said.
    let _ = tokio::task::spawn_blocking(save).await;
}

#[cfg(test)]
mod tests;

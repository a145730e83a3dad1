//! What upstreams offered when they were last read, kept on disk: a host sees its tools before anything was started.

// The folder of kept inventories: its files are ours alone, appear whole or not at all, and are bounded in number and size.
mod folder;
// Which inventory a file holds: that of one configuration, read in one era with one set of declared capabilities.
mod key;
// An inventory as the text of a file, and back: a line that says what it is, then everything as the upstream wrote it.
mod text;

use super::contents::Inventory;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;
use crate::metrics::catalog::cached;
use crate::protocol::capabilities::beyond::Declared;
use crate::protocol::revision::Era;
use crate::upstream::config::{Cache, Config};
use folder::{FILE_BYTES_MAX, Folder};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use text::Unfit;

/// Where the inventories of all upstreams are kept.
#[derive(Debug)]
pub struct InventoryCache {
    folder: Folder,
    /// It was said that nothing can be kept.
    complained: AtomicBool,
}

/// The place of one upstream in a store.
#[derive(Debug)]
pub(crate) struct CachedInventory {
    store: Arc<InventoryCache>,
    /// What the names of its files begin with.
    config: String,
    /// Where it is counted, in a file's text as in memory.
    budget: Budget,
    told: Mutex<Told>,
}

/// What an upstream was told that it may ask.
#[derive(Debug, Default)]
struct Told {
    /// By its handshake, once that is known: the file for that.
    now: Option<String>,
    /// Which file was looked for last.
    read: Option<String>,
}

impl InventoryCache {
    /// A digest of all in the configuration of an upstream that decides what it is.
    pub(crate) fn digest_of(config: &Config) -> String {
        key::of(config)
    }

    /// The store that a configuration names, if it names one.
    pub fn at(cache: &Cache) -> Option<Arc<Self>> {
        match cache {
            Cache::Off => None,
            Cache::Nowhere => {
                tracing::debug!("inventories are not cached: neither XDG_CACHE_HOME nor HOME is set");
                None
            }
            Cache::Folder(path) => {
                Some(Arc::new(Self { folder: Folder::new(path), complained: AtomicBool::new(false) }))
            }
        }
    }

    /// What was kept last of an upstream, for whichever clients, where nothing runs that reads it. Blocks.
    pub(crate) fn last(&self, config: &Config) -> Option<Inventory> {
        let (name, text) = self.folder.last(&format!("{}-", key::of(config))).ok().flatten()?;
        text::read(text, &name, config, &Budget::default()).ok()
    }

    /// Says once why nothing can be kept.
    fn complain(&self, error: &io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            let folder = self.folder.path().display();
            tracing::warn!(%folder, %error, "cannot cache inventories for the next start");
        }
    }
}

impl CachedInventory {
    pub(crate) fn new(store: &Arc<InventoryCache>, config: &Config, budget: &Budget) -> Self {
        Self { store: store.clone(), config: key::of(config), budget: budget.clone(), told: Mutex::default() }
    }

    /// What is kept for clients of this era for whom these capabilities are declared. Blocks.
    pub(crate) fn load(&self, config: &Config, (era, declared): (Option<Era>, &Declared)) -> Option<Inventory> {
        let folder = &self.store.folder;
        let name = key::name(&self.config, era, declared);
        let mut known = self.lock();
        (known.now, known.read) = (Some(name.clone()), Some(name.clone()));
        drop(known);
        let unused = |why: &dyn std::fmt::Display| {
            let (upstream, file) = (&*config.name, folder.path().join(&name));
            cached("unfit").increment(1);
            tracing::warn!(upstream, file = %file.display(), %why, "cached inventory not used");
        };
        let text = match folder.read(&name) {
            Ok(Some(text)) => text,
            Ok(None) => {
                cached("miss").increment(1);
                return None;
            }
            Err(error) => {
                unused(&error);
                return None;
            }
        };
        let Ok(_text) = self.budget.charge(Kind::List, text.len()) else {
            unused(&Unfit::Full);
            return None;
        };
        let read = text::read(text, &name, config, &self.budget).map_err(|why| unused(&why)).ok();
        read.inspect(|_| cached("hit").increment(1))
    }

    /// These are declared for clients of this era: whether it was not looked yet for what is kept for them.
    pub(crate) fn declares(&self, (era, declared): (Option<Era>, &Declared)) -> bool {
        let name = key::name(&self.config, era, declared);
        let mut known = self.lock();
        known.now = Some(name.clone());
        known.read.as_ref() != Some(&name)
    }

    /// Whether it was looked for what is kept, for whomever.
    pub(crate) fn was_asked(&self) -> bool {
        self.lock().read.is_some()
    }

    /// Keeps an inventory in place of what was kept. Blocks.
    pub(crate) fn save(&self, inventory: &Inventory) {
        let Some(name) = self.lock().now.clone() else { return };
        let bytes = text::length(inventory);
        let counted = self.budget.charge(Kind::List, bytes);
        if bytes as u64 > FILE_BYTES_MAX || counted.is_err() {
            tracing::debug!(name, bytes, "inventory too large for the cache");
            return;
        }
        if let Err(error) = self.store.folder.write((&self.config, &name), &text::write(inventory, &name)) {
            self.store.complain(&error);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The tools that upstreams had when they were last read, for where no gateway runs that knows them.

use crate::config::Config;
use crate::router::Offered;
use crate::upstream::inventory::InventoryCache;

/// What is kept on disk for the next start.
pub(super) struct Kept {
    /// The names of the tools, as clients would see them.
    pub(super) tools: Vec<String>,
    /// The upstreams of which nothing is kept.
    unread: Vec<String>,
}

impl Kept {
    /// `None` where nothing is kept of any upstream.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let store = InventoryCache::at(&config.cache)?;
        let upstreams: Vec<_> = config.upstreams.iter().map(|one| (one, store.last(one))).collect();
        let of_unread = upstreams.iter().filter(|(_, inventory)| inventory.is_none());
        let unread: Vec<String> = of_unread.map(|(one, _)| one.name.to_string()).collect();
        (unread.len() < upstreams.len()).then(|| Self { tools: Offered::names_of(&config.naming, &upstreams), unread })
    }

    /// How many they are, and of whom nothing is known.
    pub(super) fn told(&self) -> String {
        let count = self.tools.len();
        match &self.unread[..] {
            [] => format!("{count}, as they were last read"),
            unread => format!("{count}, as they were last read; not known of {}", unread.join(", ")),
        }
    }
}

//! The catalog that is in force, and word of each swap.

use super::snapshot::Catalog;
use crate::runtime::timer::late::within_until;
use arc_swap::{ArcSwap, Guard};
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;
use tokio::time::Instant;

/// Where the snapshot is read, and swapped whole.
pub(crate) struct Current {
    catalog: ArcSwap<Catalog>,
    /// Made for the first task that waits for swaps. Nobody waits for those of a session's view, and a channel takes 350 bytes.
    swaps: OnceLock<watch::Sender<()>>,
    /// The hosts, a bit each, of which it was said that there are more tools than they take.
    told_hosts: AtomicU8,
}

impl Current {
    pub(crate) fn new(catalog: impl Into<Arc<Catalog>>) -> Self {
        Self { catalog: ArcSwap::new(catalog.into()), swaps: OnceLock::new(), told_hosts: AtomicU8::new(0) }
    }

    /// The catalog now, for a short look.
    pub(crate) fn load(&self) -> Guard<Arc<Catalog>> {
        self.catalog.load()
    }

    /// The catalog now, to keep.
    pub(crate) fn keep(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    /// Whether it has not been said yet that there are more tools than the host of this bit takes; from now on it has.
    pub(crate) fn is_first_told(&self, bit: u8) -> bool {
        self.told_hosts.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// Puts a new one in force.
    pub(crate) fn swap(&self, catalog: Arc<Catalog>) {
        self.catalog.store(catalog);
        // Orders the store before the look at `swaps`: see `swaps()`.
        fence(Ordering::SeqCst);
        if let Some(swaps) = self.swaps.get() {
            swaps.send_replace(());
        }
    }

    /// Word of each swap from now on.
    pub(crate) fn swaps(&self) -> watch::Receiver<()> {
        let swaps = self.swaps.get_or_init(|| watch::Sender::new(())).subscribe();
        // A catalog that is stored from now on is reported; the caller's next look finds all that were stored before.
        fence(Ordering::SeqCst);
        swaps
    }

    /// Waits until a catalog is good enough, or until the time is over; gives the catalog then in force.
    pub(crate) async fn until(&self, limit: Instant, is_good: impl Fn(&Catalog) -> bool) -> Arc<Catalog> {
        let mut swaps = self.swaps();
        // What fails to come is no longer waited for, and swaps nothing. All owners stand on one board.
        let mut moves = self.load().members.values().find_map(|member| member.owner.changes());
        let wait = async {
            while !is_good(&self.load()) {
                tokio::select! {
                    swapped = swaps.changed() => if swapped.is_err() { return },
                    () = moved(moves.as_mut()) => {}
                }
            }
        };
        // Time over is an answer like any other here: what is known by then is what counts.
        let _ = within_until(limit, wait).await;
        self.keep()
    }
}

/// Until somebody stands elsewhere.
async fn moved(moves: Option<&mut watch::Receiver<u64>>) {
    if let Some(moves) = moves
        && moves.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

//! What is kept, as its upstreams and clients find it, and the task that writes it.

use super::file::Files;
use super::record::{Change, Earlier, Kept, Place};
use crate::runtime::Tasks;
use crate::runtime::timer::late::passed;
use crate::secrets::sealer::Sealer;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How a sealed line begins, and what its key is used for.
const FORMAT: &str = "trunkline-u1.";
const PURPOSE: &[u8] = b"trunkline kept upstream session 1";
/// So many changes wait to be written; beyond them the oldest is not kept.
const WAITING_MAX: usize = 8192;
/// How often it is looked for files of runs that have ended since, where a client session is not found.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A disk that does not answer holds the end up for so long.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// Finds the secrets of the seal; blocks.
pub(crate) type Secrets = Box<dyn Fn() -> Option<Vec<Vec<u8>>> + Send + Sync>;

/// Where the ids of sessions of all upstreams are kept.
pub struct KeptSessions {
    files: Mutex<Files>,
    secrets: Secrets,
    /// Made once something is kept, or may have been; `None` where no key outlives the process.
    sealer: OnceLock<Option<Sealer>>,
    /// After so long without its client a session of an earlier run is ended.
    pub(crate) idle: Duration,
    known: Mutex<Known>,
    changed: Notify,
    /// The files of earlier runs were read.
    is_read: watch::Sender<bool>,
    looked: tokio::sync::Mutex<Instant>,
    /// The gateway ends: what is kept is left open for the next run.
    is_leaving: AtomicBool,
    /// Something could not be written: the next run would not find it.
    has_failed: AtomicBool,
}

#[derive(Default)]
struct Known {
    /// The upstreams that there are.
    upstreams: HashSet<Arc<str>>,
    /// What earlier runs have kept, and nobody has come for yet.
    earlier: HashMap<Place, Earlier>,
    /// What is to be written.
    changes: VecDeque<Change>,
}

impl KeptSessions {
    /// In the folder of our state. Clients that are gone for `idle` do not come again.
    pub fn new(state: &Path, secrets: Secrets, idle: Duration) -> Arc<Self> {
        Arc::new(Self {
            files: Mutex::new(Files::new(state.join("upstream-sessions"))),
            secrets,
            sealer: OnceLock::new(),
            idle,
            known: Mutex::default(),
            changed: Notify::new(),
            is_read: watch::Sender::new(false),
            looked: tokio::sync::Mutex::new(Instant::now()),
            is_leaving: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Reads what earlier runs have kept, then writes what changes, to the end of this level.
    pub async fn keep(self: Arc<Self>, tasks: Tasks) {
        self.look().await;
        self.is_read.send_replace(true);
        loop {
            tokio::select! {
                biased;
                () = tasks.ending() => break,
                () = self.changed.notified() => self.write().await,
            }
        }
        let last = async {
            self.write().await;
            self.close().await;
        };
        let _in_time = tokio::time::timeout(LAST_WRITE, last).await;
    }

    /// From now on what is kept stays open at its upstream, for the next run.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    /// Whether what is kept stays open for the next run.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire) && !self.has_failed.load(Ordering::Acquire)
    }

    /// There is this upstream: what was kept of it is taken over.
    pub(crate) fn is_of(&self, upstream: &Arc<str>) {
        self.lock().upstreams.insert(upstream.clone());
    }

    /// A session is open.
    pub(crate) fn put(&self, place: &Place, kept: Kept) {
        self.change(Change::Open(place.clone(), kept));
    }

    /// The one with this id is no longer, or nobody will come for it. One that was opened there since stays.
    pub(crate) fn gone(&self, place: &Place, id: &str) {
        self.change(Change::Over(place.clone(), id.into()));
    }

    /// Nobody has come for it after all: whoever does finds it again.
    pub(crate) fn give_back(&self, place: &Place, kept: Kept) {
        self.lock().earlier.insert(place.clone(), Earlier::Kept(kept));
    }

    /// What an earlier run has kept for a client session, once that was read.
    pub(crate) async fn take(self: &Arc<Self>, place: &Place) -> Option<Earlier> {
        // The sender lies here.
        let _ = self.is_read.subscribe().wait_for(|is_read| *is_read).await;
        if let Some(kept) = self.lock().earlier.remove(place) {
            return Some(kept);
        }
        // The run that kept it may have ended only now.
        let mut looked = self.looked.lock().await;
        if looked.elapsed() >= LOOK_EVERY {
            self.look().await;
            *looked = Instant::now();
        }
        drop(looked);
        self.lock().earlier.remove(place)
    }

    /// What earlier runs have kept of an upstream, once nobody has come for it for so long; from now on it counts as given up.
    pub(crate) async fn left_over(&self, upstream: &Arc<str>) -> Vec<(Place, Kept)> {
        let _ = self.is_read.subscribe().wait_for(|is_read| *is_read).await;
        passed(Instant::now() + self.idle).await;
        let mut known = self.lock();
        let of_it = known.earlier.iter_mut().filter(|(place, _)| place.upstream == *upstream);
        let given_up = of_it.filter_map(|(place, kept)| match std::mem::replace(kept, Earlier::GivenUp) {
            Earlier::Kept(kept) => Some((place.clone(), kept)),
            Earlier::GivenUp => None,
        });
        given_up.collect()
    }

    fn change(&self, change: Change) {
        let mut known = self.lock();
        if known.changes.len() >= WAITING_MAX {
            known.changes.pop_front();
        }
        known.changes.push_back(change);
        drop(known);
        self.changed.notify_one();
    }

    /// Reads the files of runs that have ended.
    async fn look(self: &Arc<Self>) {
        let this = self.clone();
        // What it could not do, it has said.
        let _ = tokio::task::spawn_blocking(move || {
            let Some(sealer) = this.sealer() else { return };
            let upstreams = this.lock().upstreams.clone();
            let found = this.files().take_over(sealer, &upstreams);
            this.lock().earlier.extend(found.into_iter().map(|(place, kept)| (place, Earlier::Kept(kept))));
        })
        .await;
    }

    async fn write(self: &Arc<Self>) {
        let changes: Vec<_> = self.lock().changes.drain(..).collect();
        if changes.is_empty() {
            return;
        }
        let this = self.clone();
        let _ = tokio::task::spawn_blocking(move || {
            let is_written = this.sealer().is_some_and(|sealer| this.files().write(sealer, &changes));
            this.has_failed.fetch_or(!is_written, Ordering::AcqRel);
        })
        .await;
    }

    /// Nothing more is written: a file that leaves nothing open goes.
    async fn close(self: &Arc<Self>) {
        let this = self.clone();
        let _ = tokio::task::spawn_blocking(move || {
            if let Some(sealer) = this.sealer() {
                this.files().close(sealer);
            }
        })
        .await;
    }

    fn sealer(&self) -> Option<&Sealer> {
        self.sealer.get_or_init(|| Some(Sealer::new(&(self.secrets)()?, FORMAT, PURPOSE))).as_ref()
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for KeptSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptSessions").finish_non_exhaustive()
    }
}

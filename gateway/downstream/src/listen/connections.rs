//! The connections of clients: bounded in all, by share, and apart from these as long as nobody has shown a credential on them.

use super::forwarded;
use super::forwarded::Network;
use super::upgrade::Switch;
use crate::call::caller::{Peer, Principal};
use crate::call::share::{Share, Tally, may_have};
use crate::runtime::timer::Timers;
use http::HeaderMap;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// The most connections at once.
pub(crate) const CONNECTIONS_MAX: usize = 10_000;
/// The most on which nobody has shown a credential yet.
const STRANGERS_MAX: usize = 1024;

/// The connections of one listener. Several may have one number in common.
#[derive(Debug)]
pub struct Connections {
    most: usize,
    strangers_most: usize,
    /// Whether a credential is asked for.
    asks_credential: AtomicBool,
    trusted: Vec<Network>,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    all: usize,
    by: Tally,
    /// How many are without a credential.
    strangers: usize,
    /// These by address, the oldest first, and what closes them.
    by_address: HashMap<Share, BTreeMap<u64, CancellationToken>>,
    opened: u64,
}

/// One connection, as those know it who answer its requests; clones are the same. It is counted until the last one is gone.
#[derive(Debug, Clone)]
pub struct Arrival(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    of: Arc<Connections>,
    /// Who is at its other end.
    peer: Peer,
    is_admitted: AtomicBool,
    counted: Mutex<Counted>,
    /// Cancelled where it is to make room.
    closed: CancellationToken,
    switch: Switch,
    /// The timers of its requests, for which its task waits.
    timers: Arc<Timers>,
    /// Whom a certificate names that was shown on it.
    certified: OnceLock<Principal>,
}

/// How a connection is counted besides in the sum of all.
#[derive(Debug)]
enum Counted {
    Stranger(Share, u64),
    Share(Share),
    /// Of a trusted proxy: it may bear the requests of many.
    InAllAlone,
}

/// A request that is served beside another one on a connection: it has a place as a connection of its own would have.
#[derive(Debug)]
pub(crate) struct Beside {
    of: Arc<Connections>,
    share: Option<Share>,
}

impl Connections {
    /// So many connections, which are fewer than [`CONNECTIONS_MAX`] where files are scarce. Without credentials they are shared by
    /// address.
    pub fn new(most: usize, asks_credential: bool, trusted: Vec<Network>) -> Arc<Self> {
        let most = most.clamp(1, CONNECTIONS_MAX);
        let strangers_most = (most / 4).clamp(1, STRANGERS_MAX);
        Arc::new(Self { most, strangers_most, asks_credential: asks_credential.into(), trusted, table: Arc::default() })
    }

    /// Those of another listener, which are counted with these.
    pub fn beside(&self, asks_credential: bool) -> Arc<Self> {
        let Self { most, strangers_most, trusted, table, .. } = self;
        Arc::new(Self {
            most: *most,
            strangers_most: *strangers_most,
            asks_credential: asks_credential.into(),
            trusted: trusted.clone(),
            table: table.clone(),
        })
    }

    /// Whether a credential is asked for on connections that come from now on.
    pub fn ask_credential(&self, is_asked: bool) {
        self.asks_credential.store(is_asked, Ordering::Relaxed);
    }

    /// Whether a credential is asked for on the next connection.
    pub(crate) fn is_credential_asked(&self) -> bool {
        self.asks_credential.load(Ordering::Relaxed)
    }

    /// So many connections on which nobody shows a credential: the oldest of the address that has the most makes room for the next one,
    /// so that a new one is always taken.
    pub fn of_probes(most: usize) -> Arc<Self> {
        let (strangers_most, trusted) = (most, Vec::new());
        Arc::new(Self { most, strangers_most, asks_credential: true.into(), trusted, table: Arc::default() })
    }

    /// A connection of a peer; `None` where it finds no room.
    pub fn enter(self: &Arc<Self>, peer: impl Into<Peer>) -> Option<Arrival> {
        let peer = peer.into();
        let closed = CancellationToken::new();
        let mut table = self.lock();
        let is_full = table.all >= self.most;
        let asks_credential = self.asks_credential.load(Ordering::Relaxed);
        let counted = if asks_credential {
            if is_full || table.strangers >= self.strangers_most {
                // Whoever has a credential shows it at once, and is no stranger by then.
                table.close_stranger();
            }
            if table.all >= self.most {
                return None;
            }
            table.opened += 1;
            let (share, number) = (Share::of_peer(peer), table.opened);
            table.by_address.entry(share.clone()).or_default().insert(number, closed.clone());
            table.strangers += 1;
            Counted::Stranger(share, number)
        } else if is_full {
            return None;
        } else if self.is_trusted(peer) {
            Counted::InAllAlone
        } else {
            let share = Share::of_peer(peer);
            table.count(&share, self.most)?;
            Counted::Share(share)
        };
        table.all += 1;
        let (is_admitted, counted) = (AtomicBool::new(!asks_credential), Mutex::new(counted));
        Some(Arrival(Arc::new(Inner {
            of: self.clone(),
            peer,
            is_admitted,
            counted,
            closed,
            switch: Switch::default(),
            timers: Timers::of_one_task(),
            certified: OnceLock::new(),
        })))
    }

    fn is_trusted(&self, peer: Peer) -> bool {
        matches!(peer, Peer::Address(address) if self.trusted.iter().any(|network| network.has(address)))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Counts one more of a share; `None` where it has its part.
    fn count(&mut self, share: &Share, most: usize) -> Option<()> {
        may_have(self.by.of(share), most - self.all.min(most)).then(|| self.by.add(share))
    }

    /// Closes the oldest connection without a credential, of the address that has the most of them.
    fn close_stranger(&mut self) {
        let most = self.by_address.iter().max_by_key(|(_, those)| those.len());
        let oldest = most.and_then(|(share, those)| Some((share.clone(), *those.keys().next()?)));
        if let Some(closed) = oldest.and_then(|(share, number)| self.take_stranger(&share, number)) {
            self.all -= 1;
            closed.cancel();
        }
    }

    /// Takes a connection out of those without a credential, where it is one of them.
    fn take_stranger(&mut self, share: &Share, number: u64) -> Option<CancellationToken> {
        let those = self.by_address.get_mut(share)?;
        let closed = those.remove(&number)?;
        if those.is_empty() {
            self.by_address.remove(share);
        }
        self.strangers -= 1;
        Some(closed)
    }
}

impl Arrival {
    /// A credential was shown on it, or none is asked for: it is counted for this share from now on. False where that has its part.
    pub(crate) fn admit(&self, share: &Share) -> bool {
        if self.is_admitted() {
            return true;
        }
        let Inner { of, peer, is_admitted, counted, .. } = &*self.0;
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        let Counted::Stranger(address, number) = &*counted else { return true };
        let mut table = of.lock();
        let is_proxy = of.is_trusted(*peer);
        if !is_proxy && table.count(share, of.most).is_none() {
            return false;
        }
        if table.take_stranger(address, *number).is_none() {
            // It was closed to make room, and is one of them again for its last request.
            table.all += 1;
        }
        drop(table);
        *counted = if is_proxy { Counted::InAllAlone } else { Counted::Share(share.clone()) };
        is_admitted.store(true, Ordering::Relaxed);
        true
    }

    /// Whether a credential was shown on it, where one is asked for.
    pub(crate) fn is_admitted(&self) -> bool {
        self.0.is_admitted.load(Ordering::Relaxed)
    }

    /// Whose share it takes; `None` where it may bear the requests of many.
    pub(crate) fn share(&self) -> Option<Share> {
        match &*self.0.counted.lock().unwrap_or_else(PoisonError::into_inner) {
            Counted::Stranger(share, _) | Counted::Share(share) => Some(share.clone()),
            Counted::InAllAlone => None,
        }
    }

    /// A place for a request beside another one; `None` where there is none for its share.
    pub(crate) fn beside(&self) -> Option<Beside> {
        let share = match &*self.0.counted.lock().unwrap_or_else(PoisonError::into_inner) {
            Counted::Share(share) => Some(share.clone()),
            // One of those without a credential is soon closed.
            Counted::Stranger(..) | Counted::InAllAlone => None,
        };
        let of = self.0.of.clone();
        let mut table = of.lock();
        if table.all >= of.most {
            return None;
        }
        if let Some(share) = &share {
            table.count(share, of.most)?;
        }
        table.all += 1;
        drop(table);
        Some(Beside { of, share })
    }

    /// A certificate was shown on it that names this one.
    pub(crate) fn certify(&self, principal: Principal) {
        let _is_first = self.0.certified.set(principal);
    }

    /// Whom a certificate names that was shown on it.
    pub fn certified(&self) -> Option<Principal> {
        self.0.certified.get().cloned()
    }

    /// The timers of its requests.
    pub(crate) fn timers(&self) -> &Arc<Timers> {
        &self.0.timers
    }

    /// Whether it goes over to another protocol.
    pub(crate) fn switch(&self) -> &Switch {
        &self.0.switch
    }

    /// Who is at its other end.
    pub fn peer(&self) -> Peer {
        self.0.peer
    }

    /// The address of the client whose request bears these headers, where it is known.
    pub fn client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        match self.0.peer {
            Peer::Address(address) => forwarded::client(address, &self.0.of.trusted, headers),
            Peer::User(_) => None,
        }
    }

    /// Resolves when it is to make room for others, and no credential was shown on it meanwhile.
    pub(crate) async fn closed(&self) {
        self.0.closed.cancelled().await;
        if self.is_admitted() {
            std::future::pending().await
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let mut table = self.of.lock();
        self.share.iter().for_each(|share| table.by.remove(share));
        table.all -= 1;
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut table = self.of.lock();
        match self.counted.get_mut().unwrap_or_else(PoisonError::into_inner) {
            Counted::Stranger(share, number) if table.take_stranger(share, *number).is_none() => return,
            Counted::Share(share) => table.by.remove(share),
            Counted::Stranger(..) | Counted::InAllAlone => {}
        }
        table.all -= 1;
    }
}

#[cfg(test)]
mod tests;

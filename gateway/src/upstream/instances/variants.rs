//! What an upstream offers to clients that declare something else than the gateway does for all: lists of their own, kept by a session
//! of the gateway that declares what they do.

// What is shown to the clients of one era that declare the same.
mod kept;
// Which tools are offered only to clients that can be asked.
mod missing;
// One life of such lists: read in a session, or by requests, that declare what the clients do.
mod life;

use super::eras::Eras;
use crate::health::row::State;
use crate::peer::Peer;
use crate::protocol::capabilities::beyond::{Beyond, Declared};
use crate::protocol::revision::Era;
use crate::runtime::Tasks;
use crate::runtime::timer::late::passed;
use crate::transport::link::Link;
use crate::upstream::calls::sessions::own::gives_sessions;
use crate::upstream::declaring::declares_now;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::own::OwnSessions;
use crate::upstream::instance::inventory::Variant;
use crate::upstream::owner::BRIDGED;
use kept::Kept;
use life::{AGAIN, Life, Way};
use missing::Missing;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// So many sets of capabilities have lists of their own.
pub(crate) const VARIANTS_MAX: usize = 8;
/// Memory of a variant beside its lists. Its session takes as much as the session of a client.
const BYTES: usize = 52 * 1024;
/// So long lists wait for an upstream that starts, or for its other era. Then everyone's are shown meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

/// The lists of one upstream for clients that declare something else than the gateway does for all. Each is kept for as long as somebody
/// holds its receiver.
pub(crate) struct Variants {
    primary: Arc<Instance>,
    own: Arc<OwnSessions<Instance>>,
    eras: Option<Arc<Eras>>,
    /// Where they live; none is read before it is there.
    level: OnceLock<Tasks>,
    table: Mutex<Vec<Arc<Kept>>>,
    /// Which tools some of them lack.
    missing: Arc<Missing>,
}

/// What is to be done for the lists as things stand.
enum Plan {
    /// The upstream starts, or it is not known yet whether it speaks their era.
    Await,
    /// The upstream is not there: what is shown stays.
    Stand,
    /// Everyone's are theirs.
    Share,
    /// They are read in this life of the upstream.
    Read(Life),
}

impl Variants {
    /// None yet; `None` where clients share one session with the upstream, or have instances to themselves.
    pub(crate) fn beside(primary: &Arc<Instance>, eras: Option<&Arc<Eras>>) -> Option<Arc<Self>> {
        let (own, primary, eras) = (primary.own.clone()?, primary.clone(), eras.cloned());
        let missing = Missing::new(primary.status.handle.clone());
        Some(Arc::new(Self { primary, own, eras, level: OnceLock::new(), table: Mutex::default(), missing }))
    }

    /// From now on lists can be read.
    pub(crate) fn keep_alive(&self, tasks: &Tasks) {
        let _is_first = self.level.set(tasks.clone());
    }

    /// What clients of this era see that declare this; `None` where there are too many others. Given up once nobody holds it.
    pub(crate) fn of(self: &Arc<Self>, era: Era, set: &Declared) -> Option<watch::Receiver<Variant>> {
        let level = self.level.get().filter(|level| !level.is_ending())?;
        let mut table = self.lock();
        if let Some(kept) = table.iter().find(|kept| kept.is_of(era, set)) {
            return Some(kept.shown.subscribe());
        }
        if table.len() >= VARIANTS_MAX {
            return None;
        }
        let counted = self.primary.status.handle.budget().stand(BYTES + set.beyond.bytes()).ok()?;
        let (shown, receiver) = watch::channel(Variant::Coming);
        let kept = Arc::new(Kept::new((era, set.clone()), shown, self.missing.place(), counted));
        table.push(kept.clone());
        drop(table);
        if let Some(eras) = &self.eras {
            eras.expect(era);
        }
        level.spawn(self.clone().keep(kept, level.clone()));
        Some(receiver)
    }

    /// Somebody looks at what clients see that declare this: it is read again where that was last done long ago.
    pub(crate) fn refresh(&self, era: Era, declares: impl Fn(&Declared) -> bool) {
        for kept in self.lock().iter().filter(|kept| kept.era == era && declares(&kept.set)) {
            kept.refresh();
        }
    }

    async fn keep(self: Arc<Self>, kept: Arc<Kept>, level: Tasks) {
        tokio::select! {
            biased;
            () = level.ending() => {}
            () = self.unwanted(&kept) => {}
            () = self.follow(&kept) => {}
        }
        self.lock().retain(|one| !Arc::ptr_eq(one, &kept));
    }

    /// Resolves when nobody holds it; it is not found any more then.
    async fn unwanted(&self, kept: &Arc<Kept>) {
        loop {
            kept.shown.closed().await;
            let mut table = self.lock();
            if kept.shown.receiver_count() == 0 {
                table.retain(|one| !Arc::ptr_eq(one, kept));
                return;
            }
        }
    }

    /// Has the lists read, in each life of the upstream anew. Never ends by itself.
    async fn follow(&self, kept: &Arc<Kept>) {
        let (mut moves, mut board) = (self.own.moves().subscribe(), self.primary.status.handle.changes());
        let (until, mut pause) = (Instant::now() + PATIENCE, AGAIN.0);
        loop {
            moves.mark_unchanged();
            board.mark_unchanged();
            match self.plan(kept, until) {
                Plan::Await => tokio::select! {
                    _ = moves.changed() => {}
                    _ = board.changed() => {}
                    () = passed(until) => {}
                },
                Plan::Stand => {
                    kept.is_settled();
                    _ = moves.changed().await;
                }
                Plan::Share => {
                    kept.missing.says(None);
                    kept.show(Variant::Shared);
                    _ = moves.changed().await;
                }
                Plan::Read(life) => {
                    let (begun, mut shared) = (Instant::now(), life.home.offering.inventory.subscribe());
                    shared.mark_unchanged();
                    if self.live(kept, life, &mut moves).await {
                        continue;
                    }
                    if kept.is_shared() {
                        *kept.seen() = Some(Instant::now());
                        pause = AGAIN.0;
                        tokio::select! {
                            _ = moves.changed() => {}
                            _ = shared.changed() => {}
                            () = kept.look.notified() => {}
                        }
                        sleep_until(begun + AGAIN.0).await;
                        continue;
                    }
                    pause = if begun.elapsed() < AGAIN.1 { (pause * 2).min(AGAIN.1) } else { AGAIN.0 };
                    tokio::select! {
                        () = sleep(pause) => {}
                        _ = moves.changed() => {}
                    }
                }
            }
        }
    }

    /// One life of the lists, which ends with a loss, where they are everyone's, or where another life of the upstream begins; whether it was that. It ends its
    /// session also where this is dropped.
    async fn live(&self, kept: &Arc<Kept>, life: Life, moves: &mut watch::Receiver<u64>) -> bool {
        let (home, peer) = (life.home.clone(), life.peer.clone());
        let (stop, mut ended) = life.start(kept);
        loop {
            tokio::select! {
                _ = &mut ended => return false,
                _ = moves.changed() => {}
            }
            // While there is none, what is known stays.
            let is_another =
                |met: &(Arc<Instance>, Arc<Peer>)| !Arc::ptr_eq(&met.0, &home) || !Arc::ptr_eq(&met.1, &peer);
            if self.met(kept.era).as_ref().is_some_and(is_another) {
                drop(stop);
                _ = ended.await;
                return true;
            }
        }
    }

    /// The instance that serves an era, and whom it has met.
    fn met(&self, era: Era) -> Option<(Arc<Instance>, Arc<Peer>)> {
        let home = self.eras.as_ref().and_then(|eras| eras.serving(era)).unwrap_or_else(|| self.primary.clone());
        let peer = home.admission.gate.peer()?;
        Some((home, peer))
    }

    /// Whether the upstream starts for the first time. What is known of it from an earlier run stands until then.
    fn is_coming(&self) -> bool {
        let (health, offering) = (self.primary.status.handle.health(), &self.primary.offering);
        let is_known = offering.inventory.borrow().is_some();
        match health.state {
            State::Starting | State::Ready => !health.has_failed && (!is_known || offering.reads.were_read()),
            State::Idle => !health.has_failed && !is_known,
            _ => false,
        }
    }

    fn plan(&self, kept: &Arc<Kept>, until: Instant) -> Plan {
        let is_patient = Instant::now() < until;
        if is_patient && self.eras.as_ref().is_some_and(|eras| eras.is_coming(kept.era)) {
            return Plan::Await;
        }
        let Some((home, peer)) = self.met(kept.era) else {
            return if is_patient && self.is_coming() { Plan::Await } else { Plan::Stand };
        };
        let Some((wire, tasks)) = home.admission.sessions.way_in().filter(|(_, tasks)| !tasks.is_ending()) else {
            return Plan::Stand;
        };
        let (set, way) = match &peer.link {
            Link::Http(_) if peer.revision().is_modern() => (stateless(kept), Way::Requests),
            _ if gives_sessions(&peer) && !self.own.is_refused() => (handshake(kept, &home), Way::Session(wire)),
            _ => return Plan::Share,
        };
        match set {
            None => Plan::Share,
            Some(set) => Plan::Read(Life { home, peer, set, way, tasks }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Kept>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a session declares that reads lists for clients that declare this; `None` where the one for all does as much.
fn handshake(kept: &Kept, home: &Instance) -> Option<Declared> {
    let can = kept.set.can.with(home.config.answers()).and(BRIDGED);
    let set = Declared { can, beyond: kept.set.beyond.clone() };
    (declares_now(&home.owner, &home.config).as_ref() != Some(&set)).then_some(set)
}

/// What requests declare that read lists for clients that declare this, as their calls do; `None` where the ones for all do as much.
fn stateless(kept: &Kept) -> Option<Declared> {
    let beyond = if kept.era == Era::Modern { kept.set.beyond.clone() } else { Beyond::default() };
    Some(Declared { can: kept.set.can, beyond }).filter(|set| *set != Declared::default())
}

//! The eras of an upstream: which instance serves a client, and the second one, of the era that the primary one does not speak.

// What a client listens to of resources: it follows to the instance that serves its era.
mod listen;

use crate::call::reply::Reply;
use crate::call::share::{Part, Shares};
use crate::call::{Call, ListenFilter};
use crate::health::CauseCode;
use crate::health::row::State;
use crate::peer::eras::Finding;
use crate::protocol::frame::Method;
use crate::protocol::revision::Era;
use crate::runtime::Tasks;
use crate::runtime::timer::late::within_until;
use crate::upstream::calls::sessions::own;
use crate::upstream::calls::tasks::take;
use crate::upstream::config::{EraChoice, Sharing};
use crate::upstream::instance::inventory::Inventory;
use crate::upstream::instance::{Instance, SECOND};
use crate::upstream::supervise::{control, supervise};
use arc_swap::ArcSwapOption;
use listen::FollowingSource;
pub(crate) use listen::follow_own;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long it holds that an upstream does not speak an era.
const REFUSED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// After an attempt that says nothing of the era, the next one is made when it is needed again, and not before. So long at first, and
/// each time twice as long, a refusal holds that may be of whatever stands before the upstream.
const FAILED_FOR: Duration = Duration::from_secs(60);
/// So long calls wait for what comes of an attempt: as long as for an upstream that starts. Then they are bridged.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of the eras of one upstream.
pub(crate) struct Eras {
    primary: Arc<Instance>,
    /// The instance of the other era, once it was met.
    serving: ArcSwapOption<Instance>,
    /// How often that has changed.
    moves: watch::Sender<u64>,
    table: Mutex<Table>,
    /// Where the second instance lives; none is started before it is there.
    level: OnceLock<Tasks>,
    /// What clients of each era see, where it is not what the primary one offers.
    offers: [watch::Sender<Option<Arc<Inventory>>>; 2],
    /// Calls that wait for what comes of an attempt.
    waiting: Arc<Shares>,
}

#[derive(Default)]
struct Table {
    second: Option<Second>,
    /// Which eras are not tried again, and until when.
    barred: [Option<Bar>; 2],
    /// Whether the upstream has spoken each era, as far as that is known.
    spoken: [bool; 2],
    /// How many refusals of each era in a row may be none of the upstream's.
    doubts: [u32; 2],
}

/// Keeps an era from being tried.
#[derive(Clone, Copy)]
struct Bar {
    until: Instant,
    /// The orders that had been given: the next one ends it.
    orders: u64,
}

impl Table {
    /// How long it holds that the upstream was not met in an era.
    fn holds(&mut self, era: Era, finding: Finding) -> Duration {
        let is_doubtful = finding == Finding::Doubtful || (finding == Finding::Refuses && self.spoken[era as usize]);
        let doubts = &mut self.doubts[era as usize];
        match finding {
            _ if is_doubtful => {
                *doubts = doubts.saturating_add(1);
                (FAILED_FOR * 2_u32.saturating_pow(*doubts - 1).min(1 << 11)).min(REFUSED_FOR)
            }
            Finding::Refuses => REFUSED_FOR,
            _ => FAILED_FOR,
        }
    }
}

/// The instance of the other era, from its first attempt to its end.
#[derive(Clone)]
struct Second {
    era: Era,
    instance: Arc<Instance>,
    level: Tasks,
    /// Until when it is waited for.
    patience: Instant,
}

/// Where a call goes: over a link of its client's own era where there is one.
pub(crate) enum Way {
    Primary,
    Second(Arc<Instance>),
    /// It is not known yet which of them serves it; until then that is worth waiting for.
    Open(Instant),
    /// It listens to resources, and follows to the instance that serves its client.
    Follow(ListenFilter),
}

impl Eras {
    /// Nothing is known yet; `None` where the upstream is spoken to in one era only.
    pub(crate) fn beside(primary: &Arc<Instance>) -> Option<Arc<Self>> {
        let config = &primary.config;
        let has_both = config.is_http() || config.has_both_eras;
        if config.era != EraChoice::Auto || !has_both || config.sharing == Sharing::PerSession {
            return None;
        }
        Some(Arc::new(Self {
            primary: primary.clone(),
            serving: ArcSwapOption::empty(),
            moves: primary.own.as_ref().map_or_else(|| watch::Sender::new(0), |own| own.moves().clone()),
            table: Mutex::default(),
            level: OnceLock::new(),
            offers: [watch::Sender::new(None), watch::Sender::new(None)],
            waiting: Shares::new(config.queue, Part::OfFree),
        }))
    }

    /// From now on the second instance can be started.
    pub(crate) fn keep_alive(&self, tasks: &Tasks) {
        let _is_first = self.level.set(tasks.clone());
    }

    /// Takes a call once it is known which instance serves it, or at this time by the primary one. Nothing waits here.
    pub(crate) fn await_way(self: &Arc<Self>, call: Call, until: Instant) -> Reply {
        // Where too many wait, a bridged answer is better than none.
        let Some(place) = self.waiting.take(&call.caller.share()) else { return take(&self.primary, call) };
        let eras = self.clone();
        Reply::deferred(async move {
            let _place = place;
            let mut changes = eras.primary.status.handle.changes();
            let settled = async {
                while let Way::Open(_) = eras.way(&call) {
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
            };
            let _in_time = within_until(until, settled).await;
            match eras.way(&call) {
                Way::Second(instance) => take(&instance, call),
                _ => take(&eras.primary, call),
            }
        })
    }

    /// Takes a listen call about resources, whose reply follows to the instance that serves its client.
    pub(crate) fn listen(self: &Arc<Self>, call: &Call, filter: ListenFilter) -> Reply {
        let era = call.revision().era();
        let first = self.serving(era).filter(|second| may_serve(second)).unwrap_or_else(|| self.primary.clone());
        let first = own::home(&first, &call.caller);
        let moves = self.moves.subscribe();
        let (eras, caller) = (self.clone(), call.caller.clone());
        let home = Box::new(move || own::home(&eras.serving(era).unwrap_or_else(|| eras.primary.clone()), &caller));
        Reply::live(FollowingSource::new(first, filter.uris, call.caller.clone(), home, moves))
    }

    /// The instance of an era beside the primary one, where it was met.
    pub(crate) fn serving(&self, era: Era) -> Option<Arc<Instance>> {
        if self.primary.era.is(era) {
            return None;
        }
        self.serving.load().as_ref().filter(|second| second.era.is(era)).cloned()
    }

    /// The instance beside the primary one, met or not.
    pub(crate) fn second(&self) -> Option<Arc<Instance>> {
        self.lock().second.as_ref().map(|second| second.instance.clone())
    }

    /// How many calls wait for what comes of an attempt.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.held()
    }

    /// What clients of an era see in place of what the primary instance offers; nothing until it was read.
    pub(crate) fn inventory(&self, era: Era) -> watch::Receiver<Option<Arc<Inventory>>> {
        self.offers[era as usize].subscribe()
    }

    /// Somebody looks at what the second instance offers.
    pub(crate) fn refresh(&self, era: Era) {
        if let Some(second) = self.serving(era) {
            second.offering.reads.refresh();
        }
    }

    /// A client of this era has come. A child is started by calls alone.
    pub(crate) fn expect(self: &Arc<Self>, era: Era) {
        if self.primary.config.is_http() && self.serving(era).is_none() {
            self.seek(era);
        }
    }

    /// Whether what clients of an era see is about to be read for the first time.
    pub(crate) fn is_coming(&self, era: Era) -> bool {
        if self.offers[era as usize].borrow().is_some() {
            return false;
        }
        let table = self.lock();
        let second = table.second.as_ref().filter(|second| second.era == era && !self.primary.era.is(era));
        second.is_some_and(|second| second.patience > Instant::now())
    }

    /// Where a call goes as things stand.
    pub(crate) fn way(self: &Arc<Self>, call: &Call) -> Way {
        if matches!(call.method, Method::Listen)
            && let Some(filter) = ListenFilter::parse(&call.params).filter(|filter| filter.tasks.is_empty())
        {
            return Way::Follow(filter);
        }
        let era = call.revision().era();
        if self.primary.era.is(era) {
            return Way::Primary;
        }
        if let Some(second) = self.serving(era) {
            // What is about to end by an order takes no new calls.
            let is_apt = may_serve(&second) && !own::is_hopeless(&second, &call.caller);
            let may_serve = is_apt && !is_being_restarted(&self.primary);
            return if may_serve { Way::Second(second) } else { Way::Primary };
        }
        self.way_unmet(era, call)
    }

    /// The same, while the other era was not met.
    fn way_unmet(self: &Arc<Self>, era: Era, call: &Call) -> Way {
        let is_call = call.method.is_long() || matches!(call.method, Method::Complete | Method::Other(_));
        if !is_call {
            return Way::Primary;
        }
        if self.primary.era.get().is_some() {
            return self.seek(era).map_or(Way::Primary, Way::Open);
        }
        // What it speaks is known when it was met: only one that speaks one era first may speak the other one too.
        let health = self.primary.status.handle.health();
        let is_coming = matches!(health.state, State::Starting | State::Idle) && !health.has_failed;
        if era == self.primary.first_era() || !is_coming || self.primary.admission.demand.is_off() {
            return Way::Primary;
        }
        self.primary.admission.demand.hurry();
        Way::Open(Instant::now() + PATIENCE)
    }

    /// Has an era tried that the primary instance does not speak; until when that is worth waiting for.
    fn seek(self: &Arc<Self>, era: Era) -> Option<Instant> {
        let now = Instant::now();
        let level = self.level.get()?;
        if self.primary.era.get().is_none_or(|spoken| spoken == era) || self.primary.admission.demand.is_off() {
            return None;
        }
        let mut table = self.lock();
        match &table.second {
            Some(second) if second.era == era => return (second.patience > now).then_some(second.patience),
            // The primary one speaks that by now.
            Some(second) => {
                second.level.end();
                return None;
            }
            None => {}
        }
        let orders = self.primary.admission.demand.orders();
        let barred = table.barred[era as usize].filter(|bar| bar.orders == orders);
        // It speaks the other one, so this one was refused when it was met.
        if era == self.primary.first_era() && barred.is_none() {
            let until = now + table.holds(era, Finding::Refuses);
            table.barred[era as usize] = Some(Bar { until, orders });
            return None;
        }
        if barred.is_some_and(|bar| bar.until > now) {
            return None;
        }
        let handle = self.primary.status.handle.instance(&EraChoice::from(era).word().into(), SECOND);
        let instance = Arc::new(Instance::second(&self.primary, era, handle));
        let second = Second { era, instance, level: level.child(), patience: now + PATIENCE };
        self.primary.admission.second.store(Some(second.instance.admission.traffic.clone()));
        table.second = Some(second.clone());
        drop(table);
        let ticket = control::ticket(&second.instance);
        second.level.spawn(supervise(second.instance.clone(), ticket, second.level.clone()));
        let patience = second.patience;
        level.spawn(self.clone().keep(second));
        Some(patience)
    }

    /// Shows what the second instance turns out to be, for as long as it is there.
    async fn keep(self: Arc<Self>, second: Second) {
        let Second { era, instance, level, .. } = &second;
        tokio::select! {
            biased;
            () = level.ending() => {}
            () = self.primary.admission.demand.turned_off() => {}
            _at_once = self.primary.admission.demand.ordered() => {}
            () = self.follow(*era, instance) => {}
        }
        self.serve(None);
        if !self.level.get().is_none_or(Tasks::is_ending) {
            // Nobody keeps that any more: what stands is seen until the next one was read.
            self.offers[*era as usize].send_replace(None);
        }
        instance.status.ends();
        level.end();
        // Its place on the board, and its turn, are kept until it is proved that nothing of it is left.
        level.ended().await;
        self.lock().second = None;
        self.primary.admission.second.store(None);
        instance.status.handle.leave();
    }

    /// Resolves when the upstream does not speak the era, or no longer does.
    async fn follow(&self, era: Era, instance: &Arc<Instance>) {
        let Some(trial) = &instance.trial else { return };
        let (mut findings, mut offer) = (trial.findings(), instance.offering.inventory.subscribe());
        loop {
            let finding = *findings.borrow_and_update();
            if !matches!(finding, Finding::Sought | Finding::Speaks) {
                let (mut table, orders) = (self.lock(), self.primary.admission.demand.orders());
                let until = Instant::now() + table.holds(era, finding);
                table.barred[era as usize] = Some(Bar { until, orders });
                return;
            }
            if finding == Finding::Speaks {
                if self.serving.load().is_none() {
                    let mut table = self.lock();
                    (table.spoken[era as usize], table.doubts[era as usize]) = (true, 0);
                    drop(table);
                    self.serve(Some(instance.clone()));
                }
                let read = offer.borrow_and_update().clone();
                if read.is_some() {
                    self.offers[era as usize].send_replace(read);
                }
                // Calls wait for what is found.
                instance.status.handle.update(|_| {});
            }
            tokio::select! {
                changed = findings.changed() => if changed.is_err() { return },
                changed = offer.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Another instance serves the other era, or none.
    fn serve(&self, second: Option<Arc<Instance>>) {
        self.serving.store(second);
        self.moves.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an order is about to end it, and the second instance with it.
fn is_being_restarted(primary: &Instance) -> bool {
    if primary.admission.gate.peer().is_some() {
        return false;
    }
    let health = primary.status.handle.health();
    health.state == State::Stopping
        && health
            .cause
            .is_some_and(|cause| matches!(cause.code(), CauseCode::RestartedByOrder | CauseCode::LoginChanged))
}

/// Whether the second instance is up, or will be soon; while it is not, the primary one serves its clients too.
fn may_serve(second: &Instance) -> bool {
    if second.admission.gate.peer().is_some() {
        return true;
    }
    let health = second.status.handle.health();
    matches!(health.state, State::Starting | State::Idle | State::Stopping) && !health.has_failed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_an_era_that_was_spoken_is_looked_at_again_soon_and_then_ever_later() {
        let mut table = Table::default();
        assert_eq!(table.holds(Era::Legacy, Finding::Refuses), REFUSED_FOR);
        assert_eq!(table.holds(Era::Legacy, Finding::Failed), FAILED_FOR);
        table.spoken[Era::Legacy as usize] = true;
        let holds: Vec<_> = (0..40).map(|_| table.holds(Era::Legacy, Finding::Refuses)).collect();
        assert_eq!(holds[..3], [FAILED_FOR, FAILED_FOR * 2, FAILED_FOR * 4]);
        assert_eq!(holds[39], REFUSED_FOR);
        assert_eq!(table.holds(Era::Modern, Finding::Doubtful), FAILED_FOR, "each era has its own");
    }
}

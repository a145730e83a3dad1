//! The steady load: calls of every upstream begin by the clock, whatever becomes of those before them, so that what is measured
//! of one upstream does not depend on how another fares.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::judge::history::Made;
use crate::machine::load::call_with;
use crate::machine::stage::{ALL, Stage};
use crate::seed::Seed;

/// So many calls of one upstream are open at once; the next ones are left out. Only a sick one comes near.
const OPEN_MAX: usize = 32;
/// How long arguments are, beside the nonce.
const FILLING: usize = 300;

/// A call, and when it began.
pub struct Timed {
    /// When it began.
    pub begun: Instant,
    /// What became of it.
    pub made: Made,
}

/// Calls that begin by the clock, on a thread of their own: what the rest of the program does costs them nothing but
/// processor time.
pub struct Steady {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

struct Shared {
    stage: Arc<Stage>,
    callers: Vec<usize>,
    stop: CancellationToken,
    open: TaskTracker,
    made: Mutex<Vec<Timed>>,
    ended: [AtomicU64; ALL],
    running: [AtomicUsize; ALL],
}

impl Steady {
    /// A call of each upstream every so often, by these callers in turn.
    #[must_use]
    pub fn start(stage: &Arc<Stage>, callers: &[usize], every: Duration, seed: &Seed) -> Steady {
        let shared = Arc::new(Shared {
            stage: stage.clone(),
            callers: callers.to_vec(),
            stop: CancellationToken::new(),
            open: TaskTracker::new(),
            made: Mutex::default(),
            ended: Default::default(),
            running: Default::default(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        for at in 0..ALL {
            let first = every.mul_f64(at as f64 / ALL as f64);
            let seed = seed.part(&format!("upstream {at}"));
            runtime.spawn(beat(shared.clone(), at, first, every, seed));
        }
        Steady { shared, runtime: Some(runtime) }
    }

    /// How many calls of this upstream have ended.
    #[must_use]
    pub fn ended(&self, at: usize) -> u64 {
        self.shared.ended[at].load(Ordering::Relaxed)
    }

    /// Waits until so many more calls of each upstream have ended, of the sick one so many.
    pub async fn each(&self, calls: u64, sick: Option<(usize, u64)>) {
        let wanted = |at: usize| sick.filter(|(sick, _)| *sick == at).map_or(calls, |(_, calls)| calls);
        let goals: Vec<u64> = (0..ALL).map(|at| self.ended(at) + wanted(at)).collect();
        while (0..ALL).any(|at| self.ended(at) < goals[at]) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What has ended since this was last asked.
    #[must_use]
    pub fn take(&self) -> Vec<Timed> {
        std::mem::take(&mut *self.shared.made.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops when every open call has ended, and gives what has ended since it was last asked.
    pub async fn stop(mut self) -> Vec<Timed> {
        self.shared.stop.cancel();
        self.shared.open.close();
        self.shared.open.wait().await;
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.take()
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        // A runtime must not be waited for where others run on.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Begins a call at each tick.
async fn beat(shared: Arc<Shared>, at: usize, first: Duration, every: Duration, seed: Seed) {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + first, every);
    // Whoever comes late makes up for it: the rate is the same, whatever happens.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in 0_usize.. {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shared.stop.cancelled() => return,
        }
        if shared.running[at].load(Ordering::Relaxed) >= OPEN_MAX {
            continue;
        }
        let caller = shared.callers[number % shared.callers.len()];
        shared.running[at].fetch_add(1, Ordering::Relaxed);
        let (own, seed) = (shared.clone(), seed.part(&number.to_string()));
        shared.open.spawn(one(own, caller, at, seed));
    }
}

async fn one(shared: Arc<Shared>, caller: usize, at: usize, mut seed: Seed) {
    let begun = Instant::now();
    let made = call_with(&shared.stage, caller, at, FILLING, &mut seed).await;
    shared.made.lock().unwrap_or_else(PoisonError::into_inner).push(Timed { begun, made });
    shared.running[at].fetch_sub(1, Ordering::Relaxed);
    shared.ended[at].fetch_add(1, Ordering::Relaxed);
}

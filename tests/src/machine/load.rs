//! The load: workers that call without rest, each call with a nonce of its own, and take down what became of it. A few calls in
//! a hundred are given up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::client::{Answer, Request, tool};
use crate::journal::now;
use crate::judge::invariants::has_enough;
use crate::judge::{self, history::End, history::Made};
use crate::machine::given_up::give_up;
use crate::machine::setting::INNOCENT;
use crate::machine::stage::{ALL, Ids, Stage};
use crate::seed::Seed;

/// How long any call is waited for before it counts as lost: longer than for two minutes, for which a stream that was resumed may be silent.
pub const LOST_AFTER: Duration = Duration::from_secs(150);
/// So many calls in a hundred are given up.
const GIVEN_UP: usize = 4;

/// Workers at work.
pub struct Load {
    shared: Arc<Shared>,
    workers: JoinSet<()>,
}

/// What the workers share.
struct Shared {
    stage: Arc<Stage>,
    stop: CancellationToken,
    made: Mutex<Vec<Made>>,
    /// How many calls of each upstream have ended.
    ended: [AtomicU64; ALL],
    /// How long a worker rests between two calls.
    pace: Duration,
}

impl Load {
    /// So many workers for each caller, who rest so long between two calls.
    #[must_use]
    pub fn start(stage: &Arc<Stage>, workers: usize, pace: Duration, seed: &Seed) -> Load {
        let shared = Arc::new(Shared {
            stage: stage.clone(),
            stop: CancellationToken::new(),
            made: Mutex::default(),
            ended: Default::default(),
            pace,
        });
        let mut set = JoinSet::new();
        for caller in 0..stage.callers.len() {
            for worker in 0..workers {
                let seed = seed.part(&format!("caller {caller} worker {worker}"));
                set.spawn(work(shared.clone(), caller, seed));
            }
        }
        Load { shared, workers: set }
    }

    /// How many calls of this upstream have ended.
    #[must_use]
    pub fn ended(&self, at: usize) -> u64 {
        self.shared.ended[at].load(Ordering::Relaxed)
    }

    /// Waits until so many more calls of each upstream have ended.
    pub async fn each(&self, calls: u64) {
        let goals: Vec<u64> = (0..ALL).map(|at| self.ended(at) + calls).collect();
        while (0..ALL).any(|at| self.ended(at) < goals[at]) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Whether each innocent principal has ended as many calls since then as a siege is judged by.
    #[must_use]
    pub(crate) fn has_enough(&self, since: u64) -> bool {
        let made = self.shared.made.lock().unwrap_or_else(PoisonError::into_inner);
        has_enough(&made, &INNOCENT, since)
    }

    /// What was made since this was last asked.
    #[must_use]
    pub fn take(&self) -> Vec<Made> {
        std::mem::take(&mut *self.shared.made.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Stops when every open call has ended, and gives what was made since it was last asked.
    pub async fn stop(mut self) -> Vec<Made> {
        self.shared.stop.cancel();
        while let Some(ended) = self.workers.join_next().await {
            ended.expect("a worker ends in order");
        }
        self.take()
    }
}

async fn work(shared: Arc<Shared>, caller: usize, mut seed: Seed) {
    while !shared.stop.is_cancelled() {
        let at = shared.stage.may_call(caller, seed.below(ALL));
        let is_given_up = seed.chance(GIVEN_UP);
        let made = match is_given_up {
            true => give_up(&shared.stage, caller, at, &mut seed).await,
            false => call(&shared.stage, caller, at, &mut seed).await,
        };
        shared.made.lock().unwrap_or_else(PoisonError::into_inner).push(made);
        // Whoever counts on calls to meet a fault counts on those that stay.
        shared.ended[at].fetch_add(u64::from(!is_given_up), Ordering::Relaxed);
        tokio::select! {
            () = tokio::time::sleep(shared.pace) => {}
            () = shared.stop.cancelled() => {}
        }
    }
}

/// One call of each caller of each upstream, one after the other.
pub async fn each_of_each(stage: &Stage, seed: &mut Seed) -> Vec<Made> {
    let mut made = Vec::new();
    for caller in 0..stage.callers.len() {
        for at in 0..ALL {
            made.push(call(stage, caller, stage.may_call(caller, at), seed).await);
        }
    }
    made
}

/// One call of one upstream's echo, and what became of it. A few are larger than any buffer on the way.
pub async fn call(stage: &Stage, caller: usize, at: usize, seed: &mut Seed) -> Made {
    let filling = if seed.chance(2) { 200_000 } else { seed.below(300) };
    call_with(stage, caller, at, filling, seed).await
}

/// One call whose arguments hold so many bytes beside the nonce.
pub(crate) async fn call_with(stage: &Stage, caller: usize, at: usize, filling: usize, seed: &mut Seed) -> Made {
    let number = caller;
    let (place, caller) = (&stage.places[at], &stage.callers[caller]);
    let nonce = judge::nonce();
    let id = id(&place.upstream.name, &nonce, caller.ids, seed);
    let (id, request) = request(&place.upstream.name, &nonce, id, filling);
    let (sickness, begun) = (place.sickness(), Instant::now());
    let answer = caller.client.start(request).await.settled(LOST_AFTER).await;
    let took = begun.elapsed();
    let may_fail = sickness % 2 == 1 || place.sickness() != sickness;
    let ends = answer.map(end).into_iter().collect();
    let upstream = place.upstream.name.clone();
    let deadline = stage.deadline;
    let (principal, ended) = (caller.principal, now());
    Made { upstream, may_fail, given_up: false, id, nonce, took, deadline, ends, caller: number, principal, ended }
}

fn id(upstream: &str, nonce: &str, ids: Ids, seed: &mut Seed) -> String {
    let number = nonce.rsplit('-').next().expect("a nonce ends in a number");
    match ids {
        Ids::Always(id) => id.to_owned(),
        Ids::Texts => format!("\"{upstream} \u{fc} {number}\""),
        Ids::Numbers if seed.chance(50) => format!("-{number}"),
        Ids::Numbers => (9_007_199_254_740_993_u64 + number.parse::<u64>().expect("a number")).to_string(),
    }
}

/// A call of an upstream's echo under this id.
pub(crate) fn request(upstream: &str, nonce: &str, id: String, filling: usize) -> (String, Request) {
    let filling = "f".repeat(filling);
    let arguments = format!("{{\"nonce\":\"{nonce}\",\"filling\":\"{filling}\"}}");
    let request = tool(&format!("{upstream}__echo"), &arguments).id(&id);
    (id, request)
}

pub(crate) fn end(answer: Option<Answer>) -> End {
    let Some(answer) = answer else { return End::Closed };
    let Some(frame) = &answer.frame else { return End::Closed };
    let id = frame.id_text().to_owned();
    match &frame.error {
        Some(_) => {
            let data = answer.error_value()["data"].to_string();
            End::Error { id, message: answer.message(), data }
        }
        None => End::Result { id, nonce: judge::echoed(&answer) },
    }
}

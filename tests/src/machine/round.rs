//! A round: faults are put in, held until everybody has met them, seen from outside, taken out, and got over.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::judge::history::{End, Kept, Made, Siege, Sight};
use crate::judge::invariants::is_used_up;
use crate::log;
use crate::machine::fault::{Fault, Kind, Shown};
use crate::machine::hostile;
use crate::machine::load::{Load, call, call_with};
use crate::machine::look;
use crate::machine::siege;
use crate::machine::stage::{ALL, Stage, UPSTREAMS};
use crate::seed::Seed;
use crate::within::{all, within_limit};

/// By how much a freeze is longer than a call may take.
const BEYOND: Duration = Duration::from_millis(500);
/// How many calls come to one that does not read, and how long they are.
const LONG_CALLS: usize = 3;
const LONG: usize = 600_000;
/// How long a step of a round may take on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a siege lasts at the most, once all calls that the faults want have ended.
const SIEGE_MAX: Duration = Duration::from_secs(40);

/// How long faults are held.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Until so many calls of each sick upstream have ended.
    pub sick: u64,
    /// Until so many calls of each other one have ended.
    pub others: u64,
}

/// Which faults come, in order: by the seed alone.
pub struct Plan {
    seed: Seed,
    waiting: Vec<(usize, Kind)>,
    /// Whether the slow kinds come two by two, each pair with three others.
    is_sorted: bool,
}

impl Plan {
    /// A plan of this seed.
    #[must_use]
    pub fn new(seed: &Seed) -> Plan {
        Plan { seed: seed.part("faults"), waiting: Vec::new(), is_sorted: false }
    }

    /// The next round: a fault, now and then two. Every kind comes before one comes again.
    pub fn next(&mut self, stage: &Stage) -> Vec<Fault> {
        let count = 1 + usize::from(self.seed.chance(25));
        self.some(stage, count)
    }

    /// The next faults, up to so many, each in another upstream.
    pub fn some(&mut self, stage: &Stage, count: usize) -> Vec<Fault> {
        let mut faults: Vec<Fault> = Vec::new();
        for _ in 0..count {
            let mut fault = self.fault(stage);
            let way = stage.places[fault.at].upstream.way();
            let beside = (fault.at..ALL).chain(0..fault.at).filter(|at| stage.places[*at].upstream.way() == way);
            match beside.into_iter().find(|at| faults.iter().all(|other| other.at != *at)) {
                Some(free) => fault.at = free,
                // The only one of its kind is sick already: it has this fault another time.
                None => {
                    self.waiting.insert(0, (fault.at, fault.kind));
                    break;
                }
            }
            faults.push(fault);
        }
        faults
    }

    /// From now on, or no longer, the slow kinds come two by two, each pair with three others: a pair takes hardly longer than one.
    pub fn sorts(&mut self, is_sorted: bool) {
        self.is_sorted = is_sorted;
    }

    /// How many kinds of faults are still to come before one comes again.
    #[must_use]
    pub fn left(&self) -> usize {
        self.waiting.len()
    }

    fn fault(&mut self, stage: &Stage) -> Fault {
        if self.waiting.is_empty() {
            self.waiting = every_kind(stage);
            for (at, _) in &mut self.waiting {
                if *at < UPSTREAMS {
                    // Upstreams that are reached the same way stand two apart.
                    *at = (*at + 2 * self.seed.below(UPSTREAMS / 2)) % UPSTREAMS;
                }
            }
            self.seed.shuffle(&mut self.waiting);
            if self.is_sorted {
                let (slow, fast): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(|(_, kind)| kind.is_slow());
                let (mut slow, mut fast) = (slow.into_iter(), fast.into_iter());
                while slow.len() + fast.len() > 0 {
                    self.waiting.extend(slow.by_ref().take(2).chain(fast.by_ref().take(3)));
                }
                // They are taken from the end.
                self.waiting.reverse();
            }
        }
        let (at, kind) = self.waiting.pop().expect("there are kinds of faults");
        Fault::new(at, kind, stage.deadline, &mut self.seed)
    }
}

/// Every kind on each transport, in one upstream of that transport.
fn every_kind(stage: &Stage) -> Vec<(usize, Kind)> {
    let of = |at: usize| Kind::of(stage.places[at].upstream.way()).iter().map(move |kind| (at, *kind));
    of(0).chain(of(1)).chain((UPSTREAMS..ALL).flat_map(of)).collect()
}

/// What came of a round, beside the calls of the load.
#[derive(Default)]
pub struct Outcome {
    /// How each fault was seen.
    pub sights: Vec<Sight>,
    /// Those who were well.
    pub kept: Vec<Kept>,
    /// Calls that the round itself made.
    pub made: Vec<Made>,
    /// What came of the attack of a hostile client, in words, where that is more than a refusal.
    pub complaints: Vec<String>,
    /// What the hostile principal held meanwhile, and how the others fared.
    pub siege: Option<Siege>,
    /// What the gateway showed while the faults were there.
    pub pages: Vec<(String, String)>,
}

/// Plays one round under a load.
pub async fn round(stage: &Stage, load: &Load, faults: &[Fault], until: Hold, seed: &mut Seed) -> Outcome {
    let sick: Vec<usize> = faults.iter().map(|fault| fault.at).collect();
    let before = stage.identities(&sick);
    let mut watches = Vec::new();
    for fault in faults {
        watches.push(Watch::begin(stage, fault).await);
        // What comes at length while nobody reads it may be late.
        let is_frozen = faults.iter().any(|other| other.kind == Kind::Freeze && other.at != fault.at);
        stage.places[fault.at].falls_ill(fault.kind.may_spoil() || is_frozen);
        fault.inject(&stage.places[fault.at]).await;
    }
    let mut outcome = Outcome::default();
    let number = seed.below(1_000_000);
    let own = seed.clone();
    let part = |what: &str| own.part(&format!("{what} {number}"));
    let (mut attack, mut longer, mut siege) = (part("attack"), part("longer"), part("siege"));
    let freeze = faults.iter().any(|fault| fault.kind == Kind::Freeze);
    let unread = faults.iter().find(|fault| fault.kind == Kind::StopsReading).map(|fault| fault.at);
    let held = CancellationToken::new();
    let holds = async {
        if freeze {
            stage.freezes(stage.deadline.unwrap_or_default() + BEYOND).await;
        }
        let siege = siege::lay(stage, &sick, &mut siege).await;
        hold(stage, load, &sick, until).await;
        let told = match siege {
            Some(siege) => {
                lasts(stage, load, siege.since()).await;
                Some(siege.lift().await)
            }
            None => None,
        };
        held.cancel();
        told
    };
    // Each fault is looked for from its beginning: the gateway may end one, as it ends a process that does not read, before the
    // slowest has been held for long enough.
    let (complaints, made, told, sights) = tokio::join!(
        hostile::attack(stage, &mut attack),
        long_calls(stage, unread, &mut longer),
        holds,
        all(watches.iter().map(|watch| watch.sees(stage, &held))),
    );
    (outcome.complaints, outcome.siege, outcome.sights) = (complaints, told, sights);
    outcome.made.extend(made);
    outcome.pages = stage.shows(&stage.places[sick[0]].upstream.name).await;
    let over = faults.iter().map(|fault| {
        let mut seed = part(&format!("over {}", fault.at));
        async move { got_over(stage, fault, 0, &mut seed).await }
    });
    let over = all(over).await;
    for (sight, (made, clears)) in outcome.sights.iter_mut().zip(over) {
        outcome.made.extend(made);
        sight.clears = stage.has_pages().then_some(clears);
    }
    outcome.kept = stage.kept(before);
    outcome
}

/// Calls of one that does not read, each longer than its pipe: the first is sent in part, and nothing of the others.
async fn long_calls(stage: &Stage, at: Option<usize>, seed: &mut Seed) -> Vec<Made> {
    let Some(at) = at else { return Vec::new() };
    let seeds: [Seed; LONG_CALLS] = std::array::from_fn(|number| seed.part(&number.to_string()));
    let [mut a, mut b, mut c] = seeds;
    let (a, b, c) = tokio::join!(
        call_with(stage, 0, at, LONG, &mut a),
        call_with(stage, 0, at, LONG, &mut b),
        call_with(stage, 0, at, LONG, &mut c),
    );
    vec![a, b, c]
}

/// Waits until enough calls have ended, of the sick and of the others.
async fn hold(stage: &Stage, load: &Load, sick: &[usize], until: Hold) {
    let goal = |at: usize| if sick.contains(&at) { until.sick } else { until.others };
    let goals: Vec<u64> = (0..ALL).map(|at| load.ended(at) + goal(at)).collect();
    let met = async {
        while (0..ALL).any(|at| load.ended(at) < goals[at]) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            stage.log();
        }
    };
    let what = format!("calls of every upstream end while {sick:?} are sick");
    within_limit(PATIENCE, &what, met).await;
}

/// Waits until the innocent principals have ended as many calls in a siege as it is judged by. Where they starve that never comes:
/// after a while the judge is to say so.
async fn lasts(stage: &Stage, load: &Load, since: u64) {
    let begun = Instant::now();
    while !load.has_enough(since) && begun.elapsed() < SIEGE_MAX {
        tokio::time::sleep(Duration::from_millis(10)).await;
        stage.log();
    }
}

/// Takes a fault out, and waits until its upstream is well: the calls that this caller made until then, and whether the
/// upstream is shown as well.
pub async fn got_over(stage: &Stage, fault: &Fault, caller: usize, seed: &mut Seed) -> (Vec<Made>, bool) {
    let place = &stage.places[fault.at];
    fault.heal(place).await;
    let made = recovers(stage, fault, caller, seed).await;
    let clears = stage.is_well(&place.upstream.name).await;
    place.falls_ill(false);
    (made, clears)
}

/// Calls the upstream until one call is answered; all of them are told.
async fn recovers(stage: &Stage, fault: &Fault, caller: usize, seed: &mut Seed) -> Vec<Made> {
    let begun = Instant::now();
    let mut all = Vec::new();
    loop {
        let made = call(stage, caller, fault.at, seed).await;
        let is_answered = matches!(made.ends.as_slice(), [End::Result { .. }]);
        all.push(made);
        if is_answered {
            return all;
        }
        assert!(begun.elapsed() < PATIENCE, "{fault:?} is over, and calls still fail: {:?}", all.last());
        tokio::time::sleep(Duration::from_millis(50)).await;
        stage.log();
    }
}

/// What was seen before a fault, to be compared with what is seen under it.
struct Watch {
    fault: Fault,
    upstream: String,
    trouble: f64,
    restarts: u64,
    lines: usize,
}

impl Watch {
    async fn begin(stage: &Stage, fault: &Fault) -> Watch {
        let upstream = stage.places[fault.at].upstream.name.clone();
        let trouble = look::trouble(&stage.page("/metrics").await, &upstream);
        let restarts = stage.row(&upstream).await.restarts;
        Watch { fault: *fault, upstream, trouble, restarts, lines: stage.log().len() }
    }

    /// Whether the page says what ails the upstream: one that is sick and stands there as `ready` is shown as well.
    fn is_shown(&self, row: &look::Row) -> bool {
        match self.fault.kind.shown() {
            Shown::Nowhere => true,
            Shown::Counted => row.restarts > self.restarts,
            Shown::Down => matches!(row.state.as_str(), "backing_off" | "failed"),
            Shown::Ailing => matches!(row.state.as_str(), "degraded" | "starting" | "backing_off" | "failed"),
        }
    }

    /// Where the fault is seen, each place looked at until it is, and no longer than for a while after all faults were `held`.
    async fn sees(&self, stage: &Stage, held: &CancellationToken) -> Sight {
        let kind = self.fault.kind;
        let wants = |wanted: bool| (wanted && stage.has_pages()).then_some(false);
        let mut sight = Sight {
            fault: format!("{kind:?} in {}", self.upstream),
            page: wants(kind.shown() != Shown::Nowhere),
            metric: wants(kind.is_counted()),
            line: (kind.shown() != Shown::Nowhere).then_some(false),
            clears: None,
        };
        let lasts = matches!(kind.shown(), Shown::Down | Shown::Ailing);
        let mut is_seen_down = false;
        let mut since_held = None;
        while [sight.page, sight.metric, sight.line].contains(&Some(false)) {
            if held.is_cancelled() && since_held.get_or_insert_with(Instant::now).elapsed() > PATIENCE / 2 {
                break;
            }
            let row = stage.row(&self.upstream).await;
            let metrics = stage.page("/metrics").await;
            let is_up = look::is_up(&metrics, &self.upstream);
            is_seen_down |= !is_up;
            let page = self.is_shown(&row);
            // A sick one that stays `up` in the metrics is shown as well.
            let metric = look::trouble(&metrics, &self.upstream) > self.trouble && (is_seen_down || !lasts);
            let named = |line: &str| log::field(line, "upstream") == Some(&self.upstream);
            let log = stage.log();
            let at = log.last().map_or(Duration::ZERO, |(at, _)| *at);
            // Of an upstream that is sick again and again the log has a part only, and says so.
            let line = log[self.lines..].iter().any(|(_, line)| named(line)) || is_used_up(&log, &self.upstream, at);
            for (seen, now) in [(&mut sight.page, page), (&mut sight.metric, metric), (&mut sight.line, line)] {
                *seen = seen.map(|seen| seen || now);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sight
    }
}

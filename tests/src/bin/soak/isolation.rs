//! What each kind of fault in one upstream costs the others: their slowest call in a hundred, before it, under it, after it.
//!
//! Calls of each upstream begin by the clock, so that all three have the same rate. What passes at once (a kill, a flood) is put
//! in again and again while it is measured. The allowance is reckoned from the mean of before and after. A kind that is beyond it
//! is measured twice more, and the middle one of the three counts.

use crate::{DEADLINE, TERMS};
use std::time::{Duration, Instant};
use trunkline_tests::judge::history::{End, History, Made};
use trunkline_tests::judge::invariants::judge;
use trunkline_tests::machine::stage::{ALL, Face, Log, ON_WIRE};
use trunkline_tests::machine::steady::Timed;
use trunkline_tests::machine::{Fault, Kind, Stage, Steady, round};
use trunkline_tests::process;
use trunkline_tests::seed::Seed;
use trunkline_tests::upstream::Way;
use trunkline_tests::within::within_limit;

/// A call of each upstream so often.
const EVERY: Duration = Duration::from_millis(10);
/// How many calls of each upstream make a measurement: over two thousand of the others.
const CALLS: u64 = 240;
/// How many calls of the sick one end before its fault is taken out.
const SICK_CALLS: u64 = 6;
/// What passes at once is put in again so often.
const AGAIN: Duration = Duration::from_millis(500);
/// The callers; the one over the slow wire would hide what is looked for.
const CALLERS: [usize; 3] = [0, 1, 3];
/// How upstreams are reached in which faults are put.
const WAYS: [Way; 6] = [Way::Stdio, Way::Http, Way::Secured, Way::Sse, Way::WebSocket, Way::Unix];
/// How long a measurement may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The least that counts as slower.
const NOISE: Duration = Duration::from_millis(2);
/// How often a kind is measured that is beyond the allowance.
const TIMES: usize = 3;

/// A time without a fault, or under one.
#[derive(Clone, Copy, Default)]
struct Span {
    /// How many calls.
    calls: usize,
    p50: Duration,
    p99: Duration,
    most: Duration,
    /// What the gateway took of a processor.
    gateway: f64,
    /// How busy the whole machine was.
    machine: f64,
}

/// One fault, measured.
#[derive(Clone, Copy)]
struct Measured {
    before: Span,
    under: Span,
    after: Span,
    /// Whether the judge has nothing to say.
    is_clean: bool,
    errors: usize,
}

impl Measured {
    fn base(&self) -> Duration {
        (self.before.p99 + self.after.p99) / 2
    }

    fn allowed(&self) -> Duration {
        self.base().mul_f64(1.2).max(self.base() + NOISE)
    }

    /// By how much it is beyond what is allowed, in seconds; below zero where it is not.
    fn excess(&self) -> f64 {
        self.under.p99.as_secs_f64() - self.allowed().as_secs_f64()
    }
}

/// The stage, and the load on it.
struct Bench {
    stage: std::sync::Arc<Stage>,
    load: Steady,
    calls: Seed,
    /// The latest time without a fault.
    well: Span,
}

/// Whether a kind's name begins so.
pub(crate) fn is_known(begin: &str) -> bool {
    WAYS.into_iter().flat_map(Kind::of).any(|kind| begins(*kind, begin))
}

fn begins(kind: Kind, begin: &str) -> bool {
    format!("{kind:?}").starts_with(begin)
}

/// Measures every kind whose name begins so; whether each stays within the larger of 1.2 times and 2 ms more.
pub(crate) async fn measure(number: u64, seed: &Seed, only: &str) -> bool {
    let stage = Stage::set(Face::Http, Some(DEADLINE), Log::Usual, seed).await;
    let mut dice = seed.part("faults");
    CALLERS.iter().for_each(|caller| stage.callers[*caller].client.http().rest());
    let load = Steady::start(&stage, &CALLERS, EVERY, &seed.part("load"));
    let mut bench = Bench { stage, load, calls: seed.part("round"), well: Span::default() };
    println!("seed {number}: of those that are well, a call of each every {EVERY:?}");
    println!("p99 allowed: the larger of 1.2 times and 2 ms more than the mean of before and after");
    println!(
        "{:24} {:>8} {:>8} {:>8} {:>8}  {:>8} {:>8} {:>8}  {:>6} {:>6} {:>9} {:>9}",
        "fault",
        "before",
        "under",
        "after",
        "allowed",
        "p50",
        "p50 u.",
        "max u.",
        "calls",
        "errors",
        "gateway %",
        "machine %"
    );
    bench.load.each(CALLS, None).await;
    bench.well().await;
    let mut beyond = Vec::new();
    for way in WAYS {
        for kind in Kind::of(way) {
            let of_way = |at: &usize| bench.stage.places[*at].upstream.way() == way;
            let places: Vec<usize> = (0..ALL).filter(of_way).collect();
            let at = places[dice.below(places.len())];
            let fault = Fault::new(at, *kind, bench.stage.deadline, &mut dice);
            // By the same seed it befalls the same upstream, alone or not.
            if begins(*kind, only) && !bench.holds(&fault, way).await {
                beyond.push(name(&fault, way));
            }
        }
    }
    drop(bench.load.stop().await);
    match beyond.is_empty() {
        true => println!("all of it holds"),
        false => println!("BEYOND: {}", beyond.join("; ")),
    }
    beyond.is_empty()
}

fn name(fault: &Fault, way: Way) -> String {
    format!("{:?}, {way:?}", fault.kind)
}

impl Bench {
    /// Measures a fault, again where it is beyond; the middle one counts.
    async fn holds(&mut self, fault: &Fault, way: Way) -> bool {
        let mut all: Vec<Measured> = Vec::new();
        while all.len() < TIMES {
            let measured = self.measure(fault).await;
            let is_within = measured.is_clean && measured.excess() <= 0.0;
            tell(&name(fault, way), &measured, if is_within { "" } else { "beyond" });
            all.push(measured);
            if is_within && all.len() == 1 {
                return true;
            }
        }
        all.sort_by(|one, other| one.excess().total_cmp(&other.excess()));
        let holds = all[TIMES / 2].excess() <= 0.0 && all.iter().all(|measured| measured.is_clean);
        tell(&format!("= {}", name(fault, way)), &all[TIMES / 2], if holds { "the middle of three" } else { "BEYOND" });
        holds
    }

    /// Puts a fault in, measures under it, takes it out, measures after it.
    async fn measure(&mut self, fault: &Fault) -> Measured {
        let before = self.well;
        let stage = self.stage.clone();
        let (place, known) = (&stage.places[fault.at], stage.identities(&[fault.at]));
        let mut history = History { made: untimed(self.load.take()), ..History::default() };
        place.falls_ill(fault.kind.may_spoil());
        let begin = Busy::now(stage.pid());
        fault.inject(place).await;
        let again = async {
            loop {
                tokio::time::sleep(AGAIN).await;
                if fault.kind.passes() {
                    fault.inject(place).await;
                }
            }
        };
        let enough = self.load.each(CALLS, Some((fault.at, SICK_CALLS)));
        let what = format!("calls of every upstream end under {fault:?}");
        tokio::select! {
            () = within_limit(PATIENCE, &what, enough) => {}
            () = again => {}
        }
        let end = Busy::now(stage.pid());
        let (made, clears) = round::got_over(&stage, fault, ON_WIRE, &mut self.calls).await;
        history.made.extend(made);
        let after = self.well_from(&mut history, (begin, end), fault.at).await;
        history.kept = stage.kept(known);
        let breaches = judge(&history, &TERMS);
        breaches.iter().take(5).for_each(|breach| println!("  {:?}: {}", breach.of, breach.says));
        if !clears {
            println!("  it is over, and still shown");
        }
        let errors = history.made.iter().filter(|made| !made.may_fail && !is_result(made)).count();
        stage.log();
        Measured { before, under: after.0, after: after.1, is_clean: breaches.is_empty() && clears, errors }
    }

    /// Measures a time without a fault. Of what began in a span before it that is told too.
    async fn well_from(&mut self, history: &mut History, span: (Busy, Busy), sick: usize) -> (Span, Span) {
        let begin = Busy::now(self.stage.pid());
        self.load.each(CALLS, None).await;
        let end = Busy::now(self.stage.pid());
        let timed = self.load.take();
        let under = self.span(&timed, Some(sick), &span.0, &span.1);
        self.well = self.span(&timed, None, &begin, &end);
        history.made.extend(untimed(timed));
        (under, self.well)
    }

    async fn well(&mut self) {
        let begin = Busy::now(self.stage.pid());
        self.load.each(CALLS, None).await;
        let end = Busy::now(self.stage.pid());
        self.well = self.span(&self.load.take(), None, &begin, &end);
    }

    /// What the calls tell that began between these two.
    fn span(&self, timed: &[Timed], aside: Option<usize>, begin: &Busy, end: &Busy) -> Span {
        let aside = aside.map(|at| self.stage.places[at].upstream.name.as_str());
        let counts =
            |timed: &&Timed| (begin.at..end.at).contains(&timed.begun) && aside != Some(timed.made.upstream.as_str());
        let mut times: Vec<Duration> = timed.iter().filter(counts).map(|timed| timed.made.took).collect();
        times.sort_unstable();
        let part = |of: usize| times.get(times.len() * of / 100).copied().unwrap_or_default();
        let passed = (end.at - begin.at).as_secs_f64();
        let (p50, p99) = (part(50), part(99));
        Span {
            calls: times.len(),
            p50,
            p99,
            most: times.last().copied().unwrap_or_default(),
            gateway: 100.0 * (end.gateway - begin.gateway) / passed,
            machine: 100.0 * (end.machine.0 - begin.machine.0) / (end.machine.1 - begin.machine.1),
        }
    }
}

/// The books of processor time at a moment.
struct Busy {
    at: Instant,
    /// Of the gateway, in seconds.
    gateway: f64,
    /// Of the machine: at work, and altogether.
    machine: (f64, f64),
}

impl Busy {
    fn now(pid: u32) -> Busy {
        Busy { at: Instant::now(), gateway: process::seconds_at_work(pid), machine: process::machine_at_work() }
    }
}

fn untimed(timed: Vec<Timed>) -> Vec<Made> {
    timed.into_iter().map(|timed| timed.made).collect()
}

fn tell(name: &str, measured: &Measured, mark: &str) {
    let Measured { before, under, after, errors, .. } = measured;
    let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    println!(
        "{name:24} {:>8} {:>8} {:>8} {:>8}  {:>8} {:>8} {:>8}  {:>6} {errors:>6} {:>4.0}/{:<4.0} {:>4.0}/{:<4.0} {mark}",
        ms(before.p99),
        ms(under.p99),
        ms(after.p99),
        ms(measured.allowed()),
        ms(before.p50),
        ms(under.p50),
        ms(under.most),
        under.calls,
        before.gateway,
        under.gateway,
        before.machine,
        under.machine,
    );
}

fn is_result(made: &Made) -> bool {
    matches!(made.ends.as_slice(), [End::Result { .. }])
}

//! The soak: random faults in upstreams of every transport under load, for as long as is wanted, and then what is left is compared with what
//! was there after every kind of fault had come once.
//!
//! `soak --minutes 60` puts a fault in every ten seconds; `soak --seconds 60` one every two; `--every SECONDS` says otherwise.
//! `soak --isolation` measures what each kind of fault in one upstream costs the others, `soak --isolation --only Flood` that
//! of the kinds whose name begins so. `--trace` has the gateway log everything, to look for secrets there. `--seed N` plays a run again.

#![allow(clippy::print_stdout, reason = "the report is what this program is for")]
#![allow(clippy::disallowed_methods, reason = "it measures by the clock, and has no level of tasks")]

mod isolation;
mod report;

use report::Report;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use trunkline_tests::judge::history::{Census, History};
use trunkline_tests::judge::invariants::Terms;
use trunkline_tests::machine::stage::{Face, Log};
use trunkline_tests::machine::{Hold, Load, Plan, Stage, round};
use trunkline_tests::process;
use trunkline_tests::seed::{self, Seed};

const WORKERS: usize = 8;
const PACE: Duration = Duration::from_millis(20);
/// What a hung call costs.
const DEADLINE: Duration = Duration::from_secs(6);
const HOLD: Hold = Hold { sick: 6, others: 12 };
/// The same before the comparison begins, where five are sick at once.
const FIRST_HOLD: Hold = Hold { sick: 6, others: 6 };
/// How many calls of each upstream come before anything else: connections and sessions are opened.
const FIRST_CALLS: u64 = 20;
/// How often every kind comes before the comparison begins.
const PASSES: usize = 2;
/// How many kinds come at once before the comparison begins.
const AT_ONCE: usize = 5;
/// 8 MiB.
const GROWN_KIB: u64 = 8 * 1024;
/// What a run of a few minutes may add to that: an allocator's own ups and downs, which do not grow with the time.
const UNEVEN_KIB: u64 = 16 * 1024;
const SHORT: Duration = Duration::from_secs(10 * 60);
/// So often memory is looked at anew before it counts as grown.
const LOOKS: usize = 40;

/// So long the tasks of a run may take to end.
const END: Duration = Duration::from_secs(5);

const TERMS: Terms = Terms { slack: Duration::from_secs(10), spare: 0, grown_kib: Some(GROWN_KIB), lines: 20 };

/// What was asked for.
struct Wish {
    length: Duration,
    every: Duration,
    isolation: bool,
    /// What the gateway writes: at `trace` all of it, which has no bounds.
    log: Log,
    /// How the names of those kinds begin that are measured; empty for all.
    only: String,
}

impl Wish {
    fn terms(&self, uneven: u64) -> Terms {
        let lines = if self.log == Log::Usual { TERMS.lines } else { usize::MAX };
        Terms { grown_kib: Some(GROWN_KIB + uneven), lines, ..TERMS }
    }
}

const USAGE: &str = "usage: soak (--minutes N | --seconds N) [--every SECONDS] [--trace] | --isolation [--only HOW-A-KIND-BEGINS], [--seed N]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let wish = match wish(&words) {
        Ok(wish) => wish,
        Err(fault) => {
            eprintln!("{fault}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be made");
    let holds = runtime.block_on(async {
        let (number, seed) = wish.1.map_or_else(|| Seed::of_run("soak"), |number| (number, Seed::of(number)));
        match wish.0.isolation {
            true => isolation::measure(number, &seed, &wish.0.only).await,
            false => soak(&wish.0, number, &seed).await,
        }
    });
    // What the faults have left waiting in the scripted upstreams waits for good; what is dropped meanwhile ends its gateway.
    runtime.shutdown_timeout(END);
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn wish(words: &[String]) -> Result<(Wish, Option<u64>), String> {
    let (mut length, mut every, mut number) = (None, None, None);
    let (mut isolation, mut only, mut log) = (false, String::new(), Log::Usual);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--isolation" {
            isolation = true;
            continue;
        }
        if word == "--trace" {
            log = Log::Trace;
            continue;
        }
        if word == "--only" {
            only = words
                .next()
                .filter(|begin| isolation::is_known(begin))
                .ok_or("--only wants how a kind of fault begins")?
                .clone();
            continue;
        }
        let value: f64 = words.next().and_then(|text| text.parse().ok()).ok_or(format!("{word} wants a number"))?;
        match word.as_str() {
            "--minutes" => length = Some((Duration::from_secs_f64(value * 60.0), 10.0)),
            "--seconds" => length = Some((Duration::from_secs_f64(value), 2.0)),
            "--every" => every = Some(value),
            "--seed" => number = Some(value as u64),
            _ => return Err(format!("{word} means nothing here")),
        }
    }
    let (length, usual) = match length {
        Some(length) => length,
        None if isolation => (Duration::ZERO, 0.0),
        None => return Err("how long?".into()),
    };
    if !only.is_empty() && !isolation {
        return Err("--only goes with --isolation".into());
    }
    let every = Duration::from_secs_f64(every.unwrap_or(usual));
    Ok((Wish { length, every, isolation, log, only }, number))
}

async fn soak(wish: &Wish, number: u64, seed: &Seed) -> bool {
    let stage = Stage::set(Face::Every, Some(DEADLINE), wish.log, seed).await;
    let (mut plan, mut calls) = (Plan::new(seed), seed.part("round"));
    let uneven = if wish.length < SHORT { UNEVEN_KIB } else { 0 };
    let mut report = Report::new(number, wish.terms(uneven), stage.canaries());
    println!("seed {number}: {:?}, a fault every {:?}", wish.length, wish.every);

    let load = Load::start(&stage, WORKERS, PACE, &seed.part("warm"));
    let begun = Instant::now();
    load.each(FIRST_CALLS).await;
    plan.sorts(true);
    for _ in 0..PASSES {
        let mut faults = plan.some(&stage, AT_ONCE);
        loop {
            let outcome = round(&stage, &load, &faults, FIRST_HOLD, &mut calls).await;
            report.add(&faults, outcome, load.take());
            match plan.left() {
                0 => break,
                left => faults = plan.some(&stage, AT_ONCE.min(left)),
            }
        }
    }
    plan.sorts(false);
    report.add_calls(load.stop().await);
    let before = unobserved(&stage, stage.at_rest(None, 0).await, 0).await;
    println!("after each kind of fault, {:?}: {before:?}", begun.elapsed());

    let load = Load::start(&stage, WORKERS, PACE, &seed.part("load"));
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(wish.every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut told = begun;
    while begun.elapsed() < wish.length {
        ticks.tick().await;
        let faults = plan.some(&stage, 1);
        let outcome = round(&stage, &load, &faults, HOLD, &mut calls).await;
        report.add(&faults, outcome, load.take());
        stage.log();
        if told.elapsed() > Duration::from_secs(60) {
            told = Instant::now();
            println!("{:?}: {} {:?}", begun.elapsed(), report.line(), stage.census().await);
        }
    }
    report.add_calls(load.stop().await);
    let after = rested(&stage, &before).await;
    let mut history = History { stands: Some((before, after)), ..History::default() };
    stage.tell(&mut history);
    report.end(history);
    println!("{}", report.text(before, after));
    if !report.holds() {
        println!("to play this run again: soak … --seed {number} (or {}={number})", seed::VARIABLE);
    }
    report.holds()
}

/// What is left when all is at rest, which is brought about as it was after the warm-up.
async fn rested(stage: &Stage, before: &Census) -> Census {
    let at_first = stage.at_rest(None, 0).await;
    let mut least = stage.at_rest(Some(before), 0).await;
    least.resident_kib = least.resident_kib.min(at_first.resident_kib);
    unobserved(stage, least, before.resident_kib + GROWN_KIB).await
}

/// The same, with the threads and the least memory while nobody asks the gateway for anything, until the memory is no more than
/// `enough`. Each look at its pages is work beside its workers, which keeps threads and their heaps from ending.
async fn unobserved(stage: &Stage, seen: Census, enough: u64) -> Census {
    let mut least = seen;
    for _ in 0..LOOKS {
        tokio::time::sleep(Duration::from_millis(250)).await;
        least.threads = process::threads(stage.pid());
        least.resident_kib = process::resident_kib(stage.pid()).unwrap_or_default().min(least.resident_kib);
        if least.resident_kib <= enough {
            break;
        }
    }
    least
}

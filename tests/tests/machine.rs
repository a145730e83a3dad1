//! The fault machine: upstreams of every transport, four clients with eight calls each in flight, a hostile one, faults by a seed, the
//! invariants of the judge.
//!
//! A run prints its seed; `TRUNKLINE_SEED` plays it again.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use trunkline_tests::cable::Carries;
use trunkline_tests::extent::sized;
use trunkline_tests::judge::history::{End, History, Made};
use trunkline_tests::judge::invariants::{Terms, judge};
use trunkline_tests::machine::given_up::echo_until;
use trunkline_tests::machine::load::{LOST_AFTER, call, each_of_each};
use trunkline_tests::machine::stage::{ALL, Face, Log, ON_WIRE};
use trunkline_tests::machine::{Fault, Hold, Kind, Load, Plan, Stage, round};
use trunkline_tests::seed::Seed;
use trunkline_tests::upstream::Way;
use trunkline_tests::within::{within, within_limit};

/// Enough for what is not at fault, however crowded the machine is; it is also what a hung call costs.
const DEADLINE: Duration = Duration::from_secs(10);
const PACE: Duration = Duration::from_millis(10);
const HOLD: Hold = Hold { sick: 6, others: 6 };
/// Who calls the one that is sick: a stateless client, and one with a session.
const OF_SICK: [usize; 2] = [0, 1];
const TERMS: Terms = Terms { slack: Duration::from_secs(30), spare: 2, grown_kib: None, lines: 20 };

/// So many rounds of faults under load, and the judge's word on all of it.
async fn rounds((face, log): (Face, Log), rounds: usize, workers: usize, what: &str) {
    let (_, seed) = Seed::of_run(what);
    let stage = Stage::set(face, Some(DEADLINE), log, &seed).await;
    let (mut plan, mut calls) = (Plan::new(&seed), seed.part("round"));
    let mut history = History::default();
    history.made.extend(warmed(&stage, workers, &seed).await);
    let before = stage.at_rest(None, 0).await;
    let load = Load::start(&stage, workers, PACE, &seed.part("load"));
    for number in 0..rounds {
        let faults = plan.next(&stage);
        eprintln!("{what}: round {number}: {faults:?}");
        let outcome = round(&stage, &load, &faults, HOLD, &mut calls).await;
        history.sights.extend(outcome.sights);
        history.kept.extend(outcome.kept);
        history.made.extend(outcome.made);
        history.complaints.extend(outcome.complaints);
        history.sieges.extend(outcome.siege);
        history.pages.extend(outcome.pages);
    }
    history.made.extend(load.stop().await);
    history.stands = Some((before, stage.at_rest(Some(&before), TERMS.spare).await));
    stage.tell(&mut history);
    let failed = history.made.iter().filter(|made| made.may_fail).count();
    eprintln!("{what}: {} calls, {failed} of sick upstreams, {:?}", history.made.len(), history.stands);
    assert_holds(&history, &TERMS);
}

/// Has everything opened that is opened once and kept: by load, and by a call of each caller of each upstream, since a caller may
/// have a session of its own there.
async fn warmed(stage: &Arc<Stage>, workers: usize, seed: &Seed) -> Vec<Made> {
    let warm = Load::start(stage, workers, PACE, &seed.part("warm"));
    warm.each(20).await;
    let mut made = warm.stop().await;
    made.extend(each_of_each(stage, &mut seed.part("each")).await);
    made
}

/// The judge's word on all of it.
fn assert_holds(history: &History, terms: &Terms) {
    let breaches = judge(history, terms);
    if !breaches.is_empty() {
        history.stderr.iter().for_each(|(at, line)| eprintln!("{at:?} {line}"));
    }
    let text: Vec<String> =
        breaches.iter().take(20).map(|breach| format!("{:?}: {}", breach.of, breach.says)).collect();
    assert!(breaches.is_empty(), "{} breaches:\n{}", breaches.len(), text.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_by_a_seed_break_no_invariant() {
    rounds((Face::Http, Log::Usual), sized(6, 16), 8, "four clients by HTTP").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_by_a_seed_break_no_invariant_for_a_host_on_stdio() {
    rounds((Face::Stdio, Log::Usual), sized(4, 8), 32, "one host by stdio").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn faults_by_a_seed_break_no_invariant_for_clients_on_one_connection_each() {
    rounds((Face::Connections, Log::Usual), 8, 8, "four clients on a connection each").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn faults_by_a_seed_break_no_invariant_for_clients_within_tls() {
    rounds((Face::Secured, Log::Usual), 8, 8, "four clients within TLS").await;
}

/// What ails an upstream as a whole is shown, and that it is over: by chance among the faults of a seed, and here always.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn what_ails_an_upstream_as_a_whole_is_shown_and_its_end_too() {
    let (_, seed) = Seed::of_run("what is shown");
    let stage = Stage::set(Face::Http, Some(DEADLINE), Log::Usual, &seed).await;
    let (mut history, mut calls) = (History::default(), seed.part("round"));
    history.made.extend(warmed(&stage, 4, &seed).await);
    let before = stage.at_rest(None, 0).await;
    let load = Load::start(&stage, 4, PACE, &seed.part("load"));
    let kinds = [
        (0, Kind::Stop),
        (1, Kind::DeadWire),
        (3, Kind::Status(500)),
        (2, Kind::CrashLoop),
        (5, Kind::Status(503)),
        (4, Kind::Exit),
    ];
    let faults = kinds.map(|(at, kind)| Fault::new(at, kind, stage.deadline, &mut calls));
    // Two at a time, on either transport.
    for two in faults.chunks(2) {
        let outcome = round(&stage, &load, two, HOLD, &mut calls).await;
        history.sights.extend(outcome.sights);
        history.made.extend(outcome.made);
    }
    history.made.extend(load.stop().await);
    history.stands = Some((before, stage.at_rest(Some(&before), TERMS.spare).await));
    stage.tell(&mut history);
    assert_holds(&history, &TERMS);
}

/// Every upstream quotes what it was given, in every place that it has for words, while the log says all that it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_upstreams_quote_of_a_configuration_is_told_to_nobody_at_trace() {
    let (_, seed) = Seed::of_run("what upstreams quote");
    let stage = Stage::set(Face::Http, Some(DEADLINE), Log::Trace, &seed).await;
    let (mut history, mut calls) = (History::default(), seed.part("round"));
    let load = Load::start(&stage, 2, PACE, &seed.part("load"));
    load.each(2).await;
    let quotes = |way| Kind::of(way).iter().copied().filter(|kind| matches!(kind, Kind::Quotes(_)));
    let (on_stdio, over_http) = (quotes(Way::Stdio).collect::<Vec<_>>(), quotes(Way::Http).collect::<Vec<_>>());
    assert!(on_stdio.len() >= 4 && over_http.len() >= 6, "{on_stdio:?} {over_http:?}");
    for (first, few) in [(0, &on_stdio[..]), (1, &over_http[..3]), (1, &over_http[3..])] {
        let at = (first..).step_by(2);
        let faults: Vec<Fault> =
            at.zip(few).map(|(at, kind)| Fault::new(at, *kind, stage.deadline, &mut calls)).collect();
        let outcome = round(&stage, &load, &faults, HOLD, &mut calls).await;
        history.sights.extend(outcome.sights);
        history.made.extend(outcome.made);
        history.complaints.extend(outcome.complaints);
        history.pages.extend(outcome.pages);
    }
    history.made.extend(load.stop().await);
    // The last of what was given up is on its way to its upstream.
    stage.withdrawn().await;
    stage.tell(&mut history);
    let masked = history.stderr.iter().filter(|(_, line)| line.contains("[secret]")).count();
    assert!(
        masked > 0 && !history.canaries.is_empty(),
        "words of upstreams are in the log, without the secrets in them"
    );
    // At `trace` the log has no bounds.
    assert_holds(&history, &Terms { lines: usize::MAX, ..TERMS });
}

/// With each kind of fault in turn on one upstream, held until every client has called all the others, listed all tools, and
/// opened a session: nothing of that waits for what only the end of the fault could bring.
async fn nobody_waits(way: Way) {
    let (_, mut seed) = Seed::of_run("nobody waits behind what is sick");
    let stage = Stage::set(Face::Http, None, Log::Usual, &seed).await;
    // Once without any fault: sessions of calls are opened.
    let mut history = History { made: others(&stage, usize::MAX, &mut seed).await, ..History::default() };
    let before = stage.at_rest(None, 0).await;
    let of_way = |at: &usize| stage.places[*at].upstream.way() == way;
    let places: Vec<usize> = (0..ALL).filter(of_way).collect();
    for kind in Kind::of(way) {
        let at = places[seed.below(places.len())];
        let fault = Fault::new(at, *kind, stage.deadline, &mut seed);
        let (place, known) = (&stage.places[at], stage.identities(&[at]));
        place.falls_ill(kind.may_spoil());
        fault.inject(place).await;
        let give_up = CancellationToken::new();
        let held: Vec<_> = OF_SICK.map(|caller| held(&stage, (caller, at), *kind, &give_up, &seed)).into();
        let served = others(&stage, at, &mut seed);
        history.made.extend(within(&format!("the others are served under {fault:?}"), served).await);
        if kind.holds_calls() {
            let is_held = held.iter().all(|call| !call.is_finished());
            assert!(is_held, "{fault:?} held its calls while the others were served");
            // They would never be answered, or not soon; whoever gives up does not wait for what is sick.
            give_up.cancel();
        }
        for call in held {
            let made =
                within_limit(2 * LOST_AFTER, "a call of the sick one ends", call).await.expect("it is not aborted");
            history.made.push(made);
        }
        fault.heal(place).await;
        history.made.extend(within(&format!("{fault:?} is got over"), well(&stage, at, &mut seed)).await);
        place.falls_ill(false);
        history.kept.extend(stage.kept(known));
    }
    history.stands = Some((before, stage.at_rest(Some(&before), TERMS.spare).await));
    stage.tell(&mut history);
    assert_holds(&history, &TERMS);
}

/// A call of one that is sick. Where it is held it is given up in the end: a stateless client hangs up, another one cancels.
fn held(
    stage: &Arc<Stage>,
    (caller, at): (usize, usize),
    kind: Kind,
    give_up: &CancellationToken,
    seed: &Seed,
) -> JoinHandle<Made> {
    let (stage, give_up) = (stage.clone(), give_up.clone());
    let mut seed = seed.part(&format!("sick {caller}"));
    tokio::spawn(async move {
        match kind.holds_calls() {
            true => echo_until(&stage, caller, at, give_up.cancelled()).await,
            false => call(&stage, caller, at, &mut seed).await,
        }
    })
}

/// Calls an upstream until it answers.
async fn well(stage: &Stage, at: usize, seed: &mut Seed) -> Vec<Made> {
    let mut all = Vec::new();
    while !matches!(all.last().map(|made: &Made| made.ends.as_slice()), Some([End::Result { .. }])) {
        all.push(call(stage, 1, at, seed).await);
    }
    all
}

/// Every client calls every upstream but this one, and lists; a new client comes.
async fn others(stage: &Arc<Stage>, sick: usize, seed: &mut Seed) -> Vec<Made> {
    let all: Vec<usize> = (0..stage.callers.len()).collect();
    let made = served(stage, &all, sick, seed).await;
    stage.newcomer().await;
    made
}

/// These clients call every upstream but this one, and list.
async fn served(stage: &Arc<Stage>, callers: &[usize], sick: usize, seed: &mut Seed) -> Vec<Made> {
    let mut calls = tokio::task::JoinSet::new();
    for caller in callers.iter().copied() {
        for at in (0..stage.places.len()).filter(|at| *at != sick) {
            let (stage, mut seed) = (stage.clone(), seed.part(&format!("{caller} {at}")));
            calls.spawn(async move { call(&stage, caller, at, &mut seed).await });
        }
        let tools = stage.callers[caller].client.tools().await;
        let listed = tools.iter().filter(|tool| tool.ends_with("__echo")).count();
        assert!(listed + 1 >= ALL, "the others' tools are listed");
    }
    calls.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_on_a_bad_wire_harms_nobody_and_goes_on_in_its_session() {
    const BAD: [Carries; 6] = [
        Carries::Late(40),
        Carries::Nothing,
        Carries::Resets,
        Carries::Only(60),
        Carries::Spoilt,
        Carries::SpoiltQuestions,
    ];
    let (_, mut seed) = Seed::of_run("a client on a bad wire");
    let stage = Stage::set(Face::Http, None, Log::Usual, &seed).await;
    let made = served(&stage, &[0, 1, 2, 3], usize::MAX, &mut seed).await;
    let mut history = History { made, kept: Vec::new(), ..History::default() };
    // Coming to rest breaks connections, and with them what is asked in the background just then.
    let before = stage.at_rest(None, 0).await;
    let known = stage.identities(&[]);
    for how in BAD {
        stage.wire().carry(how);
        let own = {
            let (stage, at, mut seed) = (stage.clone(), seed.below(ALL), seed.part("own"));
            tokio::spawn(async move { call(&stage, ON_WIRE, at, &mut seed).await })
        };
        let others = served(&stage, &[0, 1, 3], usize::MAX, &mut seed);
        history.made.extend(within(&format!("the others are served while one wire carries {how:?}"), others).await);
        if how == Carries::Nothing {
            assert!(!own.is_finished(), "its wire carries nothing");
        }
        stage.wire().carry(Carries::Plainly);
        let own = within("its call ends", own).await.expect("it is not aborted");
        // What reaches it through a bad wire is anything but another's answer.
        let crossed = |end: &End| matches!(end, End::Result { nonce: Some(nonce), .. } if *nonce != own.nonce);
        assert!(!own.ends.iter().any(crossed), "{how:?}: {own:?}");
        stage.wire().sever();
        stage.callers[ON_WIRE].client.http().rest();
        history.made.extend(within("its session goes on", served(&stage, &[ON_WIRE], usize::MAX, &mut seed)).await);
    }
    history.kept = stage.kept(known);
    history.stands = Some((before, stage.at_rest(Some(&before), TERMS.spare).await));
    stage.tell(&mut history);
    assert_holds(&history, &TERMS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_behind_a_sick_child() {
    nobody_waits(Way::Stdio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_behind_a_sick_host() {
    nobody_waits(Way::Http).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn nobody_waits_behind_a_sick_host_of_http_2() {
    nobody_waits(Way::Secured).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn nobody_waits_behind_a_sick_stream_of_events() {
    nobody_waits(Way::Sse).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn nobody_waits_behind_a_sick_websocket() {
    nobody_waits(Way::WebSocket).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long; .ci/full runs it"]
async fn nobody_waits_behind_a_sick_socket_of_lines() {
    nobody_waits(Way::Unix).await;
}

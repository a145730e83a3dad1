//! Every scenario for servers: once directly, and once through the gateway for each way to have the fixture behind it.

use std::collections::BTreeMap;
use std::iter;

use tokio::task::JoinSet;
use trunkline_tests::conformance::{
    Behind, Check, Checks, Difference, Era, Leg, Server, Setting, Status, Suite, Transport, compare,
};
use trunkline_tests::extent::is_whole;

use super::accepted::ACCEPTED;

/// How often a scenario with a difference is looked at, the first time among others and then alone.
const LOOKS: usize = 3;
/// With more differences than this something is plainly broken, and to look again would only take long.
const MOST_SUSPICIONS: usize = 16;

/// Where a run was made: directly, or with the fixture behind the gateway.
type Place = Option<Behind>;

/// One scenario in which something was worse.
pub(crate) struct Suspicion {
    /// How the fixture stood behind the gateway; directly if it is the fixture that fails.
    pub(crate) place: Place,
    /// In which leg.
    pub(crate) leg: Leg,
    /// Which scenario.
    pub(crate) scenario: String,
    /// What was worse, each time that it was looked at.
    pub(crate) differences: Vec<Difference>,
    /// How often it was looked at.
    pub(crate) looks: usize,
}

/// All that came of it.
pub(crate) struct Verdict {
    /// How many checks each run had that passed.
    pub(crate) passed: BTreeMap<(Leg, Place), usize>,
    /// On which SDK the fixture is written.
    pub(crate) server: Server,
    /// How it stood behind the gateway.
    pub(crate) behind: Vec<Behind>,
    /// What was worse at first, and what was left of it.
    pub(crate) suspicions: Vec<Suspicion>,
    /// Accepted differences as they were seen, each with the number of its line.
    pub(crate) accepted: Vec<(usize, Behind, Leg, String)>,
}

impl Verdict {
    /// What counts: one line each.
    pub(crate) fn faults(&self) -> Vec<String> {
        let lines = |suspicion: &Suspicion| {
            let place = suspicion.place.map_or("directly".to_owned(), |behind| behind.to_string());
            let (leg, scenario) = (suspicion.leg, suspicion.scenario.clone());
            let line = move |found: &Difference| {
                let (from, to) = (found.directly, found.through);
                format!("{place}, {leg}, {scenario}: {} {}: {from} -> {to}: {}", found.id, found.name, found.message)
            };
            suspicion.differences.iter().map(line).collect::<Vec<_>>()
        };
        self.suspicions.iter().flat_map(lines).collect()
    }
}

/// Runs these legs, directly and with the fixture behind the gateway in each of these ways, and compares.
pub(crate) async fn judge(suite: &'static Suite, server: Server, behind: &[Behind], legs: &[Leg]) -> Verdict {
    let runs =
        legs.iter().flat_map(|leg| iter::once(None).chain(behind.iter().copied().map(Some)).map(|place| (*leg, place)));
    let found = run_all(suite, server, runs.filter(|(leg, place)| is_wanted(*leg, *place))).await;
    let (suspicions, accepted) = (Vec::new(), Vec::new());
    let mut verdict = Verdict { passed: BTreeMap::new(), server, behind: behind.to_vec(), suspicions, accepted };
    for ((leg, place), checks) in &found {
        verdict.passed.insert((*leg, *place), checks.values().flatten().filter(passed).count());
        let directly = &found[&(*leg, None)];
        for scenario in scenarios(directly, checks) {
            let mut differences = differences(directly.get(&scenario), checks.get(&scenario), *place);
            if place.is_none() && leg.is_of_extensions() && server != Server::TypeScript {
                // The others have none of them.
                differences.clear();
            }
            let left = accept(&mut verdict.accepted, *place, *leg, &scenario, differences);
            if !left.is_empty() {
                let suspicion = Suspicion { place: *place, leg: *leg, scenario, differences: left, looks: 1 };
                verdict.suspicions.push(suspicion);
            }
        }
    }
    if verdict.suspicions.len() <= MOST_SUSPICIONS {
        let mut looks = JoinSet::new();
        for suspicion in verdict.suspicions.drain(..) {
            looks.spawn(look_again(suite, server, suspicion));
        }
        verdict.suspicions = looks.join_all().await;
    }
    verdict
}

fn passed(check: &&Check) -> bool {
    check.status == Status::Success
}

/// The scenarios of a leg; one that does not exist at all is a fault of its own.
fn scenarios(directly: &Checks, through: &Checks) -> Vec<String> {
    assert!(!directly.is_empty(), "a run of the suite against the fixture itself left nothing behind");
    let mut names: Vec<String> = directly.keys().chain(through.keys()).cloned().collect();
    names.sort();
    names.dedup();
    names
}

/// What is worse than directly; for the fixture itself, what fails.
fn differences(directly: Option<&Vec<Check>>, through: Option<&Vec<Check>>, place: Place) -> Vec<Difference> {
    let none = Vec::new();
    let through = through.unwrap_or(&none);
    match place {
        Some(_) => compare(directly.unwrap_or(&none), through),
        None => compare(&[], through).into_iter().filter(|found| found.through == Status::Failure).collect(),
    }
}

/// Sorts out what is accepted, and returns the rest.
fn accept(
    seen: &mut Vec<(usize, Behind, Leg, String)>,
    place: Place,
    leg: Leg,
    scenario: &str,
    differences: Vec<Difference>,
) -> Vec<Difference> {
    let Some(behind) = place else { return differences };
    let mut left = Vec::new();
    for difference in differences {
        match ACCEPTED.iter().position(|line| line.covers(behind, scenario, &difference)) {
            Some(line) => seen.push((line, behind, leg, format!("{scenario}: {}", difference.id))),
            None => left.push(difference),
        }
    }
    left
}

/// Looks at one scenario alone, up to two more times, and keeps what is worse each time.
async fn look_again(suite: &'static Suite, server: Server, mut suspicion: Suspicion) -> Suspicion {
    while !suspicion.differences.is_empty() && suspicion.looks < LOOKS {
        suspicion.looks += 1;
        let name = suspicion.scenario.as_str();
        let directly = alone(suite, server, None, suspicion.leg, name).await;
        let through = match suspicion.place {
            Some(_) => alone(suite, server, suspicion.place, suspicion.leg, name).await,
            None => directly.clone(),
        };
        let again = differences(directly.get(name), through.get(name), suspicion.place);
        suspicion.differences.retain(|known| again.iter().any(|found| found.same(known)));
    }
    suspicion
}

/// What is worse in one scenario that is looked at once.
pub(crate) async fn worse(
    suite: &'static Suite,
    server: Server,
    behind: Behind,
    leg: Leg,
    scenario: &str,
) -> Vec<Difference> {
    let directly = alone(suite, server, None, leg, scenario).await;
    let through = alone(suite, server, Some(behind), leg, scenario).await;
    assert!(!directly.is_empty(), "the scenario left nothing behind");
    differences(directly.get(scenario), through.get(scenario), Some(behind))
}

async fn alone(suite: &'static Suite, server: Server, place: Place, leg: Leg, scenario: &str) -> Checks {
    let _turn = suite.turn().await;
    let setting = set_up(suite, server, place).await;
    suite.serve(leg, Some(scenario), &setting.url).await
}

async fn set_up(suite: &Suite, server: Server, place: Place) -> Setting {
    match place {
        None => Setting::direct(suite, server).await,
        Some(behind) => Setting::through(suite, server, behind).await,
    }
}

/// Returns true if a run belongs to the extent of this test run.
fn is_wanted(leg: Leg, place: Place) -> bool {
    // One child speaks one era only: for a stateless leg it equals a child that never spoke the other one.
    if place.is_some_and(|behind| behind.era == Era::OneChild) && !leg.is_handshake() {
        return false;
    }
    let is_short = Leg::SHORT.contains(&leg)
        && place.is_none_or(|behind| match behind.transport {
            Transport::Http => behind.era != Era::Both,
            Transport::Stdio => behind.era == Era::Both,
        });
    is_short || is_whole()
}

async fn run_all(
    suite: &'static Suite,
    server: Server,
    wanted: impl Iterator<Item = (Leg, Place)>,
) -> BTreeMap<(Leg, Place), Checks> {
    let mut runs = JoinSet::new();
    for (leg, place) in wanted {
        runs.spawn(async move { ((leg, place), run(suite, server, place, leg).await) });
    }
    let mut found = BTreeMap::new();
    while let Some(run) = runs.join_next().await {
        let (key, checks) = run.expect("no run panics");
        found.insert(key, checks);
    }
    found
}

async fn run(suite: &'static Suite, server: Server, place: Place, leg: Leg) -> Checks {
    let mut checks = {
        let _turn = suite.turn().await;
        let setting = set_up(suite, server, place).await;
        suite.serve(leg, None, &setting.url).await
    };
    // Scenarios that leave their questions unanswered: over a pipe that all calls share nobody can say whose the next one is.
    const SHARED: Place = Some(Behind { transport: Transport::Stdio, era: Era::Handshake });
    if place == SHARED && leg.revision == Some("2026-07-28") {
        let asking: Vec<String> = checks.keys().filter(|name| name.starts_with("input-required-")).cloned().collect();
        for scenario in asking {
            checks.extend(alone(suite, server, place, leg, &scenario).await);
        }
    }
    checks
}

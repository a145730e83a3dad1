//! Every scenario for servers: once directly, and once through the gateway for each way to have the fixture behind it.

use std::collections::BTreeMap;

use tokio::task::JoinSet;
use trunkline_tests::conformance::{
    Behind, Check, Checks, Difference, Era, Leg, Setting, Status, Suite, Transport, compare,
};

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

/// Runs everything and compares.
pub(crate) async fn judge(suite: &'static Suite) -> Verdict {
    let found = run_all(suite).await;
    let mut verdict = Verdict { passed: BTreeMap::new(), suspicions: Vec::new(), accepted: Vec::new() };
    for ((leg, place), checks) in &found {
        verdict.passed.insert((*leg, *place), checks.values().flatten().filter(passed).count());
        let directly = &found[&(*leg, None)];
        for scenario in scenarios(directly, checks) {
            let differences = differences(directly.get(&scenario), checks.get(&scenario), *place);
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
            looks.spawn(look_again(suite, suspicion));
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
async fn look_again(suite: &'static Suite, mut suspicion: Suspicion) -> Suspicion {
    while !suspicion.differences.is_empty() && suspicion.looks < LOOKS {
        suspicion.looks += 1;
        let name = suspicion.scenario.as_str();
        let directly = alone(suite, None, suspicion.leg, name).await;
        let through = match suspicion.place {
            Some(_) => alone(suite, suspicion.place, suspicion.leg, name).await,
            None => directly.clone(),
        };
        let again = differences(directly.get(name), through.get(name), suspicion.place);
        suspicion.differences.retain(|known| again.iter().any(|found| found.same(known)));
    }
    suspicion
}

async fn alone(suite: &'static Suite, place: Place, leg: Leg, scenario: &str) -> Checks {
    let _turn = suite.turn().await;
    let setting = set_up(suite, place).await;
    suite.serve(leg, Some(scenario), &setting.url).await
}

async fn set_up(suite: &Suite, place: Place) -> Setting {
    match place {
        None => Setting::direct(suite).await,
        Some(behind) => Setting::through(suite, behind).await,
    }
}

async fn run_all(suite: &'static Suite) -> BTreeMap<(Leg, Place), Checks> {
    let mut runs = JoinSet::new();
    for leg in Leg::SERVERS {
        for place in [None].into_iter().chain(Behind::ALL.map(Some)) {
            runs.spawn(async move { ((leg, place), run(suite, place, leg).await) });
        }
    }
    let mut found = BTreeMap::new();
    while let Some(run) = runs.join_next().await {
        let (key, checks) = run.expect("no run panics");
        found.insert(key, checks);
    }
    found
}

async fn run(suite: &'static Suite, place: Place, leg: Leg) -> Checks {
    let mut checks = {
        let _turn = suite.turn().await;
        let setting = set_up(suite, place).await;
        suite.serve(leg, None, &setting.url).await
    };
    // Scenarios that leave their questions unanswered: over a pipe that all calls share nobody can say whose the next one is.
    const SHARED: Place = Some(Behind { transport: Transport::Stdio, era: Era::Handshake });
    if place == SHARED && leg.revision == Some("2026-07-28") {
        let asking: Vec<String> = checks.keys().filter(|name| name.starts_with("input-required-")).cloned().collect();
        for scenario in asking {
            checks.extend(alone(suite, place, leg, &scenario).await);
        }
    }
    checks
}

//! What came of the suite, for people.

use std::fmt::Write as _;
use std::io::Write as _;

use trunkline_tests::conformance::Leg;
use trunkline_tests::extent::is_whole;

use super::accepted::ACCEPTED;
use super::clients::Run;
use super::logins;
use super::servers::Verdict;

/// Prints the table and the notes; past the test runner, which would swallow them.
pub(crate) fn print(verdict: &Verdict) {
    let server = verdict.server;
    let mut text = format!("\nconformance, server in {server}: passed checks directly and through the gateway\n");
    let _ = write!(text, "{:32}{:>10}", "", "directly");
    for behind in &verdict.behind {
        let _ = write!(text, "{behind:>17}");
    }
    text.push('\n');
    for leg in Leg::SERVERS.into_iter().filter(|leg| verdict.passed.contains_key(&(*leg, None))) {
        let passed = |place| verdict.passed.get(&(leg, place)).map_or("-".to_owned(), usize::to_string);
        let _ = write!(text, "{leg:32}{:>10}", passed(None));
        for behind in &verdict.behind {
            let _ = write!(text, "{:>17}", passed(Some(*behind)));
        }
        text.push('\n');
    }
    again(&mut text, verdict);
    accepted(&mut text, verdict);
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Scenarios that were looked at more than once.
fn again(text: &mut String, verdict: &Verdict) {
    for suspicion in &verdict.suspicions {
        let place = suspicion.place.map_or("directly".to_owned(), |behind| behind.to_string());
        let end = if suspicion.differences.is_empty() { "not worse again" } else { "worse each time" };
        let (leg, scenario, looks) = (suspicion.leg, &suspicion.scenario, suspicion.looks);
        let _ = writeln!(text, "looked at {looks} times: {place}, {leg}, {scenario}: {end}");
    }
}

/// Accepted differences by line, and the lines that nothing needed.
fn accepted(text: &mut String, verdict: &Verdict) {
    for (at, line) in ACCEPTED.iter().enumerate() {
        let times = verdict.accepted.iter().filter(|(seen, ..)| *seen == at).count();
        if times > 0 {
            let _ = writeln!(text, "accepted, {times} times: {}: {}", line.name(), line.why);
        } else if is_whole() && line.is_about(&verdict.behind) {
            let _ = writeln!(text, "note: no longer needed: {}", line.name());
        }
    }
}

/// Prints how each scenario for clients went.
pub(crate) fn print_clients(runs: &[Run]) {
    let mut text = String::from("\nconformance, client scenarios: passed checks with the gateway in between\n");
    for run in runs {
        let end = if run.has_passed { "passed" } else { "NOT PASSED" };
        let again = if run.looks > 1 { format!(", tried {} times", run.looks) } else { String::new() };
        let edition = format!("{:?}", run.edition).to_lowercase();
        let _ = writeln!(text, "{edition}, {} {:38}{:>4}  {end}{again}", run.revision, run.scenario, run.passed());
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints how each scenario about authorization went.
pub(crate) fn print_logins(runs: &[logins::Run]) {
    let mut text = String::from(
        "\nconformance, authorization: passed checks with the gateway and with the official SDK as the client\n",
    );
    for run in runs {
        let _ = write!(text, "{:?}, {:10} {:43}", run.edition, run.revision.unwrap_or("extension"), run.scenario);
        for came in [&run.gateway, &run.sdk] {
            let end = if came.has_passed { "passed" } else { "NOT PASSED" };
            let again = if came.looks > 1 { format!(" after {}", came.looks) } else { String::new() };
            let _ = write!(text, "{:>4}  {:20}", came.passed(), format!("{end}{again}"));
        }
        let _ = writeln!(text, "{}", run.sdk.faults().into_iter().collect::<Vec<_>>().join(", "));
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

//! Every scenario about authorization: the gateway as the client of the suite's authorization servers and servers, and the official SDKs
//! for comparison.

use std::collections::BTreeSet;

use tokio::task::JoinSet;
use trunkline_tests::conformance::{Check, Edition, Status, Suite};

/// How often a scenario is tried before it counts as not passed.
const LOOKS: usize = 3;

/// At which revisions an edition has any.
const LEGS: [(Edition, &str); 7] = [
    (Edition::Newest, "2025-03-26"),
    (Edition::Newest, "2025-06-18"),
    (Edition::Newest, "2025-11-25"),
    (Edition::Newest, "2026-07-28"),
    (Edition::Latest, "2025-03-26"),
    (Edition::Latest, "2025-06-18"),
    (Edition::Latest, "2025-11-25"),
];

/// What of the extensions the gateway has. It has no keys for assertions of its own (`client-credentials-jwt`, `wif-jwt-bearer`), binds no
/// tokens to keys (`dpop`), and takes no identity of a person to another authorization server (`enterprise-managed-authorization`).
const OF_EXTENSIONS: [(Edition, &str); 2] =
    [(Edition::Newest, "auth/client-credentials-basic"), (Edition::Latest, "auth/client-credentials-basic")];

/// The authorization server of the older edition's mock says there that it is another one than was asked: nobody is logged in at such a one.
/// The newer edition's names itself.
const ACCEPTED: (Edition, &str) = (Edition::Latest, "auth/2025-03-26-oauth-metadata-backcompat");

/// One scenario.
pub(crate) struct Run {
    /// By which edition.
    pub(crate) edition: Edition,
    /// At which revision; none for an extension.
    pub(crate) revision: Option<&'static str>,
    /// Which one.
    pub(crate) scenario: String,
    /// The gateway.
    pub(crate) gateway: Came,
    /// The official SDK.
    pub(crate) sdk: Came,
}

/// What came of it.
#[derive(Default)]
pub(crate) struct Came {
    /// How often it was tried.
    pub(crate) looks: usize,
    /// Whether it passed in the end, with every recommendation kept.
    pub(crate) has_passed: bool,
    /// The checks of the last time.
    checks: Vec<Check>,
}

impl Came {
    /// How many checks passed the last time.
    pub(crate) fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.status == Status::Success).count()
    }

    /// What did not.
    pub(crate) fn faults(&self) -> BTreeSet<&str> {
        let failed = self.checks.iter().filter(|check| check.status >= Status::Warning);
        failed.map(|check| &*check.id).chain((self.passed() == 0).then_some("nothing was judged")).collect()
    }
}

impl Run {
    /// What is worse than with the official SDK.
    pub(crate) fn worse(&self) -> Option<String> {
        if self.gateway.has_passed || ACCEPTED == (self.edition, &*self.scenario) {
            return None;
        }
        let faults = self.gateway.faults();
        let worse: Vec<_> = faults.difference(&self.sdk.faults()).copied().collect();
        // One that ends badly without a fault is as bad as one with some.
        let is_worse = !worse.is_empty() || self.sdk.has_passed;
        is_worse.then(|| format!("{:?} {:?} {}: {}", self.edition, self.revision, self.scenario, worse.join(", ")))
    }
}

/// Runs them all.
pub(crate) async fn run_all(suite: &'static Suite) -> Vec<Run> {
    let mut runs = JoinSet::new();
    for (edition, revision) in LEGS {
        let scenarios = suite.scenarios_of_logins(edition, revision).await;
        assert!(!scenarios.is_empty(), "{edition:?} has no scenario about authorization at {revision}");
        for scenario in scenarios {
            runs.spawn(run(suite, edition, Some(revision), scenario));
        }
    }
    for (edition, scenario) in OF_EXTENSIONS {
        runs.spawn(run(suite, edition, None, scenario.to_owned()));
    }
    let mut runs = runs.join_all().await;
    runs.sort_by_key(|run| (run.edition, run.revision, run.scenario.clone()));
    runs
}

async fn run(suite: &'static Suite, edition: Edition, revision: Option<&'static str>, scenario: String) -> Run {
    let mut came = [false, true].map(|is_direct| (is_direct, Came::default()));
    for (is_direct, came) in &mut came {
        while !came.has_passed && came.looks < LOOKS {
            let _turn = suite.turn().await;
            came.looks += 1;
            (came.has_passed, came.checks) = suite.log_in(edition, revision, &scenario, *is_direct).await;
            came.has_passed &= came.faults().is_empty();
        }
    }
    let [gateway, sdk] = came.map(|(_, came)| came);
    Run { edition, revision, scenario, gateway, sdk }
}

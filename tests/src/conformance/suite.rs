//! The suite's two editions, installed once per checkout, and one run of one of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Semaphore;

use super::check::{Checks, read};
use crate::peers::install::{node_major, packages};
use crate::peers::or_skip;
use crate::scratch::Scratch;

/// The suite needs this node; an older one of the system is passed over.
const NODE_MAJOR: u32 = 22;
/// How long a run may take on a crowded machine; what it has not come to by then is missing.
const LIMIT: Duration = Duration::from_secs(180);
/// How many runs go on at once.
static TURNS: Semaphore = Semaphore::const_new(2);

/// The suite, installed.
#[derive(Debug)]
pub struct Suite {
    /// A node that it runs on.
    pub node: PathBuf,
    dir: PathBuf,
}

/// Which of the suite's published versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    /// The newest one, a preview.
    Newest,
    /// The one that is called the latest.
    Latest,
}

/// One run of many scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leg {
    /// By which edition.
    pub edition: Edition,
    /// The edition's name for them.
    pub scenarios: &'static str,
    /// At which revision; each scenario's own if nothing is said, extensions among them.
    pub revision: Option<&'static str>,
}

impl Leg {
    /// Every scenario for servers at every revision, the slowest first.
    pub const SERVERS: [Self; 7] = [
        Self { edition: Edition::Newest, scenarios: "pending", revision: None },
        Self { edition: Edition::Newest, scenarios: "all", revision: Some("2026-07-28") },
        Self { edition: Edition::Newest, scenarios: "all", revision: Some("2025-11-25") },
        Self { edition: Edition::Newest, scenarios: "all", revision: Some("2025-06-18") },
        Self { edition: Edition::Newest, scenarios: "all", revision: Some("2025-03-26") },
        Self { edition: Edition::Latest, scenarios: "all", revision: Some("2025-11-25") },
        Self { edition: Edition::Latest, scenarios: "all", revision: Some("2025-06-18") },
    ];
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edition = match self.edition {
            Edition::Newest => "newest",
            Edition::Latest => "latest",
        };
        f.pad(&format!("{edition}, {} {}", self.scenarios, self.revision.unwrap_or("of extensions")))
    }
}

impl Suite {
    /// The suite, or nothing where this machine cannot have it; then the reason stands on stderr.
    ///
    /// # Panics
    /// With `TRUNKLINE_REQUIRE_PEERS=1`, when it cannot be had.
    pub fn ready() -> Option<&'static Self> {
        static SUITE: OnceLock<Result<Suite, String>> = OnceLock::new();
        or_skip(SUITE.get_or_init(install))
    }

    /// The path of one of our own scripts beside it.
    #[must_use]
    pub fn script(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Runs the scenarios of a leg, or one of them alone, against a server.
    pub async fn serve(&self, leg: Leg, only: Option<&str>, url: &str) -> Checks {
        let mut args = vec!["server", "--url", url];
        match only {
            Some(scenario) => args.extend(["--scenario", scenario]),
            None => args.extend(["--suite", leg.scenarios]),
        }
        if let Some(revision) = leg.revision {
            args.extend(["--spec-version", revision]);
        }
        self.run(leg.edition, &args, "server-").await
    }

    /// Waits for one of the few places at the machine.
    pub async fn turn(&self) -> tokio::sync::SemaphorePermit<'static> {
        TURNS.acquire().await.expect("nobody closes it")
    }

    async fn run(&self, edition: Edition, args: &[&str], prefix: &str) -> Checks {
        let results = Scratch::new();
        let package = match edition {
            Edition::Newest => "conformance-newest",
            Edition::Latest => "conformance-latest",
        };
        let mut child = Command::new(&self.node)
            .arg(self.dir.join("node_modules").join(package).join("dist/index.js"))
            .args(args)
            .arg("--output-dir")
            .arg(results.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node can be started");
        // It ends with a fault when a check fails, and what it came to until it was stopped counts.
        let _ = tokio::time::timeout(LIMIT, child.wait()).await;
        read(results.path(), prefix)
    }
}

fn install() -> Result<Suite, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let dir = root.join("conformance");
    packages(&dir)?;
    if node_major()? >= NODE_MAJOR {
        return Ok(Suite { node: PathBuf::from("node"), dir });
    }
    let own = root.join(format!("node{NODE_MAJOR}"));
    packages(&own)?;
    let named = |machine: &str| own.join(format!("node_modules/node-linux-{machine}/bin/node"));
    let found = [named("x64"), named("arm64")].into_iter().find(|node| node.exists());
    match found {
        Some(node) => Ok(Suite { node, dir }),
        None => Err(format!("node {NODE_MAJOR} or newer is needed, and there is none to install for this machine")),
    }
}

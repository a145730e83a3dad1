//! The suite's two editions, installed once per checkout, and one run of one of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Semaphore;

use super::check::{Check, Checks, read};
use crate::peers::install::{install as peers, node_22, packages, rust_server};
use crate::peers::or_skip;
use crate::process::{GATEWAY, beside};
use crate::scratch::Scratch;

/// How long a run may take on a crowded machine; what it has not come to by then is missing.
const LIMIT: Duration = Duration::from_secs(180);
/// How the names of scenarios about authorization begin.
const LOGINS: &str = "auth/";
/// How many runs go on at once: each waits four fifths of its time.
static TURNS: Semaphore = Semaphore::const_new(4);

/// The suite, installed.
#[derive(Debug)]
pub struct Suite {
    /// A node that it runs on.
    pub node: PathBuf,
    /// A Python with the official SDK.
    pub python: PathBuf,
    dir: PathBuf,
    python_dir: PathBuf,
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

impl Leg {
    /// Those that are run each time of a server that speaks both eras: the newest revision of each, with all that the suite knows of it.
    pub const SHORT: [Self; 2] = [Self::SERVERS[1], Self::SERVERS[2]];

    /// Whether the leg's revision opens with a handshake.
    #[must_use]
    pub fn is_handshake(self) -> bool {
        self.revision.is_some_and(|revision| revision < "2026")
    }

    /// Whether the leg is about extensions.
    #[must_use]
    pub fn is_of_extensions(self) -> bool {
        self.revision.is_none()
    }
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

    /// The suite with the server on the Rust SDK, which is built where other people's programs must be there, and nowhere else.
    ///
    /// # Panics
    /// With `TRUNKLINE_REQUIRE_PEERS=1`, when it cannot be had.
    pub fn ready_with_rust() -> Option<&'static Self> {
        static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
        let suite = Self::ready()?;
        or_skip(BUILT.get_or_init(|| rust_server(&suite.rust_dir()))).map(|()| suite)
    }

    fn rust_dir(&self) -> PathBuf {
        self.dir.with_file_name("rust")
    }

    /// The server on the Rust SDK.
    #[must_use]
    pub fn rust_program(&self) -> PathBuf {
        self.rust_dir().join("built/debug/dual-rust")
    }

    /// The path of one of our own scripts beside it.
    #[must_use]
    pub fn script(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// The path of one of our own scripts for Python.
    #[must_use]
    pub fn python_script(&self, name: &str) -> String {
        self.python_dir.join(name).display().to_string()
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
        self.run(self.program(leg.edition), &args, ("", "server-")).await.checks
    }

    /// The scenarios for clients at a revision, but for those that are about authorization.
    pub async fn scenarios_for_clients(&self, edition: Edition, revision: &str) -> Vec<String> {
        let all = self.all_for_clients(edition, revision).await;
        all.into_iter().filter(|name| !name.starts_with(LOGINS)).collect()
    }

    /// Those that are.
    pub async fn scenarios_of_logins(&self, edition: Edition, revision: &str) -> Vec<String> {
        let all = self.all_for_clients(edition, revision).await;
        all.into_iter().filter(|name| name.starts_with(LOGINS)).collect()
    }

    async fn all_for_clients(&self, edition: Edition, revision: &str) -> Vec<String> {
        let list = self.program(edition).args(["list", "--client", "--spec-version", revision]).output();
        let list =
            tokio::time::timeout(LIMIT, list).await.expect("a list takes a moment").expect("node can be started");
        let names = String::from_utf8_lossy(&list.stdout).into_owned();
        let named = names.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next());
        named.map(str::to_owned).collect()
    }

    /// Runs a scenario for clients: the official SDK that speaks the revision, through a gateway to the suite's mock.
    pub async fn connect(&self, edition: Edition, revision: &str, scenario: &str) -> (bool, Vec<Check>) {
        let command = format!("{} {}", self.node.display(), self.script("through.mjs"));
        let timeout = LIMIT.as_millis().to_string();
        let args = ["client", "--command", &command, "--scenario", scenario, "--spec-version", revision];
        let args = [&args[..], &["--timeout", &timeout]].concat();
        let mut ran = self.run(self.program(edition), &args, ("", "")).await;
        (ran.ended_well, ran.checks.remove(scenario).unwrap_or_default())
    }

    /// Runs a scenario about authorization: the gateway is the client of the suite's servers, or the official SDK is. An extension's has no
    /// revision.
    pub async fn log_in(
        &self,
        edition: Edition,
        revision: Option<&str>,
        scenario: &str,
        is_direct: bool,
    ) -> (bool, Vec<Check>) {
        let command = format!("{} {}", self.node.display(), self.script("login.mjs"));
        let timeout = LIMIT.as_millis().to_string();
        let mut args = vec!["client", "--command", &command, "--scenario", scenario, "--timeout", &timeout];
        args.extend(revision.iter().flat_map(|revision| ["--spec-version", revision]));
        let mut program = self.program(edition);
        if is_direct {
            program.env_remove("TRUNKLINE");
        }
        let mut ran = self.run(program, &args, (LOGINS, "")).await;
        let name = scenario.strip_prefix(LOGINS).unwrap_or(scenario);
        (ran.ended_well, ran.checks.remove(name).unwrap_or_default())
    }

    /// Waits for one of the few places at the machine.
    pub async fn turn(&self) -> tokio::sync::SemaphorePermit<'static> {
        TURNS.acquire().await.expect("nobody closes it")
    }

    fn program(&self, edition: Edition) -> Command {
        let package = match edition {
            Edition::Newest => "conformance-newest",
            Edition::Latest => "conformance-latest",
        };
        let mut command = Command::new(&self.node);
        command.arg(self.dir.join("node_modules").join(package).join("dist/index.js"));
        command.env("TRUNKLINE", beside(GATEWAY)).env("TRUNKLINE_CATALOG__CACHE", "false");
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn run(&self, mut program: Command, args: &[&str], (folder, prefix): (&str, &str)) -> Ran {
        let results = Scratch::new();
        let mut child = program
            .args(args)
            .arg("--output-dir")
            .arg(results.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node can be started");
        // What it came to until it was stopped counts.
        let ended = tokio::time::timeout(LIMIT, child.wait()).await;
        let ended_well = matches!(ended, Ok(Ok(status)) if status.success());
        Ran { ended_well, checks: read(&results.path().join(folder), prefix) }
    }
}

/// What a run left behind.
struct Ran {
    /// It ends badly where a check fails.
    ended_well: bool,
    checks: Checks,
}

fn install() -> Result<Suite, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let dir = root.join("conformance");
    packages(&dir)?;
    let peers = peers()?;
    let node = node_22()?;
    Ok(Suite { node, dir, python: peers.python_bin.join("python"), python_dir: peers.python_dir })
}

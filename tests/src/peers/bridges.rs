//! Other people's bridges and inspectors, installed beside the SDKs; and servers of theirs that listen on a port.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::workplace::Workplace;
use super::{Peers, install, or_skip, ready};
use crate::within::until_within;

/// How long one of them may take on a crowded machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Where they are.
#[derive(Debug)]
pub struct Bridges {
    /// The SDKs and reference servers.
    pub peers: &'static Peers,
    /// A node that is new enough for all of them.
    pub node: PathBuf,
    dir: PathBuf,
}

/// The server on mcp-go, built once; or nothing where this machine has no Go, and then the reason stands on stderr.
///
/// # Panics
/// With `TRUNKLINE_REQUIRE_PEERS=1`, when it cannot be had.
pub fn on_mcp_go() -> Option<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/go");
        install::go_server(&dir)?;
        Ok(dir.join("built/server"))
    });
    or_skip(built).cloned()
}

/// The installed bridges, or nothing where this machine cannot have them; then the reason stands on stderr.
///
/// # Panics
/// With `TRUNKLINE_REQUIRE_PEERS=1`, when they cannot be had.
pub fn bridges() -> Option<&'static Bridges> {
    static BRIDGES: OnceLock<Result<Bridges, String>> = OnceLock::new();
    let peers = ready()?;
    or_skip(BRIDGES.get_or_init(|| {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/bridges");
        install::packages(&dir)?;
        Ok(Bridges { peers, node: install::node_22()?, dir })
    }))
}

impl Bridges {
    /// The script of a package, by its path there.
    pub fn script(&self, path: &str) -> PathBuf {
        self.dir.join("node_modules").join(path)
    }

    /// Runs a script to its end, with a home of its own: what it wrote to stdout.
    ///
    /// # Panics
    /// When it does not end in time, or fails.
    pub async fn run(&self, place: &Workplace, script: &str, args: &[&str]) -> String {
        let mut command = Command::new(&self.node);
        command.arg(self.script(script)).args(args).env("HOME", place.home()).current_dir(place.dir());
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output =
            timeout(LIMIT, command.output()).await.unwrap_or_else(|_| panic!("{script} {args:?} does not end"));
        let output = output.expect("node can be run");
        let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{script} {args:?} ended with {}\n{said}\n{complaints}", output.status);
        said.into_owned()
    }
}

/// A server of other people that listens on a port of loopback; it ends when this is dropped.
#[derive(Debug)]
pub struct Listening {
    /// Its port.
    pub port: u16,
    child: Child,
}

impl Listening {
    /// Starts it with a free port, which `command` tells it, and waits until it is there.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start(place: &Workplace, command: impl FnOnce(u16) -> Command) -> Self {
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
            free.local_addr().expect("a bound socket has an address").port()
        };
        Self::start_at(place, port, command(port)).await
    }

    /// Starts one that listens on this port, and waits until it is there.
    ///
    /// # Panics
    /// When it does not come up.
    pub async fn start_at(place: &Workplace, port: u16, mut command: Command) -> Self {
        command.env("TRUNKLINE_TEST_MARK", place.mark()).env("HOME", place.home()).current_dir(place.dir());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().expect("it can be started");
        let is_there = || async move { TcpStream::connect(("127.0.0.1", port)).await.ok() };
        until_within(LIMIT, "it listens", is_there).await;
        Self { port, child }
    }

    /// Sends it SIGTERM.
    ///
    /// # Panics
    /// When it has ended before.
    pub async fn terminate(&self) {
        let pid = self.child.id().expect("it still runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill runs");
        assert!(sent.success(), "SIGTERM can be sent");
    }
}

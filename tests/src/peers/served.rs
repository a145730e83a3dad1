//! A gateway that serves a host's file over Streamable HTTP, for clients of other people.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::workplace::Workplace;
use crate::process;

const LIMIT: Duration = Duration::from_secs(30);

/// Where the gateway's binary is: the one that every test takes.
///
/// # Panics
/// When it is not there.
pub fn trunkline() -> PathBuf {
    process::beside(process::GATEWAY)
}

/// A running `trunkline serve`.
#[derive(Debug)]
pub struct Served {
    /// The endpoint that it printed.
    pub url: String,
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    _readers: JoinSet<()>,
}

impl Served {
    /// Starts it and returns as soon as it has printed its endpoint: nothing else is waited for.
    ///
    /// # Panics
    /// When it prints none.
    pub async fn start(place: &Workplace, hosts_file: &Path) -> Self {
        let listen = place.dir().join("listen.toml");
        let ports = "[server]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"\n";
        std::fs::write(&listen, ports).expect("the second file can be written");
        let mut command = Command::new(trunkline());
        command
            .arg("serve")
            .arg("--config")
            .arg(hosts_file)
            .arg("--config")
            .arg(listen)
            .env("HOME", place.home())
            .env_remove("XDG_CONFIG_HOME")
            .env("TRUNKLINE_CATALOG__CACHE", "false")
            .current_dir(place.dir());
        Self::of(command).await
    }

    /// The same of a command that starts it.
    ///
    /// # Panics
    /// When it prints no endpoint.
    pub async fn of(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the gateway can be started");
        let said = Arc::new(Mutex::new(Vec::new()));
        let (found, mut endpoint) = mpsc::channel(1);
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        let mut readers = JoinSet::new();
        readers.spawn(read(stdout, Arc::clone(&said), found.clone()));
        readers.spawn(read(stderr, Arc::clone(&said), found));
        let url = tokio::time::timeout(LIMIT, endpoint.recv()).await.ok().flatten();
        let Some(url) = url else {
            panic!("the gateway printed no endpoint; it said:\n{}", said.lock().expect("not poisoned").join("\n"))
        };
        Self { url, child, said, _readers: readers }
    }

    /// All that it has printed so far.
    pub fn said(&self) -> String {
        self.said.lock().expect("no reader panics").join("\n")
    }

    /// Ends it as nobody should.
    ///
    /// # Panics
    /// When it has ended before.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("it still runs");
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Panics
    /// When it does not end, or not with success.
    pub async fn stop(mut self) {
        let pid = self.child.id().expect("it still runs").to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill runs");
        assert!(sent.success(), "SIGTERM can be sent");
        match tokio::time::timeout(LIMIT, self.child.wait()).await {
            Ok(status) => {
                let status = status.expect("the gateway can be waited for");
                assert!(status.success(), "after SIGTERM it ended with {status}; it said:\n{}", self.said());
            }
            Err(_) => panic!("still there {LIMIT:?} after SIGTERM; it said:\n{}", self.said()),
        }
    }
}

/// Keeps every line, and hands over the first address of an MCP endpoint.
async fn read(from: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<String>>>, found: mpsc::Sender<String>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(url) = endpoint(&line) {
            let _ = found.try_send(url.to_owned());
        }
        said.lock().expect("no reader panics").push(line);
    }
}

fn endpoint(line: &str) -> Option<&str> {
    let from = line.find("http://127.0.0.1:")?;
    let rest = &line[from..];
    let end = rest.find("/mcp")? + "/mcp".len();
    (!rest[..end].contains(char::is_whitespace)).then_some(&rest[..end])
}

//! The reference server that has something of everything, on a port of its own.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::gateway::free_port;
use crate::peers::Peers;
use crate::within::within_limit;

/// How long it may take to start on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// `server-everything` over Streamable HTTP; it ends when this is dropped.
pub struct Web {
    /// Its endpoint.
    pub url: String,
    _child: Child,
    _reader: JoinSet<()>,
}

impl Web {
    /// Starts it, and returns when it listens.
    ///
    /// # Panics
    /// When it does not.
    pub async fn start(peers: &Peers) -> Web {
        let script = peers.node_dir.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        let port = free_port();
        let mut child = Command::new(&peers.node)
            .arg(script)
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node can be started");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        let listening = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains("listening on port") {
                    return true;
                }
            }
            false
        };
        assert!(within_limit(PATIENCE, "the reference server listens", listening).await, "it ended before it listened");
        // Whatever else it says is read, so that it never waits for us.
        let mut reader = JoinSet::new();
        reader.spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Web { url: format!("http://127.0.0.1:{port}/mcp"), _child: child, _reader: reader }
    }
}

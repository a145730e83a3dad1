//! Somebody else's authorization server, which gives out access tokens for a resource.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::canary::base64;
use crate::client::http;
use crate::peers::{install, or_skip};
use crate::within::within;

/// A running `oidc-provider`.
pub struct Identity {
    /// What it is called, and where it is.
    pub url: String,
    _child: Child,
    /// It says more there, and ends where nobody could read it.
    _stdout: Lines<BufReader<ChildStdout>>,
}

impl Identity {
    /// Starts it, or nothing where this machine cannot have it; then the reason stands on stderr.
    ///
    /// # Panics
    /// With `TRUNKLINE_REQUIRE_PEERS=1`, when it cannot be had.
    pub async fn start() -> Option<Identity> {
        Identity::lasting(600).await
    }

    /// The same; what it gives a client that has registered itself lasts for so many seconds.
    ///
    /// # Panics
    /// With `TRUNKLINE_REQUIRE_PEERS=1`, when it cannot be had.
    pub async fn lasting(seconds: u32) -> Option<Identity> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/identity");
        or_skip(&install::packages(&dir))?;
        let mut child = Command::new("node")
            .current_dir(&dir)
            .arg("provider.mjs")
            .env("LASTS", seconds.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let url = within("it says where it is", lines.next_line()).await.expect("a line").expect("a line");
        Some(Identity { url, _child: child, _stdout: lines })
    }

    /// An access token that it gives a client of its own for a resource.
    pub async fn token(&self, client: &str, resource: &str, scope: &str) -> String {
        let basic = format!("Basic {}", base64(format!("{client}:{client}-secret").as_bytes()));
        let headers = [("authorization", basic.as_str()), ("content-type", "application/x-www-form-urlencoded")];
        let body = format!("grant_type=client_credentials&resource={resource}&scope={scope}");
        let answer = http::exchange(&format!("{}/token", self.url), "POST", &headers, &body).await;
        let said: Value = serde_json::from_slice(&answer.body).expect("JSON");
        said["access_token"].as_str().unwrap_or_else(|| panic!("no token: {said}")).to_owned()
    }
}

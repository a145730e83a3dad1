//! Somebody else's authorization server, which gives out access tokens for a resource.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::canary::base64;
use crate::client::http;
use crate::peers::{install, or_skip};
use crate::within::within;

/// A running `oidc-provider`.
pub struct Identity {
    /// What it is called, and where it is.
    pub url: String,
    child: Child,
    stdin: ChildStdin,
    /// It says more there, and ends where nobody could read it.
    stdout: Lines<BufReader<ChildStdout>>,
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
        Identity::with(&[("LASTS", &seconds.to_string())]).await
    }

    /// One with pages for persons, and with such for codes of other devices where it `has_devices`.
    ///
    /// # Panics
    /// With `TRUNKLINE_REQUIRE_PEERS=1`, when it cannot be had.
    pub async fn with_pages(has_devices: bool) -> Option<Identity> {
        Identity::with(if has_devices { &[("PAGES", "1"), ("DEVICES", "1")] } else { &[("PAGES", "1")] }).await
    }

    async fn with(environment: &[(&str, &str)]) -> Option<Identity> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/identity");
        or_skip(&install::packages(&dir))?;
        let mut child = Command::new("node")
            .current_dir(&dir)
            .arg("provider.mjs")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let url = within("it says where it is", stdout.next_line()).await.expect("a line").expect("a line");
        let stdin = child.stdin.take().expect("it is piped");
        Some(Identity { url, child, stdin, stdout })
    }

    /// Whose token this is, where it is none that says so itself.
    ///
    /// # Panics
    /// When it is nobody's.
    pub async fn person(&self, token: &str) -> String {
        let basic = format!("Basic {}", base64(b"gate:gate-secret"));
        let headers = [("authorization", basic.as_str()), ("content-type", "application/x-www-form-urlencoded")];
        let url = format!("{}/token/introspection", self.url);
        let answer = http::exchange(&url, "POST", &headers, &format!("token={token}")).await;
        let said: Value = serde_json::from_slice(&answer.body).expect("JSON");
        said["sub"].as_str().unwrap_or_else(|| panic!("nobody's: {said}")).to_owned()
    }

    /// Answers so under a path from now on; without a status nothing.
    ///
    /// # Panics
    /// When it has ended.
    pub async fn answers(&mut self, at: &str, status: Option<u16>, content: &str, body: &str) {
        let fault = json!({ "at": at, "status": status, "type": content, "body": body });
        self.stdin.write_all(format!("{fault}\n").as_bytes()).await.expect("it reads");
        // It has notices of its own.
        while within("it says so", self.stdout.next_line()).await.expect("a line").expect("it runs") != "done" {}
    }

    /// Ends it: nobody is there any more.
    ///
    /// # Panics
    /// When it cannot be ended.
    pub async fn stop(&mut self) {
        self.child.kill().await.expect("it ends");
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

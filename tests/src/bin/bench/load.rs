//! A closed loop of calls over keep-alive connections: each worker sends, waits, checks, and sends again.

use super::wire::{self, Way, Wire};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// How the client speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Stateless, 2026-07-28.
    Modern,
    /// With a handshake and a session, 2025-06-18.
    Legacy,
}

/// Where the calls go.
#[derive(Clone)]
pub(crate) struct Target {
    /// `host:port`
    pub(crate) address: String,
    /// The endpoint's path.
    pub(crate) path: String,
    /// The tool as it is called there.
    pub(crate) tool: String,
    /// How it is spoken to.
    pub(crate) dialect: Dialect,
    /// How it is reached.
    pub(crate) way: Way,
    /// The access token that requests over HTTP bear.
    pub(crate) token: Option<String>,
}

/// What a run measured.
pub(crate) struct Run {
    /// Of every call, sorted.
    pub(crate) latencies: Vec<Duration>,
    /// From the first call to the last answer.
    pub(crate) took: Duration,
}

impl Run {
    /// Calls in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64()
    }

    /// The latency that this share of the calls stays under.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        let at = ((self.latencies.len() as f64 * share) as usize).min(self.latencies.len().saturating_sub(1));
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

/// Makes `calls` calls with `workers` in flight; every answer must bear its call's own words.
pub(crate) async fn calls(target: &Target, workers: usize, calls: usize) -> Result<Run> {
    let mut connections = Vec::new();
    let shared = wire::shared(&target.way, &target.address).await?;
    for worker in 0..workers {
        connections.push(Connection::on(target, worker, shared.clone()).await?);
    }
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for (worker, mut connection) in connections.into_iter().enumerate() {
        let share = calls / workers + usize::from(worker < calls % workers);
        tasks.spawn(async move {
            let mut latencies = Vec::with_capacity(share);
            for call in 0..share {
                latencies.push(connection.call(call).await?);
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::with_capacity(calls);
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done??);
    }
    let took = started.elapsed();
    latencies.sort_unstable();
    Ok(Run { latencies, took })
}

/// One keep-alive connection with what its requests have in common.
pub(crate) struct Connection {
    wire: Wire,
    head: String,
    dialect: Dialect,
    tool: String,
    worker: usize,
    answer: Vec<u8>,
}

impl Connection {
    /// Connects, and shakes hands where the dialect wants it.
    pub(crate) async fn open(target: &Target, worker: usize) -> Result<Self> {
        let shared = wire::shared(&target.way, &target.address).await?;
        Self::on(target, worker, shared).await
    }

    /// The same, on what all workers share where they do.
    async fn on(target: &Target, worker: usize, shared: Option<wire::Shared>) -> Result<Self> {
        let (wire, path) = Wire::open(&target.way, &target.address, &target.path, shared).await?;
        let token = target.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n{token}",
            target.address
        );
        let mut connection =
            Self { wire, head, dialect: target.dialect, tool: target.tool.clone(), worker, answer: Vec::new() };
        if target.dialect == Dialect::Legacy {
            connection.shake_hands().await?;
        }
        Ok(connection)
    }

    async fn shake_hands(&mut self) -> Result<()> {
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let head = self.exchange("", hello).await?;
        if let Some(line) = head.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:")) {
            self.head.push_str(line.trim());
            self.head.push_str("\r\n");
        }
        self.head.push_str("mcp-protocol-version: 2025-06-18\r\n");
        self.exchange("", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await?;
        Ok(())
    }

    /// One call; its words are its own and must come back.
    pub(crate) async fn call(&mut self, call: usize) -> Result<Duration> {
        self.call_with(call, "").await
    }

    /// One that the upstream answers after so many milliseconds.
    pub(crate) async fn call_waiting(&mut self, call: usize, milliseconds: u64) -> Result<Duration> {
        self.call_with(call, &format!(",\"wait\":{milliseconds}")).await
    }

    /// One whose answer has so many bytes more.
    pub(crate) async fn call_filled(&mut self, call: usize, bytes: usize) -> Result<Duration> {
        let took = self.call_with(call, &format!(",\"fill\":{bytes}")).await?;
        ensure!(self.answer.len() >= bytes, "an answer of {bytes} bytes has only {}", self.answer.len());
        Ok(took)
    }

    async fn call_with(&mut self, call: usize, more: &str) -> Result<Duration> {
        let words = format!("{:08x}-{call:08x}-{}", self.worker, "0123456789abcdef0123456789abcdef0123456789abcde");
        let tool = &self.tool;
        let (headers, meta) = match self.dialect {
            Dialect::Modern => (
                format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"),
                ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}",
            ),
            Dialect::Legacy => (String::new(), ""),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{call},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{words}"{more}}}{meta}}}}}"#
        );
        let started = Instant::now();
        self.exchange(&headers, &body).await?;
        let took = started.elapsed();
        let answer = std::str::from_utf8(&self.answer)?;
        ensure!(answer.contains(&words), "a call got another one's answer: wanted {words}, got {answer}");
        ensure!(answer.contains(&format!("\"id\":{call}")), "the id is not the call's: {answer}");
        Ok(took)
    }

    /// A whole list; returns how long it took and how many bytes came.
    pub(crate) async fn list(&mut self) -> Result<(Duration, usize)> {
        let (headers, meta) = match self.dialect {
            Dialect::Modern => (
                "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\n",
                "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}",
            ),
            Dialect::Legacy => ("", ""),
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}"#);
        let started = Instant::now();
        self.exchange(headers, &body).await?;
        Ok((started.elapsed(), self.answer.len()))
    }

    /// How many times a text stands in the last answer.
    pub(crate) fn count(&self, text: &str) -> usize {
        String::from_utf8_lossy(&self.answer).matches(text).count()
    }

    /// Sends one request and reads its answer; returns the answer's head.
    async fn exchange(&mut self, headers: &str, body: &str) -> Result<String> {
        let head = format!("{}{headers}", self.head);
        self.wire.exchange(&head, body, &mut self.answer).await
    }
}

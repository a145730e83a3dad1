//! Gateways that leave under load, behind a proxy that looks at their readiness: no call is lost.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::task::JoinHandle;
use trunkline_tests::client::http::exchange;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::Nginx;
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::until;

/// So many clients call all the time.
const CLIENTS: usize = 8;
/// So many calls are answered before the end is told, and after the old gateway is gone.
const CALLS: usize = 200;

const HEADERS: [(&str, &str); 5] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "up__echo"),
];
const CALL: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__echo","arguments":{"a":1},"_meta":{"#,
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#
);

/// What a client of a session sends.
const SESSION_HEADERS: [(&str, &str); 3] = [HEADERS[0], HEADERS[1], ("mcp-protocol-version", "2025-11-25")];
const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"t","version":"1"}}}"#
);
const SESSION_CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up__echo","arguments":{"a":1}}}"#;

/// Clients that call through the proxy, each call on a connection of its own to it.
#[derive(Default)]
struct Load {
    answered: AtomicUsize,
    failed: AtomicUsize,
    is_over: AtomicBool,
}

impl Load {
    /// Stateless calls until it is over; gives those that failed.
    async fn run(&self, url: &str) -> Vec<String> {
        self.repeat(url, &HEADERS, CALL).await
    }

    /// The same with calls of a session.
    async fn run_session(&self, url: &str) -> Vec<String> {
        let opened = exchange(url, "POST", &SESSION_HEADERS[..2], INITIALIZE).await;
        let Some(id) = opened.header("mcp-session-id") else { return vec![format!("no session: {opened:?}")] };
        let headers = [&SESSION_HEADERS[..], &[("mcp-session-id", id)]].concat();
        self.repeat(url, &headers, SESSION_CALL).await
    }

    async fn repeat(&self, url: &str, headers: &[(&str, &str)], call: &str) -> Vec<String> {
        let mut failed = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let answer = exchange(url, "POST", headers, call).await;
            if answer.status == 200 && String::from_utf8_lossy(&answer.body).contains("{\\\"a\\\":1}") {
                self.answered.fetch_add(1, Ordering::Relaxed);
            } else {
                self.failed.fetch_add(1, Ordering::Relaxed);
                failed.push(format!("{answer:?}"));
            }
        }
        failed
    }

    /// Waits for so many more answers.
    async fn go_on(&self, more: usize) {
        let wanted = self.answered.load(Ordering::Relaxed) + more;
        until("more calls are answered", || async {
            let is_there = self.answered.load(Ordering::Relaxed) >= wanted || self.failed.load(Ordering::Relaxed) > 0;
            is_there.then_some(())
        })
        .await;
    }

    /// Ends it, and sees that no call has failed; gives how many there were.
    async fn ends(&self, clients: Vec<JoinHandle<Vec<String>>>, nginx: &Nginx) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        let mut failed = Vec::new();
        for client in clients {
            failed.extend(client.await.expect("a client ends"));
        }
        let answered = self.answered.load(Ordering::Relaxed);
        assert_eq!(failed, Vec::<String>::new(), "of {answered} and more calls: {}", nginx.complaints());
        answered
    }
}

fn address(gateway: &Gateway) -> &str {
    authority(&gateway.url)
}

fn authority(url: &str) -> &str {
    url.trim_start_matches("http://").trim_end_matches("/mcp")
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn no_call_is_lost_when_a_gateway_behind_nginx_is_told_to_end_under_load() {
    let _alone = super::whole().await;
    let upstream = Upstream::http(Script::new("up", Revision::MODERN)).await;
    let config = Config::new().upstream(&upstream).section("[server.shutdown]\npre_stop_delay = \"2s\"");
    let (old, new) = (Gateway::serve(&config).await, Gateway::serve(&config).await);
    for gateway in [&old, &new] {
        gateway.look_until("/readyz?verbose", "its upstream is ready", |page| page.contains("  ready  ")).await;
    }
    let Some(nginx) = Nginx::before(&[address(&old)]).await else { return };
    let (load, url) = (Arc::new(Load::default()), format!("{}/mcp", nginx.url));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (load, url) = (load.clone(), url.clone());
            tokio::spawn(async move { load.run(&url).await })
        })
        .collect();
    load.go_on(CALLS).await;
    process::signal(old.pid, "TERM");
    old.look_until("/readyz", "readiness is taken back", |page| page == "draining\n").await;
    // What whoever watches readiness does.
    nginx.turn_to(&[address(&new)]);
    assert!(old.ended().await.success(), "it ends as asked");
    load.go_on(CALLS).await;
    let answered = load.ends(clients, &nginx).await;
    println!("{answered} calls answered, none failed");
}

#[tokio::test]
async fn no_call_of_either_era_is_lost_when_three_gateways_behind_nginx_are_restarted_one_after_another() {
    let _alone = super::whole().await;
    let upstream =
        Upstream::http(Script::new("up", Revision::R2025_11_25).with(|script| script.revisions.push(Revision::MODERN)));
    let upstream = upstream.await;
    // A session that is led to another gateway is taken over there.
    let sections =
        format!("[server.session]\nsigning_key = \"{}\"\n[server.shutdown]\npre_stop_delay = \"1s\"", "k".repeat(32));
    let config = Config::new().upstream(&upstream).section(&sections);
    let mut gateways = [Gateway::serve(&config).await, Gateway::serve(&config).await, Gateway::serve(&config).await];
    for gateway in &gateways {
        gateway.look_until("/readyz?verbose", "its upstream is ready", |page| page.contains("  ready  ")).await;
    }
    let urls = [0, 1, 2].map(|at: usize| gateways[at].url.clone());
    let all = [0, 1, 2].map(|at: usize| authority(&urls[at]));
    let Some(nginx) = Nginx::before(&all).await else { return };
    let url = format!("{}/mcp", nginx.url);
    let (stateless, sessions) = (Arc::new(Load::default()), Arc::new(Load::default()));
    let (mut callers, mut guests) = (Vec::new(), Vec::new());
    for _ in 0..CLIENTS / 2 {
        let (load, to) = (stateless.clone(), url.clone());
        callers.push(tokio::spawn(async move { load.run(&to).await }));
        let (load, to) = (sessions.clone(), url.clone());
        guests.push(tokio::spawn(async move { load.run_session(&to).await }));
    }
    tokio::join!(stateless.go_on(CALLS), sessions.go_on(CALLS));
    for (at, gateway) in gateways.iter_mut().enumerate() {
        process::signal(gateway.pid, "TERM");
        gateway.look_until("/readyz", "readiness is taken back", |page| page == "draining\n").await;
        let others: Vec<&str> = all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, url)| *url).collect();
        nginx.turn_to(&others);
        assert!(gateway.ended().await.success(), "it ends as asked");
        gateway.again(&config).await;
        gateway.look_until("/readyz?verbose", "its upstream is ready", |page| page.contains("  ready  ")).await;
        nginx.turn_to(&all);
        tokio::join!(stateless.go_on(CALLS), sessions.go_on(CALLS));
    }
    let answered = (stateless.ends(callers, &nginx).await, sessions.ends(guests, &nginx).await);
    println!("{} stateless calls and {} of sessions answered, none failed", answered.0, answered.1);
}

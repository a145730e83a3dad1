//! A gateway that leaves under load, behind a proxy that looks at its readiness: no call is lost.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

/// Clients that call through the proxy, each call on a connection of its own to it.
#[derive(Default)]
struct Load {
    answered: AtomicUsize,
    failed: AtomicUsize,
    is_over: AtomicBool,
}

impl Load {
    async fn run(&self, url: &str) -> Vec<String> {
        let mut failed = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let answer = exchange(url, "POST", &HEADERS, CALL).await;
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
}

fn address(gateway: &Gateway) -> &str {
    gateway.url.trim_start_matches("http://").trim_end_matches("/mcp")
}

#[tokio::test]
async fn no_call_is_lost_when_a_gateway_behind_nginx_is_told_to_end_under_load() {
    let _alone = super::whole().await;
    let upstream = Upstream::http(Script::new("up", Revision::MODERN)).await;
    let config = Config::new().upstream(&upstream).section("[server.shutdown]\npre_stop_delay = \"2s\"");
    let (old, new) = (Gateway::serve(&config).await, Gateway::serve(&config).await);
    for gateway in [&old, &new] {
        gateway.look_until("/readyz?verbose", "its upstream is ready", |page| page.contains("  ready  ")).await;
    }
    let Some(nginx) = Nginx::before(address(&old)).await else { return };
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
    nginx.turn_to(address(&new));
    assert!(old.ended().await.success(), "it ends as asked");
    load.go_on(CALLS).await;
    load.is_over.store(true, Ordering::Relaxed);
    let mut failed = Vec::new();
    for client in clients {
        failed.extend(client.await.expect("a client ends"));
    }
    let answered = load.answered.load(Ordering::Relaxed);
    assert_eq!(failed, Vec::<String>::new(), "of {answered} and more calls: {}", nginx.complaints());
    println!("{answered} calls answered, none failed");
}

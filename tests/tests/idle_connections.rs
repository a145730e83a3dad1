//! HTTP upstreams that close idle connections: calls go on, and the breaker stays closed.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::sync::Arc;

use trunkline_tests::cable::{Cable, Carries};
use trunkline_tests::client::{Client, Request};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::seed::Seed;
use trunkline_tests::upstream::Upstream;

const LEGACY: Revision = Revision::R2025_11_25;
const LANES: usize = 8;
const CALLS: usize = 1600;

/// An upstream behind a cable, and a gateway with these keys of the upstream.
struct Stage {
    upstream: Upstream,
    cable: Cable,
    gateway: Gateway,
}

async fn stage(keys: &str) -> Stage {
    // The background stream would be closed, too.
    let script = Script::new("frail", LEGACY).with(|script| script.http.get_stream = false);
    let upstream = Upstream::http(script).await;
    let cable = Cable::to(upstream.address(), Seed::of(5)).await;
    let section = format!("[upstreams.frail]\nurl = \"http://{}/mcp\"\n{keys}", cable.address);
    let gateway = Gateway::serve(&Config::new().section(&section)).await;
    Stage { upstream, cable, gateway }
}

impl Stage {
    async fn client(&self) -> Client {
        let client = Client::connect(&self.gateway.reach(), LEGACY).await;
        client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"frail__echo".into())).await;
        assert_eq!(client.call("frail__echo", "{}").await.text(), "{}");
        client
    }
}

/// The number of failed calls if the upstream closes connections up to so many milliseconds after an answer.
async fn failures(most: u64) -> usize {
    let stage = Arc::new(stage("").await);
    let mut lanes = Vec::new();
    for _ in 0..LANES {
        lanes.push(stage.client().await);
    }
    stage.cable.carry(Carries::Closes(most));
    let lanes = lanes.into_iter().map(|client| {
        tokio::spawn(async move {
            let mut failed = 0;
            for _ in 0..CALLS / LANES {
                let answer = client.call_once("frail__echo", "{}").await;
                if let Some(error) = &answer.frame().error {
                    assert!(format!("{error:?}").contains("reused connection"), "{error:?}");
                    failed += 1;
                }
            }
            failed
        })
    });
    let mut failed = 0;
    for lane in lanes.collect::<Vec<_>>() {
        failed += lane.await.expect("a lane ends");
    }
    failed
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_succeed_if_connections_are_closed_at_once() {
    let failed = failures(0).await;
    assert!(failed <= 2, "{failed} of {CALLS}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_succeed_if_connections_are_closed_within_3_ms() {
    let failed = failures(3).await;
    assert!(failed < CALLS / 100, "{failed} of {CALLS}");
}

#[tokio::test]
async fn breaker_counts_breaks_of_new_connections_alone() {
    let stage = stage("breaker = { failures = 1, open_for = \"1h\" }").await;
    let client = stage.client().await;
    let fails = async || client.call_once("frail__echo", "{}").await.message();
    stage.cable.carry(Carries::ResetsAnswers);
    let reused = fails().await;
    assert!(reused.contains("reused connection") && reused.contains("may or may not have run"), "{reused}");
    stage.cable.carry(Carries::Plainly);
    assert_eq!(client.call("frail__echo", "{}").await.text(), "{}", "the breaker is closed");
    // The gateway has learned that a connection may be closed as soon as it is idle: the next call has a new one.
    stage.cable.carry(Carries::ResetsAnswers);
    let new = fails().await;
    assert!(new.contains("the connection broke"), "{new}");
    stage.cable.carry(Carries::Plainly);
    let refused = fails().await;
    assert!(refused.contains("circuit breaker open"), "{refused}");
}

#[tokio::test]
async fn reads_are_sent_again_if_a_reused_connection_breaks() {
    let stage = stage("").await;
    let client = stage.client().await;
    stage.cable.carry(Carries::ResetsOneAnswer);
    let answer = client.request(Request::new("resources/read", "{\"uri\":\"script://frail/text\"}")).await;
    assert!(answer.frame().error.is_none(), "{}", answer.error());
    assert_eq!(stage.upstream.frames_with("\"resources/read\""), 2);
}

//! Upstreams of HTTP/2 that refuse calls, leave in the middle of one, and take nothing of one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

use super::bridge;
use super::manner::Manner;
use trunkline_tests::certificates::Authority;

/// A gateway before an upstream that behaves in some manner.
struct Stage {
    upstream: Upstream,
    manner: Arc<Manner>,
    gateway: Gateway,
    _scratch: Scratch,
}

async fn stage(keys: &str) -> Stage {
    let (authority, scratch, manner) = (Authority::new(), Scratch::new(), Arc::<Manner>::default());
    let upstream = Upstream::http(Script::new("up", Revision::MODERN)).await;
    let inner: http::Uri = upstream.url().parse().expect("a URL");
    let inner = inner.authority().expect("a host and port").as_str().parse().expect("an address");
    let address = bridge::behind_with(&authority.certify("127.0.0.1", 2999), inner, &manner).await;
    let ca = scratch.file("ca.pem", &authority.pem).display().to_string();
    let section = format!("[upstreams.up]\nurl = \"https://{address}/mcp\"\ntls = {{ ca = \"{ca}\"{keys} }}\n");
    let gateway = Gateway::serve(&Config::new().section(&section)).await;
    Stage { upstream, manner, gateway, _scratch: scratch }
}

async fn client(stage: &Stage) -> Client {
    let client = Client::connect(&stage.gateway.reach(), Revision::MODERN).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    client
}

#[tokio::test]
async fn a_call_that_was_refused_unseen_is_sent_again_and_runs_once() {
    let stage = stage("").await;
    let client = client(&stage).await;
    stage.manner.refuses.store(2, Ordering::SeqCst);
    assert_eq!(client.call_once("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!(stage.manner.refuses.load(Ordering::SeqCst), 0, "it was refused twice");
    assert_eq!(stage.upstream.frames_with("\"tools/call\""), 1);
}

#[tokio::test]
async fn an_upstream_that_goes_on_refusing_is_busy_and_not_met_anew() {
    let stage = stage("").await;
    let client = client(&stage).await;
    let met = stage.upstream.frames_with("\"server/discover\"");
    stage.manner.refuses.store(3, Ordering::SeqCst);
    let refused = client.call_once("up__echo", "{\"a\":5}").await;
    assert!(format!("{refused:?}").contains("took no more requests at once"), "{refused:?}");
    assert_eq!(client.call_once("up__echo", "{\"a\":6}").await.text(), "{\"a\":6}");
    assert_eq!(stage.upstream.frames_with("\"server/discover\""), met);
    assert_eq!(stage.upstream.frames_with("\"tools/call\""), 1);
}

#[tokio::test]
async fn a_call_above_the_last_one_of_an_upstream_that_leaves_is_sent_again_and_runs_once() {
    let stage = stage("").await;
    let client = client(&stage).await;
    let before = stage.manner.connections.load(Ordering::SeqCst);
    stage.manner.leaves.store(true, Ordering::SeqCst);
    assert_eq!(client.call_once("up__echo", "{\"a\":2}").await.text(), "{\"a\":2}");
    assert!(!stage.manner.leaves.load(Ordering::SeqCst), "it has left");
    assert!(stage.manner.connections.load(Ordering::SeqCst) > before, "on another connection");
    assert_eq!(stage.upstream.frames_with("\"tools/call\""), 1);
}

#[tokio::test]
async fn an_upstream_that_takes_nothing_of_one_call_takes_those_of_others() {
    let stage = stage("").await;
    let (one, other) = (client(&stage).await, client(&stage).await);
    let before = stage.manner.connections.load(Ordering::SeqCst);
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(200 * 1024));
    let waits = one.start(tool("up__echo", &long)).await;
    within("the call comes", stage.manner.unread.notified()).await;
    for _ in 0..3 {
        assert_eq!(other.call_once("up__echo", "{\"a\":3}").await.text(), "{\"a\":3}");
    }
    assert_eq!(stage.manner.connections.load(Ordering::SeqCst), before, "on the same connection");
    waits.abandon();
}

#[tokio::test]
async fn an_upstream_is_offered_http2_unless_the_file_says_no() {
    for (keys, is_shared) in [("", true), (", http2 = false", false)] {
        let stage = stage(keys).await;
        let client = client(&stage).await;
        assert_eq!(client.call_once("up__echo", "{\"a\":4}").await.text(), "{\"a\":4}");
        assert_eq!(stage.manner.multiplexed.load(Ordering::SeqCst) > 0, is_shared, "{keys}");
    }
}

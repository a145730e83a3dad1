//! The gateway stands still for a while, as after a signal or on a machine that slept: what lies ready when it goes on is read before
//! any of its timers is believed.

use std::time::Duration;

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::judge;
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::until;

const CALLS: usize = 8;
/// How long a call may take; the gateway stands still for longer.
const LIMIT: Duration = Duration::from_millis(1_500);

/// Calls that are answered while the gateway stands still, and how many of them are told so.
async fn answered_in_a_freeze(way: Way, revision: Revision) {
    let upstream = Upstream::start(way, Script::new("up", revision)).await;
    let keys = format!("call_timeout = \"{}ms\"", LIMIT.as_millis());
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &keys)).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let mut open = Vec::new();
    for _ in 0..CALLS {
        let nonce = judge::nonce();
        let arguments = format!("{{\"nonce\":\"{nonce}\",\"gate\":\"all\"}}");
        open.push(client.start(tool("up__wait", &arguments)).await);
    }
    upstream.waiting(CALLS).await;
    process::signal(gateway.pid, "STOP");
    upstream.order(Order::Open("all".into())).await;
    let ran = || async { (upstream.executed().await.len() == CALLS).then_some(()) };
    until("all have run", ran).await;
    // The limits of all of them pass meanwhile: there is nothing else to wait for.
    tokio::time::sleep(LIMIT).await;
    process::signal(gateway.pid, "CONT");
    for call in open {
        let answer = call.answer().await;
        assert!(answer.frame().result.is_some(), "{way:?}: it lay ready: {}", answer.error());
    }
    assert!(gateway.stop().await.success());
}

#[tokio::test]
async fn answers_of_a_child_that_lie_ready_after_a_freeze_are_no_time_outs() {
    answered_in_a_freeze(Way::Stdio, Revision::R2025_11_25).await;
}

#[tokio::test]
async fn answers_over_http_that_lie_ready_after_a_freeze_are_no_time_outs() {
    answered_in_a_freeze(Way::Http, Revision::R2025_06_18).await;
    answered_in_a_freeze(Way::Http, Revision::MODERN).await;
}

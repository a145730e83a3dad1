//! A gateway that is restarted under clients of a handshake: their next call works.

use super::errand::Errand;
use super::judge;
use serde_json::{Value, json};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::{self, Connect, Door, Mode, Plan, Sdk};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

const REVIVED: &str = "session of an earlier run revived";

/// Ended by SIGTERM, then by kill -9.
async fn survives(sdk: Sdk) {
    let Some(peers) = peers::ready() else { return };
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let config = Config::new().upstream(&upstream);
    let mut gateway = Gateway::serve(&config).await;
    let door = Door::new().await;
    let echoed = |seen: &Value| seen["result"]["content"][0]["text"].is_string();
    let wait = json!({ "do": "wait", "url": door.url });
    let errand = Errand::of(&["up__echo"])
        .call("up__echo", json!({ "a": 1 }), echoed)
        .step(wait.clone(), |seen| seen["result"] == "restarted")
        .call("up__echo", json!({ "a": 2 }), echoed)
        .call("up__echo", json!({ "a": 3 }), echoed)
        .step(wait, |seen| seen["result"] == "killed")
        .call("up__echo", json!({ "a": 4 }), echoed)
        .call("up__echo", json!({ "a": 5 }), echoed);
    let connect = Connect::Url { url: gateway.url.clone() };
    let (until, steps) = (errand.until.clone(), errand.asks());
    let patience = super::PATIENCE;
    let plan = Plan { connect, until, patience, answers: None, roots: None, token: None, steps };
    let restarts = async {
        let waiting = door.comers(1).await;
        gateway.restart(&config).await;
        waiting.go_on("restarted").await;
        let waiting = door.comers(1).await;
        gateway.says(&[REVIVED]).await;
        gateway.kill().await;
        gateway.again(&config).await;
        waiting.go_on("killed").await;
        std::future::pending().await
    };
    let report = tokio::select! {
        report = sdk.run(peers, &plan) => report,
        () = restarts => unreachable!("it waits for the client"),
    };
    judge(sdk, sdk.revision(), &report, &errand);
    gateway.says(&[REVIVED]).await;
}

#[tokio::test]
async fn typescript_1() {
    survives(Sdk::TypeScript1).await;
}

#[tokio::test]
async fn typescript_2() {
    survives(Sdk::TypeScript2(Mode::Legacy)).await;
}

#[tokio::test]
async fn python_2() {
    survives(Sdk::Python2(Mode::Legacy)).await;
}

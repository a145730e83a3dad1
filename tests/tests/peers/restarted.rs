//! A gateway that is restarted under clients of a handshake: their next call works.

use super::errand::Errand;
use super::judge;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::{self, Connect, Mode, Plan, Sdk};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

async fn survives(sdk: Sdk) {
    let Some(peers) = peers::ready() else { return };
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let config = Config::new().upstream(&upstream);
    let mut gateway = Gateway::serve(&config).await;
    let door = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("http://{}/", door.local_addr().expect("it is bound"));
    let echoed = |seen: &serde_json::Value| seen["result"]["content"][0]["text"].is_string();
    let errand = Errand::of(&["up__echo"])
        .call("up__echo", json!({ "a": 1 }), echoed)
        .step(json!({ "do": "wait", "url": url }), |seen| seen["result"] == "restarted")
        .call("up__echo", json!({ "a": 2 }), echoed)
        .call("up__echo", json!({ "a": 3 }), echoed);
    let connect = Connect::Url { url: gateway.url.clone() };
    let (until, steps) = (errand.until.clone(), errand.asks());
    let plan = Plan { connect, until, patience: Duration::from_secs(45), answers: None, steps };
    let restart = async {
        let (mut caller, _) = door.accept().await.expect("the client comes");
        let _asked = caller.read(&mut [0; 4096]).await.expect("it asks");
        gateway.restart(&config).await;
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nrestarted";
        caller.write_all(answer.as_bytes()).await.expect("it is told");
        std::future::pending().await
    };
    let report = tokio::select! {
        report = sdk.run(peers, &plan) => report,
        () = restart => unreachable!("it waits for the client"),
    };
    judge(sdk, sdk.revision(), &report, &errand);
    gateway.says(&["session of an earlier run revived"]).await;
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

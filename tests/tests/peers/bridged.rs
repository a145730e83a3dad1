//! Bridges and inspectors of other people before the gateway, and servers of theirs behind it that listen on a port.

use serde_json::{Value, json};
use tokio::process::Command;
use trunkline_tests::client::{Client, Reach};
use trunkline_tests::peers::{
    Bridges, Connect, Listening, Sdk, Served, Workplace, bridges, none_left, on_mcp_go, trunkline,
};
use trunkline_tests::revision::Revision;

use super::errand::{Errand, everything};
use super::{PATIENCE, judge, plan};

const LEGACY: Revision = Revision::R2025_11_25;

/// A gateway before the reference server that has something of everything.
async fn before_everything(place: &Workplace, bridges: &Bridges) -> Served {
    let entry = place.package(bridges.peers, "everything", &[]);
    let served = Served::start(place, &place.hosts_file(&json!({ "everything": entry }))).await;
    let client = Client::connect(&Reach::Url(served.url.clone()), LEGACY).await;
    client.tools_until("it is up", |tools| tools.contains(&"everything__echo".to_owned())).await;
    served
}

/// A host that knows stdio alone, with `mcp-remote` between it and the gateway.
async fn through_mcp_remote(face: &str, strategy: &str) {
    let Some(bridges) = bridges() else { return };
    let place = Workplace::new();
    let served = before_everything(&place, bridges).await;
    let script = bridges.script("mcp-remote/dist/proxy.js").display().to_string();
    let url = served.url.replace("/mcp", face);
    let args = [&script, &url, "--transport", strategy, "--allow-http"].map(String::from).to_vec();
    let home = [("HOME".to_owned(), place.home().display().to_string())];
    let connect = Connect::Command { command: bridges.node.clone(), args, env: home.into_iter().collect() };
    let errand = Errand::of(&["everything__echo"])
        .call("everything__echo", json!({ "message": "größer" }), |seen| {
            seen["result"]["content"][0]["text"] == "Echo: größer"
        })
        .call("everything__get-sum", json!({ "a": 2, "b": 40 }), |seen| {
            seen["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("42"))
        });
    let report = Sdk::TypeScript1.run(bridges.peers, &plan(connect, &errand)).await;
    judge(Sdk::TypeScript1, Sdk::TypeScript1.revision(), &report, &errand);
    served.stop().await;
    none_left(&place.mark()).await;
}

#[tokio::test]
async fn mcp_remote_reaches_the_endpoint() {
    through_mcp_remote("/mcp", "http-only").await;
}

#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn mcp_remote_reaches_http_sse() {
    through_mcp_remote("/sse", "sse-only").await;
}

/// It tries a POST there first, and is to be told at once that this is none for it.
#[tokio::test]
#[ignore = "takes long; .ci/full runs it"]
async fn mcp_remote_finds_http_sse_by_itself() {
    through_mcp_remote("/sse", "http-first").await;
}

#[tokio::test]
async fn the_inspector_lists_and_calls_over_each_face_that_it_knows() {
    let Some(bridges) = bridges() else { return };
    let place = Workplace::new();
    let served = before_everything(&place, bridges).await;
    let file = format!("TRUNKLINE_CONFIG={}", place.dir().join("mcp.json").display());
    let child = [&*trunkline().display().to_string(), "stdio", "-e", &file, "-e", "TRUNKLINE_CATALOG__CACHE=false"];
    let faces = [
        vec![served.url.clone(), "--transport".into(), "http".into()],
        vec![served.url.replace("/mcp", "/sse"), "--transport".into(), "sse".into()],
        child.map(str::to_owned).to_vec(),
    ];
    for face in faces {
        let run = async |method: &[&str]| -> Value {
            let args = ["--cli"].into_iter().chain(face.iter().map(String::as_str)).chain(method.iter().copied());
            let script = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
            let said = bridges.run(&place, script, &args.collect::<Vec<_>>()).await;
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{face:?}: {error}: {said}"))
        };
        let list = run(&["--method", "tools/list"]).await;
        let has_echo =
            list["tools"].as_array().is_some_and(|all| all.iter().any(|tool| tool["name"] == "everything__echo"));
        assert!(has_echo, "{face:?}: {list}");
        let call = ["--method", "tools/call", "--tool-name", "everything__echo", "--tool-arg", "message=hi"];
        let answer = run(&call).await;
        assert_eq!(answer["content"][0]["text"], "Echo: hi", "{face:?}: {answer}");
    }
    served.stop().await;
    none_left(&place.mark()).await;
}

/// The whole errand with a server that listens, which is reached as this entry of a host's file says.
async fn behind(server: impl FnOnce(&Bridges, &Workplace, u16) -> Command, entry: impl FnOnce(u16) -> Value) {
    let Some(bridges) = bridges() else { return };
    let place = Workplace::new();
    let listening = Listening::start(&place, |port| server(bridges, &place, port)).await;
    let served = Served::start(&place, &place.hosts_file(&json!({ "up": entry(listening.port) }))).await;
    let errand = everything("up__");
    let connect = Connect::Url { url: served.url.clone() };
    let report = Sdk::TypeScript1.run(bridges.peers, &plan(connect, &errand)).await;
    judge(Sdk::TypeScript1, Sdk::TypeScript1.revision(), &report, &errand);
    served.stop().await;
}

/// The reference server in one of its modes.
fn reference(mode: &'static str) -> impl FnOnce(&Bridges, &Workplace, u16) -> Command {
    move |bridges, _, port| {
        let modules = bridges.peers.node_dir.join("node_modules/@modelcontextprotocol");
        let mut command = Command::new(&bridges.peers.node);
        command.arg(modules.join("server-everything/dist/index.js")).arg(mode).env("PORT", port.to_string());
        command
    }
}

/// The reference server on stdio, behind `supergateway`.
fn supergateway(mode: &'static str) -> impl FnOnce(&Bridges, &Workplace, u16) -> Command {
    move |bridges, _, port| {
        let server = bridges.peers.node_dir.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        let mut command = Command::new(&bridges.node);
        command.arg(bridges.script("supergateway/dist/index.js"));
        command.args(["--stdio", &format!("node {}", server.display()), "--outputTransport", mode]);
        command.args(["--port", &port.to_string(), "--logLevel", "none"]);
        command
    }
}

#[tokio::test]
async fn the_reference_server_over_http_sse() {
    behind(reference("sse"), |port| json!({ "type": "sse", "url": format!("http://127.0.0.1:{port}/sse") })).await;
}

/// Nothing says that it is no Streamable HTTP.
#[tokio::test]
async fn the_reference_server_over_http_sse_is_found() {
    behind(reference("sse"), |port| json!({ "url": format!("http://127.0.0.1:{port}/sse") })).await;
}

#[tokio::test]
async fn the_reference_server_over_streamable_http() {
    behind(
        reference("streamableHttp"),
        |port| json!({ "type": "http", "url": format!("http://127.0.0.1:{port}/mcp") }),
    )
    .await;
}

#[tokio::test]
async fn supergateway_over_http_sse() {
    behind(supergateway("sse"), |port| json!({ "type": "sse", "url": format!("http://127.0.0.1:{port}/sse") })).await;
}

#[tokio::test]
async fn supergateway_over_websocket() {
    behind(supergateway("ws"), |port| json!({ "type": "ws", "url": format!("ws://127.0.0.1:{port}/message") })).await;
}

/// A tool sandbox: messages go where its first event says, it promises to tell of changes and never does, and a failed tool is no failed
/// exchange. At its end calls go on, and it is met again once it is there again.
#[tokio::test]
async fn mcp_go_over_http_sse() {
    let Some(program) = on_mcp_go() else { return };
    let place = Workplace::new();
    let on_port = |port: u16| {
        let mut command = Command::new(&program);
        command.env("PORT", port.to_string());
        command
    };
    let listening = Listening::start(&place, on_port).await;
    let port = listening.port;
    let entry = json!({ "box": { "url": format!("http://127.0.0.1:{port}/sse") } });
    let served = Served::start(&place, &place.hosts_file(&entry)).await;
    let client = Client::connect(&Reach::Url(served.url.clone()), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"box__echo".to_owned())).await;
    assert_eq!(client.call("box__echo", "{\"text\":\"hi\"}").await.text(), "hi");
    let failed = client.call("box__fail", "{}").await.value();
    assert_eq!(
        (failed["isError"].clone(), failed["content"][0]["text"].clone()),
        (json!(true), json!("the user's fault"))
    );
    let broken = client.call("box__break", "{}").await;
    assert!(broken.code() < 0 && broken.message().contains("out of order"), "{}", broken.error());
    let waits = trunkline_tests::client::tool("box__wait", "{\"milliseconds\":1500}");
    let waits = client.start(waits).await;
    assert_eq!(client.call("box__echo", "{\"text\":\"beside\"}").await.text(), "beside", "the one before has arrived");
    listening.terminate().await;
    // It says nothing of its end: a call ends with its answer or with its connection, and not with its time.
    let last = waits.answer().await;
    let is_told = last.frame().error.is_none() || last.message().contains("may or may not have run");
    assert!(is_told, "{}", last.error());
    drop(listening);
    let again = Listening::start_at(&place, port, on_port(port)).await;
    client.tools_until("it is met again", |tools| tools.contains(&"box__echo".to_owned())).await;
    let answers =
        || async { (client.call("box__echo", "{\"text\":\"again\"}").await.frame().error.is_none()).then_some(()) };
    trunkline_tests::within::until_within(PATIENCE, "it answers again", answers).await;
    served.stop().await;
    drop(again);
}

//! Official SDK clients of every kind, five reference servers of other people, the gateway between them.

mod bridged;
mod errand;
mod journey;
mod restarted;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use errand::{Errand, directly, five_upstreams, reading_only};
use serde_json::json;
use tokio::task::JoinSet;
use trunkline_tests::client::{Client, Reach};
use trunkline_tests::peers::{
    self, Connect, Mode, Plan, Report, Sdk, Served, Workplace, none_left, survivors, trunkline,
};
use trunkline_tests::process::Program;
use trunkline_tests::revision::Revision;
use trunkline_tests::within::until_within;

/// How long a client waits for upstreams that are only just starting, on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(150);

fn stdio(place: &Workplace, hosts_file: &Path) -> Connect {
    Connect::Command {
        command: trunkline(),
        args: ["stdio", "--config"].map(String::from).into_iter().chain([hosts_file.display().to_string()]).collect(),
        env: BTreeMap::from([
            ("HOME".to_owned(), place.home().display().to_string()),
            ("TRUNKLINE_CATALOG__CACHE".to_owned(), "false".to_owned()),
        ]),
    }
}

fn plan(connect: Connect, errand: &Errand) -> Plan {
    Plan {
        connect,
        until: errand.until.clone(),
        patience: PATIENCE,
        answers: None,
        roots: None,
        token: None,
        steps: errand.asks(),
    }
}

fn judge(sdk: Sdk, revision: &str, report: &Report, errand: &Errand) {
    let mut faults = Vec::new();
    if let Some(fatal) = &report.fatal {
        faults.push(format!("broke off: {fatal}"));
    }
    if report.revision.as_deref() != Some(revision) {
        faults.push(format!("speaks {:?} instead of {revision}", report.revision));
    }
    let missing: Vec<_> = errand.until.iter().filter(|name| !report.tools.contains(name)).collect();
    if !missing.is_empty() {
        faults.push(format!("never saw {missing:?}"));
    }
    faults.extend(errand.faults(&report.steps));
    assert!(faults.is_empty(), "{sdk:?}:\n- {}\n{report}", faults.join("\n- "));
}

/// A first start, a client that connects at once, and the whole errand, over Streamable HTTP.
async fn over_http(sdk: Sdk) {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let errand = five_upstreams(&place);
    let served = Served::start(&place, &place.five_upstreams(peers)).await;
    let report = sdk.run(peers, &plan(Connect::Url { url: served.url.clone() }, &errand)).await;
    judge(sdk, sdk.revision(), &report, &errand);
    served.stop().await;
    none_left(&place.mark()).await;
}

/// The same over HTTP+SSE, by clients that speak it.
async fn over_sse(sdk: Sdk) {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let errand = five_upstreams(&place);
    let served = Served::start(&place, &place.five_upstreams(peers)).await;
    let sse = served.url.replace("/mcp", "/sse");
    let report = sdk.run(peers, &plan(Connect::Sse { sse }, &errand)).await;
    judge(sdk, sdk.revision(), &report, &errand);
    served.stop().await;
    none_left(&place.mark()).await;
}

#[tokio::test]
async fn typescript_1_over_sse() {
    over_sse(Sdk::TypeScript1).await;
}

#[tokio::test]
async fn python_2_over_sse() {
    over_sse(Sdk::Python2(Mode::Legacy)).await;
}

/// The same over WebSocket.
#[tokio::test]
async fn typescript_1_over_websocket() {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let errand = five_upstreams(&place);
    let served = Served::start(&place, &place.five_upstreams(peers)).await;
    let ws = served.url.replace("http://", "ws://").replace("/mcp", "/ws");
    let report = Sdk::TypeScript1.run(peers, &plan(Connect::WebSocket { ws }, &errand)).await;
    judge(Sdk::TypeScript1, Sdk::TypeScript1.revision(), &report, &errand);
    served.stop().await;
    none_left(&place.mark()).await;
}

#[tokio::test]
async fn typescript_2_over_sse() {
    over_sse(Sdk::TypeScript2(Mode::Legacy)).await;
}

/// The same, with the gateway as the SDK's own child.
async fn over_stdio(sdk: Sdk) {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let errand = five_upstreams(&place);
    let connect = stdio(&place, &place.five_upstreams(peers));
    let report = sdk.run(peers, &plan(connect, &errand)).await;
    judge(sdk, sdk.revision(), &report, &errand);
    none_left(&place.mark()).await;
}

macro_rules! every_client {
    ($($name:ident: $sdk:expr;)*) => {
        mod http {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                over_http($sdk).await;
            })*
        }
        mod stdio {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                over_stdio($sdk).await;
            })*
        }
    };
}

every_client! {
    typescript_1: Sdk::TypeScript1;
    typescript_2_legacy: Sdk::TypeScript2(Mode::Legacy);
    typescript_2_auto: Sdk::TypeScript2(Mode::Auto);
    typescript_2_pinned: Sdk::TypeScript2(Mode::Pinned);
    python_2_legacy: Sdk::Python2(Mode::Legacy);
    python_2_auto: Sdk::Python2(Mode::Auto);
    python_2_pinned: Sdk::Python2(Mode::Pinned);
}

/// Without us in between: what is red here is not the gateway's fault.
#[tokio::test]
async fn the_drivers_and_the_upstreams_agree_without_the_gateway() {
    let Some(peers) = peers::ready() else { return };
    for sdk in [Sdk::TypeScript1, Sdk::TypeScript2(Mode::Auto), Sdk::Python2(Mode::Auto)] {
        let place = Workplace::new();
        let entries = place.five_entries(peers);
        for (name, errand) in directly(&place) {
            let connect = Connect::entry(&entries[name]);
            let report = sdk.run(peers, &plan(connect, &errand)).await;
            // Those in Python speak both eras, those in TypeScript the handshake alone.
            let revision = if ["time", "git"].contains(&name) { sdk.revision() } else { "2025-11-25" };
            judge(sdk, revision, &report, &errand);
        }
    }
}

/// Sessions and stateless clients side by side on one endpoint, over the same five upstreams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_clients_at_once_on_one_endpoint() {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let errand = reading_only(&place);
    let served = Served::start(&place, &place.five_upstreams(peers)).await;
    let plan = plan(Connect::Url { url: served.url.clone() }, &errand);
    let mut clients = JoinSet::new();
    for sdk in Sdk::ALL {
        let plan = plan.clone();
        clients.spawn(async move { (sdk, sdk.run(peers, &plan).await) });
    }
    while let Some(ended) = clients.join_next().await {
        let (sdk, report) = ended.expect("the client ran");
        judge(sdk, sdk.revision(), &report, &errand);
    }
    served.stop().await;
    none_left(&place.mark()).await;
}

/// `npx` puts a shell and a second node between us and the upstream; a wrapper script does much the same.
#[tokio::test]
async fn wrapped_upstreams_work_and_go_with_the_gateway() {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let folder = peers.node_dir.display().to_string();
    let memory = place.package(peers, "memory", &[]);
    let script = memory["args"][0].as_str().expect("the script is the first argument");
    let hosts_file = place.hosts_file(&json!({
        "npx": place.upstream(Path::new("npx"), &["--no-install", "--prefix", &folder, "mcp-server-everything"]),
        "shell": place.upstream(Path::new("sh"), &["-c", &format!("node '{script}'; exit $?")]),
    }));
    let errand =
        Errand::of(&["npx__echo", "shell__read_graph"])
            .call("npx__echo", json!({ "message": "hi" }), |seen| seen["result"]["content"][0]["text"] == "Echo: hi");
    let served = Served::start(&place, &hosts_file).await;
    let sdk = Sdk::TypeScript1;
    let report = sdk.run(peers, &plan(Connect::Url { url: served.url.clone() }, &errand)).await;
    judge(sdk, sdk.revision(), &report, &errand);
    served.stop().await;
    none_left(&place.mark()).await;
    let report = sdk.run(peers, &plan(stdio(&place, &hosts_file), &errand)).await;
    judge(sdk, sdk.revision(), &report, &errand);
    none_left(&place.mark()).await;
}

/// Each is two programs of node and a shell, and they start at once.
const NPX_PATIENCE: Duration = Duration::from_secs(150);

/// As many of those that `npx` starts as one machine bears at once.
fn under_npx(place: &Workplace, peers: &peers::Peers, count: usize) -> std::path::PathBuf {
    let folder = peers.node_dir.display().to_string();
    let entry = || place.upstream(Path::new("npx"), &["--no-install", "--prefix", &folder, "mcp-server-memory"]);
    place.hosts_file(&(0..count).map(|number| (format!("npx{number}"), entry())).collect())
}

/// Connects, and waits until all of them are there, each with the processes between it and the gateway.
async fn all_up(reach: &Reach, place: &Workplace, count: usize) -> Client {
    let client = Client::connect(reach, Revision::R2025_11_25).await;
    let all = |tools: &[String]| (0..count).all(|number| tools.contains(&format!("npx{number}__read_graph")));
    let listed = || async { all(&client.tools().await).then_some(()) };
    until_within(NPX_PATIENCE, "all of them are up", listed).await;
    assert!(survivors(&place.mark()).len() > count, "there is somebody between");
    client
}

/// Seven, seven and six.
#[tokio::test]
async fn twenty_of_npx_go_with_the_gateway_however_it_ends() {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let served = Served::start(&place, &under_npx(&place, peers, 7)).await;
    drop(all_up(&Reach::Url(served.url.clone()), &place, 7).await);
    served.stop().await;
    assert_eq!(survivors(&place.mark()), Vec::<String>::new(), "after SIGTERM");

    let place = Workplace::new();
    let Connect::Command { command, args, env } = stdio(&place, &under_npx(&place, peers, 7)) else { unreachable!() };
    let program = Program { path: command, args, env: env.into_iter().collect() };
    let client = all_up(&Reach::Child(program), &place, 7).await;
    client.stdio().close().await;
    assert!(client.stdio().ended().await.success(), "it ends as asked");
    assert_eq!(survivors(&place.mark()), Vec::<String>::new(), "after the end of stdin");

    let place = Workplace::new();
    let served = Served::start(&place, &under_npx(&place, peers, 6)).await;
    drop(all_up(&Reach::Url(served.url.clone()), &place, 6).await);
    served.kill().await;
    none_left(&place.mark()).await;
}

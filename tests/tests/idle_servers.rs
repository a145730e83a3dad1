//! Servers on uvicorn and Node, whose idle connections end after 5 s by default: calls exactly then.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::time::Duration;

use tokio::process::Command;
use tokio::time::sleep;
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers::{self, Listening, Workplace};
use trunkline_tests::revision::Revision;

const LANES: usize = 20;
const CALLS: usize = 10;
/// The time-out of idle connections of both servers.
const TIMEOUT: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long; .ci/full runs it"]
async fn calls_at_the_idle_timeout_of_uvicorn_and_node_succeed() {
    let Some(peers) = peers::ready() else { return };
    let place = Workplace::new();
    let node = Listening::start(&place, |port| {
        let mut command = Command::new(&peers.node);
        command.arg(peers.node_dir.join("idle.mjs")).arg(port.to_string());
        command
    });
    let uvicorn = Listening::start(&place, |port| {
        let mut command = Command::new(peers.python_bin.join("python"));
        command.arg(peers.python_dir.join("idle.py")).arg(port.to_string());
        command
    });
    let (node, uvicorn) = tokio::join!(node, uvicorn);
    let section = |name: &str, port| format!("[upstreams.{name}]\nurl = \"http://127.0.0.1:{port}/mcp\"");
    let config = Config::new().section(&section("node", node.port)).section(&section("uvicorn", uvicorn.port));
    let gateway = Gateway::serve(&config).await;
    let mut lanes = Vec::new();
    for number in 0..2 * LANES {
        let tool = ["node__echo", "uvicorn__echo"][number % 2];
        let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
        client.tools_until("the tools are listed", |tools| tools.contains(&tool.into())).await;
        lanes.push(tokio::spawn(async move {
            let mut errors = Vec::new();
            for _ in 0..CALLS {
                let answer = client.call_once(tool, "{}").await;
                errors.extend(answer.frame().error.is_some().then(|| answer.error().to_owned()));
                sleep(TIMEOUT).await;
            }
            errors
        }));
    }
    for lane in lanes {
        assert_eq!(lane.await.expect("a lane ends"), Vec::<String>::new());
    }
}

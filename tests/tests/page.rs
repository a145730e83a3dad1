//! The page at `/ui` in a browser: every view, a live call, a call of a tool; in both schemes, wide and narrow, and by axe's judgement.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::peers;
use trunkline_tests::process::{self, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within_limit;

/// The browser starts, and axe judges 32 views.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(480);
const SECRET: &str = "a-long-secret-of-the-upstream";

/// What the form of a tool sends, digit for digit.
const SENT: &str = "{\"arguments\":{\"a\":90071992547409931,\"b\":0.10000000000000000555}}";

/// The link that a person is given.
async fn link(gateway: &Gateway) -> String {
    let said = gateway.command(&["ui", "--print"]).output().await.expect("it runs");
    let link = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    assert!(link.starts_with(&format!("{}/ui#enter=", gateway.admin)), "{said:?}");
    link
}

/// Clicks through all of it; `call` is done when it asks for a live call, and it has the link when it asks for that.
async fn visited(browser: &Path, folder: &Path, gateway: &Gateway, call: impl AsyncFn()) -> Value {
    let mut command = Command::new("node");
    let door = format!("{}/ui", gateway.admin);
    command.arg("page.mjs").arg(browser).arg(door).current_dir(folder).kill_on_drop(true);
    // `TRUNKLINE_PICTURES=FOLDER` leaves a picture of each view there.
    command.args(std::env::var_os("TRUNKLINE_PICTURES"));
    let mut node = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().expect("node starts");
    let mut lines = BufReader::new(node.stdout.take().expect("a pipe was asked for")).lines();
    let mut stdin = node.stdin.take().expect("a pipe was asked for");
    let mut last = String::new();
    while let Some(line) = lines.next_line().await.expect("it can be read") {
        let answer = match &*line {
            "call please" => {
                call().await;
                "done\n".to_owned()
            }
            "link please" => format!("{}\n", link(gateway).await),
            _ => String::new(),
        };
        stdin.write_all(answer.as_bytes()).await.expect("it is read");
        last = line;
    }
    assert!(node.wait().await.expect("it can be waited for").success(), "the browser did not see what it was to see");
    serde_json::from_str(&last).expect("a report")
}

#[tokio::test]
async fn a_browser_sees_every_view_and_a_live_call_calls_a_tool_and_finds_no_fault() {
    let Some((browser, folder)) = peers::page() else { return };
    let up = Upstream::stdio(Script::new("up", Revision::R2025_11_25)).await;
    let demo = Program { path: process::beside(process::GATEWAY), args: vec!["demo-upstream".into()], env: Vec::new() };
    let keys = format!("env = {{ API_TOKEN = \"{SECRET}\" }}");
    let config = Config::new().upstream_with(&up, &keys).program("demo", &demo, "");
    let broken = "[upstreams.broken]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo '<img src=x onerror=alert(1)>' >&2; exit 3\"]";
    let gateway = Gateway::serve(&config.section(broken)).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    let listed = |tools: &[String]| ["up__echo", "demo__add"].iter().all(|name| tools.contains(&(*name).to_owned()));
    client.tools_until("its tools are listed", listed).await;
    client.call("up__echo", "{}").await.text();
    let call = async || drop(client.call("up__echo", "{\"a\":\"live\"}").await.text());
    let report = within_limit(LIMIT, "the browser has seen all", visited(&browser, &folder, &gateway, call)).await;
    for nothing in ["console", "faults", "overflow", "requests"] {
        assert_eq!(report[nothing], serde_json::json!([]), "{nothing}: {:#}", report[nothing]);
    }
    assert_eq!(report["checked"].as_array().map(Vec::len), Some(36));
    let seen = &report["seen"];
    assert_eq!(seen["address"], format!("{}/ui", gateway.admin), "the code does not stay in the address");
    assert_eq!((&seen["cookie"][0]["httpOnly"], &seen["cookie"][0]["sameSite"]), (&true.into(), &"Strict".into()));
    assert_eq!((&seen["stopped"], &seen["answer"], &seen["markup"]), (&"stopped".into(), &"42".into(), &0.into()));
    assert_eq!((&seen["first"], &seen["skipped"], &seen["left"]), (&"skip".into(), &"main".into(), &0.into()));
    assert_eq!((&seen["sent"], &seen["exact"]), (&SENT.into(), &true.into()), "numbers are as they were written");
    assert_eq!(seen["odd"], serde_json::json!([]), "what is no text is not shown as text");
    let config = seen["config"].as_str().unwrap_or_default();
    assert!(config.contains("[secret]") && !config.contains(SECRET), "{config}");
}

//! The audit: a line for each call, order and configuration in a file of its own.

use tokio::process::Command;
use trunkline_tests::client::{Client, Request};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const LEGACY: Revision = Revision::R2025_11_25;

#[tokio::test]
async fn the_audit_has_each_call_order_and_configuration_and_no_arguments() {
    let scratch = Scratch::new();
    let file = scratch.path().join("audit.jsonl");
    let child = Upstream::stdio(Script::new("child", LEGACY)).await;
    let tokens = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n";
    let audit = format!("[audit]\nfile = \"{}\"", file.display());
    let config = Config::new().section(tokens).section(&audit).upstream(&child);
    let gateway = Gateway::serve(&config).await;
    let mut ann = Client::open(&gateway.reach(), LEGACY).await;
    ann.http().always("authorization", "Bearer ann-has-a-long-token");
    ann.greet().await;
    ann.tools_until("the child is listed", |tools| tools.contains(&"child__echo".into())).await;
    ann.call("child__echo", "{\"a\":\"argument\"}").await.text();
    ann.request(Request::new("resources/read", r#"{"uri":"file:///nowhere"}"#)).await;
    for order in [&["restart", "child"][..], &["reload"]] {
        let run = within("it answers", gateway.command(order).output()).await.expect("it runs");
        assert!(run.status.success(), "{run:?}");
    }
    // What was handed in is written before the end.
    assert!(gateway.stop().await.success());
    let text = std::fs::read_to_string(&file).expect("there is an audit");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let find = |key: &str, word: &str| lines.iter().find(|line| line[key] == word).unwrap_or_else(|| panic!("{text}"));
    let call = find("name", "child__echo");
    assert_eq!((&call["event"], &call["principal"]), (&"call".into(), &"token:ann".into()), "{call}");
    assert_eq!((&call["upstream"], &call["outcome"]), (&"child".into(), &"ok".into()), "{call}");
    // The digest of {"a":"argument"}.
    assert_eq!(call["arguments_sha256"].as_str().map(str::len), Some(64), "{call}");
    assert!(!text.contains("argument\""), "{text}");
    assert_eq!(find("uri", "file:///nowhere")["method"], "resources/read");
    let order = find("order", "restart");
    assert_eq!((&order["upstream"], &order["by"]), (&"child".into(), &"control socket".into()), "{order}");
    assert_eq!(find("order", "reload")["status"], 200);
    assert_eq!(find("event", "configuration")["outcome"], "unchanged");
}

#[tokio::test]
async fn a_gateway_that_cannot_write_its_audit_does_not_start_and_says_why() {
    let scratch = Scratch::new();
    // No user, not even root, can create a file below a file.
    let audit = scratch.file("occupied", "").join("audit");
    let text = format!("[admin]\nlisten = \"off\"\n[audit]\nfile = {audit:?}\n[upstreams.a]\ncommand = \"true\"\n");
    let file = scratch.file("trunkline.toml", &text);
    let mut command = Command::new(process::beside("trunkline-under-test"));
    let run = within("it ends", command.arg("stdio").arg("--config").arg(&file).kill_on_drop(true).output()).await;
    let run = run.expect("it runs");
    let said = String::from_utf8_lossy(&run.stderr);
    let expected = format!("cannot write the audit to {}", audit.display());
    assert!(!run.status.success() && said.contains(&expected), "{said}");
}

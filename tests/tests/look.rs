//! `trunkline ls` and `trunkline status`: what a person sees of a running gateway.

use std::process::Output;

use tokio::process::Command;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::beside;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

async fn look(arguments: &[&str], admin: &str) -> Output {
    let admin = admin.trim_start_matches("http://");
    let mut command = Command::new(beside("trunkline-under-test"));
    command.args(arguments).args(["--admin", admin]).env("HOME", "/nonexistent").kill_on_drop(true);
    within("it answers", command.output()).await.expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn upstreams_are_listed_and_one_is_described() {
    let up = Upstream::stdio(Script::new("up", Revision::R2025_11_25)).await;
    let config = Config::new().upstream(&up).section("[upstreams.ill]\ncommand = \"/no/such/command\"");
    let gateway = Gateway::serve(&config).await;
    until("both have come to a state that stays", || async {
        let listed = text(&look(&["ls"], &gateway.admin).await.stdout);
        let row = |name: &str, state: &str| listed.lines().any(|line| line.starts_with(name) && line.contains(state));
        (row("up", "ready") && row("ill", "failed") && listed.contains("/no/such/command")).then_some(())
    })
    .await;
    let status = look(&["status", "up"], &gateway.admin).await;
    assert!(status.status.success());
    let sheet = text(&status.stdout);
    assert!(sheet.contains("2025-11-25 (handshake)") && sheet.contains("pid "), "{sheet}");
    let json = text(&look(&["status", "up", "--json"], &gateway.admin).await.stdout);
    assert!(json.contains("\"state\": \"ready\""), "{json}");
    let all = text(&look(&["ls", "--json"], &gateway.admin).await.stdout);
    assert!(all.contains("\"upstreams\""), "{all}");
    let unknown = look(&["status", "nobody"], &gateway.admin).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("it has up, ill"), "{}", text(&unknown.stderr));
}

#[tokio::test]
async fn where_no_gateway_is_it_says_what_to_do() {
    let output = look(&["ls"], "127.0.0.1:1").await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is `trunkline serve` running?"), "{}", text(&output.stderr));
}

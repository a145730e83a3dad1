//! `trunkline ls` and `trunkline status`: what a person sees of a running gateway.

use std::process::Output;

use tokio::process::Command;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

async fn look(arguments: &[&str], gateway: &Gateway) -> Output {
    within("it answers", gateway.command(arguments).output()).await.expect("it runs")
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
        let listed = text(&look(&["ls"], &gateway).await.stdout);
        let row = |name: &str, state: &str| listed.lines().any(|line| line.starts_with(name) && line.contains(state));
        (row("up", "ready") && row("ill", "failed") && listed.contains("/no/such/command")).then_some(())
    })
    .await;
    let status = look(&["status", "up"], &gateway).await;
    assert!(status.status.success());
    let sheet = text(&status.stdout);
    assert!(sheet.contains("2025-11-25 (handshake)") && sheet.contains("pid "), "{sheet}");
    let json = text(&look(&["status", "up", "--json"], &gateway).await.stdout);
    assert!(json.contains("\"state\": \"ready\""), "{json}");
    let all = text(&look(&["ls", "--json"], &gateway).await.stdout);
    let all: serde_json::Value = serde_json::from_str(&all).expect("it is JSON");
    let ill = all["upstreams"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "ill"));
    let ill = ill.expect("both upstreams are listed");
    assert_eq!((&ill["code"], &ill["last_error"]["code"]), (&"command_not_found".into(), &"command_not_found".into()));
    let (cause, advice) = (ill["cause"].as_str().unwrap_or_default(), ill["advice"].as_str().unwrap_or_default());
    assert!(!advice.is_empty() && cause.ends_with(advice) && cause.contains("/no/such/command"), "{ill}");
    let overview = text(&look(&["status"], &gateway).await.stdout);
    assert!(overview.starts_with("NAME") && overview.contains("/no/such/command"), "{overview}");
    let unknown = look(&["status", "nobody"], &gateway).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("Known: up, ill"), "{}", text(&unknown.stderr));
}

#[tokio::test]
async fn what_was_last_wrong_is_told_when_it_is_well_again() {
    let up = Upstream::stdio(Script::new("up", Revision::R2025_11_25)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up)).await;
    let (first, _) = up.started(0).await;
    gateway.look_until("/readyz?verbose", "it is up", |page| page.contains("  ready  ")).await;
    process::signal(first, "KILL");
    let (second, _) = up.started(1).await;
    let is_back = |page: &str| page.contains(&format!("pid {second}")) && page.contains("  ready  ");
    let page = gateway.look_until("/readyz?verbose", "it is back", is_back).await;
    assert!(page.contains("1 restart (the last for crash)") && page.contains("ago: killed by SIGKILL"), "{page}");
    let sheet = text(&look(&["status", "up"], &gateway).await.stdout);
    let has = |what: &str, how: &str| sheet.lines().any(|line| line.starts_with(what) && line.contains(how));
    assert!(has("uptime ", " s") && has("restarts ", "1 (last: crash)"), "{sheet}");
    assert!(has("last error ", "ago: killed by SIGKILL") && !has("cause ", ""), "{sheet}");
    let json = text(&look(&["status", "up", "--json"], &gateway).await.stdout);
    let row: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert!(row["uptime_seconds"].is_u64() && row["era"] == "handshake" && row["downtime_seconds"].is_null(), "{json}");
    assert!(row["last_error"]["ago_seconds"].is_u64() && row["restarted_for"] == "crash", "{json}");
    assert_eq!(
        (&row["last_error"]["code"], &row["last_error"]["code_number"]),
        (&"killed".into(), &9.into()),
        "{json}"
    );
    let metrics = gateway.look("/metrics").await;
    let metrics = text(&metrics.body);
    assert!(!metrics.contains("_pid"), "a process id is no metric: {metrics}");
    let revision = |date: &str| format!("trunkline_upstream_revision{{upstream=\"up\",revision=\"{date}\"}}");
    assert!(metrics.contains(&format!("{} 1", revision("2025-11-25"))), "{metrics}");
    assert!(metrics.contains(&format!("{} 0", revision("2024-11-05"))), "{metrics}");
    assert!(metrics.contains("trunkline_upstream_uptime_seconds{upstream=\"up\"}"), "{metrics}");
}

#[tokio::test]
async fn where_no_gateway_is_it_says_what_to_do() {
    for arguments in [&["ls"][..], &["ls", "--admin", "127.0.0.1:1"]] {
        let mut command = Command::new(process::beside(process::GATEWAY));
        command.args(arguments).env("HOME", "/nonexistent").env("XDG_RUNTIME_DIR", "/nonexistent").kill_on_drop(true);
        let output = within("it answers", command.output()).await.expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains("is `trunkline serve` running?"), "{}", text(&output.stderr));
    }
}

#[tokio::test]
async fn what_an_upstream_may_ask_is_shown_where_it_is_the_same_for_all_its_calls() {
    let script = |name: &str, revision| Script::new(name, revision);
    let unset = Upstream::stdio(script("unset", Revision::R2025_11_25)).await;
    let all = Upstream::stdio(script("all", Revision::R2025_11_25)).await;
    let none = Upstream::stdio(script("none", Revision::R2025_11_25)).await;
    let stateless = Upstream::stdio(script("stateless", Revision::MODERN)).await;
    let http = Upstream::http(script("http", Revision::R2025_11_25)).await;
    let config = Config::new()
        .upstream(&unset)
        .upstream_with(&all, "offer = [\"elicitation\", \"sampling\", \"roots\"]")
        .upstream_with(&none, "offer = []")
        .upstream(&stateless)
        .upstream(&http);
    let gateway = Gateway::serve(&config).await;
    gateway.look_until("/readyz?verbose", "all are up", |page| page.matches("  ready  ").count() == 5).await;
    for (name, said, json) in [
        ("unset", Some("elicitation"), serde_json::json!(["elicitation"])),
        ("all", Some("elicitation, sampling, roots"), serde_json::json!(["elicitation", "sampling", "roots"])),
        ("none", Some("nothing; tools that ask for something may be missing or fail"), serde_json::json!([])),
        // Each call says what its client can be asked, and each session what its own can.
        ("stateless", None, serde_json::Value::Null),
        ("http", None, serde_json::Value::Null),
    ] {
        let sheet = text(&look(&["status", name], &gateway).await.stdout);
        let line = sheet.lines().find_map(|line| line.strip_prefix("may ask     "));
        assert_eq!(line, said, "{sheet}");
        let page = text(&look(&["status", name, "--json"], &gateway).await.stdout);
        let page: serde_json::Value = serde_json::from_str(&page).expect("it is JSON");
        assert_eq!(page["may_ask"], json, "{page}");
    }
}

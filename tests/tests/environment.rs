//! What children see of the environment, what the gateway does under its limits, and that no secret is told to the log.

use std::collections::BTreeMap;
use std::process::Stdio;

use tokio::process::Command;
use trunkline_tests::client::{Client, Request};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process::{GATEWAY, beside};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const LEGACY: Revision = Revision::R2025_11_25;

/// The environment that a process was started with.
fn environment(pid: u32) -> BTreeMap<String, String> {
    let raw = std::fs::read(format!("/proc/{pid}/environ")).expect("a child of ours can be looked at");
    let text = String::from_utf8_lossy(&raw).into_owned();
    text.split('\0').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

#[tokio::test]
async fn a_child_gets_what_was_declared_and_nothing_else() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let plain = Upstream::stdio(Script::new("plain", LEGACY)).await;
    let keys = "env = { DECLARED = \"yes\", RENAMED = \"${TOKEN_OF_UP}\", HOME = \"/elsewhere\" }\nenv_inherit = [\"PATH\", \"WANTED_*\"]";
    let config = Config::new()
        .upstream_with(&upstream, keys)
        .upstream(&plain)
        .env("CANARY_SECRET", "the canary")
        .env("AWS_SECRET_ACCESS_KEY", "the canary")
        .env("LD_PRELOAD_NOT", "the canary")
        .env("TOKEN_OF_UP", "for up alone")
        .env("npm_config__authToken", "the canary")
        .env("UV_PUBLISH_TOKEN", "the canary")
        .env("NPM_CONFIG_REGISTRY", "https://packages.example/")
        .env("UV_DEFAULT_INDEX", "https://index.example/simple")
        .env("WANTED_NAME", "wanted")
        .env("LC_ALL", "C.UTF-8");
    let _gateway = Gateway::serve(&config).await;
    let declared = environment(upstream.started(0).await.0);
    let wanted = [("DECLARED", "yes"), ("RENAMED", "for up alone"), ("HOME", "/elsewhere"), ("WANTED_NAME", "wanted")];
    for (name, value) in wanted {
        assert_eq!(declared.get(name).map(String::as_str), Some(value), "{name} in {declared:?}");
    }
    let names: Vec<&str> = declared.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["DECLARED", "HOME", "PATH", "RENAMED", "TRUNKLINE_MARK", "TRUNKLINE_VIA", "WANTED_NAME"],
        "its mark and the chain that it stands in, nothing else"
    );
    let plain = environment(plain.started(0).await.0);
    assert_eq!(plain.get("LC_ALL").map(String::as_str), Some("C.UTF-8"), "what programs need: {plain:?}");
    for (name, value) in
        [("NPM_CONFIG_REGISTRY", "https://packages.example/"), ("UV_DEFAULT_INDEX", "https://index.example/simple")]
    {
        assert_eq!(plain.get(name).map(String::as_str), Some(value), "where packages come from: {plain:?}");
    }
    for (name, value) in &plain {
        assert!(!value.contains("canary") && value != "for up alone" && value != "wanted", "{name}={value}");
    }
}

#[tokio::test]
async fn a_child_that_is_slow_to_start_is_shown_with_the_variables_that_were_not_passed_to_it() {
    let silent = Rule::on("initialize", vec![Act::Hang]);
    let given = Upstream::stdio(Script::new("given", LEGACY).rule(silent.clone())).await;
    let bare = Upstream::stdio(Script::new("bare", LEGACY).rule(silent)).await;
    let config = Config::new()
        .upstream_with(&given, "env = { AAA_TOKEN = \"${AAA_TOKEN}\" }\nenv_inherit = [\"*\"]")
        .upstream_with(&bare, "start_wait = \"1s\"")
        .env("AAA_TOKEN", "canary-of-a-token")
        .env("AAA_COLOURS", "canary-of-no-interest")
        .env("HTTPS_PROXY", "http://127.0.0.1:9");
    let gateway = Gateway::serve(&config).await;
    let is_slow = |page: &str| page.matches("no answer yet").count() == 2;
    let page = gateway.look_until("/readyz?verbose", "both are slow", is_slow).await;
    let line = |name: &str| page.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("bare").contains("; not passed to it: AAA_TOKEN"), "{page}");
    assert!(line("bare").contains("`env` or `env_inherit` passes them"), "{page}");
    assert!(!line("given").contains("not passed"), "it has all that there is: {page}");
    assert!(!page.contains("AAA_COLOURS") && !page.contains("HTTPS_PROXY") && !page.contains("canary"), "{page}");
    // Those who call are told what happens, and no name of a variable.
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    let call = Request::new("tools/call", "{\"name\":\"bare__echo\",\"arguments\":{}}");
    let refused = client.request(call).await.message();
    assert!(refused.contains("still starting") && !refused.contains("AAA_TOKEN"), "{refused}");
}

#[tokio::test]
async fn no_secret_is_told_to_the_log() {
    let exit = Rule::on_tool("fail", vec![Act::Exit(9)]).once();
    let child = Upstream::stdio(Script::new("child", LEGACY).rule(exit)).await;
    let session = Upstream::http(Script::new("session", LEGACY)).await;
    let stateless = Upstream::http(Script::new("stateless", Revision::MODERN)).await;
    let refusing = Rule::on("*", vec![Act::status(401, "text/plain", "who are you?")]);
    let refusing = Upstream::http(Script::new("refusing", LEGACY).rule(refusing)).await;
    let headers = "headers = { Authorization = \"Bearer canary-of-a-header\", X-Key = \"${KEY}\" }";
    let config = Config::new()
        .upstream_with(&child, "env = { API_KEY = \"canary-of-the-environment\" }")
        .upstream_with(&session, headers)
        .upstream_with(&stateless, headers)
        .upstream_with(&refusing, headers)
        .section("[[auth.tokens]]\nname = \"one\"\ntoken = \"canary-of-a-client-0123456789abcdef\"")
        .section("[log]\nlevel = \"trace\"\nformat = \"json\"")
        .env("KEY", "canary-from-the-environment");
    let gateway = Gateway::serve(&config).await;
    for revision in [LEGACY, Revision::MODERN] {
        let mut client = Client::open(&gateway.reach(), revision).await;
        client.http().always("authorization", "Bearer canary-of-a-client-0123456789abcdef");
        if !revision.is_modern() {
            client.greet().await;
        }
        client
            .tools_until("the tools are listed", |tools| tools.iter().filter(|t| t.contains("echo")).count() == 3)
            .await;
        for name in ["child__echo", "session__echo", "stateless__echo"] {
            assert!(client.call(name, "{\"a\":\"canary-of-arguments\"}").await.frame().error.is_none(), "{name}");
        }
        assert!(
            client
                .request(Request::new("resources/read", "{\"uri\":\"script://session/text\"}"))
                .await
                .frame()
                .error
                .is_none()
        );
        assert!(client.call("child__fail", "{}").await.message().contains("child"));
        assert!(client.call("refusing__echo", "{}").await.frame().error.is_some());
    }
    let stranger = Client::open(&gateway.reach(), Revision::MODERN).await;
    stranger.http().always("authorization", "Bearer canary-of-a-stranger");
    assert_eq!(stranger.request(Request::new("tools/list", "{}")).await.status, 401);
    let (_, sent) = session.received("tools/call").await;
    assert!(sent.iter().any(|(_, value)| value.contains("canary-of-a-header")), "the upstream is shown it: {sent:?}");
    gateway.says(&["refusing", "401"]).await;
    let page = gateway.look("/readyz?verbose").await;
    assert!(gateway.stop().await.success());
    gateway.says(&["(stderr has ended)"]).await;
    let log = gateway.stderr.all().join("\n") + &String::from_utf8_lossy(&page.body);
    assert!(log.contains("TRACE") || log.contains("DEBUG") || log.contains("trace"), "it says all it can: {log}");
    let leak = log.lines().find(|line| line.contains("canary"));
    assert_eq!(leak, None, "no secret is told");
}

#[tokio::test]
async fn a_limit_on_the_size_of_files_ends_nobody() {
    if !Command::new("prlimit").arg("--version").output().await.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no `prlimit`");
        return;
    }
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve_under(&["prlimit", "--fsize=128"], &Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    gateway.says(&["cannot cache inventories"]).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert!(gateway.stop().await.success(), "it ends as asked");
}

#[tokio::test]
async fn where_no_thread_can_be_started_that_is_said_in_a_line() {
    // A limit on processes holds for users of their own, who may not get at our program.
    let user = ["--clear-groups".to_owned(), format!("--reuid={}", 60_000 + std::process::id() % 5000)];
    let is_reached = Command::new("setpriv")
        .args(&user)
        .arg(beside(GATEWAY))
        .arg("version")
        .output()
        .await
        .is_ok_and(|output| output.status.success());
    if !is_reached {
        eprintln!("skipped: another user cannot be had, or cannot reach the program");
        return;
    }
    for command in ["serve", "stdio"] {
        let mut line = Command::new("prlimit");
        line.args(["--nproc=1:1", "setpriv"]).args(&user);
        line.arg(beside(GATEWAY)).arg(command).env("HOME", "/nonexistent").env("RUST_BACKTRACE", "0");
        let output = within("it ends", line.stdin(Stdio::null()).kill_on_drop(true).output()).await.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        // The first line says that the demo is served.
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains("cannot start threads") && said.lines().count() == 2, "{command}: {said}");
    }
}

//! Sessions at upstreams that outlive the gateway: kept for clients that come back, ended for those that do not.

use super::told::lost;
use super::wishes::wished;
use super::*;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// The files in which sessions are kept, and what is in them.
fn files(gateway: &Gateway) -> Vec<(PathBuf, String)> {
    let Ok(entries) = std::fs::read_dir(gateway.state().join("upstream-sessions")) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("it can be looked at").path());
    paths.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap_or_default())).collect()
}

/// How many lines are kept.
fn lines(gateway: &Gateway) -> usize {
    files(gateway).iter().map(|(_, text)| text.lines().count()).sum()
}

/// Waits until so many lines are kept: a gateway that is killed has no time for that.
pub(super) async fn kept(gateway: &Gateway, least: usize) {
    until("it is kept", async || (lines(gateway) >= least).then_some(())).await;
}

/// The next run, after an order or a kill.
pub(super) async fn next(gateway: &mut Gateway, config: &Config, is_killed: bool) {
    match is_killed {
        true => gateway.kill().await,
        false => assert!(gateway.stop().await.success()),
    }
    gateway.again(config).await;
}

pub(super) async fn back(client: &Client) {
    client.http().rest();
    ready(client).await;
}

pub(super) fn echo() -> Request {
    tool("up__echo", "{}")
}

#[tokio::test]
async fn a_client_that_comes_back_finds_its_own_session_however_the_gateway_has_ended() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let (first, second) = (session_of(&upstream, &one, "a").await, session_of(&upstream, &two, "b").await);
    for (run, is_killed) in [false, true, true, false].into_iter().enumerate() {
        kept(&gateway, 2).await;
        for (_, text) in files(&gateway) {
            assert!(!text.contains(&*first) && text.lines().all(|line| line.starts_with("trunkline-u1.")), "{text}");
        }
        next(&mut gateway, &config, is_killed).await;
        back(&one).await;
        back(&two).await;
        let answer = one.request(echo()).await;
        assert_eq!(lost(&answer), Value::Null, "nothing was lost, run {run}");
        assert_eq!(session_of(&upstream, &one, &format!("a{run}")).await, first, "run {run}");
        assert_eq!(session_of(&upstream, &two, &format!("b{run}")).await, second, "run {run}");
    }
    let said = gateway.says(&["session of an earlier run revived"]).await;
    assert!(!said.contains("lost"), "what they kept goes on: {said}");
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
    let numbers: Vec<String> = upstream.events.all().iter().filter_map(|event| number_in(event, &first)).collect();
    let mut once = numbers.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), numbers.len(), "no request has the number of another one: {numbers:?}");
    leave(&gateway, &one).await;
    until("it is ended with its client", async || visited(&upstream, "DELETE", &first).then_some(())).await;
}

/// The number of a request in a session.
fn number_in(event: &Event, session: &str) -> Option<String> {
    let What::Frame { raw, headers } = &event.what else { return None };
    let frame = Frame::parse(raw.as_bytes()).ok()?;
    let is_request = frame.method.is_some() && frame.id.is_some();
    (is_request && header(headers, "mcp-session-id").as_deref() == Some(session)).then(|| frame.id_text().to_owned())
}

#[tokio::test]
async fn what_the_upstream_has_forgotten_meanwhile_is_said_in_the_first_result_and_in_the_log() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    let first = session_of(&upstream, &one, "a").await;
    gateway.stop().await;
    upstream.order(Order::ForgetSessions).await;
    gateway.again(&config).await;
    back(&one).await;
    back(&two).await;
    assert_eq!(lost(&two.request(echo()).await), Value::Null, "it had none");
    let word = json!({ "upstream": "up", "reason": "restart", "lost": ["roots", "tools"] });
    assert_eq!(lost(&one.request(echo()).await), word);
    assert_eq!(lost(&one.request(echo()).await), Value::Null, "it is said once");
    assert_ne!(session_of(&upstream, &one, "b").await, first);
    gateway.says(&["session of an earlier run lost by the upstream", "roots, tools)"]).await;
}

#[tokio::test]
async fn a_session_with_tools_of_its_own_has_them_again() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let one = connected(&gateway, LEGACY).await;
    let hears = one.listen(&[URI]).await;
    assert_eq!(one.call("up__touch", "{}").await.text(), "touched_0");
    hears.hears(0, CHANGED).await;
    let added = "up__touched_0".to_owned();
    one.tools_until("its own tool is listed", |tools| tools.contains(&added)).await;
    // Opened, subscribed, with lists of its own.
    kept(&gateway, 3).await;
    wished(&gateway, &[]).await;
    next(&mut gateway, &config, true).await;
    back(&one).await;
    assert_eq!(lost(&one.request(echo()).await), Value::Null, "it is subscribed again");
    one.tools_until("its own tool is listed", |tools| tools.contains(&added)).await;
    assert!(one.call(&added, "{\"nonce\":\"n\"}").await.text().contains('n'));
}

#[tokio::test]
async fn what_no_client_comes_back_to_is_ended_after_the_idle_time() {
    let idle = "[server.session]\nidle_timeout = \"1s\"";
    let (upstream, mut gateway) = stage(|_| {}, "", idle).await;
    let config = Config::new().upstream(&upstream).section(idle);
    let client = connected(&gateway, LEGACY).await;
    let first = session_of(&upstream, &client, "a").await;
    kept(&gateway, 1).await;
    gateway.kill().await;
    assert!(!visited(&upstream, "DELETE", &first), "it was killed");
    gateway.again(&config).await;
    until("it is ended", async || visited(&upstream, "DELETE", &first).then_some(())).await;
    assert!(!upstream.sessions().contains(&first));
    gateway.stop().await;
    assert_eq!(files(&gateway), [], "nothing is left to come back to");
}

#[tokio::test]
async fn where_that_is_configured_nothing_is_kept_and_a_gateway_that_ends_leaves_nothing() {
    let never = "[server.session]\nresume_upstream = false";
    let (upstream, mut gateway) = stage(|_| {}, "", never).await;
    let client = connected(&gateway, LEGACY).await;
    let first = session_of(&upstream, &client, "a").await;
    gateway.stop().await;
    assert_eq!((upstream.sessions(), files(&gateway)), (Vec::<String>::new(), Vec::new()));
    gateway.again(&Config::new().upstream(&upstream).section(never)).await;
    back(&client).await;
    assert_eq!(lost(&client.request(echo()).await)["reason"], "restart");
    assert_ne!(session_of(&upstream, &client, "b").await, first);
}

#[tokio::test]
async fn what_no_client_can_come_back_to_ends_with_the_gateway() {
    let (upstream, gateway) = stage(|_| {}, "", "").await;
    let much = format!("{{\"experimental\":{{\"x\":{{\"y\":\"{}\"}}}}}}", "z".repeat(2000));
    let unsealed = Client::connect_with(&gateway.reach(), LEGACY, Desk::closed().declaring(&much)).await;
    ready(&unsealed).await;
    let left = connected(&gateway, LEGACY).await;
    session_of(&upstream, &unsealed, "a").await;
    session_of(&upstream, &left, "b").await;
    leave(&gateway, &left).await;
    gateway.stop().await;
    assert_eq!(upstream.sessions(), Vec::<String>::new(), "a gateway that ends leaves nothing");
    assert_eq!(files(&gateway), []);
}

#[tokio::test]
async fn where_nothing_can_be_kept_calls_go_on_and_the_log_says_so_once() {
    for is_link in [false, true] {
        let (upstream, mut gateway) = stage(|_| {}, "", "").await;
        let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
        let (folder, aside) = (gateway.state().join("upstream-sessions"), gateway.state().join("aside"));
        std::fs::create_dir_all(&aside).expect("a folder can be made");
        match is_link {
            true => std::os::unix::fs::symlink(&aside, &folder).expect("a link can be made"),
            false => std::fs::write(&folder, "in the way").expect("a file can be written"),
        }
        let (first, second) = (session_of(&upstream, &one, "a").await, session_of(&upstream, &two, "b").await);
        let said = "sessions at upstreams cannot be kept";
        gateway.says(&[said, "upstream-sessions"]).await;
        gateway.stop().await;
        assert_eq!(gateway.stderr.all().iter().filter(|line| line.contains(said)).count(), 1, "link: {is_link}");
        assert_eq!(upstream.sessions(), Vec::<String>::new(), "nobody would find them again");
        assert_eq!(std::fs::read_dir(&aside).expect("it is there").count(), 0, "nothing is written behind a link");
        gateway.again(&Config::new().upstream(&upstream)).await;
        back(&one).await;
        back(&two).await;
        assert_ne!(session_of(&upstream, &one, "c").await, first);
        assert_ne!(session_of(&upstream, &two, "d").await, second);
    }
}

/// What has the upstream answer each ping with this status.
fn pings(status: u16) -> Order {
    Order::Rules(vec![Rule::on("ping", vec![Act::status(status, "text/plain", "not now")])])
}

#[tokio::test]
async fn the_end_of_an_old_session_leaves_the_new_one_in_its_place_kept() {
    let idle = "[server.session]\nidle_timeout = \"2s\"";
    let (upstream, mut gateway) = stage(|_| {}, "", idle).await;
    let config = Config::new().upstream(&upstream).section(idle);
    let client = connected(&gateway, LEGACY).await;
    let first = session_of(&upstream, &client, "a").await;
    kept(&gateway, 1).await;
    gateway.kill().await;
    upstream.order(pings(500)).await;
    gateway.again(&config).await;
    back(&client).await;
    assert!(client.request(echo()).await.frame().result.is_none(), "it cannot be asked just now");
    assert_eq!(lost(&client.request(echo()).await)["reason"], "restart");
    upstream.order(Order::Rules(Vec::new())).await;
    let second = session_of(&upstream, &client, "b").await;
    assert_ne!(second, first);
    let ended = async || {
        assert_eq!(session_of(&upstream, &client, "c").await, second);
        visited(&upstream, "DELETE", &first).then_some(())
    };
    until("the old one is ended while calls go on in the new one", ended).await;
    client.request(echo()).await;
    next(&mut gateway, &config, true).await;
    back(&client).await;
    assert_eq!(lost(&client.request(echo()).await), Value::Null, "nothing was lost");
    assert_eq!(session_of(&upstream, &client, "d").await, second);
}

#[tokio::test]
async fn credentials_that_are_refused_for_a_moment_lose_no_session() {
    let (upstream, mut gateway) = stage(|_| {}, "", "").await;
    let config = Config::new().upstream(&upstream);
    let client = connected(&gateway, LEGACY).await;
    let first = session_of(&upstream, &client, "a").await;
    for status in [401, 403] {
        kept(&gateway, 1).await;
        gateway.stop().await;
        upstream.order(pings(status)).await;
        gateway.again(&config).await;
        back(&client).await;
        assert!(client.request(echo()).await.frame().result.is_none(), "it cannot be asked just now: {status}");
        upstream.order(Order::Rules(Vec::new())).await;
        assert_eq!(lost(&client.request(echo()).await), Value::Null, "{status}");
        assert_eq!(session_of(&upstream, &client, &format!("b{status}")).await, first, "{status}");
    }
}

#[tokio::test]
async fn an_id_as_long_as_a_token_is_kept_and_a_session_with_a_longer_one_ends_with_the_gateway_and_is_said_to_be_lost()
{
    for (bytes, is_kept) in [(4096, true), (4097, false)] {
        let (upstream, mut gateway) = stage(|script| script.http.session_bytes = bytes, "", "").await;
        let client = connected(&gateway, LEGACY).await;
        let first = session_of(&upstream, &client, "a").await;
        assert_eq!(first.len(), bytes);
        kept(&gateway, 1).await;
        gateway.stop().await;
        assert_eq!(upstream.sessions().contains(&first), is_kept, "{bytes}");
        gateway.again(&Config::new().upstream(&upstream)).await;
        back(&client).await;
        assert_eq!(lost(&client.request(echo()).await).is_null(), is_kept, "{bytes}");
        assert_eq!(session_of(&upstream, &client, "b").await == first, is_kept, "{bytes}");
    }
}

#[tokio::test]
async fn a_file_of_kept_sessions_that_is_refused_is_named_in_the_log_with_what_to_do() {
    for kind in ["mode", "link", "pipe"] {
        let (upstream, mut gateway) = stage(|_| {}, "", "").await;
        let client = connected(&gateway, LEGACY).await;
        session_of(&upstream, &client, "a").await;
        kept(&gateway, 1).await;
        gateway.stop().await;
        let (file, aside) = (files(&gateway).remove(0).0, gateway.state().join("aside"));
        match kind {
            "mode" => std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).expect("it is ours"),
            _ => std::fs::rename(&file, &aside).expect("it is ours"),
        }
        match kind {
            "link" => symlink(&aside, &file).expect("a link can be made"),
            "pipe" => assert!(std::process::Command::new("mkfifo").arg(&file).status().expect("it runs").success()),
            _ => {}
        }
        gateway.again(&Config::new().upstream(&upstream)).await;
        let name = file.file_name().and_then(|name| name.to_str()).expect("it is text");
        let said = "file of sessions at upstreams refused";
        gateway.says(&[said, name, "chmod 600", "delete it"]).await;
        back(&client).await;
        client.request(echo()).await;
        assert_eq!(gateway.stderr.all().iter().filter(|line| line.contains(said)).count(), 1, "{kind}");
    }
}

#[tokio::test]
async fn a_session_whose_upstream_was_configured_otherwise_meanwhile_is_said_to_be_lost() {
    let keys = "headers = { X-Kind = \"first\" }";
    let (upstream, mut gateway) = stage(|_| {}, keys, "").await;
    let (one, two) = (connected(&gateway, LEGACY).await, connected(&gateway, LEGACY).await);
    session_of(&upstream, &one, "a").await;
    kept(&gateway, 1).await;
    let text = std::fs::read_to_string(&gateway.file).expect("it can be read");
    std::fs::write(&gateway.file, text.replace("\"first\"", "\"second\"")).expect("it can be written");
    next(&mut gateway, &Config::new().upstream_with(&upstream, keys), false).await;
    back(&one).await;
    back(&two).await;
    assert_eq!(lost(&one.request(echo()).await)["reason"], "restart");
    assert_eq!(lost(&one.request(echo()).await), Value::Null, "it is said once");
    assert_eq!(lost(&two.request(echo()).await), Value::Null, "it had none");
    gateway.says(&["session of an earlier run lost", "the upstream was configured otherwise"]).await;
}

#[tokio::test]
async fn a_session_of_a_gateway_with_another_state_folder_is_said_to_be_lost() {
    let key = format!("[server.session]\nsigning_key = \"{}\"", "k".repeat(40));
    let (upstream, mut gateway) = stage(|_| {}, "", &key).await;
    let client = connected(&gateway, LEGACY).await;
    session_of(&upstream, &client, "a").await;
    kept(&gateway, 1).await;
    let config = Config::new().upstream(&upstream).section(&key);
    next(&mut gateway, &config, false).await;
    back(&client).await;
    assert_eq!(lost(&client.request(echo()).await), Value::Null, "in its own folder it is found");
    let elsewhere = trunkline_tests::scratch::Scratch::new();
    let moved = config.env("XDG_STATE_HOME", &elsewhere.path().display().to_string());
    next(&mut gateway, &moved, false).await;
    back(&client).await;
    assert_eq!(lost(&client.request(echo()).await)["reason"], "restart");
    assert_eq!(lost(&client.request(echo()).await), Value::Null, "it is said once");
    gateway.says(&["session of an earlier run lost", "the gateway had another state folder"]).await;
}

//! When an upstream runs: with the gateway, when it is needed, when a person says so; and no longer than it is needed.

use std::process::Output;

use trunkline_tests::client::http;
use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{ADMIN_TOKEN, Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::within;

const LEGACY: Revision = Revision::R2025_11_25;

async fn upstream(way: Way) -> Upstream {
    Upstream::start(way, Script::new("up", LEGACY)).await
}

/// How many processes of it, or sessions with it, there have been.
async fn starts(upstream: &Upstream) -> usize {
    let is_start = |event: &&Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains("\"initialize\""));
    upstream.seen().await.iter().filter(is_start).count()
}

async fn order(order: &str, gateway: &Gateway) -> Output {
    within("it answers", gateway.command(&[order, "up"]).output()).await.expect("it runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

async fn is_in(gateway: &Gateway, state: &str) -> String {
    let wanted = format!("\"state\": \"{state}\"");
    gateway.look_until("/readyz?verbose&format=json", &format!("it is {state}"), |page| page.contains(&wanted)).await
}

#[tokio::test]
async fn a_lazy_upstream_starts_with_its_first_call_and_is_listed_before() {
    for way in [Way::Stdio, Way::Http] {
        let (home, upstream) = (Scratch::new(), upstream(way).await);
        let path = home.path().display().to_string();
        let config = Config::new().env("HOME", &path).env("XDG_CACHE_HOME", &path);
        let config = config.upstream_with(&upstream, "start = \"lazy\"\nera = \"legacy\"");
        // It was never seen: whoever asks for the tools needs it.
        let first = Gateway::serve(&config).await;
        is_in(&first, "idle").await;
        assert_eq!((starts(&upstream).await, first.look("/readyz").await.status), (0, 200));
        let client = Client::connect(&first.reach(), LEGACY).await;
        client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
        assert!(first.stop().await.success());
        // Over HTTP one more session reads the lists that such clients are given.
        let seen = if matches!(way, Way::Http) { 2 } else { 1 };
        assert_eq!(starts(&upstream).await, seen, "{way:?}");
        // Now it is known, and nobody needs it to list them.
        let second = Gateway::serve(&config).await;
        second.says(&["\"state\":\"idle\"", "\"upstream\":\"up\""]).await;
        let client = Client::connect(&second.reach(), LEGACY).await;
        assert!(client.tools().await.contains(&"up__echo".into()));
        assert!(!client.list("prompts/list", "prompts", "name").await.is_empty());
        is_in(&second, "idle").await;
        assert_eq!(starts(&upstream).await, seen, "{way:?}");
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert!(starts(&upstream).await > seen, "{way:?}");
        is_in(&second, "ready").await;
    }
}

#[tokio::test]
async fn a_lazy_upstream_starts_when_somebody_subscribes() {
    let (home, upstream) = (Scratch::new(), upstream(Way::Stdio).await);
    let path = home.path().display().to_string();
    let config = Config::new().env("HOME", &path).env("XDG_CACHE_HOME", &path);
    let config = config.upstream_with(&upstream, "start = \"lazy\"");
    let first = Gateway::serve(&config).await;
    let client = Client::connect(&first.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    assert!(first.stop().await.success());
    let second = Gateway::serve(&config).await;
    is_in(&second, "idle").await;
    let client = Client::open(&second.reach(), Revision::MODERN).await;
    let ear = client.listen(&["script://up/text"]).await;
    let mark = ear.heard.mark();
    is_in(&second, "ready").await;
    let updated = Order::Notify("notifications/resources/updated".into(), "{\"uri\":\"script://up/text\"}".into());
    upstream.order(updated).await;
    ear.hears(mark, "notifications/resources/updated").await;
}

#[tokio::test]
async fn a_manual_upstream_runs_from_start_to_stop() {
    let upstream = upstream(Way::Stdio).await;
    let config = Config::new().upstream_with(&upstream, "start = \"manual\"");
    let gateway = Gateway::serve(&config).await;
    is_in(&gateway, "stopped").await;
    assert_eq!(gateway.look("/readyz").await.status, 200);
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    assert!(client.tools().await.is_empty(), "it was never seen, and nobody waits for it");
    let refused = client.call("up__echo", "{}").await;
    assert!(
        refused.message().contains("is not available: starts only with `trunkline start up`"),
        "{}",
        refused.message()
    );
    assert_eq!(starts(&upstream).await, 0);
    let started = order("start", &gateway).await;
    assert!(started.status.success() && said(&started).contains("up is ready (6 tools)"), "{}", said(&started));
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert!(said(&order("start", &gateway).await).contains("up is ready"), "it runs already");

    let running = client.start(tool("up__wait", "{\"gate\":\"never\"}")).await;
    upstream.waiting_at("never").await;
    let stopped = order("stop", &gateway).await;
    assert!(stopped.status.success() && said(&stopped).contains("up is stopped"), "{}", said(&stopped));
    upstream.gone(0).await;
    assert!(running.answer().await.code() != 0, "what ran is told");
    assert!(client.tools().await.contains(&"up__echo".into()), "its tools stay listed");
    let refused = client.call("up__echo", "{}").await;
    assert!(refused.message().contains("trunkline start up"), "{}", refused.message());
    assert!(refused.error().contains("\"retriable\":false"), "only a person starts it: {}", refused.error());

    assert!(order("start", &gateway).await.status.success());
    upstream.started(1).await;
    assert_eq!(client.call("up__echo", "{\"a\":2}").await.text(), "{\"a\":2}");
    assert!(order("restart", &gateway).await.status.success());
    upstream.gone(1).await;
    assert_eq!(client.call("up__echo", "{\"a\":3}").await.text(), "{\"a\":3}");
    assert!(is_in(&gateway, "ready").await.contains("\"restarts\": 0"), "nothing was mended");
}

#[tokio::test]
async fn a_manual_upstream_behind_a_host_says_how_it_is_started() {
    let upstream = upstream(Way::Stdio).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream_with(&upstream, "start = \"manual\""));
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    let log = &client.stdio().stderr;
    let says = |line: &String| line.contains("starts only with `trunkline start up`").then_some(());
    log.wait("the log says what to do", says).await;
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let config = Config::new().section("[upstreams.up]\ncommand = \"/no/such/command\"\nstart = \"manual\"");
    let gateway = Gateway::serve(&config).await;
    is_in(&gateway, "stopped").await;
    let failed = order("start", &gateway).await;
    assert!(failed.status.code() == Some(1) && said(&failed).contains("/no/such/command"), "{}", said(&failed));
    let unknown = order("sto", &gateway).await;
    assert_eq!(unknown.status.code(), Some(2), "wrong usage");
}

#[tokio::test]
async fn no_page_gives_orders() {
    let upstream = upstream(Way::Stdio).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    is_in(&gateway, "ready").await;
    let url = format!("{}/upstreams/up/stop", gateway.admin);
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let (json, token) = (("content-type", "application/json"), ("authorization", bearer.as_str()));
    for (headers, status) in [
        (vec![json], 401),
        (vec![token], 415),
        (vec![token, ("content-type", "text/plain")], 415),
        (vec![token, json, ("origin", gateway.admin.as_str())], 403),
        (vec![token, json, ("origin", "http://evil.example")], 403),
    ] {
        assert_eq!(http::exchange(&url, "POST", &headers, "{}").await.status, status, "{headers:?}");
    }
    assert_eq!(http::exchange(&url, "GET", &[], "").await.status, 405);
    is_in(&gateway, "ready").await;
    assert_eq!(http::exchange(&url, "POST", &[json, token], "{}").await.status, 200);
    is_in(&gateway, "stopped").await;
}

#[tokio::test]
async fn what_nobody_needs_is_stopped_and_started_again_when_it_is() {
    let upstream = upstream(Way::Stdio).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "idle_stop = \"300ms\"")).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    upstream.gone(0).await;
    is_in(&gateway, "idle").await;
    assert!(client.tools().await.contains(&"up__echo".into()), "its tools stay listed");
    assert_eq!(starts(&upstream).await, 1, "and nobody needs it for that");
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    upstream.started(1).await;
    // A call in flight keeps it, whoever else is gone for long.
    let running = client.start(tool("up__wait", "{\"gate\":\"door\"}")).await;
    upstream.waiting_at("door").await;
    let before = starts(&upstream).await;
    upstream.order(Order::Release("door".into())).await;
    running.answer().await.result();
    assert_eq!(starts(&upstream).await, before);
    let page = is_in(&gateway, "idle").await;
    assert!(page.contains("\"restarts\": 0") && page.contains("\"tools\": 6"), "{page}");
}

#[tokio::test]
async fn a_session_that_nobody_needs_is_ended() {
    let upstream = upstream(Way::Http).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "idle_stop = \"300ms\"")).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    let ends = |event: &Event| matches!(&event.what, What::Visit { method, .. } if method == "DELETE").then_some(());
    upstream.events.wait("the session is ended", ends).await;
    is_in(&gateway, "idle").await;
    assert_eq!(starts(&upstream).await, 1);
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert!(starts(&upstream).await > 1, "a session with whoever calls may come on top");
}

#[tokio::test]
async fn no_call_is_lost_however_often_its_upstream_is_let_go_of() {
    let upstream = upstream(Way::Stdio).await;
    // The shortest time there is: it is let go of between any two calls, and while the next one comes.
    let gateway =
        Gateway::serve(&Config::new().upstream_with(&upstream, "idle_stop = \"1ms\"\nera = \"legacy\"")).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    for number in 0..30 {
        let arguments = format!("{{\"number\":{number}}}");
        assert_eq!(client.call("up__echo", &arguments).await.text(), arguments);
    }
    // On a quick machine no two calls are a millisecond apart: once it rests, the next one finds it so.
    is_in(&gateway, "idle").await;
    assert_eq!(client.call("up__echo", "{\"number\":30}").await.text(), "{\"number\":30}");
    assert!(starts(&upstream).await > 1, "it was let go of");
    assert!(is_in(&gateway, "idle").await.contains("\"restarts\": 0"));
}

/// Of what is written about one upstream only so much is written in a minute; what was left out is told, and how it stood.
#[tokio::test]
async fn an_upstream_that_comes_and_goes_fills_no_log() {
    const ORDERS: usize = 15;
    let upstream = upstream(Way::Stdio).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    for _ in 0..ORDERS {
        assert!(order("restart", &gateway).await.status.success());
        is_in(&gateway, "ready").await;
    }
    assert!(order("stop", &gateway).await.status.success());
    assert!(gateway.stop().await.success());
    let about: Vec<String> = gateway.stderr.all();
    let about: Vec<&String> = about.iter().filter(|line| line.contains("\"upstream\":\"up\"")).collect();
    assert!((10..=21).contains(&about.len()), "19 and one, and one at the end: {about:#?}");
    let last = about.last().expect("there are some");
    assert!(
        last.contains("suppressed") && last.contains("\"last\":\"upstream stopped: stopped on request"),
        "{about:#?}"
    );
    assert!(!last.contains("\"lines\":0"), "{last}");
}

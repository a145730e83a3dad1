//! Each client over a link of its own era: which links an upstream is given, and when.

mod together;
mod words;

use trunkline_tests::client::{Client, Open, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::{until, within};

const LEGACY: Revision = Revision::R2025_11_25;

/// An upstream that speaks both eras.
async fn dual(way: Way) -> Upstream {
    let both = |script: &mut Script| script.revisions.push(Revision::MODERN);
    Upstream::start(way, Script::new("up", LEGACY).with(both)).await
}

const UPDATED: &str = "notifications/resources/updated";
const URI: &str = "script://up/changing";

async fn restart(gateway: &Gateway) {
    let done = within("it is restarted", gateway.command(&["restart", "up"]).output()).await.expect("it runs");
    assert!(done.status.success(), "{done:?}");
}

/// How many calls were bridged from an era.
async fn bridged(gateway: &Gateway, from: &str) -> u64 {
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    let series = format!("trunkline_bridged_calls_total{{from=\"{from}\"");
    let line = page.lines().find(|line| line.starts_with(&series)).unwrap_or_else(|| panic!("no {series} in {page}"));
    line.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

async fn count(upstream: &Upstream, method: &str) -> usize {
    let wanted = format!("\"{method}\"");
    let fits = |event: &&Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains(&wanted));
    upstream.seen().await.iter().filter(fits).count()
}

async fn started(upstream: &Upstream) -> usize {
    upstream.seen().await.iter().filter(|event| matches!(event.what, What::Started { .. })).count()
}

/// A client that has the list of tools.
async fn listed(gateway: &Gateway, revision: Revision) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("the tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    client
}

#[tokio::test]
async fn one_child_serves_clients_of_both_eras_unless_a_second_one_is_allowed() {
    for (keys, children, of_stateless) in [("", 1, 1), ("eras = \"both\"", 2, 0)] {
        let upstream = dual(Way::Stdio).await;
        let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
        let (handshake, stateless) = (listed(&gateway, LEGACY).await, listed(&gateway, Revision::MODERN).await);
        assert_eq!(handshake.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert_eq!(started(&upstream).await, 1, "{keys}: no list starts a child");
        assert_eq!(stateless.call("up__echo", "{\"a\":2}").await.text(), "{\"a\":2}");
        assert_eq!(started(&upstream).await, children, "{keys}");
        assert_eq!((bridged(&gateway, "modern").await, bridged(&gateway, "legacy").await), (of_stateless, 0), "{keys}");
        let said = gateway.command(&["status", "up"]).output().await.expect("it runs");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert_eq!(said.contains("modern: ready"), children == 2, "{said}");
        assert_eq!(upstream.complaints().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_era_that_is_refused_is_tried_once_and_is_no_fault() {
    let upstream = Upstream::http(Script::new("up", Revision::MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    for number in 1..=3 {
        let client = listed(&gateway, LEGACY).await;
        assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
        assert_eq!(bridged(&gateway, "legacy").await, number);
    }
    assert_eq!(count(&upstream, "initialize").await, 1);
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    assert!(page.contains("trunkline_upstream_state{upstream=\"up\",state=\"ready\"} 1"), "{page}");
    let failed: Vec<_> = page.lines().filter(|line| line.starts_with("trunkline_upstream_failures_total{")).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[tokio::test]
async fn an_era_that_is_fixed_bridges_the_clients_of_the_other_one() {
    for way in [Way::Stdio, Way::Http] {
        let upstream = dual(way).await;
        let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "era = \"legacy\"")).await;
        let (handshake, stateless) = (listed(&gateway, LEGACY).await, listed(&gateway, Revision::MODERN).await);
        handshake.call("up__echo", "{}").await.text();
        stateless.call("up__echo", "{}").await.text();
        assert_eq!((bridged(&gateway, "modern").await, bridged(&gateway, "legacy").await), (1, 0), "{way:?}");
        assert_eq!(count(&upstream, "server/discover").await, 0, "{way:?}");
    }
}

#[tokio::test]
async fn a_subscription_and_the_list_follow_to_the_second_child_and_outlive_it() {
    let upstream = dual(Way::Stdio).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "eras = \"both\"")).await;
    let client = listed(&gateway, Revision::MODERN).await;
    let changes = client.listen(&[URI]).await;
    let mark = changes.heard.mark();
    client.call("up__echo", "{}").await.text();
    assert_eq!(started(&upstream).await, 2);
    // What changed before the second child was listened to was not heard of.
    changes.hears(mark, UPDATED).await;
    let mark = changes.heard.mark();
    restart(&gateway).await;
    changes.hears(mark, UPDATED).await;
    // The list of the child that has ended is nobody's any more.
    upstream.order(Order::AddTool("later".into())).await;
    client.tools_until("the list of the link that stands", |tools| tools.contains(&"up__later".into())).await;
    assert_eq!(started(&upstream).await, 3, "no list and no subscription starts a child");
    let mark = changes.heard.mark();
    client.call("up__later", "{}").await;
    changes.hears(mark, UPDATED).await;
}

#[tokio::test]
async fn a_subscription_of_the_other_era_is_made_again_after_a_restart_over_http() {
    let upstream = dual(Way::Http).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = listed(&gateway, LEGACY).await;
    client.call("up__echo", "{}").await.text();
    let changes = client.listen(&[URI]).await;
    assert_eq!(count(&upstream, "resources/subscribe").await, 1);
    let mark = changes.heard.mark();
    restart(&gateway).await;
    changes.hears(mark, UPDATED).await;
    let mark = changes.heard.mark();
    client.call("up__echo", "{}").await.text();
    changes.hears(mark, UPDATED).await;
    assert_eq!(count(&upstream, "resources/subscribe").await, 2);
}

#[tokio::test]
async fn a_restart_lets_the_calls_of_both_eras_end() {
    let upstream = dual(Way::Stdio).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "eras = \"both\"")).await;
    let client = listed(&gateway, Revision::MODERN).await;
    let call = client.start(tool("up__wait", "{\"gate\":\"g\"}")).await;
    upstream.waiting_at("g").await;
    let ending = async {
        gateway.look_until("/readyz?verbose", "it waits", |page| page.contains("1 running calls have 5 s")).await;
        upstream.order(Order::Open("g".into())).await;
        call.answer().await
    };
    let ((), answer) = tokio::join!(restart(&gateway), ending);
    assert_eq!(answer.text(), "released");
}

#[tokio::test]
async fn a_restart_while_the_first_child_is_idle_restarts_the_second_one_too_once_its_calls_have_ended() {
    let upstream = dual(Way::Stdio).await;
    let keys = "eras = \"both\"\nidle_stop = \"300ms\"";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let client = listed(&gateway, Revision::MODERN).await;
    let call = client.start(tool("up__wait", "{\"gate\":\"g\"}")).await;
    upstream.waiting_at("g").await;
    gateway.look_until("/readyz?verbose", "the first child rests", |page| page.contains("idle")).await;
    let before = started(&upstream).await;
    let ending = async {
        gateway.look_until("/readyz?verbose", "it waits", |page| page.contains("1 running calls have 5 s")).await;
        upstream.order(Order::Open("g".into())).await;
        call.answer().await
    };
    let ((), answer) = tokio::join!(restart(&gateway), ending);
    assert_eq!(answer.text(), "released");
    assert_eq!(started(&upstream).await, before + 1, "the first child is started");
    assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
    assert_eq!(started(&upstream).await, before + 2, "and the second one anew");
}

/// A call that runs until its gate is opened.
async fn held<'a>(client: &'a Client, upstream: &Upstream, gate: &str) -> Open<'a> {
    let call = client.start(tool("up__wait", &format!("{{\"gate\":\"{gate}\"}}"))).await;
    upstream.waiting_at(gate).await;
    call
}

#[tokio::test]
async fn of_two_children_the_one_that_nobody_calls_rests_alone_and_is_started_by_the_next_call_of_its_era() {
    let upstream = dual(Way::Stdio).await;
    let keys = "eras = \"both\"\nidle_stop = \"300ms\"";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let clients = [listed(&gateway, LEGACY).await, listed(&gateway, Revision::MODERN).await];
    for (busy, quiet) in [(0, 1), (1, 0)] {
        let gate = format!("g{busy}");
        let call = held(&clients[busy], &upstream, &gate).await;
        assert_eq!(clients[quiet].call("up__echo", "{}").await.text(), "{}");
        let both = gateway.children().len();
        until("the one that nobody calls rests", async || (gateway.children().len() == both - 1).then_some(())).await;
        let before = started(&upstream).await;
        assert_eq!(clients[quiet].call("up__echo", "{}").await.text(), "{}");
        assert_eq!((started(&upstream).await, gateway.children().len()), (before + 1, both), "it alone is started");
        upstream.order(Order::Open(gate)).await;
        assert_eq!(call.answer().await.text(), "released", "the other one was never touched");
    }
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn calls_of_both_eras_count_against_one_limit() {
    for (way, keys) in [(Way::Http, ""), (Way::Stdio, "eras = \"both\"\n")] {
        let upstream = dual(way).await;
        let keys = format!("{keys}max_concurrency = 1\nqueue = 1");
        let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &keys)).await;
        let clients = [listed(&gateway, LEGACY).await, listed(&gateway, Revision::MODERN).await];
        for client in &clients {
            // Both links are there.
            assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
        }
        for (busy, other) in [(0, 1), (1, 0)] {
            let gate = format!("g{busy}");
            let call = held(&clients[busy], &upstream, &gate).await;
            let waits = clients[other].start(tool("up__echo", "{\"nonce\":\"waits\"}")).await;
            gateway.look_until("/readyz?verbose", "it waits", |page| page.contains("1 queued")).await;
            upstream.order(Order::Open(gate)).await;
            assert_eq!(call.answer().await.text(), "released");
            assert!(waits.answer().await.text().contains("waits"));
        }
        assert_eq!((bridged(&gateway, "modern").await, bridged(&gateway, "legacy").await), (0, 0), "{way:?}");
    }
}

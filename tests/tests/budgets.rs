//! Upstreams that end again and again: so many starts, then one in a while, never two at once, and all of it is shown.

use std::time::Duration;

use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const REVISION: Revision = Revision::R2025_11_25;
/// Three starts, then one each four seconds.
const WINDOW: Duration = Duration::from_secs(4);
const KEYS: &str = "restart = { backoff_min = \"1ms\", backoff_max = \"2ms\", max_restarts = 3, window = \"4s\" }";

fn starts(upstream: &Upstream) -> Vec<(u32, u64)> {
    let pick = |event: Event| match event.what {
        What::Started { pid } => Some((pid, event.at)),
        _ => None,
    };
    upstream.events.all().into_iter().filter_map(pick).collect()
}

/// A child that ends by itself in its handshake: `count` starts, the state in words, and one more start when that is due.
async fn spends_its_budget(rule: Rule, era: &str, count: usize, says: &str) {
    let upstream = Upstream::stdio(Script::new("frail", REVISION).rule(rule)).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &format!("era = \"{era}\"\n{KEYS}"))).await;
    let path = "/readyz?verbose&format=json";
    let page = gateway.look_until(path, "it has failed", |page| page.contains("\"state\": \"failed\"")).await;
    let page: serde_json::Value = serde_json::from_str(&page).expect("the page is JSON");
    let row = &page["upstreams"][0];
    assert!(row["cause"].as_str().is_some_and(|cause| cause.contains(says)), "why is shown: {row}");
    assert!(row["retry_in_seconds"].is_u64() && row["restarts"] == 2, "and how often, and what comes next: {row}");
    let next = upstream.started(count).await;
    let starts = starts(&upstream);
    assert_eq!(starts.len(), count + 1, "{era}: so many starts, and one more after a while");
    let apart = Duration::from_micros(next.1 - starts[count - 1].1);
    assert!(apart >= WINDOW - Duration::from_millis(500), "{apart:?}");
}

#[tokio::test]
async fn who_ends_with_the_handshake_received_is_started_so_often_and_then_seldom() {
    let rule = || Rule::on("initialize", vec![Act::Exit(3)]);
    // The start that follows an end while the era was asked for does not count, and there is one of that kind.
    tokio::join!(spends_its_budget(rule(), "legacy", 3, "status 3"), spends_its_budget(rule(), "auto", 4, "status 3"));
}

#[tokio::test]
async fn who_ends_between_the_answer_and_the_end_of_the_handshake_is_started_so_often_and_then_seldom() {
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\
                  \"serverInfo\":{\"name\":\"frail\",\"version\":\"1\"}}}\n";
    let rule = Rule::on("initialize", vec![Act::Write(answer.into()), Act::Exit(4)]);
    spends_its_budget(rule, "legacy", 3, "status 4").await;
}

#[tokio::test]
async fn who_is_killed_again_and_again_is_started_so_often_never_twice_at_once_and_comes_back() {
    let upstream = Upstream::stdio(Script::new("frail", REVISION)).await;
    // An end while the era is asked for would be followed by a start that does not count.
    let keys = format!("era = \"legacy\"\n{KEYS}");
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, &keys)).await;
    for number in 0..3 {
        let (pid, _) = upstream.started(number).await;
        let before = starts(&upstream);
        assert!(before[..number].iter().all(|(pid, _)| !process::is_alive(*pid)), "never two at once: {before:?}");
        process::signal(pid, "KILL");
    }
    let page = gateway.look_until("/readyz?verbose", "it has failed", |page| page.contains("failed")).await;
    assert!(page.contains("SIGKILL") && page.contains("2 restarts"), "{page}");
    assert_eq!(starts(&upstream).len(), 3, "no further start so soon");
    upstream.started(3).await;
    let starts = starts(&upstream);
    assert_eq!(starts.len(), 4);
    gateway.look_until("/readyz?verbose", "it is back after a while", |page| page.contains("ready  ")).await;
    let client = Client::connect(&gateway.reach(), REVISION).await;
    client.tools_until("its tools are there", |tools| tools.contains(&"frail__echo".into())).await;
    assert!(Duration::from_micros(starts[3].1 - starts[2].1) >= WINDOW - Duration::from_millis(500), "{starts:?}");
}

/// Children take handles by fours, so one of four limits in a row leaves none where they may take the last one.
#[tokio::test]
async fn a_gateway_without_a_file_handle_left_says_so_and_starts_the_rest_when_it_has_some() {
    for limit in 72..77 {
        starts_the_rest(limit).await;
    }
}

async fn starts_the_rest(limit: u32) {
    const COUNT: usize = 24;
    let keys =
        "restart = { policy = \"on-failure\", backoff_min = \"200ms\", backoff_max = \"200ms\", max_restarts = 1000 }";
    let (mut config, mut upstreams) = (Config::new(), Vec::new());
    for number in 0..COUNT {
        let upstream = Upstream::stdio(Script::new(&format!("up{number}"), REVISION).only_tools(&["echo"])).await;
        config = config.upstream_with(&upstream, keys);
        upstreams.push(upstream);
    }
    // Enough for itself, its clients and some of the children, each of which takes three or four: whatever is left over, clients are
    // still served.
    let limit = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
    let gateway = Gateway::serve_under(&["/bin/sh", "-c", &limit], &config).await;
    let state = |page: &str| -> Vec<(String, String)> {
        let page: serde_json::Value = serde_json::from_str(page).expect("the page is JSON");
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let rows = page["upstreams"].as_array().expect("rows").iter();
        rows.map(|row| (text(&row["state"]), text(&row["cause"]))).collect()
    };
    let path = "/readyz?verbose&format=json";
    let is_settled = |page: &str| {
        let rows = state(page);
        rows.iter().any(|(state, _)| state == "ready") && rows.iter().any(|(_, cause)| cause.contains("ulimit -n"))
    };
    let page = gateway.look_until(path, "some are up, and why the others are not is said", is_settled).await;
    let ready: Vec<_> = state(&page).iter().map(|(state, _)| state == "ready").collect();
    // Those that are up end by themselves, for good: there is room for the others.
    let mut gone = 0;
    for (upstream, _) in upstreams.iter().zip(&ready).filter(|(_, is_ready)| **is_ready) {
        upstream.order(Order::Exit(0)).await;
        gone += 1;
    }
    let is_over = |page: &str| {
        let rows = state(page);
        let now = |wanted: &str| rows.iter().filter(|(state, _)| state == wanted).count();
        now("stopped") >= gone && rows.iter().zip(&ready).any(|((state, _), was)| state == "ready" && !was)
    };
    gateway.look_until(path, "others have started in their place", is_over).await;
    assert!(within("it ends", gateway.stop()).await.success());
}

//! Children that calls end, or that answer none in time, again and again: no call is sent to them for a while, then one tries. And how
//! many calls are sent a second time.

use tokio::time::Instant;
use trunkline_tests::client::{Answer, Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within;

const LEGACY: Revision = Revision::R2025_11_25;
const MODERN: Revision = Revision::MODERN;
const STATE: &str = "trunkline_breaker_state{upstream=\"frail\"}";

/// A frail child and a well one, a gateway before both, and a client of these tokens each.
struct Stage {
    frail: Upstream,
    gateway: Gateway,
    clients: Vec<Client>,
}

async fn stage(script: Script, keys: &str, clients: &[&str]) -> Stage {
    let frail = Upstream::start(Way::Stdio, script).await;
    let well = Upstream::start(Way::Stdio, Script::new("well", LEGACY)).await;
    let mut config = Config::new().upstream_with(&frail, keys).upstream(&well);
    for name in clients {
        config = config.section(&format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{name}-has-a-long-token\"\n"));
    }
    let gateway = Gateway::serve(&config).await;
    let mut open = Vec::new();
    for name in clients {
        let client = Client::bearing(&gateway.reach(), LEGACY, &format!("{name}-has-a-long-token")).await;
        let is_there =
            |tools: &[String]| ["frail__echo", "well__echo"].iter().all(|name| tools.contains(&(*name).into()));
        client.tools_until("both upstreams are there", is_there).await;
        open.push(client);
    }
    Stage { frail, gateway, clients: open }
}

impl Stage {
    async fn well_works(&self) {
        let answer = self.clients[0].call_once("well__echo", "{\"nonce\":\"n\"}").await;
        assert!(answer.frame().error.is_none(), "another upstream is not touched: {}", answer.error());
    }

    async fn shows(&self, what: &str, lines: &[String]) {
        let has_all = |page: &str| lines.iter().all(|line| page.contains(&format!("{line}\n")));
        self.gateway.look_until("/metrics", what, has_all).await;
    }
}

fn changes(to: &str, count: usize) -> String {
    format!("trunkline_breaker_transitions_total{{upstream=\"frail\",to=\"{to}\"}} {count}")
}

fn state(number: usize) -> String {
    format!("{STATE} {number}")
}

/// It was refused, was not sent, and the words are these.
fn is_held(answer: &Answer, words: &str) {
    let error = answer.error_value();
    assert_eq!((&error["data"]["retriable"], &error["data"]["upstream"]), (&true.into(), &"frail".into()), "{error}");
    assert!(answer.message().contains(words), "{error}");
}

#[tokio::test]
async fn a_child_that_calls_end_again_and_again_is_sent_none_and_others_are_not_touched() {
    let ends = Rule::on_tool("tool_error", vec![Act::Run, Act::Exit(3)]);
    let keys = "breaker = { failures = 3, open_for = \"1h\" }\nhealth = { interval = 0 }\n\
                restart = { backoff_min = \"10ms\", max_restarts = 100 }";
    let stage = stage(Script::new("frail", LEGACY).rule(ends), keys, &["ann"]).await;
    let ann = &stage.clients[0];
    for life in 0..3 {
        let answer = ann.call("frail__tool_error", &format!("{{\"nonce\":\"{life}\"}}")).await;
        assert_ne!(answer.error_value()["data"]["retriable"], true, "it may have run: {}", answer.error());
        stage.frail.gone(life).await;
        stage.well_works().await;
    }
    stage.gateway.says(&["frail", "failed 3 times in a row", "breaker_open"]).await;
    // It was started again, and is there.
    stage.frail.started(3).await;
    let cause = "trunkline_upstream_cause_info{upstream=\"frail\",code=\"breaker_open\"} 1".to_owned();
    stage.shows("the breaker is open", &[state(2), changes("open", 1), changes("half_open", 0), cause]).await;
    for name in ["frail__echo", "frail__tool_error"] {
        let answer = ann.call_once(name, "{\"nonce\":\"held\"}").await;
        is_held(&answer, "circuit breaker open, 3");
        assert!(answer.message().contains("failed 3 times in a row"), "{name}: {}", answer.error());
        stage.well_works().await;
    }
    let ran = stage.frail.executed().await;
    assert_eq!(ran, ["0", "1", "2"], "what was refused was not sent, and what was lost not sent again");
}

#[tokio::test]
async fn a_child_that_answers_no_call_in_time_is_sent_one_that_tries_until_there_is_an_answer() {
    let keys = "breaker = { failures = 2, open_for = \"1s\" }\nhealth = { interval = 0 }\n\
                tools = { override = { progress = { call_timeout = \"300ms\" } } }";
    let hangs = Rule::on_tool("progress", vec![Act::Hang]);
    let stage = stage(Script::new("frail", LEGACY).rule(hangs), keys, &["ann"]).await;
    let ann = &stage.clients[0];
    let is_late = |answer: Answer| assert!(answer.message().contains("did not answer"), "{}", answer.error());
    is_late(ann.call("frail__progress", "{}").await);
    is_late(ann.call("frail__progress", "{}").await);
    stage.gateway.says(&["frail", "failed 2 times in a row", "breaker_open"]).await;
    stage.well_works().await;
    // The first call that tries is not answered either, the second one is.
    stage.shows("its time is over", &[state(1), changes("open", 1)]).await;
    is_late(ann.call_once("frail__progress", "{}").await);
    stage.shows("its time is over again", &[state(1), changes("open", 2), changes("half_open", 1)]).await;
    let tries = ann.start(tool("frail__wait", "{}")).await;
    stage.frail.waiting(1).await;
    for _ in 0..3 {
        is_held(&ann.call_once("frail__echo", "{\"nonce\":\"held\"}").await, "one call is trying");
    }
    stage.well_works().await;
    stage.frail.order(Order::Release("wait".into())).await;
    assert!(tries.answer().await.frame().error.is_none());
    stage.shows("it is closed", &[state(0), changes("closed", 1), changes("open", 2), changes("half_open", 2)]).await;
    assert!(ann.call_once("frail__echo", "{\"nonce\":\"sent\"}").await.frame().error.is_none());
    assert_eq!(stage.frail.executed().await.last().map(String::as_str), Some("sent"));
    assert!(!stage.frail.executed().await.contains(&"held".to_owned()), "what was refused was not sent");
}

#[tokio::test]
async fn a_client_whose_calls_never_end_has_no_child_closed_for_others_that_it_answers() {
    let keys = "breaker = { failures = 3, open_for = \"1h\" }\nhealth = { interval = 0 }\n\
                tools = { override = { progress = { call_timeout = \"300ms\" } } }";
    let hangs = Rule::on_tool("progress", vec![Act::Hang]);
    let stage = stage(Script::new("frail", LEGACY).rule(hangs), keys, &["ann", "bob"]).await;
    let [ann, bob] = &stage.clients[..] else { panic!("two clients") };
    for _ in 0..4 {
        let mut calls = Vec::new();
        for _ in 0..20 {
            calls.push(ann.start(tool("frail__progress", "{}")).await);
        }
        for answer in within::all(calls.into_iter().map(|call| call.answer())).await {
            assert!(answer.message().contains("did not answer"), "{}", answer.error());
        }
        let answer = bob.call_once("frail__echo", "{\"nonce\":\"bob\"}").await;
        assert!(answer.frame().error.is_none(), "{}", answer.error());
    }
    stage.shows("it never opened", &[state(0), changes("open", 0)]).await;
}

#[tokio::test]
async fn calls_of_which_none_runs_are_sent_again_only_while_there_are_retries() {
    const CALLS: usize = 2000;
    let mismatch = Act::Error { code: -32020, message: "other headers".into(), data: None };
    let script = Script::new("frail", MODERN).rule(Rule::on_tool("fail", vec![mismatch])).with(|script| {
        script.journal_frames = false;
        script.journal_calls = true;
    });
    let frail = Upstream::start(Way::Stdio, script).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&frail, "health = { interval = 0 }")).await;
    let client = Client::connect(&gateway.reach(), MODERN).await;
    client.tools_until("the upstream is there", |tools| tools.contains(&"frail__fail".into())).await;
    let (since, mut told) = (Instant::now(), 0);
    for _ in 0..4 {
        let mut calls = Vec::new();
        for _ in 0..CALLS / 4 {
            calls.push(client.start(tool("frail__fail", "{}")).await);
        }
        for answer in within::all(calls.into_iter().map(|call| call.answer())).await {
            match answer.error_value()["data"]["retriable"].as_bool() {
                Some(true) => told += usize::from(answer.message().contains("try again")),
                _ => assert!(answer.message().contains("it refused what this gateway sent"), "{}", answer.error()),
            }
        }
    }
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    let count = |series: &str| -> usize {
        let line =
            page.lines().find_map(|line| line.strip_prefix(series)).unwrap_or_else(|| panic!("{series}: {page}"));
        line.trim().parse().expect("a count")
    };
    let again = count("trunkline_upstream_retries_total{upstream=\"frail\",reason=\"header_mismatch\"}");
    let withheld = count("trunkline_upstream_retries_withheld_total{upstream=\"frail\"}");
    // What is saved up, a tenth of the calls, and ten a second.
    let few = 10 * (usize::try_from(since.elapsed().as_secs()).expect("seconds") + 2);
    assert!((1024..=1024 + CALLS / 10 + few).contains(&again), "{again} with {few}");
    assert!(withheld > 0 && again + withheld == CALLS, "{again} {withheld}");
    assert_eq!(told, withheld, "the client may send what was not sent again");
    assert!(client.call("frail__echo", "{\"nonce\":\"n\"}").await.frame().error.is_none(), "others go on");
}

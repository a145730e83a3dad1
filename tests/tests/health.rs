//! Upstreams that are there and not well: noticed, shown, left alone or started again, and used as soon as they are well.

use crate::frail::{Stage, stage};
use trunkline_tests::client::tool;
use trunkline_tests::judge;
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Way;

const LEGACY: Revision = Revision::R2025_11_25;

impl Stage {
    /// The state stands in the long page, and in the metrics.
    async fn shows(&self, state: &str) -> String {
        let line = format!("trunkline_upstream_state{{upstream=\"frail\",state=\"{state}\"}} 1");
        self.gateway.look_until("/metrics", &format!("it is {state}"), |page| page.contains(&line)).await;
        self.gateway.look_until("/readyz?verbose", &format!("it is {state}"), |page| page.contains(state)).await
    }

    async fn works(&self) {
        let nonce = judge::nonce();
        let answer = self.client.call("frail__echo", &judge::arguments(&nonce)).await;
        assert_eq!(judge::echoed(&answer), Some(nonce), "{}", answer.error());
    }
}

async fn hung(revision: Revision) {
    // Who hangs is not asked to end: that would take the hour.
    let keys = "health = { interval = \"1s\", timeout = \"2s\", unhealthy_after = 2 }\nhang_restart = true
                restart = { stop_timeout = \"1h\" }";
    let stage = stage(Way::Stdio, Script::new("frail", revision), keys).await;
    let (pid, _) = stage.upstream.started(0).await;
    process::signal(pid, "STOP");
    let nonce = judge::nonce();
    let call = stage.client.start(tool("frail__echo", &judge::arguments(&nonce))).await;
    let answer = call.answer().await;
    assert!(answer.message().contains("no answer"), "why it was ended: {}", answer.error());
    assert!(answer.message().contains("frail"), "and whose it was: {}", answer.error());
    assert_ne!(answer.error_value()["data"]["retriable"], true, "it may have run: {}", answer.error());
    stage.upstream.started(1).await;
    stage.works().await;
    assert!(!process::is_alive(pid), "the one that hung is gone");
    stage.upstream.gone(0).await;
    assert!(!stage.upstream.executed().await.contains(&nonce), "it never ran, and was not sent again");
    stage.gateway.says(&["frail", "hung and was killed"]).await;
    let restarts = "trunkline_upstream_restarts_total{upstream=\"frail\",reason=\"hang\"} 1";
    stage.gateway.look_until("/metrics", "the restart is counted", |page| page.contains(restarts)).await;
}

#[tokio::test]
async fn a_child_that_hangs_is_started_again_where_that_is_wanted() {
    hung(LEGACY).await;
}

#[tokio::test]
async fn a_stateless_child_that_hangs_is_too() {
    hung(Revision::MODERN).await;
}

#[tokio::test]
async fn a_child_that_was_stopped_for_a_while_is_shown_and_its_late_answers_go_nowhere() {
    let keys = "health = { interval = \"500ms\", timeout = \"500ms\", unhealthy_after = 1 }\ncall_timeout = \"3s\"";
    // It answers after the call's time, whatever it is told meanwhile.
    let late = Rule { times: 1, ..Rule::on_tool("echo", vec![Act::Late(3_500)]) };
    let stage = stage(Way::Stdio, Script::new("frail", LEGACY).rule(late), keys).await;
    let (pid, _) = stage.upstream.started(0).await;
    let nonce = judge::nonce();
    let open = stage.client.start(tool("frail__echo", &judge::arguments(&nonce))).await;
    stage.upstream.ran(&nonce).await;
    process::signal(pid, "STOP");
    let answer = open.answer().await;
    assert!(answer.message().contains("did not answer"), "{}", answer.error());
    let page = stage.shows("degraded").await;
    assert!(page.contains("no answer to `ping` within 0.5 s"), "{page}");
    stage.gateway.says(&["frail", "no answer to `ping`"]).await;
    process::signal(pid, "CONT");
    stage.shows("ready").await;
    let late =
        |page: &str| page.contains("trunkline_protocol_violations_total{upstream=\"frail\",kind=\"late_answer\"}");
    stage.gateway.look_until("/metrics", "late answers are counted", late).await;
    stage.works().await;
    assert_eq!(stage.upstream.started(0).await.0, pid);
    assert!(stage.upstream.seen().await.iter().all(|event| event.instance == 0), "no restart");
}

/// The breaker of the upstream, and the cause that an open one is.
const BREAKER: &str = "trunkline_breaker_state{upstream=\"frail\"}";
const CAUSE: &str = "trunkline_upstream_cause_info{upstream=\"frail\",code=\"breaker_open\"}";

#[tokio::test]
async fn a_remote_upstream_that_fails_again_and_again_is_left_alone_and_shown() {
    let outage = Rule::on_tool("tool_error", vec![Act::status(500, "text/plain", "oops")]);
    let keys = "breaker = { failures = 3, open_for = \"1s\" }\nhealth = { interval = 0 }";
    let stage = stage(Way::Http, Script::new("frail", LEGACY).rule(outage), keys).await;
    for _ in 0..3 {
        assert!(stage.client.call("frail__tool_error", "{}").await.message().contains("500"));
    }
    stage.gateway.says(&["frail", "failed 3 times in a row", "breaker_open"]).await;
    let failures = "trunkline_upstream_failures_total{upstream=\"frail\",kind=\"status\",code=\"http_status\"} 3";
    let page = stage.gateway.look_until("/metrics", "each has its code", |page| page.contains(failures)).await;
    // Nothing is asked of it meanwhile: it stays open, or half-open once its time is over.
    let is_open = |page: &str| ["1", "2"].iter().any(|state| page.contains(&format!("{BREAKER} {state}\n")));
    assert!(is_open(&page) && page.contains(&format!("{CAUSE} 1\n")), "{page}");
    // Once its time is over any call may try.
    let works = || async {
        let answer = stage.client.call("frail__echo", "{}").await;
        if answer.frame().error.is_some() {
            assert_eq!(answer.error_value()["data"]["retriable"], true, "{}", answer.error());
            return None;
        }
        Some(())
    };
    trunkline_tests::within::until("a call is let through", works).await;
    stage.shows("ready").await;
    let is_closed = |page: &str| page.contains(&format!("{BREAKER} 0\n")) && !page.contains(CAUSE);
    let page = stage.gateway.look_until("/metrics", "the breaker is closed, and the cause is gone", is_closed).await;
    for (to, count) in [("open", 1), ("half_open", 1), ("closed", 1)] {
        let line = format!("trunkline_breaker_transitions_total{{upstream=\"frail\",to=\"{to}\"}} {count}\n");
        assert!(page.contains(&line), "{line} is not in {page}");
    }
}

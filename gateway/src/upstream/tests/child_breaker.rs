//! Children that calls end, or that answer none in time, again and again; and the budget of retries.

use super::host::{Host, empty};
use super::http::{is, legacy};
use super::*;
use crate::call::refusal::Refusal;
use crate::protocol::frame::message::{Frame, Id};
use crate::upstream::config::BreakerConfig;
use bytes::Bytes;
use tokio::time::advance;

const HOUR: Duration = Duration::from_secs(3600);

fn tool(what: &str) -> Call {
    call(LEGACY, Method::ToolsCall, &format!(r#"{{"name":"t","arguments":{{"do":"{what}"}}}}"#))
}

fn breaker(open_for: Duration) -> Option<BreakerConfig> {
    Some(BreakerConfig { failures: 2, open_for })
}

async fn refused(reply: Reply) -> Refusal {
    match bounded(reply.outcome()).await.1 {
        Outcome::Error(Failure::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn ends_in_a_row_open_it_each_counted_once_and_an_answer_between_them_closes_it() {
    let config = shell(&format!("case \"$line\" in *die*) exit 3 ;; *hang*) ;; *) {ANSWER} ;; esac"));
    let (upstream, board, tasks) = start(Config { breaker: breaker(HOUR), ..config });
    bounded(known(&mut upstream.inventory())).await;
    for _ in 0..2 {
        // One end takes all of these with it.
        let replies: Vec<_> =
            ["hang", "hang", "hang", "die"].map(|what| upstream.call(tool(what))).into_iter().collect();
        for reply in replies {
            assert_eq!(refused(reply).await.reason, Reason::OutcomeUnknown);
        }
        assert!(matches!(bounded(upstream.call(tool("echo")).outcome()).await.1, Outcome::Complete(_)));
    }
    for _ in 0..2 {
        assert_eq!(refused(upstream.call(tool("die"))).await.reason, Reason::OutcomeUnknown);
    }
    let refusal = refused(upstream.call(tool("echo"))).await;
    assert!(refusal.is_retriable() && refusal.reason == Reason::Unavailable, "{refusal}");
    assert!(refusal.message.contains("failed 2 times in a row (last: "), "{refusal}");
    assert!(refusal.message.contains("circuit breaker open, 3"), "{refusal}");
    is(&board, State::Degraded).await;
    stop(&upstream, &tasks).await;
}

#[tokio::test(start_paused = true)]
async fn silence_opens_it_and_then_one_call_tries_until_there_is_an_answer() {
    let config =
        Config { breaker: breaker(Duration::from_secs(10)), call_timeout: Some(Duration::from_secs(1)), ..config() };
    let mut rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    for _ in 0..2 {
        assert_eq!(refused(upstream.call(tool("echo"))).await.reason, Reason::Timeout);
    }
    let says = |refusal: Refusal, words: &str| {
        assert!(refusal.is_retriable() && refusal.message.contains(words), "{refusal}");
    };
    says(refused(upstream.call(tool("echo"))).await, "circuit breaker open, 10.0 s left");
    advance(Duration::from_secs(10)).await;
    let tries = upstream.call(tool("first"));
    says(refused(upstream.call(tool("echo"))).await, "half-open: one call is trying");
    // It was given up: another one may try, and fails.
    drop(tries);
    assert_eq!(refused(upstream.call(tool("second"))).await.reason, Reason::Timeout);
    says(refused(upstream.call(tool("echo"))).await, "circuit breaker open, 10.0 s left");
    advance(Duration::from_secs(10)).await;
    let mut tries = upstream.call(tool("third"));
    let id = sent(&mut rig, "third").await;
    rig.far.error(&id, -1).await;
    assert!(matches!(bounded(outcome(&mut tries)).await, Outcome::Error(Failure::Upstream(_))));
    assert!(!rig.instance.breaker.is_marked(), "an error is an answer");
}

#[tokio::test(start_paused = true)]
async fn calls_that_end_together_are_one_failure_and_an_answer_meanwhile_ends_the_row() {
    let config =
        Config { breaker: breaker(Duration::from_secs(10)), call_timeout: Some(Duration::from_secs(1)), ..config() };
    let mut rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    for _ in 0..3 {
        // So many at once, as a client sends that has others wait with it.
        let replies: Vec<_> = (0..9).map(|_| upstream.call(tool("hang"))).collect();
        for reply in replies {
            assert_eq!(refused(reply).await.reason, Reason::Timeout);
        }
        let mut answered = upstream.call(tool("echo"));
        let id = sent(&mut rig, "echo").await;
        rig.far.error(&id, -1).await;
        assert!(matches!(bounded(outcome(&mut answered)).await, Outcome::Error(Failure::Upstream(_))));
    }
    for _ in 0..2 {
        assert_eq!(refused(upstream.call(tool("hang"))).await.reason, Reason::Timeout);
    }
    let refusal = refused(upstream.call(tool("echo"))).await;
    assert!(refusal.message.contains("failed 2 times in a row"), "{refusal}");
}

/// The id of the next call that says this.
async fn sent(rig: &mut Rig, what: &str) -> Id {
    loop {
        if let Ok(Frame::Request { id, params, .. }) = Frame::parse(&Bytes::from(rig.far.line().await))
            && String::from_utf8_lossy(params.raw()).contains(what)
        {
            return id;
        }
    }
}

#[tokio::test]
async fn an_end_on_request_is_no_failure() {
    let config = shell(&format!("case \"$line\" in *hang*) ;; *) {ANSWER} ;; esac"));
    let (upstream, board, tasks) =
        start(Config { breaker: Some(BreakerConfig { failures: 1, open_for: HOUR }), ..config });
    bounded(known(&mut upstream.inventory())).await;
    let hanging = upstream.call(tool("hang"));
    let restarted = board.order("a", crate::health::Order::RestartNow).unwrap();
    assert_eq!(refused(hanging).await.reason, Reason::OutcomeUnknown);
    bounded(restarted).await.unwrap();
    assert!(matches!(bounded(upstream.call(tool("echo")).outcome()).await.1, Outcome::Complete(_)));
    stop(&upstream, &tasks).await;
}

#[tokio::test]
async fn a_call_whose_session_was_lost_is_sent_again_only_while_there_are_retries() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            if matches!(seen.method().as_str(), "tools/call" | "ping") {
                return empty(404);
            }
            legacy(&seen, "s1").unwrap_or_else(|| seen.result("{}"))
        })
    })
    .await;
    let (upstream, board, tasks) = start(Config { sharing: crate::upstream::config::Sharing::Shared, ..host.config() });
    is(&board, State::Ready).await;
    let sent = |host: &Host| host.count("POST tools/call");
    assert!(refused(upstream.call(tool("echo"))).await.is_retriable());
    assert_eq!(sent(&host), 2, "it is sent again");
    upstream.primary.retries.spend();
    is(&board, State::Ready).await;
    let refusal = refused(upstream.call(tool("echo"))).await;
    assert!(refusal.is_retriable() && refusal.message.contains("try again"), "{refusal}");
    assert_eq!(sent(&host), 3, "the budget is spent");
    tasks.end();
    bounded(upstream.stopped()).await;
}

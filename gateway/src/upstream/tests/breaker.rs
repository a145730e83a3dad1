//! HTTP upstreams that fail again and again, or ask to be left alone.

use super::super::config::{BreakerConfig, Config};
use super::super::*;
use super::host::{Host, json};
use super::http::{bounded, is, legacy, start, tool};
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Failure, Outcome};
use crate::health::StatusBoard;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const PLAY: &str = "POST tools/call";

struct Stage {
    host: Host,
    upstream: Upstream,
    board: StatusBoard,
    _tasks: Tasks,
}

/// An upstream whose n-th call, from 0, is answered by `play`; `None` is a good answer.
async fn stage(breaker: Option<BreakerConfig>, play: fn(usize) -> Option<String>) -> Stage {
    let calls = Arc::new(AtomicUsize::new(0));
    let host = Host::start(move |seen| {
        let calls = calls.clone();
        Box::pin(async move {
            legacy(&seen, "s1").unwrap_or_else(|| {
                play(calls.fetch_add(1, Ordering::SeqCst)).unwrap_or_else(|| seen.result(r#"{"content":[]}"#))
            })
        })
    })
    .await;
    let (upstream, board, tasks) = start(Config { breaker, ..host.config() });
    is(&board, State::Ready).await;
    Stage { host, upstream, board, _tasks: tasks }
}

impl Stage {
    /// One call: nothing, or why it has no result.
    async fn call(&self) -> Option<Refusal> {
        match bounded(self.upstream.call(tool()).outcome()).await.1 {
            Outcome::Complete(_) => None,
            Outcome::Error(Failure::Refused(refusal)) => Some(refusal),
            other => panic!("{other:?}"),
        }
    }
}

fn plain(status: u16, headers: &str) -> String {
    json(status, headers, "no")
}

fn breaker(failures: u32, open_for: Duration) -> Option<BreakerConfig> {
    Some(BreakerConfig { failures, open_for })
}

#[tokio::test]
async fn a_failure_on_every_second_call_is_passed_on_and_only_failures_in_a_row_hold_calls_back() {
    const HOUR: Duration = Duration::from_secs(3600);
    let stage = stage(breaker(5, HOUR), |n| (n % 2 == 1 || n >= 20).then(|| plain(500, ""))).await;
    for n in 0..20 {
        let refusal = stage.call().await;
        assert_eq!(refusal.map(|refusal| refusal.reason), (n % 2 == 1).then_some(Reason::OutcomeUnknown), "{n}");
    }
    assert_eq!((stage.host.count(PLAY), stage.upstream.state()), (20, State::Ready));
    // The last of them failed; four more make five.
    for _ in 0..4 {
        assert_eq!(stage.call().await.unwrap().reason, Reason::OutcomeUnknown);
    }
    for _ in 0..10 {
        let refusal = stage.call().await.unwrap();
        assert!(refusal.is_retriable() && refusal.reason == Reason::Unavailable, "{refusal}");
        assert!(refusal.message.contains("failed 5 times in a row (last: HTTP 500"), "{refusal}");
        assert!(refusal.message.contains("circuit breaker open, 3"), "{refusal}");
    }
    assert_eq!(stage.host.count(PLAY), 24, "nothing was sent any more");
    let health = stage.board.snapshot().remove(0);
    assert_eq!(health.state, State::Degraded);
    assert!(health.cause.unwrap().full().contains("failed 5 times in a row"));
}

#[tokio::test]
async fn after_a_while_one_call_tries_and_an_answer_is_the_end_of_it() {
    let stage = stage(breaker(2, Duration::from_millis(50)), |n| (n < 3).then(|| plain(503, ""))).await;
    stage.call().await.unwrap();
    stage.call().await.unwrap();
    let tried = bounded(async { while stage.call().await.is_some() {} });
    tried.await;
    assert_eq!(stage.host.count(PLAY), 4, "two failures, one that tried in vain, one that did not");
    is(&stage.board, State::Ready).await;
    assert_eq!(stage.call().await, None);
}

#[tokio::test]
async fn an_error_of_the_upstreams_own_is_an_answer_whatever_its_status() {
    let error = |_| Some(json(500, "", r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}"#));
    let stage = stage(breaker(2, Duration::from_secs(3600)), error).await;
    for n in 1..10 {
        let outcome = bounded(stage.upstream.call(tool()).outcome()).await.1;
        assert!(matches!(outcome, Outcome::Error(Failure::Upstream(_))), "{outcome:?}");
        assert_eq!(stage.host.count(PLAY), n);
    }
}

#[tokio::test]
async fn who_asks_to_be_left_alone_is_left_alone_for_a_minute_at_most() {
    for (status, wanted) in [(429, "30"), (503, "1000000000"), (503, "Fri, 31 Dec 9999 23:59:59 GMT")] {
        let play: fn(usize) -> Option<String> = match (status, wanted) {
            (429, _) => |_| Some(plain(429, "retry-after: 30\r\n")),
            (_, "1000000000") => |_| Some(plain(503, "retry-after: 1000000000\r\n")),
            _ => |_| Some(plain(503, "retry-after: Fri, 31 Dec 9999 23:59:59 GMT\r\n")),
        };
        let stage = stage(None, play).await;
        let first = stage.call().await.unwrap();
        assert!(first.message.contains("rate-limited by the upstream (Retry-After"), "{first}");
        assert!(first.in_full().message.contains(&format!("Retry-After: {wanted}")));
        for _ in 0..10 {
            let refusal = stage.call().await.unwrap();
            assert!(refusal.is_retriable() && refusal.reason == Reason::Unavailable, "{refusal}");
            let left =
                refusal.message.split("(Retry-After), ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
            let left: f32 = left.unwrap_or_else(|| panic!("the time stands in it: {refusal}"));
            assert!(left > 0.0 && left <= if status == 429 { 30.0 } else { 60.0 }, "{refusal}");
        }
        assert_eq!(stage.host.count(PLAY), 1, "nothing is sent before the time");
        assert_eq!(stage.upstream.state(), State::Degraded);
    }
}

#[tokio::test]
async fn a_pause_ends_with_its_time_and_nonsense_asks_for_none() {
    static SEEN: Mutex<Vec<Instant>> = Mutex::new(Vec::new());
    let stage = stage(None, |n| {
        SEEN.lock().unwrap().push(Instant::now());
        (n == 0).then(|| plain(503, "retry-after: 1\r\n"))
    })
    .await;
    bounded(async { while stage.call().await.is_some() {} }).await;
    let seen = SEEN.lock().unwrap().clone();
    assert_eq!(seen.len(), 2);
    assert!(seen[1] - seen[0] >= Duration::from_secs(1), "{:?}", seen[1] - seen[0]);
    is(&stage.board, State::Ready).await;
    for headers in ["retry-after: -5\r\n", "retry-after: soon\r\n", "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n"] {
        let play: fn(usize) -> Option<String> = match headers.len() {
            17 => |n| (n == 0).then(|| plain(429, "retry-after: -5\r\n")),
            19 => |n| (n == 0).then(|| plain(429, "retry-after: soon\r\n")),
            _ => |n| (n == 0).then(|| plain(429, "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n")),
        };
        let stage = self::stage(None, play).await;
        assert!(stage.call().await.is_some());
        assert_eq!(stage.call().await, None, "{headers}");
    }
}

#[tokio::test]
async fn who_refuses_the_credentials_is_shown_with_what_to_do_until_it_takes_them() {
    for (status, refusals) in [(401, 1), (403, 2)] {
        let play: fn(usize) -> Option<String> = match status {
            401 => |n| (n < 1).then(|| plain(401, "www-authenticate: Bearer\r\n")),
            _ => |n| (n < 2).then(|| plain(403, "")),
        };
        let stage = stage(None, play).await;
        for n in 1..=refusals {
            let refusal = stage.call().await.unwrap();
            assert!(
                refusal.message.contains("refused `tools/call`") && refusal.message.contains("`headers`"),
                "{refusal}"
            );
            let shown = if n < refusals { State::Ready } else { State::Degraded };
            assert_eq!(stage.upstream.state(), shown, "{status}");
        }
        let cause = stage.board.snapshot().remove(0).cause.unwrap();
        let cause = cause.full();
        assert!(cause.contains(&format!("HTTP {status}")) && cause.contains("`headers`"), "{cause}");
        assert_eq!(stage.call().await, None);
        assert_eq!(stage.upstream.state(), State::Ready);
    }
}

#[tokio::test]
async fn what_a_failure_said_is_told_to_no_caller() {
    let stage = stage(breaker(1, Duration::from_secs(3600)), |n| (n == 0).then(|| plain(500, ""))).await;
    let failed = stage.call().await.unwrap();
    assert!(failed.message.contains("HTTP 500 Internal Server Error (details: `trunkline status"), "{failed}");
    assert!(failed.in_full().message.contains("HTTP 500 Internal Server Error: no"));
    assert!(stage.board.snapshot()[0].cause.as_ref().unwrap().full().contains("HTTP 500 Internal Server Error: no"));
    let refused = stage.call().await.unwrap().message;
    assert!(refused.contains("(last: HTTP 500 Internal Server Error)"), "{refused}");
}

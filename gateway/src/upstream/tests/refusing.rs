//! HTTP upstreams that refuse one request: what that says of the others.

use super::super::*;
use super::host::{Host, Seen, empty, json};
use super::http::{bounded, is, legacy, legacy_apart, start, tool};
use crate::call::reply::{Failure, Outcome};
use crate::health::StatusBoard;
use std::sync::atomic::{AtomicBool, Ordering};

struct Stage {
    host: Host,
    upstream: Upstream,
    board: StatusBoard,
    _tasks: Tasks,
}

/// An upstream whose tool `bad` is answered by `play`; every other request is answered well.
async fn stage(play: impl Fn(&Seen) -> String + Send + Sync + 'static) -> Stage {
    let play = Arc::new(play);
    let host = Host::start(move |seen| {
        let play = play.clone();
        Box::pin(async move {
            legacy(&seen, "s1").unwrap_or_else(|| match seen.body.contains("\"bad\"") {
                true => play(&seen),
                false => seen.result(r#"{"content":[]}"#),
            })
        })
    })
    .await;
    let (upstream, board, tasks) = start(host.config());
    is(&board, State::Ready).await;
    Stage { host, upstream, board, _tasks: tasks }
}

impl Stage {
    async fn call(&self, name: &str) -> Outcome {
        let params = Object::parse(format!(r#"{{"name":"{name}"}}"#).into()).unwrap();
        bounded(self.upstream.call(Call { params, ..tool() }).outcome()).await.1
    }

    /// Calls the bad tool again and again: others are served, each call is sent once, and no session is given up for it.
    async fn refuses_one_tool(&self) -> Outcome {
        assert!(matches!(self.call("good").await, Outcome::Complete(_)));
        let (met, sent) = (self.host.count("POST initialize"), self.host.count("POST tools/call"));
        let mut last = None;
        for _ in 0..20 {
            last = Some(self.call("bad").await);
            let good = self.call("good").await;
            assert!(matches!(good, Outcome::Complete(_)), "{good:?}");
        }
        assert_eq!(self.host.count("POST tools/call") - sent, 40, "each was sent once");
        assert_eq!(self.host.count("POST initialize"), met, "a session was opened anew");
        assert_eq!((self.upstream.state(), self.board.snapshot()[0].restarts), (State::Ready, 0));
        last.unwrap()
    }
}

#[tokio::test]
async fn an_error_that_names_a_session_is_the_outcome_of_its_call() {
    for status in [400, 404] {
        let stage = stage(move |seen| {
            let error = r#"{"code":-32602,"message":"unknown key `session id`"}"#;
            json(status, "", &format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, seen.id()))
        })
        .await;
        let outcome = stage.refuses_one_tool().await;
        let Outcome::Error(Failure::Upstream(error)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.message().as_deref(), Some("unknown key `session id`"));
    }
}

#[tokio::test]
async fn the_refusal_of_one_tool_takes_the_session_from_nobody() {
    const NULL: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session not found"}}"#;
    let plays: [fn(&Seen) -> String; 4] = [
        |_| empty(404),
        |_| json(400, "", "your session is not allowed to do this"),
        |_| json(400, "", "Invalid session ID"),
        |_| json(404, "", NULL),
    ];
    for play in plays {
        let outcome = stage(play).await.refuses_one_tool().await;
        assert!(matches!(outcome, Outcome::Error(_)), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_session_that_is_lost_is_proved_once_and_opened_anew() {
    const SAID: &str =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;
    for (status, said) in [(404, ""), (400, SAID)] {
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = is_lost.clone();
        let host = Host::start(move |seen| {
            if seen.method() == "initialize" {
                lost.store(false, Ordering::SeqCst);
            }
            let is_in_session = matches!(seen.method().as_str(), "tools/call" | "ping");
            let is_lost = is_in_session && lost.load(Ordering::SeqCst);
            Box::pin(async move {
                match is_lost {
                    true => json(status, "", said),
                    false => legacy_apart(&seen).unwrap_or_else(|| seen.result(r#"{"content":[]}"#)),
                }
            })
        })
        .await;
        let (upstream, board, _tasks) = start(host.config());
        is(&board, State::Ready).await;
        assert!(matches!(bounded(upstream.call(tool()).outcome()).await.1, Outcome::Complete(_)));
        let met = host.count("POST initialize");
        is_lost.store(true, Ordering::SeqCst);
        let replies: Vec<_> = (0..16).map(|_| upstream.call(tool())).collect();
        for reply in replies {
            let answer = bounded(reply.outcome()).await.1;
            assert!(matches!(answer, Outcome::Complete(_)), "{status}: {answer:?}");
        }
        assert_eq!(host.count("POST initialize"), met + 1, "{status}");
        assert_eq!(host.count("POST ping"), 1, "one proof is enough for all");
    }
}

/// The head of a response whose body begins and does not end.
fn endless(status: u16, kind: &str) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: 100\r\n\r\n{{")
}

/// An upstream that answers what `is_endless` picks with such a response.
async fn endless_host(
    status: u16,
    kind: &'static str,
    is_endless: impl Fn(&Seen) -> bool + Send + Sync + 'static,
) -> Host {
    let is_endless = Arc::new(is_endless);
    Host::start(move |seen| {
        let is_endless = is_endless(&seen);
        Box::pin(async move {
            if is_endless {
                seen.write(endless(status, kind));
                std::future::pending::<()>().await;
            }
            legacy(&seen, "s1").unwrap_or_else(|| seen.result(r#"{"content":[]}"#))
        })
    })
    .await
}

#[tokio::test]
async fn a_body_beside_its_status_is_waited_for_one_second() {
    for (status, kind, expected) in [
        (401, "text/plain", "HTTP 401"),
        (404, "application/json", "HTTP 404"),
        (500, "text/plain", "HTTP 500"),
        (503, "text/plain", "HTTP 503"),
        (202, "application/json", "HTTP 202"),
        (200, "text/html", "HTTP 200"),
    ] {
        let host = endless_host(status, kind, |seen| seen.method() == "tools/call").await;
        let (upstream, board, _tasks) = start(host.config());
        is(&board, State::Ready).await;
        let reply = upstream.call(tool());
        let answered = async {
            let begun = tokio::time::Instant::now();
            let outcome = bounded(reply.outcome()).await.1;
            (outcome, begun.elapsed())
        };
        let pause = async {
            host.saw("POST tools/call").await;
            tokio::time::pause();
        };
        let ((outcome, took), ()) = tokio::join!(answered, pause);
        tokio::time::resume();
        let Outcome::Error(Failure::Refused(refusal)) = &outcome else { panic!("{outcome:?}") };
        assert!(refusal.message.contains(expected), "{}", refusal.message);
        assert!(took < std::time::Duration::from_secs(5), "{status} {kind}: {took:?}");
    }
}

#[tokio::test]
async fn a_notice_is_accepted_by_its_status_though_its_body_does_not_end() {
    let host = endless_host(202, "text/plain", |seen| seen.method() == "notifications/initialized").await;
    let (_upstream, board, _tasks) = start(host.config());
    host.saw("POST notifications/initialized").await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    is(&board, State::Ready).await;
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(host.count("POST initialize"), 1, "the handshake was not repeated");
}

//! HTTP upstreams that say that they are elsewhere, and streams that are resumed and tell nothing.

use super::super::*;
use super::host::{Host, Seen, empty};
use super::http::{bounded, is, legacy, modern, start, tool};
use super::rig::outcome;
use crate::call::refusal::Reason;
use crate::call::reply::{Failure, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn to(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
}

/// Where a request was sent, as the test's host knows it.
fn at(seen: &Seen) -> String {
    seen.header(":path").to_owned()
}

#[tokio::test]
async fn a_307_and_a_308_within_the_origin_are_followed_with_method_body_and_credentials() {
    for status in [307, 308] {
        let host = Host::start(move |seen| {
            Box::pin(async move {
                match at(&seen).as_str() {
                    "/mcp" => to(status, "/mcp/"),
                    "/mcp/" => to(status, "there?a=b"),
                    _ => legacy(&seen, "s1").unwrap_or_else(|| seen.result(r#"{"x":1}"#)),
                }
            })
        })
        .await;
        let mut config = host.config();
        if let config::Transport::Http(remote) = &mut config.transport {
            remote.headers.insert("authorization", "Bearer ours".parse().unwrap());
        }
        let (upstream, board, tasks) = start(config);
        is(&board, State::Ready).await;
        let mut reply = upstream.call(tool());
        assert!(matches!(bounded(outcome(&mut reply)).await, Outcome::Complete(_)));
        let all = host.all();
        let call = all.iter().find(|seen| seen.method() == "tools/call").unwrap();
        assert_eq!((at(call).as_str(), call.header("authorization")), ("/mcp/there?a=b", "Bearer ours"));
        let shaken = all.iter().rfind(|seen| seen.method() == "initialize").unwrap();
        assert_eq!((at(shaken).as_str(), shaken.header("authorization")), ("/mcp/there?a=b", "Bearer ours"));
        assert_eq!(all.iter().filter(|seen| seen.method() == "tools/call").count(), 1, "calls go there at once");
        tasks.end();
        bounded(upstream.stopped()).await;
        assert_eq!(
            host.all().last().map(|seen| (seen.verb.clone(), at(seen))),
            Some(("DELETE".into(), "/mcp/there?a=b".into()))
        );
    }
}

#[tokio::test]
async fn another_origin_is_never_asked_and_the_reason_is_said() {
    let other = Host::start(|_| Box::pin(async { empty(200) })).await;
    let place = format!("http://localhost:{}/mcp", other.port);
    let location = place.clone();
    let host = Host::start(move |_| {
        let location = location.clone();
        Box::pin(async move { to(308, &location) })
    })
    .await;
    let (_upstream, board, _tasks) = start(host.config());
    let told = bounded(async {
        let mut changes = board.changes();
        loop {
            let cause = board.snapshot()[0].cause.clone();
            if let Some(cause) = cause.filter(|cause| cause.full().contains("another origin")) {
                return cause;
            }
            changes.changed().await.unwrap();
        }
    })
    .await;
    let told = told.full();
    assert!(told.contains(&other.port.to_string()), "{told}");
    assert_eq!(told.matches("`url`").count(), 1, "what to do is said once: {told}");
    assert!(other.all().is_empty());
}

#[tokio::test]
async fn a_call_that_finds_its_upstream_moved_did_not_run_and_is_sent_again_once() {
    let has_moved = Arc::new(AtomicBool::new(false));
    let moved = has_moved.clone();
    let host = Host::start(move |seen| {
        let has_moved = moved.load(Ordering::SeqCst);
        Box::pin(async move {
            if has_moved && at(&seen) == "/mcp" {
                return to(307, "/new");
            }
            legacy(&seen, "s1").unwrap_or_else(|| seen.result(r#"{"x":1}"#))
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    let mut before = upstream.call(tool());
    assert!(matches!(bounded(outcome(&mut before)).await, Outcome::Complete(_)));
    // A session that is lost at once is not opened anew at once.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    has_moved.store(true, Ordering::SeqCst);
    let mut reply = upstream.call(tool());
    let answer = bounded(outcome(&mut reply)).await;
    assert!(matches!(answer, Outcome::Complete(_)), "{answer:?}");
    let ran: Vec<_> = host.all().iter().filter(|seen| seen.method() == "tools/call").map(at).collect();
    assert_eq!(ran, ["/mcp", "/mcp", "/new"]);
}

/// Names of tools, as the host sees them.
fn named(name: &str) -> Call {
    Call { params: Object::parse(format!(r#"{{"name":"{name}"}}"#).into()).unwrap(), ..tool() }
}

#[tokio::test]
async fn one_tool_that_is_elsewhere_is_called_there_and_its_upstream_is_not_met_anew() {
    for is_modern in [false, true] {
        let host = Host::start(move |seen| {
            Box::pin(async move {
                let is_moved = seen.body.contains("\"moved\"");
                match at(&seen).as_str() {
                    "/mcp" if is_moved => to(308, "/mcp/moved"),
                    "/mcp/moved" if is_moved => to(307, "moved/again"),
                    _ => {
                        let known = if is_modern { modern(&seen) } else { legacy(&seen, "s1") };
                        known.unwrap_or_else(|| seen.result(r#"{"resultType":"complete","content":[]}"#))
                    }
                }
            })
        })
        .await;
        let (upstream, board, _tasks) = start(host.config());
        is(&board, State::Ready).await;
        let is_meeting = |seen: &Seen| matches!(seen.method().as_str(), "initialize" | "server/discover");
        let mut met = None;
        for _ in 0..10 {
            for name in ["moved", "t"] {
                let answer = bounded(upstream.call(named(name)).outcome()).await.1;
                assert!(matches!(answer, Outcome::Complete(_)), "{name}: {answer:?}");
            }
            // The first of the callers may have opened a session of their own.
            let now = host.all().iter().filter(|seen| is_meeting(seen)).count();
            assert_eq!(*met.get_or_insert(now), now, "it was met anew");
        }
        let all = host.all();
        let calls: Vec<_> = all.iter().filter(|seen| seen.method() == "tools/call").collect();
        let places: Vec<_> = calls.iter().map(|seen| at(seen)).take(4).collect();
        assert_eq!(places, ["/mcp", "/mcp/moved", "/mcp/moved/again", "/mcp"], "it is remembered for nothing else");
        // The same request, whatever it was sent with.
        let mut heads: Vec<_> = calls[..3].iter().map(|seen| (seen.body.clone(), seen.headers.clone())).collect();
        heads.iter_mut().for_each(|(_, headers)| _ = headers.remove(":path"));
        assert!(heads.windows(2).all(|pair| pair[0] == pair[1]), "{heads:?}");
        assert_eq!((upstream.state(), board.snapshot()[0].restarts), (State::Ready, 0));
    }
}

#[tokio::test]
async fn who_sends_on_for_ever_is_given_up() {
    let host = Host::start(|_| Box::pin(async { to(307, "/again") })).await;
    let (_upstream, board, tasks) = start(host.config());
    bounded(async {
        let mut changes = board.changes();
        while !board.snapshot()[0].cause.as_ref().is_some_and(|cause| cause.full().contains("more than 5 times")) {
            changes.changed().await.unwrap();
        }
    })
    .await;
    tasks.end();
}

const CUT: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\nid: 7\nretry: 20\ndata:\n\n";
const OPEN: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: nothing for you\n\n";

#[tokio::test]
async fn a_resumed_stream_that_tells_nothing_is_given_up_and_the_outcome_is_unknown() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            match (seen.verb.as_str(), seen.method().as_str()) {
                ("POST", "tools/call") => CUT.to_owned(),
                ("GET", _) if !seen.header("last-event-id").is_empty() => {
                    seen.write(OPEN);
                    // A comment is a sign of life and no word of the answer.
                    loop {
                        tokio::time::sleep(Duration::from_secs(15)).await;
                        seen.write(": still here\n\n");
                    }
                }
                _ => legacy(&seen, "s1").unwrap_or_else(|| empty(404)),
            }
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    let mut reply = upstream.call(tool());
    let resumed = async {
        while !host.all().iter().any(|seen| seen.header("last-event-id") == "7") {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for _ in 0..13 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(10)).await;
            tokio::time::resume();
        }
    };
    let (outcome, ()) = tokio::join!(outcome(&mut reply), resumed);
    let Outcome::Error(Failure::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.reason, Reason::OutcomeUnknown, "{refusal}");
    assert!(refusal.message.contains("no part of the answer arrived"), "{refusal}");
}

#[tokio::test]
async fn answers_that_are_none_are_counted_as_what_was_last_wrong() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            legacy(&seen, "s1").unwrap_or_else(|| match seen.body.contains("empty") {
                true => empty(200),
                false => "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 500\r\n\r\n{".to_owned(),
            })
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    for (name, says) in [("empty", "no_answer: HTTP 200 without an answer"), ("cut", "broken: ")] {
        let call = Call { params: Object::parse(format!(r#"{{"name":"{name}"}}"#).into()).unwrap(), ..tool() };
        let mut reply = upstream.call(call);
        assert!(matches!(bounded(outcome(&mut reply)).await, Outcome::Error(_)));
        let error = board.snapshot().remove(0).last_error.map(|error| error.cause).unwrap_or_default();
        assert!(error.full().starts_with(says), "{error:?}");
    }
}

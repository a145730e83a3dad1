//! HTTP upstreams of both eras, over loopback.

use super::super::config::{Config, EraChoice};
use super::super::*;
use super::host::{Host, Seen, empty, events, json};
use super::rig::{call, outcome};
use crate::call::refusal::Reason;
use crate::call::reply::{Event, Failure, Outcome, Step};
use crate::health::StatusBoard;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const LEGACY: Revision = Revision::V2025_11_25;
const SHAKEN: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}"#;

/// What a well-behaved legacy upstream answers; calls are the test's.
pub(super) fn legacy(seen: &Seen, session: &str) -> Option<String> {
    Some(match (seen.verb.as_str(), seen.method().as_str()) {
        ("POST", "server/discover") => empty(400),
        ("POST", "initialize") => {
            let headers = format!("Mcp-Session-Id: {session}\r\n");
            json(200, &headers, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{SHAKEN}}}"#, seen.id()))
        }
        ("POST", "notifications/initialized" | "notifications/cancelled") => empty(202),
        ("GET", _) => empty(405),
        ("DELETE", _) => empty(200),
        ("POST", "tools/list") => seen.result(TOOLS),
        _ => return None,
    })
}

/// The same, with a session id of its own for each session.
pub(super) fn legacy_apart(seen: &Seen) -> Option<String> {
    static NUMBER: AtomicUsize = AtomicUsize::new(1);
    legacy(seen, &format!("s{}", NUMBER.fetch_add(1, Ordering::Relaxed)))
}

/// What a well-behaved stateless one answers.
pub(super) fn modern(seen: &Seen) -> Option<String> {
    Some(match seen.method().as_str() {
        "server/discover" => {
            seen.result(r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#)
        }
        "subscriptions/listen" => {
            let taken = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}},"notifications":{{"toolsListChanged":true}}}}}}"#,
                seen.id()
            );
            events(&format!("data: {taken}\n\n"))
        }
        "tools/list" => seen.result(TOOLS),
        _ => return None,
    })
}

pub(super) fn start(config: Config) -> (Upstream, StatusBoard, Tasks) {
    let (board, tasks) = (StatusBoard::default(), Tasks::new());
    let handle = board.add(&config.name, "http");
    let upstream = Upstream::new(config, handle, Arc::new(|_| ()));
    upstream.keep_alive(&tasks);
    (upstream, board, tasks)
}

pub(super) async fn bounded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
}

pub(super) async fn is(board: &StatusBoard, state: State) {
    let mut changes = board.changes();
    bounded(async {
        while board.snapshot()[0].state != state {
            changes.changed().await.unwrap();
        }
    })
    .await;
}

pub(super) fn tool() -> Call {
    call(LEGACY, Method::ToolsCall, r#"{"name":"t","arguments":{"r":"ä"}}"#)
}

#[tokio::test]
async fn a_legacy_session_from_its_handshake_to_its_end() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            legacy(&seen, "s1").unwrap_or_else(|| {
                let progress = format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":1}}}}"#, seen.id());
                events(&format!(": hi\n\nid: 1\ndata:\n\ndata: {progress}\n\n{}", seen.event(r#"{"x":1e400}"#)))
            })
        })
    })
    .await;
    let (upstream, board, tasks) = start(host.config());
    is(&board, State::Ready).await;
    let story = ["POST server/discover", "POST initialize", "POST notifications/initialized", "GET", "POST tools/list"];
    assert_eq!(host.story(), story);
    let seen = host.all();
    assert_eq!(
        (seen[0].header("mcp-protocol-version"), seen[0].header("mcp-method")),
        ("2026-07-28", "server/discover")
    );
    assert_eq!(
        (seen[1].header("mcp-protocol-version"), seen[1].header("mcp-method"), seen[1].header("mcp-session-id")),
        ("", "", "")
    );
    for later in &seen[2..] {
        assert_eq!((later.header("mcp-session-id"), later.header("mcp-protocol-version")), ("s1", "2025-06-18"));
    }
    assert_eq!(
        (seen[3].header("accept"), seen[4].header("accept")),
        ("text/event-stream", "application/json, text/event-stream")
    );
    let mut reply = upstream.call(Call { progress: true, ..tool() });
    assert!(matches!(bounded(reply.next()).await, Step::Event(Event::Progress(_))));
    assert!(
        matches!(bounded(outcome(&mut reply)).await, Outcome::Complete(result) if result.raw() == r#"{"x":1e400}"#)
    );
    tasks.end();
    bounded(upstream.stopped()).await;
    assert_eq!(host.all().last().unwrap().verb, "DELETE");
    assert_eq!(host.all().last().unwrap().header("mcp-session-id"), "s1");
}

#[tokio::test]
async fn a_lost_session_is_opened_anew_once_for_all_who_wait() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let host = Host::start(move |seen| {
        let count = count.clone();
        Box::pin(async move {
            if seen.method() == "initialize" {
                count.fetch_add(1, Ordering::SeqCst);
            }
            let session = format!("s{}", count.load(Ordering::SeqCst));
            // The first is the primary, the second that of the callers: it is forgotten once the first of them calls.
            let is_forgotten = matches!(seen.method().as_str(), "tools/call" | "ping");
            if is_forgotten && seen.header("mcp-session-id") == "s2" {
                return empty(404);
            }
            legacy(&seen, &session).unwrap_or_else(|| seen.result("{}"))
        })
    })
    .await;
    let (upstream, board, tasks) = start(host.config());
    is(&board, State::Ready).await;
    let replies: Vec<_> = (0..32).map(|_| upstream.call(tool())).collect();
    for reply in replies {
        assert!(matches!(bounded(reply.outcome()).await.1, Outcome::Complete(_)));
    }
    assert_eq!((opened.load(Ordering::SeqCst), board.snapshot()[0].restarts), (3, 0));
    tasks.end();
    bounded(upstream.stopped()).await;
}

#[tokio::test]
async fn a_stateless_upstream_is_told_in_headers_and_told_anew_when_they_are_refused() {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = refused.clone();
    let host = Host::start(move |seen| {
        let count = count.clone();
        Box::pin(async move {
            modern(&seen).unwrap_or_else(|| match count.fetch_add(1, Ordering::SeqCst) {
                0 => seen.error(400, -32020),
                _ => seen.result(r#"{"resultType":"complete"}"#),
            })
        })
    })
    .await;
    let (upstream, board, tasks) = start(Config { era: EraChoice::Modern, ..host.config() });
    is(&board, State::Ready).await;
    let lists = host.count("POST tools/list");
    let mut reply = upstream.call(tool());
    assert!(matches!(bounded(outcome(&mut reply)).await, Outcome::Complete(_)));
    assert!(host.count("POST tools/list") > lists);
    let calls: Vec<_> = host.all().into_iter().filter(|seen| seen.method() == "tools/call").collect();
    assert_eq!(calls.len(), 2);
    let told = ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region", "mcp-session-id"]
        .map(|name| calls[0].header(name));
    assert_eq!(told, ["2026-07-28", "tools/call", "t", "=?base64?w6Q=?=", ""]);
    assert!(!host.story().iter().any(|line| line == "POST initialize" || line == "GET"));
    tasks.end();
    bounded(upstream.stopped()).await;
    assert_eq!(host.count("DELETE"), 0);
}

#[tokio::test]
async fn a_cancelled_call_is_told_to_a_legacy_upstream() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            match legacy(&seen, "s1") {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    let mut reply = upstream.call(tool());
    tokio::select! {
        _ = reply.next() => panic!("it is never answered"),
        _ = host.saw("POST tools/call") => {}
    }
    drop(reply);
    let told = host.saw("POST notifications/cancelled").await;
    let call = host.saw("POST tools/call").await;
    assert!(told.body.contains(&format!(r#""requestId":{}"#, call.id())), "{}", told.body);
}

#[tokio::test]
async fn a_connection_that_was_closed_behind_our_back_is_replaced_and_nothing_runs_twice() {
    // Every response promises to keep the connection, and none does.
    let host = Host::start(|seen| {
        Box::pin(async move {
            legacy(&seen, "s1").unwrap_or_else(|| seen.result("{}")).replace("content-length", "Content-Length")
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    for _ in 0..20 {
        let reply = upstream.call(tool());
        match bounded(reply.outcome()).await.1 {
            Outcome::Complete(_) => {}
            // Where a byte may have left, honesty is all that is left.
            Outcome::Error(Failure::Refused(refusal)) => assert_eq!(refusal.reason, Reason::OutcomeUnknown),
            other => panic!("{other:?}"),
        }
    }
    assert!(host.count("POST tools/call") <= 20);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_unknown_and_one_that_can_be_resumed_is_resumed() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            match (seen.verb.as_str(), seen.method().as_str(), seen.header("last-event-id")) {
                ("GET", _, "e7") => {
                    events("id: e8\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resumed\":1}}\n\n")
                }
                ("POST", "tools/call", _) if seen.id() == "2" => events("retry: 1500\nid: e7\ndata:\n\n"),
                ("POST", "tools/call", _) => {
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 500\r\n\r\n{".to_owned()
                }
                _ => legacy_apart(&seen).unwrap(),
            }
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    let begun = tokio::time::Instant::now();
    let mut resumed = upstream.call(tool());
    match bounded(outcome(&mut resumed)).await {
        Outcome::Complete(result) => assert_eq!(result.raw(), r#"{"resumed":1}"#),
        other => panic!("{other:?}"),
    }
    // It is longer than what is waited where nothing is asked for.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(1500), "the delay that was asked for is kept");
    match bounded(upstream.call(tool()).outcome()).await.1 {
        Outcome::Error(Failure::Refused(refusal)) => assert_eq!(refusal.reason, Reason::OutcomeUnknown),
        other => panic!("{other:?}"),
    }
    assert_eq!(host.count("POST tools/call"), 2);
}

#[tokio::test]
async fn what_says_nothing_of_the_era_is_believed_nothing() {
    for (status, state) in [(401, State::Failed), (403, State::Failed), (503, State::BackingOff)] {
        let host = Host::start(move |seen| Box::pin(async move { seen.error(status, -32601) })).await;
        let (_upstream, board, _tasks) = start(host.config());
        is(&board, state).await;
        assert_eq!(host.count("POST initialize"), 0);
        assert!(board.snapshot()[0].cause.as_ref().unwrap().full().contains(&status.to_string()));
    }
}

#[tokio::test]
async fn nobody_there_is_said_at_once_and_tried_again() {
    let mut host = Host::start(|seen| Box::pin(async move { legacy(&seen, "s1").unwrap() })).await;
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    host.port = port;
    let (_upstream, board, _tasks) = start(Config { era: EraChoice::Legacy, ..host.config() });
    is(&board, State::BackingOff).await;
    assert!(board.snapshot()[0].cause.as_ref().unwrap().full().contains("cannot connect"));
}

#[tokio::test]
async fn an_upstream_without_a_handshake_lists_and_calls_tools() {
    for refusal in ["404", "405", "-32601"] {
        let host = Host::start(move |seen| {
            Box::pin(async move {
                match (seen.verb.as_str(), seen.method().as_str(), refusal) {
                    ("POST", "tools/list", _) => seen.result(TOOLS),
                    ("POST", "tools/call", _) => seen.result(r#"{"content":[]}"#),
                    ("POST", _, "-32601") => seen.error(200, -32601),
                    ("POST", _, "404") => empty(404),
                    _ => empty(405),
                }
            })
        })
        .await;
        let (upstream, board, tasks) = start(host.config());
        is(&board, State::Ready).await;
        assert_eq!(board.snapshot()[0].items, Some([1, 0, 0, 0]));
        let mut reply = upstream.call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#));
        assert!(matches!(bounded(outcome(&mut reply)).await, Outcome::Complete(_)), "{refusal}");
        tasks.end();
        bounded(tasks.ended()).await;
    }
}

#[tokio::test]
async fn an_address_that_lists_no_tools_either_is_none() {
    let host = Host::start(|_| Box::pin(async { empty(404) })).await;
    let (_upstream, board, tasks) = start(host.config());
    is(&board, State::BackingOff).await;
    assert!(board.snapshot()[0].cause.as_ref().is_some_and(|cause| cause.full().contains("404")));
    tasks.end();
    bounded(tasks.ended()).await;
}

#[tokio::test]
async fn a_flood_on_the_stream_of_a_call_is_read_at_a_measured_pace_and_its_answer_comes() {
    const LOGS: u32 = 3_200;
    let log = r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"a"}}"#;
    let host = Host::start(move |seen| {
        Box::pin(async move {
            legacy(&seen, "s1").unwrap_or_else(|| {
                events(&format!("{}{}", format!("{log}\n\n").repeat(LOGS as usize), seen.event(r#"{"content":[]}"#)))
            })
        })
    })
    .await;
    let (upstream, board, tasks) = start(host.config());
    is(&board, State::Ready).await;
    let begun = tokio::time::Instant::now();
    assert!(matches!(bounded(outcome(&mut upstream.call(tool()))).await, Outcome::Complete(_)));
    // 32 in two milliseconds; a machine that is busy only makes it longer.
    assert!(begun.elapsed() >= LOGS / 32 * Duration::from_millis(2), "{:?}", begun.elapsed());
    tasks.end();
    bounded(upstream.stopped()).await;
}

#[tokio::test]
async fn of_two_answers_the_first_counts_and_what_else_breaks_the_protocol_is_told_as_it_is() {
    for (is_stream, error) in [(false, "unknown_id: "), (true, "another line of more than 131072 bytes")] {
        let host = Host::start(move |seen| {
            Box::pin(async move {
                let id = seen.id();
                let result = |which| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"{which}":1}}}}"#);
                match (seen.method().as_str(), is_stream) {
                    ("tools/call", false) => json(200, "", &format!("[{},{}]", result("first"), result("second"))),
                    ("tools/call", true) => {
                        events(&format!("id: {}\ndata: {{}}\n\ndata: {}\n\n", "x".repeat(300_000), result("first")))
                    }
                    _ => legacy(&seen, "s1").unwrap(),
                }
            })
        })
        .await;
        let (upstream, board, _tasks) = start(host.config());
        is(&board, State::Ready).await;
        match bounded(upstream.call(tool()).outcome()).await.1 {
            Outcome::Complete(result) => assert_eq!(result.raw(), r#"{"first":1}"#),
            other => panic!("{other:?}"),
        }
        let last = board.snapshot().remove(0).last_error.unwrap().cause.full().into_owned();
        assert!(last.contains(error), "{last}");
    }
}

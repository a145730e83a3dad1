//! HTTP+SSE of 2024-11-05: where its stream leads, what comes on it, and what ends with it.

use super::{Bench, Client, call, code, initialize, piece, principal};
use crate::call::reply::{Change, Event};
use crate::scripted::Hand;
use http::{Request, Response, StatusCode};
use std::time::Duration;

type Body = super::Body;

/// A client whose stream is open, and where its messages go.
struct Peer {
    stream: Body,
    messages: String,
}

impl Peer {
    async fn open(face: &Client, who: &str) -> Self {
        let response = face.send(principal(Request::get("/sse"), who), "").await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut stream = response.into_body();
        let first = piece(&mut stream).await.unwrap();
        let messages = first.strip_prefix("event: endpoint\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        let messages = messages.unwrap_or_else(|| panic!("{first}")).to_owned();
        assert!(messages.starts_with("/message?sessionId="), "{messages}");
        Self { stream, messages }
    }

    async fn say(&self, face: &Client, who: &str, text: &str) -> Response<Body> {
        let request = Request::post(&self.messages).header("content-type", "application/json");
        face.send(principal(request, who), text).await
    }

    async fn hears(&mut self) -> String {
        let event = piece(&mut self.stream).await.unwrap();
        let frame = event.strip_prefix("event: message\ndata: ").unwrap_or_else(|| panic!("{event}"));
        frame.trim_end().to_owned()
    }
}

/// One that has shaken hands, with the listen call of its session.
async fn joined(bench: &mut Bench) -> (Peer, Hand) {
    let mut peer = Peer::open(bench, "ann").await;
    assert_eq!(peer.say(bench, "ann", &initialize("2024-11-05")).await.status(), StatusCode::ACCEPTED);
    let greeting = peer.hears().await;
    assert!(greeting.contains(r#""id":0,"result":{"protocolVersion":"2024-11-05""#), "{greeting}");
    (peer, bench.hands.next().await)
}

#[tokio::test(start_paused = true)]
async fn everything_is_answered_on_the_stream() {
    let mut bench = Bench::new();
    let (mut peer, listen) = joined(&mut bench).await;
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(peer.say(&bench, "ann", initialized).await.status(), StatusCode::ACCEPTED);
    for text in [&call("1", "slow"), &call("2", "echo"), "nonsense"] {
        assert_eq!(peer.say(&bench, "ann", text).await.status(), StatusCode::ACCEPTED, "{text}");
    }
    let hand = bench.hands.next().await;
    assert!(peer.hears().await.contains(r#""id":2,"result""#), "no call waits for another");
    assert!(peer.hears().await.contains("-32700"));
    hand.progress(1);
    assert!(peer.hears().await.contains(r#""progressToken":7,"progress":1"#));
    listen.tell(Event::Change(Change::Tools));
    assert!(peer.hears().await.contains("notifications/tools/list_changed"));
    hand.complete(r#"{"content":[]}"#);
    assert!(peer.hears().await.contains(r#""id":1,"result""#));
    assert_eq!(piece(&mut peer.stream).await.unwrap(), ": keep-alive\n\n");
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_is_the_end_of_its_session() {
    let mut bench = Bench::new();
    let (peer, listen) = joined(&mut bench).await;
    peer.say(&bench, "ann", &call("1", "slow")).await;
    let hand = bench.hands.next().await;
    let Peer { stream, messages } = peer;
    drop(stream);
    hand.cancelled().await;
    listen.cancelled().await;
    let late = Peer { stream: Body::Empty, messages };
    assert_eq!(late.say(&bench, "ann", &call("2", "echo")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_another_looks_like_none() {
    let mut bench = Bench::new();
    let (peer, _listen) = joined(&mut bench).await;
    let foreign = peer.say(&bench, "bob", &call("1", "echo")).await;
    let unknown = Peer { stream: Body::Empty, messages: "/message?sessionId=x".into() };
    let unknown = unknown.say(&bench, "bob", &call("1", "echo")).await;
    assert_eq!(code(foreign).await, code(unknown).await);
    let unnamed = Peer { stream: Body::Empty, messages: "/message".into() };
    assert_eq!(unnamed.say(&bench, "ann", &call("1", "echo")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn who_tries_the_other_transport_first_is_told_so_at_once_and_nothing_is_there_once_it_is_off() {
    let bench = Bench::with(crate::protocol::revision::Revision::V2025_11_25, |config| config.max_body = 1024);
    let post = |path: &str| Request::post(path).header("content-type", "application/json");
    let tried = bench.send(post("/sse"), &initialize("2025-11-25")).await;
    assert_eq!((tried.status(), &tried.headers()["allow"]), (StatusCode::METHOD_NOT_ALLOWED, &"GET".parse().unwrap()));
    let wrong = bench.send(Request::get("/message?sessionId=x"), "").await;
    assert_eq!((wrong.status(), &wrong.headers()["allow"]), (StatusCode::METHOD_NOT_ALLOWED, &"POST".parse().unwrap()));
    let peer = Peer::open(&bench, "ann").await;
    assert_eq!(peer.say(&bench, "ann", &"x".repeat(1025)).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let off = Bench::with(crate::protocol::revision::Revision::V2025_11_25, |config| config.legacy_sse = false);
    for request in [Request::get("/sse"), post("/sse"), post("/message?sessionId=x")] {
        assert_eq!(off.send(request, "").await.status(), StatusCode::NOT_FOUND);
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_runs_may_finish_and_then_the_stream_ends() {
    let mut bench = Bench::new();
    let (mut peer, _listen) = joined(&mut bench).await;
    peer.say(&bench, "ann", &call("1", "slow")).await;
    let hand = bench.hands.next().await;
    bench.tasks.end();
    tokio::time::sleep(Duration::from_secs(1)).await;
    peer.say(&bench, "ann", &call("2", "echo")).await;
    let refused = peer.hears().await;
    assert!(refused.contains("shutting down") && refused.contains("\"id\":2"), "{refused}");
    hand.complete(r#"{"content":[]}"#);
    assert!(peer.hears().await.contains(r#""id":1,"result""#));
    assert_eq!(piece(&mut peer.stream).await, None);
    crate::scripted::soon(bench.tasks.ended()).await;
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_a_post_is_that_of_its_message_and_of_no_other() {
    let mut bench = Bench::new();
    let (peer, _listen) = joined(&mut bench).await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (id, header) in [("1", Some(parent)), ("2", None), ("3", Some("nonsense"))] {
        let mut request = Request::post(&peer.messages).header("content-type", "application/json");
        if let Some(header) = header {
            request = request.header("traceparent", header).header("baggage", "tenant=blue");
        }
        bench.send(principal(request, "ann"), &call(id, "slow")).await;
        let trace = bench.hands.next().await.call.trace;
        let context = trace.as_ref().and_then(|trace| Some(trace.context.as_ref()?.traceparent()));
        assert_eq!(context.as_deref(), header.filter(|header| *header == parent), "{id}");
        assert_eq!(trace.and_then(|trace| trace.baggage.clone()).is_some(), header.is_some(), "{id}");
    }
}

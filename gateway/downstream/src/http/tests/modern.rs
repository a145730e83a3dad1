//! Stateless clients.

use super::{Bench, piece, text};
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Change, Event, Outcome};
use crate::call::{ListenFilter, LogLevel};
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::scripted::object;
use http_body::Body as _;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_plain_call_is_one_json_body_with_a_length() {
    let bench = Bench::new();
    let response = bench.modern("tools/call", r#"{"name":"echo","arguments":{"n":1e400}}"#).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    assert!(response.body().size_hint().exact().is_some() && !response.headers().contains_key("mcp-session-id"));
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        text(response).await,
        format!(
            r#"{{"jsonrpc":"2.0","id":"a","result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"trunkline","version":"{version}"}}}},"content":[],"structuredContent":{{"n":1e400}}}}}}"#
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_becomes_a_stream_with_its_first_event_and_its_own_token() {
    let mut bench = Bench::new();
    let play = async {
        let hand = bench.hands.next().await;
        assert!(hand.call.progress && hand.call.caller.tenant.is_none() && hand.call.param_headers.is_some());
        hand.tell(Event::Log(LogLevel::Error, object("{}")));
        hand.progress(1);
        hand
    };
    let face = bench.client.clone();
    let (response, hand) = tokio::join!(face.modern("tools/call", r#"{"name":"slow"}"#), play);
    assert_eq!(
        (&response.headers()["content-type"], &response.headers()["x-accel-buffering"]),
        (&"text/event-stream".parse().unwrap(), &"no".parse().unwrap())
    );
    let mut body = response.into_body();
    assert_eq!(
        piece(&mut body).await.unwrap(),
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\",\"progress\":1}}\n\n"
    );
    assert_eq!(piece(&mut body).await.unwrap(), ": keep-alive\n\n");
    hand.complete(r#"{"content":[]}"#);
    assert!(piece(&mut body).await.unwrap().contains(r#""id":"a","result""#));
    assert_eq!(piece(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_silent_call_becomes_a_stream_when_one_would_say_that_it_lives_and_a_closed_stream_cancels() {
    let mut bench = Bench::new();
    let began = tokio::time::Instant::now();
    let response = bench.modern("tools/call", r#"{"name":"slow"}"#).await;
    assert_eq!(began.elapsed(), Duration::from_secs(15));
    let hand = bench.hands.next().await;
    assert!(!hand.is_cancelled());
    drop(response);
    hand.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_that_comes_late_comes_in_one_piece() {
    let mut bench = Bench::new();
    let face = bench.client.clone();
    let large = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(2 << 20));
    let play = async {
        let hand = bench.hands.next().await;
        tokio::time::sleep(Duration::from_millis(14_900)).await;
        hand.complete(&large);
    };
    let (response, ()) = tokio::join!(face.modern("tools/call", r#"{"name":"slow"}"#), play);
    assert_eq!(response.headers()["content-type"], "application/json");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_before_its_answer_cancels() {
    let mut bench = Bench::new();
    let face = bench.client.clone();
    let pending = tokio::time::timeout(Duration::from_secs(1), face.modern("tools/call", r#"{"name":"slow"}"#)).await;
    assert!(pending.is_err());
    bench.hands.next().await.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn listens_are_acknowledged_first_tagged_and_ended_in_good_order() {
    let mut bench = Bench::new();
    let face = bench.client.clone();
    let play = async {
        let hand = bench.hands.next().await;
        hand.tell(Event::Change(Change::Acknowledged(ListenFilter { tools: true, ..ListenFilter::default() })));
        hand.tell(Event::Change(Change::Tools));
        hand.tell(Event::Change(Change::Updated("a:b".into())));
        hand
    };
    let ask = face.modern("subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#);
    let (response, hand) = tokio::join!(ask, play);
    let mut body = response.into_body();
    let tag = r#""_meta":{"io.modelcontextprotocol/subscriptionId":"a""#;
    for expected in [
        format!(
            r#"notifications/subscriptions/acknowledged","params":{{{tag}}},"notifications":{{"toolsListChanged":true}}}}}}"#
        ),
        format!(r#"notifications/tools/list_changed","params":{{{tag}}}}}}}"#),
        format!(r#"notifications/resources/updated","params":{{{tag}}},"uri":"a:b"}}}}"#),
    ] {
        let piece = piece(&mut body).await.unwrap();
        assert!(piece.contains(&expected), "{piece}");
    }
    bench.tasks.end();
    let last = piece(&mut body).await.unwrap();
    assert!(last.contains(&format!(r#""id":"a","result":{{"resultType":"complete",{tag},"#)), "{last}");
    assert_eq!(piece(&mut body).await, None);
    drop(body);
    hand.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn each_failure_has_its_status() {
    let mut bench = Bench::with(Revision::V2026_07_28, |_| {});
    let face = bench.client.clone();
    for (code, status) in [(-32602, 200), (-32601, 404), (-32021, 400), (-32603, 200), (-1, 200)] {
        let (response, ()) =
            tokio::join!(face.modern("tools/call", r#"{"name":"x"}"#), async { bench.hands.next().await.fail(code) });
        assert_eq!(super::code(response).await, (status, code));
    }
    let refusals = [
        (Reason::UnknownMethod, 404, -32601),
        (Reason::HeaderMismatch, 400, -32020),
        (Reason::Unavailable, 200, -32603),
        (Reason::ResourceNotFound("a:b".into()), 200, -32602),
        (Reason::MissingCapability("{}".into()), 400, -32021),
    ];
    for (reason, status, code) in refusals {
        let (response, ()) = tokio::join!(face.modern("x/y", "{}"), async {
            bench.hands.next().await.refuse(Refusal::new(reason, "no"))
        });
        assert_eq!(super::code(response).await, (status, code));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_stateless_upstream_passes() {
    let mut bench = Bench::with(Revision::V2026_07_28, |_| {});
    let face = bench.client.clone();
    let (response, ()) = tokio::join!(face.modern("tools/call", r#"{"name":"x"}"#), async {
        let asks = object(r#"{"resultType":"input_required","requestState":"s"}"#);
        bench.hands.next().await.end(Outcome::InputRequired(asks));
    });
    assert!(text(response).await.contains(r#""resultType":"input_required","requestState":"s""#));
}

#[tokio::test(start_paused = true)]
async fn notifications_are_taken_and_handed_on_except_cancellations() {
    let mut bench = Bench::new();
    for method in ["notifications/cancelled", "notifications/x"] {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
        let response = bench.send(super::post().header("mcp-protocol-version", "2026-07-28"), &text).await;
        assert_eq!((response.status().as_u16(), super::text(response).await.as_str()), (202, ""));
    }
    let hand = bench.hands.next().await;
    assert_eq!((hand.call.method, bench.hands.is_empty()), (Method::Other("notifications/x".into()), true));
}

//! Handshake clients: sessions and their calls.

use super::{Bench, call, code, initialize, post, text};
use crate::call::ListenFilter;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Change, Event, Outcome};
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::scripted::{UNWANTED, object};
use http::{Request, StatusCode};
use std::time::Duration;

#[tokio::test]
async fn each_revision_shakes_hands_and_unknown_ones_get_the_newest() {
    let bench = Bench::new();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let response = bench.send(post().header("mcp-session-id", "mine"), &initialize(asked)).await;
        let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_graphic()));
        let text = text(response).await;
        assert!(
            text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"{agreed}""#)),
            "{text}"
        );
        assert_eq!(text.contains("completions"), agreed != "2024-11-05");
        assert!(text.contains(r#""serverInfo":{"name":"trunkline""#) && text.contains(r#""instructions":"hi""#));
        let again = bench.legacy(&id, &initialize(asked)).await;
        assert_eq!(code(again).await, (400, -32600));
    }
}

#[tokio::test]
async fn of_a_long_revision_in_a_header_little_is_echoed() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-06-18").await;
    let asked = post().header("mcp-session-id", &id).header("mcp-protocol-version", "2".repeat(20_000));
    let said = text(bench.send(asked, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await).await;
    assert!(said.contains("-32") && said.len() < 1000, "{} bytes", said.len());
}

#[tokio::test(start_paused = true)]
async fn a_session_answers_what_is_its_own() {
    let mut bench = Bench::new();
    let (id, listen) = bench.session("2025-06-18").await;
    assert_eq!(
        (&listen.call.method, ListenFilter::parse(&listen.call.params)),
        (&Method::Listen, Some(ListenFilter::lists()))
    );
    assert_eq!(listen.call.caller.tenant.as_ref().map(|tenant| &**tenant.id()), Some(&*id));
    assert_eq!(listen.call.caller.capabilities, r#"{"roots":{}}"#);
    let ask = |text: &'static str| {
        let (bench, id) = (&bench, &id);
        async move { text_of(bench.legacy(id, text).await).await }
    };
    assert_eq!(
        ask(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await,
        (200, r#"{"jsonrpc":"2.0","id":"p","result":{}}"#.into())
    );
    assert_eq!(ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await, (202, String::new()));
    assert_eq!(ask(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#).await.0, 400, "nothing was asked");
    let echoed =
        ask(r#"{"jsonrpc":"2.0","id":-0,"method":"tools/call","params":{"name":"echo","arguments":{"n": -0}}}"#).await;
    assert_eq!(
        echoed,
        (200, r#"{"jsonrpc":"2.0","id":-0,"result":{"content":[],"structuredContent":{"n": -0}}}"#.into())
    );
    assert!(
        ask(r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#)
            .await
            .1
            .contains("-32602")
    );
    for method in ["server/discover", "subscriptions/listen", "sampling/createMessage"] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        assert_eq!(code(bench.legacy(&id, &frame).await).await, (200, -32601));
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_level_is_kept_and_listened_with() {
    let mut bench = Bench::new();
    let (id, before) = bench.session("2025-11-25").await;
    let answer =
        bench.legacy(&id, r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}"#).await;
    assert_eq!(text(answer).await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let level = Some(crate::call::LogLevel::Error);
    assert_eq!(bench.hands.next().await.call.log_level, level);
    before.cancelled().await;
    let face = bench.client.clone();
    let frame = call("1", "x");
    let (_, hand) = tokio::join!(face.legacy(&id, &frame), bench.hands.next());
    assert_eq!(hand.call.log_level, level);
}

#[tokio::test(start_paused = true)]
async fn delete_ends_the_session_and_its_calls() {
    let mut bench = Bench::new();
    let (id, listen) = bench.session("2025-11-25").await;
    let face = bench.client.clone();
    let frame = call("1", "x");
    let (pending, status) = tokio::join!(face.legacy(&id, &frame), async {
        let hand = bench.hands.next().await;
        let delete = Request::delete(super::PATH).header("mcp-session-id", &id);
        let status = bench.send(delete, "").await.status();
        hand.cancelled().await;
        listen.cancelled().await;
        status
    });
    assert_eq!((status, text_of(pending).await), (StatusCode::OK, (200, String::new())));
    assert_eq!(bench.legacy(&id, &call("2", "echo")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_ends_as_an_empty_stream_and_only_the_newest_of_its_id() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-11-25").await;
    let face = bench.client.clone();
    let frame = call("1", "x");
    let (older, newer, ()) = tokio::join!(face.legacy(&id, &frame), face.legacy(&id, &frame), async {
        let (older, newer) = (bench.hands.next().await, bench.hands.next().await);
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert_eq!(bench.legacy(&id, cancel).await.status(), StatusCode::ACCEPTED);
        newer.cancelled().await;
        older.complete(r#"{"content":[]}"#);
    });
    assert_eq!(newer.headers()["content-type"], "text/event-stream");
    assert_eq!((text_of(newer).await, text_of(older).await.1.is_empty()), ((200, String::new()), false));
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_listen_calls_and_refusals_pass() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-11-25").await;
    let face = bench.client.clone();
    let ask =
        |method: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/{method}","params":{{"uri":"a:b"}}}}"#);
    let (subscribe, unsubscribe) = (ask("subscribe"), ask("unsubscribe"));
    let acknowledge = |uris: &[&str]| {
        Event::Change(Change::Acknowledged(ListenFilter {
            uris: uris.iter().map(|u| (*u).into()).collect(),
            ..ListenFilter::default()
        }))
    };
    let (taken, hand) = tokio::join!(face.legacy(&id, &subscribe), async {
        let hand = bench.hands.next().await;
        hand.tell(acknowledge(&["a:b"]));
        hand
    });
    assert_eq!(text(taken).await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!(!hand.is_cancelled());
    bench.legacy(&id, &unsubscribe).await;
    hand.cancelled().await;
    let (dishonoured, ()) = tokio::join!(face.legacy(&id, &subscribe), async {
        bench.hands.next().await.tell(acknowledge(&[]));
    });
    assert_eq!(code(dishonoured).await, (200, -32602));
    let (unknown, ()) = tokio::join!(face.legacy(&id, &subscribe), async {
        bench.hands.next().await.refuse(Refusal::new(Reason::ResourceNotFound("a:b".into()), "no"));
    });
    assert_eq!(code(unknown).await, (200, -32002));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_cannot_be_asked_is_said_with_its_upstream() {
    let mut bench = Bench::with(Revision::V2026_07_28, |_| {});
    let (id, _listen) = bench.session("2025-11-25").await;
    let face = bench.client.clone();
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}"#;
    for (frame, expected) in [(call("1", "x"), r#""isError":true"#), (read.to_owned(), r#""code":-32603"#)] {
        let (response, ()) = tokio::join!(face.legacy(&id, &frame), async {
            bench.hands.next().await.end(Outcome::InputRequired(object(r#"{"resultType":"input_required"}"#)));
        });
        let text = text(response).await;
        assert!(text.contains(expected) && text.contains("`up`"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn batches_belong_to_one_revision() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-03-26").await;
    let two = format!(
        "[{},{}, {}]",
        call("1", "echo"),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        call("\"b\"", "echo")
    );
    // That revision has no structured results: they are said in words.
    let result = r#""result":{"content":[{"type":"text","text":"{}"}]}}"#;
    let expected = format!(r#"[{{"jsonrpc":"2.0","id":1,{result},{{"jsonrpc":"2.0","id":"b",{result}]"#);
    assert_eq!(text_of(bench.legacy(&id, &two).await).await, (200, expected));
    let told = bench.legacy(&id, r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#).await;
    assert_eq!(text_of(told).await, (202, String::new()));
    let many = format!("[{}]", vec![call("1", "echo"); 65].join(","));
    let with_handshake = format!("[{}]", initialize("2025-03-26"));
    let with_modern = format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"_meta":{}}}}}]"#, super::META);
    for bad in ["[]", &many, &with_modern] {
        assert_eq!(code(bench.legacy(&id, bad).await).await, (400, -32600), "{bad}");
    }
    // Each is answered for itself; where nothing of it can be begun the whole is a bad request.
    let call = call("1", "echo");
    let arrays = [("[1]".to_owned(), 400, 1), (with_handshake, 400, 1), (format!("[1,{call},{call}]"), 200, 2)];
    for (array, status, refused) in arrays {
        let (found, said) = text_of(bench.legacy(&id, &array).await).await;
        assert!(found == status && said.matches("\"code\":-32600").count() == refused, "{found} {said}");
    }
    let (newer, _listen) = bench.session("2025-06-18").await;
    assert_eq!(code(bench.legacy(&newer, &two).await).await, (400, -32600));
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_end_and_of_used_ones_only_a_long_idle_one_makes_room_in_a_full_table() {
    let bench = Bench::with(Revision::V2025_11_25, |config| config.session.max = 2);
    let first = bench.handshake("2025-11-25").await;
    assert_eq!(bench.legacy(&first, &call("1", "echo")).await.status(), StatusCode::OK);
    tokio::time::advance(Duration::from_secs(30)).await;
    let second = bench.handshake("2025-11-25").await;
    assert_eq!(bench.legacy(&second, &call("1", "echo")).await.status(), StatusCode::OK);
    let refused = bench.send(post(), &initialize("2025-11-25")).await;
    assert_eq!(
        (refused.status(), refused.headers().contains_key("retry-after")),
        (StatusCode::SERVICE_UNAVAILABLE, true)
    );
    tokio::time::advance(Duration::from_secs(40)).await;
    bench.handshake("2025-11-25").await;
    assert_eq!(bench.legacy(&first, &call("1", "echo")).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(bench.legacy(&second, &call("1", "echo")).await.status(), StatusCode::OK);
    tokio::time::sleep(Duration::from_secs(1900)).await;
    assert_eq!(bench.legacy(&second, &call("1", "echo")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn without_sessions_each_request_stands_alone() {
    let bench = Bench::with(Revision::V2025_11_25, |config| config.session.required = false);
    let response = bench.send(post(), &initialize("2025-06-18")).await;
    assert!(!response.headers().contains_key("mcp-session-id") && bench.hands.is_empty());
    assert_eq!(bench.send(post(), &call("1", "echo")).await.status(), StatusCode::OK);
    let batch = format!("[{}]", call("1", "echo"));
    assert_eq!(bench.send(post(), &batch).await.status(), StatusCode::OK);
    let newer = post().header("mcp-protocol-version", "2025-11-25");
    assert_eq!(code(bench.send(newer, &batch).await).await, (400, -32600));
    let bad = post().header("mcp-protocol-version", "2025-01-01");
    assert_eq!(code(bench.send(bad, &call("1", "echo")).await).await, (400, -32602));
    assert_eq!(
        bench.send(Request::get(super::PATH).header("accept", "text/event-stream"), "").await.status(),
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_handshake_leaves_no_session_behind() {
    let bench = Bench::with(Revision::V2025_11_25, |config| config.session.max = 1);
    let unwanted = initialize("2025-11-25").replace(r#"{"roots":{}}"#, UNWANTED);
    let refused = bench.send(post(), &unwanted).await;
    assert!(!refused.headers().contains_key("mcp-session-id"));
    assert!(text(refused).await.contains("-32602"));
    // There is room for one.
    bench.handshake("2025-11-25").await;
}

async fn text_of(response: http::Response<super::Body>) -> (u16, String) {
    (response.status().as_u16(), text(response).await)
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_a_request_is_that_of_each_frame_of_its_array() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-03-26").await;
    let face = bench.client.clone();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let array = format!("[{},{}]", call("1", "slow"), call("2", "slow"));
    let request = post().header("mcp-session-id", &id).header("traceparent", parent);
    tokio::join!(face.send(request, &array), async {
        for _ in 0..2 {
            let hand = bench.hands.next().await;
            let trace = hand.call.trace.clone().expect("it is of a trace");
            assert_eq!(trace.context.as_ref().map(|context| context.traceparent()).as_deref(), Some(parent));
            hand.complete("{}");
        }
    });
}

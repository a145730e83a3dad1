//! Requests that are large and wait: they give way to others when there is no memory left, with a word.

use super::{Bench, Client, PATH, call, let_in, text};
use crate::config::Config;
use crate::http::service::McpService;
use crate::memory::Refusals;
use crate::memory::account::Kind;
use crate::memory::budget::Budget;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::runtime::Tasks;
use crate::scripted::{scripted, soon};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::ServiceExt;

const MIB: usize = 1 << 20;
const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

/// A body that comes in pieces, as those of connections do.
struct Pieces(VecDeque<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

fn bench(budget: &Budget) -> Bench {
    let (handler, hands) = scripted(Revision::V2025_11_25);
    let (tasks, refusals) = (Tasks::new(), Refusals::default());
    Bench {
        client: Client(McpService::new(handler, Config::default(), (tasks.clone(), Tasks::new()), (budget, &refusals))),
        hands,
        tasks,
        refusals,
    }
}

/// A call with six MiB of arguments.
async fn large(client: Client) -> Response<super::Body> {
    let params = format!(r#""name":"x","arguments":{{"a":"{}"}},"_meta":{META}"#, "x".repeat(6 * MIB));
    send(client, "tools/call", &params).await
}

async fn send(client: Client, method: &str, params: &str) -> Response<super::Body> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{{{params}}}}}"#);
    let pieces = text.as_bytes().chunks(32 * 1024).map(Bytes::copy_from_slice).collect();
    let request = Request::post(PATH)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .header("mcp-name", "x");
    client.0.clone().oneshot(let_in(request, Pieces(pieces))).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_large_call_under_way_gives_way_and_is_told_so() {
    let budget = Budget::new(16 * MIB);
    let mut bench = bench(&budget);
    let (response, next) = tokio::join!(large(bench.client.clone()), async {
        let hand = bench.hands.next().await;
        assert!((6 * MIB..7 * MIB).contains(&budget.used_by(Kind::Body)));
        let next = budget.charge(Kind::Queue, 5 * MIB + MIB / 2);
        assert!(next.is_ok(), "what fits needs nobody's");
        let more = budget.charge(Kind::Line, 2 * MIB);
        soon(hand.cancelled()).await;
        (next, more)
    });
    assert!(next.1.is_ok());
    let said = text(response).await;
    assert!(
        said.contains("memory_limit") && said.contains("may or may not have run") && said.contains("\"id\":\"a\""),
        "{said}"
    );
    assert_eq!(budget.used_by(Kind::Body), 0);
}

#[tokio::test(start_paused = true)]
async fn a_listen_call_keeps_nothing_of_its_request() {
    let budget = Budget::new(64 * MIB);
    let mut bench = bench(&budget);
    let uris = vec![format!("\"a:{}\"", "x".repeat(8000)); 1000].join(",");
    let params = format!(r#""notifications":{{"resourceSubscriptions":[{uris}]}},"_meta":{META}"#);
    let (_response, _hand) = tokio::join!(send(bench.client.clone(), "subscriptions/listen", &params), async {
        let mut hand = bench.hands.next().await;
        assert!(budget.used_by(Kind::Body) > 7 * MIB);
        // The router copies what it needs of them.
        hand.call.params = Object::empty();
        hand
    });
    assert_eq!(budget.used_by(Kind::Body), 0);
}

/// While its connection is open its request is counted with that.
#[tokio::test(start_paused = true)]
async fn a_call_that_goes_on_without_its_connection_is_counted_and_gives_way() {
    let budget = Budget::new(4 * MIB);
    let mut bench = bench(&budget);
    let (session, _listen) = bench.session("2025-11-25").await;
    let before = budget.used();
    let mut hands = Vec::new();
    for number in 0..100 {
        let (face, frame) = (bench.client.clone(), call(&number.to_string(), "x"));
        let hand = tokio::select! {
            biased;
            _ = face.legacy(&session, &frame) => panic!("nobody has answered"),
            hand = bench.hands.next() => hand,
        };
        hands.push(hand);
        let open = hands.iter().filter(|hand| !hand.is_cancelled()).count();
        assert!(number > 40 || open == number + 1, "there is room for so many");
    }
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let open = hands.iter().filter(|hand| !hand.is_cancelled()).count();
    assert!((40..80).contains(&open), "{open} go on");
    assert!(budget.used() >= before + open * 40 * 1024, "and are counted: {}", budget.used());
    hands.into_iter().filter(|hand| !hand.is_cancelled()).for_each(|hand| hand.complete("{}"));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(budget.used(), before);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_stream_nobody_reads_is_counted_and_gives_way_with_a_word() {
    let budget = Budget::new(4 * MIB);
    let mut bench = bench(&budget);
    let (session, _listen) = bench.session("2025-11-25").await;
    let before = budget.used();
    let (mut streams, mut hands) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let (face, frame) = (bench.client.clone(), call(&number.to_string(), "x"));
        let (response, hand) = tokio::join!(face.legacy(&session, &frame), async {
            let hand = bench.hands.next().await;
            hand.progress(1);
            hand
        });
        streams.push(response.into_body());
        hands.push(hand);
    }
    let counted = budget.used() - before;
    assert!(counted < 40 * 1024 * 10, "a stream that is read is counted with its connection: {counted}");
    drop(streams);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let open = hands.iter().filter(|hand| !hand.is_cancelled()).count();
    assert!((40..80).contains(&open), "{open} go on");
    assert!(budget.used() >= before + open * 40 * 1024, "and are counted: {}", budget.used());
    // One that is read again is not counted twice, and one that was given up says so.
    let on = hands.iter().position(|hand| !hand.is_cancelled()).unwrap();
    let off = hands.iter().position(|hand| hand.is_cancelled()).unwrap();
    let while_unread = budget.used();
    let read_again = bench.get(&session, Some(&format!("{}-1", on + 1))).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(budget.used() + 40 * 1024 <= while_unread, "{} of {while_unread}", budget.used());
    let said = text(bench.get(&session, Some(&format!("{}-1", off + 1))).await).await;
    assert!(said.contains("memory_limit") && said.contains("may or may not have run"), "{said}");
    hands.into_iter().filter(|hand| !hand.is_cancelled()).for_each(|hand| hand.complete("{}"));
    assert!(text(read_again).await.contains("\"result\""));
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(budget.used() < before + 40 * 1024 * 10, "{} of {before}", budget.used());
}

#[tokio::test]
async fn what_a_stateless_client_declares_is_bounded() {
    let bench = bench(&Budget::default());
    for (name, key) in [("clientCapabilities", "clientInfo"), ("clientInfo", "clientCapabilities")] {
        let long = format!(r#"{{"x":"{}"}}"#, "a".repeat(9000));
        let prefix = "io.modelcontextprotocol/";
        let meta =
            format!(r#"{{"{prefix}protocolVersion":"2026-07-28","{prefix}{name}":{long},"{prefix}{key}":{{}}}}"#);
        let said = text(send(bench.client.clone(), "tools/call", &format!(r#""name":"x","_meta":{meta}"#)).await).await;
        assert!(said.contains(&format!("`{prefix}{name}` is longer than 8192 bytes")), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_parked_are_counted_and_no_more_are_than_there_is_room_for() {
    let budget = Budget::new(2 * MIB);
    let mut bench = bench(&budget);
    let before = budget.used();
    let params = format!(r#""name":"x","arguments":{{}},"_meta":{META}"#);
    let (mut kept, mut parked) = (Vec::new(), 0);
    for _ in 0..60 {
        let (client, params) = (bench.client.clone(), params.clone());
        let (response, (hand, answer)) = tokio::join!(
            async {
                tokio::time::timeout(std::time::Duration::from_secs(1), send(client, "tools/call", &params)).await
            },
            async {
                let hand = bench.hands.next().await;
                let answer = hand.ask(Method::Elicitation, super::stateless::FORM);
                (hand, answer)
            }
        );
        kept.push((hand, answer));
        match response {
            Ok(response) => parked += usize::from(text(response).await.contains("input_required")),
            Err(_goes_on) => break,
        }
    }
    assert!((20..40).contains(&parked), "{parked} are parked");
    assert!(budget.used() >= before + 20 * 48 * 1024, "and are counted: {}", budget.used());
}

#[tokio::test(start_paused = true)]
async fn a_large_call_that_is_parked_gives_way() {
    let budget = Budget::new(16 * MIB);
    let mut bench = bench(&budget);
    let (response, (hand, _answer)) = tokio::join!(large(bench.client.clone()), async {
        let hand = bench.hands.next().await;
        let answer = hand.ask(Method::Elicitation, super::stateless::FORM);
        (hand, answer)
    });
    assert!(text(response).await.contains("input_required") && !hand.is_cancelled());
    assert!(budget.used_by(Kind::Body) > 6 * MIB);
    let _others =
        [(Kind::Queue, 4 * MIB), (Kind::Line, 3 * MIB)].map(|(kind, bytes)| budget.charge(kind, bytes).unwrap());
    budget.wake_deferred();
    soon(hand.cancelled()).await;
    // The test itself had the call until now.
    drop(hand);
    assert_eq!(budget.used_by(Kind::Body), 0);
}

//! Live questions to handshake clients: on the call's stream, answered by a POST, withdrawn, outliving their call.

use super::{Bench, Client, call, piece, post, principal, text};
use crate::call::caller::{ClientSession, Principal};
use crate::call::reply::ask::Answered;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::scripted::{Hand, question, soon};
use http::{Request, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot::Receiver;

pub(super) const ALL: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;
pub(super) const FORM: &str = r#"{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}"#;

/// A session that can be asked everything, and its listen call.
pub(super) async fn able(bench: &mut Bench, revision: &str) -> (String, Hand) {
    let id = bench.able(revision, ALL).await;
    (id, bench.hands.next().await)
}

/// A call whose upstream has asked: its stream, the call, and where the answer arrives.
async fn asked(bench: &mut Bench, session: &str, method: Method) -> (super::Body, Hand, Receiver<Answered>) {
    let face = bench.client.clone();
    let frame = call("1", "x");
    let (response, (hand, answer)) = tokio::join!(face.legacy(session, &frame), async {
        let hand = bench.hands.next().await;
        let answer = hand.ask(method, FORM);
        (hand, answer)
    });
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    (response.into_body(), hand, answer)
}

/// The next frame of a stream, past what is no frame.
pub(super) async fn frame(body: &mut super::Body) -> String {
    for _ in 0..1000 {
        let piece = piece(body).await.expect("the stream goes on");
        if let Some((_, frame)) = piece.split_once("data: {") {
            return format!("{{{}", frame.trim_end());
        }
    }
    panic!("nothing but comments comes");
}

pub(super) async fn answer(client: &Client, session: &str, id: &str, body: &str) -> StatusCode {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#);
    client.legacy(session, &frame).await.status()
}

fn is_open(answer: &mut Receiver<Answered>) -> bool {
    matches!(answer.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Empty))
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_out_on_the_calls_own_stream_and_its_answer_comes_back() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (mut body, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{FORM}}}"#);
    assert_eq!(frame(&mut body).await, expected.replace("Sure?", "[up] Sure?"));
    let other = hand.ask(Method::RootsList, "{}");
    assert_eq!(
        frame(&mut body).await,
        r#"{"jsonrpc":"2.0","id":2,"method":"roots/list","params":{"_meta":{"trunkline/upstream":"up"}}}"#
    );
    assert_eq!(answer(&bench, &id, "2", r#""result":{ "roots":[]}"#).await, StatusCode::ACCEPTED);
    let given = soon(other).await.unwrap();
    assert_eq!((given.revision, given.body.unwrap().raw().clone()), (Revision::V2025_11_25, r#"{ "roots":[]}"#.into()));
    assert_eq!(answer(&bench, &id, "1", r#""error":{"code":-1,"message":"no"}"#).await, StatusCode::ACCEPTED);
    assert_eq!(soon(one).await.unwrap().body.unwrap_err().code(), Some(-1));
    hand.complete(r#"{"content":[]}"#);
    assert!(frame(&mut body).await.contains(r#""id":1,"result""#));
    assert_eq!(piece(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_none_ends_the_waiting() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    for odd in [r#""result":7"#, r#""result":{},"error":{}"#, r#""answer":1"#] {
        let (mut body, _hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
        let asked: serde_json::Value = serde_json::from_str(&frame(&mut body).await).unwrap();
        answer(&bench, &id, &asked["id"].to_string(), odd).await;
        assert!(soon(one).await.is_err(), "{odd}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_session_that_was_asked_can_answer() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (other, _listen) = able(&mut bench, "2025-11-25").await;
    let (_body, _hand, mut one) = asked(&mut bench, &id, Method::Elicitation).await;
    let result = r#""result":{"action":"accept"}"#;
    assert_eq!(answer(&bench, &other, "1", result).await, StatusCode::BAD_REQUEST);
    for unknown in ["2", "\"1\"", "0", "-1"] {
        assert_eq!(answer(&bench, &id, unknown, result).await, StatusCode::BAD_REQUEST);
    }
    assert_eq!(answer(&bench, &id, "null", result).await, StatusCode::ACCEPTED);
    let stranger = principal(post().header("mcp-session-id", &id), "b");
    let frame = format!(r#"{{"jsonrpc":"2.0","id":1,{result}}}"#);
    assert_eq!(bench.send(stranger, &frame).await.status(), StatusCode::NOT_FOUND);
    assert!(is_open(&mut one));
    assert_eq!(answer(&bench, &id, "1", result).await, StatusCode::ACCEPTED);
    assert!(soon(one).await.is_ok());
    assert_eq!(answer(&bench, &id, "1", result).await, StatusCode::ACCEPTED, "a second answer is nobody's");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_withdrawn_is_withdrawn_on_the_calls_stream() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-06-18").await;
    let (mut body, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    frame(&mut body).await;
    drop(one);
    let withdrawn = frame(&mut body).await;
    assert!(withdrawn.contains(r#""notifications/cancelled","params":{"requestId":1"#), "{withdrawn}");
    hand.progress(1);
    assert!(frame(&mut body).await.contains("notifications/progress"));
}

#[tokio::test(start_paused = true)]
async fn the_questions_of_a_withdrawn_call_are_withdrawn_on_its_stream() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (mut body, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    frame(&mut body).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(bench.client.legacy(&id, cancel).await.status(), StatusCode::ACCEPTED);
    hand.cancelled().await;
    // Whoever asked lets go of the answer a little later.
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(one);
    let withdrawn = frame(&mut body).await;
    assert!(withdrawn.contains(r#""notifications/cancelled","params":{"requestId":1"#), "{withdrawn}");
    assert!(piece(&mut body).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_question_outlives_its_call_and_is_withdrawn_among_the_notices() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (mut first, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    hand.complete(r#"{"content":[]}"#);
    frame(&mut first).await;
    assert!(frame(&mut first).await.contains(r#""result""#));
    drop(first);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(answer(&bench, &id, "1", r#""result":{"action":"accept"}"#).await, StatusCode::ACCEPTED);
    assert!(soon(one).await.is_ok(), "a session with an open question is not idle");
    let (mut second, hand, two) = asked(&mut bench, &id, Method::Elicitation).await;
    hand.complete(r#"{"content":[]}"#);
    while piece(&mut second).await.is_some() {}
    drop(two);
    let mut notices = bench.get(&id, None).await.into_body();
    assert!(frame(&mut notices).await.contains(r#""requestId":2"#));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_withdrawn_as_its_call_ends_is_withdrawn_on_the_calls_stream() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (mut body, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    frame(&mut body).await;
    hand.complete_withdrawing(r#"{"content":[]}"#, one);
    let withdrawn = frame(&mut body).await;
    assert!(withdrawn.contains(r#""notifications/cancelled","params":{"requestId":1"#), "{withdrawn}");
    assert!(frame(&mut body).await.contains(r#""result""#));
    assert_eq!(piece(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_shows_its_questions_again() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (mut body, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    piece(&mut body).await;
    drop(body);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let mut resumed = bench.get(&id, Some("1-0")).await.into_body();
    assert!(frame(&mut resumed).await.contains(r#""id":1,"method":"elicitation/create""#));
    answer(&bench, &id, "1", r#""result":{"action":"decline"}"#).await;
    assert!(soon(one).await.is_ok());
    hand.complete("{}");
    assert!(frame(&mut resumed).await.contains(r#""result""#));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_leaves_no_question_open() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (mut body, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    frame(&mut body).await;
    let tenant = tenant(&hand);
    bench.send(Request::delete(super::PATH).header("mcp-session-id", &id), "").await;
    assert!(soon(one).await.is_err());
    hand.cancelled().await;
    soon(tenant.ended()).await;
    assert!(tenant.ask(question(Method::RootsList, "{}").0).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_question_of_no_call_waits_for_a_stream_of_the_notices() {
    let mut bench = Bench::new();
    let (id, listen) = able(&mut bench, "2025-11-25").await;
    let tenant = tenant(&listen);
    let (ask, one) = question(Method::RootsList, "{}");
    tenant.ask(ask).unwrap();
    let (ask, withdrawn) = question(Method::Elicitation, FORM);
    tenant.ask(ask).unwrap();
    drop(withdrawn);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let mut notices = bench.get(&id, None).await.into_body();
    assert!(frame(&mut notices).await.contains(r#""id":1,"method":"roots/list""#));
    answer(&bench, &id, "1", r#""result":{"roots":[]}"#).await;
    assert!(soon(one).await.is_ok());
    let (ask, two) = question(Method::Sampling, "{}");
    tenant.ask(ask).unwrap();
    assert!(frame(&mut notices).await.contains(r#""id":3,"method":"sampling/createMessage""#), "nobody waited for 2");
    drop(two);
    assert!(frame(&mut notices).await.contains(r#""requestId":3"#));
    let many: Vec<_> = (0..256).map(|_| question(Method::RootsList, "{}")).collect();
    let kept: Vec<_> = many.into_iter().map(|(ask, answer)| (tenant.ask(ask).is_ok(), answer)).collect();
    assert!(kept.iter().all(|(is_taken, _)| *is_taken));
    assert!(tenant.ask(question(Method::RootsList, "{}").0).is_err());
}

#[tokio::test(start_paused = true)]
async fn who_reads_no_streams_comes_without_questions() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (face, frame) = (bench.client.clone(), call("1", "x"));
    let request = Request::post(super::PATH)
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("mcp-session-id", &id);
    let (response, ()) = tokio::join!(face.send(request, &frame), async {
        let hand = bench.hands.next().await;
        assert_eq!(hand.call.caller.capabilities, "{}");
        let (call, session) = (hand.call.caller.can(), tenant(&hand).can());
        assert!(!call.has(Capabilities::FORM) && session.has(Capabilities::FORM), "its session has declared more");
        assert!(soon(hand.ask(Method::Elicitation, FORM)).await.is_err());
        hand.complete("{}");
    });
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(text(response).await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_face_questions_are_withdrawn_first_and_calls_end_with_an_answer() {
    let mut bench = Bench::new();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (mut body, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    frame(&mut body).await;
    bench.tasks.end();
    assert!(soon(one).await.is_err());
    assert!(frame(&mut body).await.contains("notifications/cancelled"));
    assert!(soon(hand.ask(Method::Elicitation, FORM)).await.is_err(), "nobody is asked any more");
    hand.complete("{}");
    assert!(frame(&mut body).await.contains(r#""result""#));
}

#[tokio::test(start_paused = true)]
async fn only_so_many_calls_of_a_principal_wait_at_once() {
    let mut bench = Bench::with(Revision::V2025_11_25, |config| config.questions.max_per_principal = 1);
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (_body, hand, one) = asked(&mut bench, &id, Method::Elicitation).await;
    let more = hand.ask(Method::Elicitation, FORM);
    let (face, frame) = (bench.client.clone(), call("2", "x"));
    let (response, ()) = tokio::join!(face.legacy(&id, &frame), async {
        let hand = bench.hands.next().await;
        let answered = soon(hand.ask(Method::Elicitation, FORM)).await.expect("it is refused in words");
        assert!(answered.body.unwrap_err().message().unwrap().contains("questions.max_open"));
        assert_eq!(bench.refusals.all().get("questions"), Some(&1), "it is shown and logged");
        hand.complete("{}");
    });
    assert!(text(response).await.contains("result"));
    answer(&bench, &id, "1", r#""result":{}"#).await;
    answer(&bench, &id, "2", r#""result":{}"#).await;
    assert!(soon(one).await.is_ok() && soon(more).await.is_ok());
    hand.progress(1);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (_body, _hand, mut three) = asked(&mut bench, &id, Method::Elicitation).await;
    assert!(is_open(&mut three));
}

fn tenant(hand: &Hand) -> Arc<ClientSession> {
    assert_eq!(hand.call.caller.principal, Principal::anonymous());
    hand.call.caller.tenant.clone().unwrap()
}

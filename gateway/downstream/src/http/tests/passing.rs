//! Questions that need nothing kept: a stateless upstream's, which pass, and pages to be visited before a call.

use super::stateless::{Got, Request};
use super::{Bench, call, text};
use crate::call::Call;
use crate::call::reply::{Failure, Outcome};
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::revision::Revision;
use crate::protocol::value::{Key, Object};
use crate::scripted::{Hand, object};
use crate::secrets::sealer::mutants::Mutants;
use serde_json::json;

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object"}}}},"requestState":"s\u0041\/1"}"#;
const PAGE: &str =
    r#"{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://h/1?x=1","message":"Sign in"}]}"#;

/// An upstream of the newest revision.
fn modern() -> Bench {
    Bench::with(Revision::V2026_07_28, |_| {})
}

/// Sends a request and ends its call; the call, and what the client got.
async fn ended(bench: &mut Bench, request: &Request, end: impl FnOnce(Hand)) -> (Got, Call) {
    let face = bench.client.clone();
    tokio::join!(request.send(&face), async {
        let hand = bench.hands.next().await;
        let call = hand.call.clone();
        end(hand);
        call
    })
}

fn asks(text: &str) -> impl FnOnce(Hand) {
    let result = object(text);
    move |hand| hand.end(Outcome::InputRequired(result))
}

fn pages(hand: Hand) {
    hand.end(Outcome::Error(Failure::Upstream(RpcError::new(-32042, "visit", Some(PAGE)))));
}

fn complete(hand: Hand) {
    hand.complete(r#"{"content":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn for_one_principal_a_state_passes_as_it_is() {
    let mut bench = modern();
    let request = Request::new();
    let (got, _) = ended(&mut bench, &request, asks(ASKS)).await;
    assert_eq!((got.0, got.state()), (200, json!("sA/1")));
    assert_eq!(got.1["result"]["inputRequests"]["k"]["params"]["message"], "[up] Sure?");
    let (got, call) = ended(&mut bench, &request.retry(&got, got.accepts()), complete).await;
    assert_eq!(got.1["result"]["resultType"], "complete");
    assert_eq!((call.params.text(Key::RequestState).as_deref(), call.bound_to), (Some("sA/1"), None));
    assert_eq!(call.params.find("inputResponses"), Some(&br#"{"k":{"action":"accept","content":{}}}"#[..]));
}

#[tokio::test(start_paused = true)]
async fn with_one_flat_upstream_nothing_of_it_is_changed() {
    let mut bench = Bench::with(Revision::V2026_07_28, |config| config.questions.names_upstream = false);
    let (got, _) = ended(&mut bench, &Request::new(), asks(ASKS)).await;
    assert_eq!(got.1["result"]["inputRequests"]["k"]["params"]["message"], "Sure?");
}

#[tokio::test(start_paused = true)]
async fn among_several_principals_a_state_is_bound_to_its_request_and_comes_back_byte_for_byte() {
    let mut bench = modern();
    let request = Request::new().of("a");
    let (got, _) = ended(&mut bench, &request, asks(ASKS)).await;
    assert!(got.state().as_str().unwrap().starts_with("trunkline-2."));
    let retry = request.retry(&got, got.accepts());
    for (refused, why) in [
        (retry.clone().of("b"), "unknown"),
        (retry.clone().with("requestState", json!("sA/1")), "unknown"),
        (retry.clone().with("arguments", json!({})), "another call"),
    ] {
        let (status, code, message) = refused.send(&bench).await.error();
        assert_eq!((status, code, message.contains(why)), (200, -32602, true), "{message}");
    }
    assert!(bench.hands.is_empty());
    // Nothing is kept here, so how often it is used is the upstream's business; it holds for a day.
    for _ in 0..2 {
        let (_, call) = ended(&mut bench, &retry, complete).await;
        assert_eq!(call.params.get(Key::RequestState), Some(&br#""s\u0041\/1""#[..]));
        assert_eq!(call.bound_to.as_deref(), Some("up"));
        tokio::time::advance(std::time::Duration::from_secs(12 * 3600 - 60)).await;
    }
    tokio::time::advance(std::time::Duration::from_secs(180)).await;
    assert!(retry.send(&bench).await.error().2.contains("expired"));
}

#[tokio::test(start_paused = true)]
async fn of_a_hundred_thousand_states_that_are_made_from_good_ones_none_reaches_an_upstream() {
    let (mut bench, mut elsewhere) = (modern(), modern());
    let request = Request::new().of("a");
    let (mine, _) = ended(&mut bench, &request, asks(ASKS)).await;
    let (theirs, _) = ended(&mut bench, &Request::new().of("b"), asks(ASKS)).await;
    let (other, _) = ended(&mut bench, &Request { method: "prompts/get", ..request.clone() }, asks(ASKS)).await;
    let (of_other_key, _) = ended(&mut elsewhere, &request, asks(ASKS)).await;
    let good = [&mine, &theirs, &other, &of_other_key].map(|got| got.state().as_str().unwrap().to_owned());
    let good: Vec<&str> = good.iter().map(String::as_str).chain(["sA/1"]).collect();
    // As they stand, those of others, of another request, of another gateway and the upstream's own are none for this one either.
    let as_they_stand = good[1..].iter().map(|state| (*state).to_owned());
    for state in as_they_stand.chain(Mutants::new(good.iter().copied(), 1).take(100_000)) {
        let retry = request.retry(&mine, mine.accepts()).with("requestState", json!(state));
        let (status, code, message) = retry.send(&bench).await.error();
        assert_eq!((status, code, bench.hands.is_empty()), (200, -32602, true), "{state}: {message}");
    }
    let (got, _) = ended(&mut bench, &request.retry(&mine, mine.accepts()), complete).await;
    assert_eq!(got.1["result"]["resultType"], "complete", "what they were made from is good");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_looks_like_ours_is_sealed_once_more_and_one_that_lies_is_refused() {
    let mut bench = modern();
    let (request, theirs) = (Request::new(), "trunkline-1.AAAA");
    let result = format!(r#"{{"resultType":"input_required","requestState":"{theirs}"}}"#);
    let (got, _) = ended(&mut bench, &request, asks(&result)).await;
    assert_ne!(got.state(), json!(theirs));
    let (_, call) = ended(&mut bench, &request.retry(&got, json!({})), complete).await;
    assert_eq!(call.params.text(Key::RequestState).as_deref(), Some(theirs));
    let lie = request.clone().with("requestState", json!(theirs));
    assert_eq!(lie.send(&bench).await.error().1, -32602);
    assert!(bench.hands.is_empty());
}

#[tokio::test(start_paused = true)]
async fn questions_that_were_not_declared_are_refused_with_what_is_missing() {
    let mut bench = modern();
    let request = Request::new().able(json!({"roots": {}}));
    let (got, _) = ended(&mut bench, &request, asks(ASKS)).await;
    let needs = &got.1["error"]["data"]["requiredCapabilities"];
    assert_eq!((got.0, got.error().1, needs), (400, -32021, &json!({"elicitation": {"form": {}}})));
    for text in [
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required","inputRequests":{"k":7}}"#,
        r#"{"resultType":"input_required","inputRequests":{"k":{"method":"x/y"}}}"#,
    ] {
        let (got, _) = ended(&mut bench, &Request::new(), asks(text)).await;
        assert_eq!((got.0, got.error().1), (200, -32603), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_are_visited_first_and_the_call_is_made_again_once() {
    let mut bench = Bench::new();
    let request = Request::new();
    let (first, _) = ended(&mut bench, &request, pages).await;
    let page = &first.1["result"]["inputRequests"][&first.keys()[0]];
    assert_eq!((&page["method"], &page["params"]["mode"]), (&json!("elicitation/create"), &json!("url")));
    assert_eq!(
        (&page["params"]["url"], &page["params"]["message"]),
        (&json!("https://h/1?x=1"), &json!("[up] Sign in"))
    );
    let second = request.retry(&first, json!({})).send(&bench).await;
    assert!(second.keys() == first.keys() && bench.hands.is_empty(), "no answer: asked again, and nothing is run");
    assert!(request.retry(&first, first.accepts()).send(&bench).await.error().2.contains("already used"));
    let retry = request.retry(&second, second.accepts());
    let (last, call) = ended(&mut bench, &retry, complete).await;
    assert_eq!(last.1["result"]["resultType"], "complete");
    assert!(!has_retried(&call.params), "it is made as it was first");
    assert_eq!(call.bound_to.as_deref(), Some("up"));
    assert!(retry.send(&bench).await.error().2.contains("already used") && bench.hands.is_empty());
}

fn has_retried(params: &Object) -> bool {
    params.get(Key::InputResponses).is_some() || params.get(Key::RequestState).is_some()
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_declined_ends_the_call_and_nothing_is_run() {
    for (method, action) in [("tools/call", "decline"), ("prompts/get", "cancel")] {
        let mut bench = Bench::new();
        let request = Request { method, ..Request::new() };
        let (got, _) = ended(&mut bench, &request, pages).await;
        let last = request.retry(&got, json!({&got.keys()[0]: {"action": action}})).send(&bench).await;
        let said = last.1.to_string();
        assert!(said.contains("declined") && bench.hands.is_empty(), "{said}");
        assert_eq!(
            (last.1["result"]["isError"] == true, last.error().1 == -32603),
            (method == "tools/call", method != "tools/call")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn pages_need_a_client_that_can_open_them() {
    let mut bench = Bench::new();
    let request = Request::new().able(json!({"elicitation": {}}));
    let (got, _) = ended(&mut bench, &request, pages).await;
    let needs = &got.1["error"]["data"]["requiredCapabilities"];
    assert_eq!((got.0, got.error().1, needs), (400, -32021, &json!({"elicitation": {"url": {}}})));
}

#[tokio::test(start_paused = true)]
async fn pages_that_nobody_visits_are_forgotten() {
    let mut bench = Bench::with(Revision::V2025_11_25, |config| config.questions.max_open = 1);
    let request = Request::new();
    let (got, _) = ended(&mut bench, &request, pages).await;
    let (full, _) = ended(&mut bench, &request, pages).await;
    assert!(full.error().2.contains("too many"), "{full:?}");
    tokio::time::sleep(std::time::Duration::from_secs(601)).await;
    assert!(request.retry(&got, got.accepts()).send(&bench).await.error().2.contains("expired"));
    assert!(bench.hands.is_empty());
    assert!(ended(&mut bench, &request, pages).await.0.is_input_required(), "the place is free again");
}

#[tokio::test(start_paused = true)]
async fn pages_that_are_needed_first_name_their_upstream_to_handshake_clients_too() {
    let (passed, told) = (r#""message":"[up] Sign in"}]}"#, r#"\n[up] Sign in: https://h/1?x=1"}],"isError":true"#);
    for (from, to, words) in [
        (Revision::V2025_11_25, "2025-11-25", passed),
        (Revision::V2025_11_25, "2025-06-18", told),
        (Revision::V2026_07_28, "2025-06-18", told),
        (Revision::V2026_07_28, "2024-11-05", told),
    ] {
        let mut bench = Bench::with(from, |_| {});
        let (id, _listen) = bench.session(to).await;
        let (face, frame) = (bench.client.clone(), call("1", "x"));
        let (response, ()) = tokio::join!(face.legacy(&id, &frame), async { pages(bench.hands.next().await) });
        let got = text(response).await;
        assert!(got.contains(words), "{to}: {got}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_no_text_goes_to_nobody() {
    for state in ["5", "{}", "null"] {
        let mut bench = modern();
        let (got, _) = ended(&mut bench, &Request::new(), asks(&ASKS.replace(r#""s\u0041\/1""#, state))).await;
        let (_, code, message) = got.error();
        assert_eq!((code, message.contains("`requestState` is no text")), (-32603, true), "{message}");
    }
}

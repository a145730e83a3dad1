//! Live questions to stateless clients: the call is parked, its retry takes it up again, and nothing runs twice.

use super::stateless::{FORM, Request};
use super::{Bench, piece};
use crate::call::LogLevel;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::Event;
use crate::config::{Config, SigningKey};
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::scripted::object;
use serde_json::json;
use std::time::Duration;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::{Instant, advance, sleep};

const ONE: [(Method, &str); 1] = [(Method::Elicitation, FORM)];
const TWO: [(Method, &str); 2] = [(Method::Elicitation, FORM), (Method::RootsList, "{}")];

#[tokio::test(start_paused = true)]
async fn questions_that_come_close_together_go_out_together() {
    let mut bench = Bench::new();
    let (face, began) = (bench.client.clone(), Instant::now());
    let request = Request::new();
    let (got, _hand) = tokio::join!(request.send(&face), async {
        let hand = bench.hands.next().await;
        let first = hand.ask(Method::Elicitation, FORM);
        sleep(Duration::from_millis(15)).await;
        (hand.ask(Method::Sampling, r#"{"messages":[],"maxTokens":1}"#), first, hand)
    });
    assert_eq!((began.elapsed().as_millis(), got.0), (35, 200));
    let result = &got.1["result"];
    assert_eq!((&got.1["id"], &result["resultType"], got.keys().len()), (&json!(7), &json!("input_required"), 2));
    let asked: Vec<_> = got.keys().iter().map(|key| result["inputRequests"][key].clone()).collect();
    assert_eq!(asked[0]["method"], "elicitation/create");
    assert_eq!(asked[0]["params"]["message"], "[up] Sure?");
    let said = json!({"_meta": {"trunkline/upstream": "up"}, "messages": [], "maxTokens": 1});
    assert_eq!(asked[1], json!({"method": "sampling/createMessage", "params": said}));
    assert!(asked[0].get("id").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_first_question_waits_for_others_a_tenth_of_a_second_at_most() {
    let mut bench = Bench::new();
    let (face, began) = (bench.client.clone(), Instant::now());
    let (request, (end, ended)) = (Request::new(), tokio::sync::oneshot::channel::<()>());
    let (got, _hand) = tokio::join!(
        async {
            let got = request.send(&face).await;
            drop(end);
            got
        },
        async {
            let hand = bench.hands.next().await;
            let steadily = async {
                let mut answers = Vec::new();
                loop {
                    answers.push(hand.ask(Method::RootsList, "{}"));
                    sleep(Duration::from_millis(15)).await;
                }
            };
            tokio::select! {
                () = steadily => {}
                _ = ended => {}
            }
            hand
        }
    );
    assert_eq!((began.elapsed().as_millis(), got.keys().len()), (100, 7));
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_the_call_up_again_round_after_round() {
    let mut bench = Bench::new();
    let request = Request::new();
    let (first, hand, mut answers) = request.asked(&mut bench, &ONE).await;
    sleep(Duration::from_secs(300)).await;
    assert!(!hand.is_cancelled(), "between rounds nothing cancels");
    let (face, retry) = (bench.client.clone(), request.retry(&first, first.accepts()));
    let (second, [roots]) = tokio::join!(retry.send(&face), async {
        let answered = answers.remove(0).await.unwrap();
        assert_eq!(answered.revision, Revision::V2026_07_28);
        assert_eq!(answered.body.unwrap().find("action"), Some(&br#""accept""#[..]));
        [hand.ask(Method::RootsList, "{}")]
    });
    assert!(second.is_input_required() && second.keys() != first.keys() && second.state() != first.state());
    let retry = request.retry(&second, json!({&second.keys()[0]: {"roots": []}}));
    let (last, ()) = tokio::join!(retry.send(&face), async {
        assert!(roots.await.is_ok());
        hand.complete(r#"{"content":[{"type":"text","text":"done"}]}"#);
    });
    assert_eq!(last.1["result"]["content"][0]["text"], "done");
    assert!(bench.hands.is_empty(), "the tool ran once");
}

#[tokio::test(start_paused = true)]
async fn what_happened_meanwhile_waits_and_comes_first_in_the_terms_of_the_retry() {
    let mut bench = Bench::new();
    let request = Request::new();
    let (got, hand, _answers) = request.asked(&mut bench, &ONE).await;
    hand.tell(Event::Log(LogLevel::Error, object("{}")));
    hand.progress(1);
    hand.complete("{}");
    let mut body = request.retry(&got, got.accepts()).open(&bench).await.into_body();
    let told = piece(&mut body).await.unwrap();
    assert!(told.contains(r#""progressToken":"t","progress":1"#), "{told}");
    assert!(piece(&mut body).await.unwrap().contains(r#""resultType":"complete""#));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_no_streams_is_asked_too() {
    let mut bench = Bench::new();
    let request = Request { accept: "application/json", ..Request::new() };
    let (got, hand, _answers) = request.asked(&mut bench, &ONE).await;
    assert!(got.is_input_required());
    hand.complete("{}");
    assert_eq!(request.retry(&got, got.accepts()).send(&bench).await.1["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_answered_is_asked_again_and_the_rest_handed_over() {
    let mut bench = Bench::new();
    let request = Request::new();
    let (first, hand, mut answers) = request.asked(&mut bench, &TWO).await;
    let keys = first.keys();
    let (roots, mut form) = (answers.pop().unwrap(), answers.pop().unwrap());
    let some = json!({&keys[1]: {"roots": []}, &keys[0]: "yes", "other": {}});
    let second = request.retry(&first, some).send(&bench).await;
    assert!(roots.await.is_ok());
    assert_eq!((second.keys(), form.try_recv().err()), (vec![keys[0].clone()], Some(TryRecvError::Empty)));
    assert_eq!(second.1["result"]["inputRequests"][&keys[0]], first.1["result"]["inputRequests"][&keys[0]]);
    let third = request.retry(&second, json!([])).send(&bench).await;
    assert_eq!(third.keys(), second.keys());
    let used = request.retry(&first, first.accepts()).send(&bench).await;
    assert_eq!((used.error().1, used.error().2.contains("already used")), (-32602, true));
    let (face, retry) = (bench.client.clone(), request.retry(&third, third.accepts()));
    let (last, ()) = tokio::join!(retry.send(&face), async {
        assert!(form.await.is_ok());
        hand.complete("{}");
    });
    assert_eq!(last.1["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_withdrawn_is_not_asked_again_and_its_answer_goes_nowhere() {
    let mut bench = Bench::new();
    let request = Request::new();
    let (first, hand, mut answers) = request.asked(&mut bench, &TWO).await;
    drop(answers.remove(0));
    let second = request.retry(&first, json!({})).send(&bench).await;
    assert_eq!(second.keys(), first.keys()[1..]);
    drop(answers);
    hand.complete("{}");
    let last = request.retry(&second, first.accepts()).send(&bench).await;
    assert_eq!(last.1["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_withdrawn_at_once_is_never_put() {
    let mut bench = Bench::new();
    let (face, request) = (bench.client.clone(), Request::new());
    let (got, ()) = tokio::join!(request.send(&face), async {
        let hand = bench.hands.next().await;
        drop(hand.ask(Method::Elicitation, FORM));
        sleep(Duration::from_secs(1)).await;
        hand.complete("{}");
    });
    assert_eq!(got.1["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn whoever_has_no_right_to_it_is_refused_and_the_parked_call_unharmed() {
    let mut bench = Bench::new();
    let request = Request::new().of("a");
    let (got, hand, _answers) = request.asked(&mut bench, &ONE).await;
    let retry = request.retry(&got, got.accepts());
    let altered = got.state().as_str().unwrap().replace("trunkline-2.", "trunkline-2.A");
    let prompt = Request { method: "prompts/get", ..retry.clone() };
    for (refused, why) in [
        (retry.clone().of("b"), "unknown"),
        (Request { who: None, ..retry.clone() }, "unknown"),
        (retry.clone().with("requestState", json!(altered)), "unknown"),
        (retry.clone().with("requestState", json!("of an upstream")), "unknown"),
        (retry.clone().with("requestState", json!(7)), "unknown"),
        (retry.clone().with("arguments", json!({"a": 2})), "another call"),
        (retry.clone().with("name", json!("y")), "another call"),
        (prompt, "another call"),
    ] {
        let (status, code, message) = refused.send(&bench).await.error();
        assert_eq!((status, code, message.contains(why)), (200, -32602, true), "{message}");
        assert!(bench.hands.is_empty() && !hand.is_cancelled());
    }
    hand.complete("{}");
    assert_eq!(retry.send(&bench).await.1["result"]["resultType"], "complete");
    assert!(retry.send(&bench).await.error().2.contains("already used"));
    assert!(bench.hands.is_empty());
}

#[tokio::test(start_paused = true)]
async fn of_two_retries_at_once_one_wins() {
    let mut bench = Bench::new();
    let request = Request::new();
    let (got, hand, _answers) = request.asked(&mut bench, &ONE).await;
    hand.complete("{}");
    let retry = request.retry(&got, got.accepts());
    let (one, other) = tokio::join!(retry.send(&bench), retry.send(&bench));
    let mut codes = [one.error().1, other.error().1];
    codes.sort_unstable();
    assert_eq!(codes, [-32602, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_state_of_another_instance_says_so_and_nothing_is_run() {
    let keyed = |config: &mut Config| config.session.signing_keys = vec![SigningKey::new("k".repeat(32)).unwrap()];
    let mut before = Bench::with(Revision::V2025_11_25, keyed);
    let request = Request::new();
    let (got, _hand, _answers) = request.asked(&mut before, &ONE).await;
    let mut after = Bench::with(Revision::V2025_11_25, keyed);
    let (_, code, message) = request.retry(&got, got.accepts()).send(&after).await.error();
    let words = [
        "another process of the gateway",
        "retries must reach that process",
        "if it has ended",
        "not repeated automatically",
    ];
    assert_eq!((code, words.map(|word| message.contains(word))), (-32602, [true; 4]), "{message}");
    assert!(after.hands.is_empty());
    // With another key it cannot even be read.
    after = Bench::new();
    assert!(request.retry(&got, got.accepts()).send(&after).await.error().2.contains("unknown"));
    assert!(after.hands.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_upstream_died_while_it_was_parked_is_lost() {
    let mut bench = Bench::new();
    let request = Request::new();
    let (got, hand, answers) = request.asked(&mut bench, &ONE).await;
    drop(answers);
    hand.refuse(Refusal::of_upstream(Reason::OutcomeUnknown, &"up".into(), "upstream up ended: exit status 3"));
    let (status, code, message) = request.retry(&got, got.accepts()).send(&bench).await.error();
    assert_eq!((status, code, message.contains("is no longer valid")), (200, -32602, true), "{message}");
    assert!(message.contains("exit status 3") && bench.hands.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_call_is_told_so_and_then_cancelled() {
    let mut bench = Bench::with(Revision::V2025_11_25, |config| {
        config.questions.timeouts = vec![("up".into(), Duration::from_secs(60))];
    });
    let request = Request::new();
    let (got, hand, mut answers) = request.asked(&mut bench, &ONE).await;
    let parked = Instant::now();
    assert!(answers.remove(0).await.is_err());
    // A little before its state expires, and that little later, as every timer is believed.
    assert_eq!(parked.elapsed().as_millis(), 60_000);
    assert!(!hand.is_cancelled());
    hand.cancelled().await;
    assert_eq!(parked.elapsed().as_millis(), 60_500);
    let (_, code, message) = request.retry(&got, got.accepts()).send(&bench).await.error();
    assert_eq!((code, message.contains("expired")), (-32602, true), "{message}");
    assert!(bench.hands.is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_so_many_calls_are_parked_and_the_others_go_on() {
    let mut bench = Bench::with(Revision::V2025_11_25, |config| {
        (config.questions.max_open, config.questions.max_per_principal) = (2, 1);
    });
    let [a, b, c] = ["a", "b", "c"].map(|who| Request::new().of(who));
    let (first, hand, _one) = a.asked(&mut bench, &ONE).await;
    let refused = async |bench: &mut Bench, request: &Request| {
        let face = bench.client.clone();
        let (got, ()) = tokio::join!(request.send(&face), async {
            let hand = bench.hands.next().await;
            // Refused in words: nobody has declined.
            let answered = hand.ask(Method::Elicitation, FORM).await.unwrap();
            assert!(answered.body.unwrap_err().message().unwrap().contains("questions.max_open"));
            hand.complete("{}");
        });
        got.1["result"]["resultType"] == "complete"
    };
    assert!(refused(&mut bench, &a).await, "one for a principal");
    let (_got, _hand, _two) = b.asked(&mut bench, &ONE).await;
    assert!(refused(&mut bench, &c).await, "two in all");
    hand.complete("{}");
    a.retry(&first, first.accepts()).send(&bench).await;
    assert!(c.asked(&mut bench, &ONE).await.0.is_input_required(), "the place is free again");
}

#[tokio::test(start_paused = true)]
async fn when_the_gateway_ends_parked_calls_go_first_and_nobody_is_asked_any_more() {
    let mut bench = Bench::new();
    let (_got, hand, mut answers) = Request::new().asked(&mut bench, &ONE).await;
    let began = Instant::now();
    bench.tasks.end();
    assert!(answers.remove(0).await.is_err());
    hand.cancelled().await;
    let (face, request) = (bench.client.clone(), Request::new());
    let (got, ()) = tokio::join!(request.send(&face), async {
        let hand = bench.hands.next().await;
        assert!(hand.ask(Method::Elicitation, FORM).await.is_err());
        hand.complete("{}");
    });
    assert_eq!((got.1["result"]["resultType"].as_str(), began.elapsed()), (Some("complete"), Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_closed_while_the_call_runs_cancels_it_in_any_round() {
    let mut bench = Bench::new();
    let request = Request::new();
    let (got, hand, _answers) = request.asked(&mut bench, &ONE).await;
    let response = request.retry(&got, got.accepts()).open(&bench).await;
    advance(Duration::from_secs(60)).await;
    assert!(!hand.is_cancelled());
    drop(response);
    hand.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn only_what_a_request_declares_is_asked_and_the_retry_declares_anew() {
    let mut bench = Bench::new();
    let (face, request) = (bench.client.clone(), Request::new().able(json!({"elicitation": {}})));
    let (first, (hand, roots, form)) = tokio::join!(request.send(&face), async {
        let hand = bench.hands.next().await;
        assert!(hand.ask(Method::Elicitation, r#"{"mode":"url","url":"https://h/"}"#).await.is_err());
        let (roots, form) = (hand.ask(Method::RootsList, "{}"), hand.ask(Method::Elicitation, FORM));
        (hand, roots, form)
    });
    assert!(roots.await.is_err());
    assert_eq!(first.keys().len(), 1);
    let retry = request.retry(&first, json!({})).able(json!({"roots": {}}));
    let (second, [_roots]) = tokio::join!(retry.send(&face), async {
        assert!(form.await.is_err(), "it can no longer be asked this");
        [hand.ask(Method::RootsList, "{}")]
    });
    assert_eq!(second.1["result"]["inputRequests"][&second.keys()[0]]["method"], "roots/list");
}

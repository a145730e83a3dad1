//! Stateless upstreams that ask handshake clients: rounds of live questions, and the call made again.

use super::questions::{ALL, able, answer, frame};
use super::{Bench, Body, call, code, piece, post, text};
use crate::call::reply::Outcome;
use crate::protocol::payload::input;
use crate::protocol::revision::Revision;
use crate::protocol::value::Key;
use crate::scripted::object;
use http::Request;
use std::time::Duration;
use tokio::time::Instant;

const ASK: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}"#;
const PAGE: &str = r#"{"method":"elicitation/create","params":{"mode":"url","message":"Go","url":"https://h/"}}"#;
const ROOTS: &str = r#"{"method":"roots/list"}"#;
const STATE: &str = r#""s\u0041\/1""#;

fn modern() -> Bench {
    Bench::with(Revision::V2026_07_28, |_| {})
}

/// An outcome that asks these, each under its place as the key.
fn asks(questions: &[&str]) -> Outcome {
    let keyed: Vec<_> = questions.iter().enumerate().map(|(at, raw)| format!("\"k{at}\":{raw}")).collect();
    let requests =
        if keyed.is_empty() { String::new() } else { format!(r#""inputRequests":{{{}}},"#, keyed.join(",")) };
    Outcome::InputRequired(object(&format!(r#"{{"resultType":"input_required",{requests}"requestState":{STATE}}}"#)))
}

/// A call whose upstream asks these.
async fn asked(bench: &mut Bench, session: &str, questions: &[&str]) -> http::Response<Body> {
    let (face, frame) = (bench.client.clone(), call("1", "x"));
    let (response, ()) = tokio::join!(face.legacy(session, &frame), async {
        bench.hands.next().await.end(asks(questions));
    });
    response
}

async fn accept(bench: &Bench, session: &str, id: &str) {
    answer(bench, session, id, r#""result":{"action":"accept","content":{}}"#).await;
}

/// What a call is told that cannot go on.
async fn why(body: &mut Body) -> String {
    loop {
        let frame = frame(body).await;
        if frame.contains(r#""isError":true"#) {
            return frame;
        }
        assert!(frame.contains("notifications/cancelled"), "{frame}");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_go_out_side_by_side_and_the_call_is_made_again_with_the_answers() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let mut body = asked(&mut bench, &id, &[ASK, ROOTS]).await.into_body();
    let (one, two) = (frame(&mut body).await, frame(&mut body).await);
    assert!(one.contains(r#""id":1,"method":"elicitation/create""#) && one.contains("[up] Sure?"), "{one}");
    assert!(two.contains(r#""id":2,"method":"roots/list","params":{"_meta":{"trunkline/upstream":"up"}}"#), "{two}");
    answer(&bench, &id, "2", r#""result":{"roots":[]}"#).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bench.hands.is_empty(), "one answer is not all");
    answer(&bench, &id, "1", r#""result":{"action":"decline"}"#).await;
    let again = bench.hands.next().await;
    let params = &again.call.params;
    assert_eq!(params.get(Key::RequestState), Some(STATE.as_bytes()));
    assert_eq!(input::answer(params, "k0").unwrap().raw(), r#"{"action":"decline"}"#);
    assert_eq!(input::answer(params, "k1").unwrap().raw(), r#"{"roots":[]}"#);
    assert_eq!((params.get(Key::Name), again.call.bound_to.as_deref()), (Some(&b"\"x\""[..]), Some("up")));
    assert!(again.call.progress);
    again.progress(3);
    assert!(frame(&mut body).await.contains(r#""progressToken":7,"progress":3"#));
    again.end(asks(&[ROOTS]));
    assert!(frame(&mut body).await.contains(r#""id":3"#));
    answer(&bench, &id, "3", r#""result":{"roots":[]}"#).await;
    let last = bench.hands.next().await;
    assert!(input::answer(&last.call.params, "k1").is_none(), "each round has its own answers");
    last.complete(r#"{"resultType":"complete","content":[]}"#);
    assert!(frame(&mut body).await.contains(r#""id":1,"result":{"content":[]}"#));
    assert_eq!(piece(&mut body).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_page_gets_a_name_and_is_complete_with_the_call() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let mut body = asked(&mut bench, &id, &[PAGE, PAGE]).await.into_body();
    let mut names = Vec::new();
    for _ in 0..2 {
        let frame: serde_json::Value = serde_json::from_str(&frame(&mut body).await).unwrap();
        assert_eq!(frame["params"]["url"], "https://h/");
        names.push(frame["params"]["elicitationId"].as_str().unwrap().to_owned());
    }
    assert!(names[0].len() >= 16 && names[0] != names[1]);
    accept(&bench, &id, "1").await;
    answer(&bench, &id, "2", r#""result":{"action":"decline"}"#).await;
    bench.hands.next().await.complete("{}");
    let told = frame(&mut body).await;
    let expected = format!(r#"{{"elicitationId":"{}"}}"#, names[0]);
    assert!(told.contains("notifications/elicitation/complete") && told.contains(&expected), "{told}");
    assert!(frame(&mut body).await.contains(r#""result""#), "who declined is told nothing");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_withdraws_the_other_questions_and_ends_the_call() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let mut body = asked(&mut bench, &id, &[ASK, ROOTS]).await.into_body();
    frame(&mut body).await;
    frame(&mut body).await;
    answer(&bench, &id, "2", r#""error":{"code":-1,"message":"not today"}"#).await;
    let withdrawn = frame(&mut body).await;
    assert!(withdrawn.contains(r#""requestId":1"#), "{withdrawn}");
    let why = why(&mut body).await;
    assert!(why.contains("`up`") && why.contains("not today") && why.contains("roots"), "{why}");
    assert!(bench.hands.is_empty() && piece(&mut body).await.is_none());
    let mut body = asked(&mut bench, &id, &[ROOTS]).await.into_body();
    frame(&mut body).await;
    answer(&bench, &id, "3", r#""result":[]"#).await;
    assert!(self::why(&mut body).await.contains("no answer that can be read"));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_what_it_did_not_declare() {
    const TOOLS: &str = r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#;
    for (revision, capabilities, question, named) in [
        ("2025-11-25", "{}", ASK, "`elicitation`"),
        ("2025-11-25", r#"{"elicitation":{}}"#, PAGE, "`elicitation.url`"),
        ("2025-11-25", r#"{"elicitation":{"url":{}}}"#, ASK, "`elicitation`"),
        ("2025-11-25", r#"{"sampling":{}}"#, TOOLS, "`sampling.tools`"),
        ("2025-06-18", ALL, PAGE, "`elicitation.url`"),
        ("2025-03-26", ALL, ASK, "`elicitation`"),
        ("2024-11-05", ALL, TOOLS, "`sampling.tools`"),
        ("2025-11-25", ALL, r#"{"method":"dance/now"}"#, "`dance/now`"),
        ("2025-11-25", ALL, r#"{"method":"elicitation/create","params":{"mode":"dance"}}"#, "`elicitation/create`"),
    ] {
        let mut bench = modern();
        let id = bench.able(revision, capabilities).await;
        let _listen = bench.hands.next().await;
        let response = asked(&mut bench, &id, &[ROOTS, question]).await;
        let told = text(response).await;
        let is_roots = capabilities != ALL && told.contains("`roots`");
        assert!(told.contains("isError") && told.contains("`up`"), "{told}");
        assert!(is_roots || told.contains(named), "{revision} {told}");
        assert!(bench.hands.is_empty() && !told.contains("roots/list"), "nothing was asked: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_asked_on_its_stream_is_told_why() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let request =
        || Request::post(super::PATH).header("content-type", "application/json").header("accept", "application/json");
    let (face, frame) = (bench.client.clone(), call("1", "x"));
    let (response, ()) = tokio::join!(face.send(request().header("mcp-session-id", &id), &frame), async {
        bench.hands.next().await.end(asks(&[ASK]));
    });
    let told = text(response).await;
    assert!(told.contains("isError") && told.contains("text/event-stream"), "{told}");
    let mut alone = Bench::with(Revision::V2026_07_28, |config| config.session.required = false);
    let (face, read) =
        (alone.client.clone(), r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a:b"}}"#);
    let (response, ()) = tokio::join!(face.send(post(), read), async {
        alone.hands.next().await.end(asks(&[ASK]));
    });
    let told = text(response).await;
    assert!(told.contains("-32603") && told.contains("session"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn rounds_without_questions_are_paced() {
    let mut bench = Bench::with(Revision::V2026_07_28, |config| config.questions.max_rounds = 7);
    let (id, _listen) = able(&mut bench, "2024-11-05").await;
    let (face, frame) = (bench.client.clone(), call("1", "x"));
    let (response, ()) = tokio::join!(face.legacy(&id, &frame), async {
        let mut hand = bench.hands.next().await;
        for rest in [250, 500, 1000, 2000, 4000, 5000, 5000].map(Duration::from_millis) {
            let began = Instant::now();
            hand.end(asks(&[]));
            hand = bench.hands.next().await;
            let rested = began.elapsed();
            assert!(rested >= rest && rested < rest + Duration::from_millis(20), "{rested:?}");
            assert!(hand.call.params.get(Key::InputResponses).is_none());
            assert_eq!(hand.call.params.get(Key::RequestState), Some(STATE.as_bytes()));
        }
        hand.end(asks(&[]));
    });
    let told = text(response).await;
    assert!(told.contains("isError") && told.contains("`questions.max_rounds`") && told.contains("`up`"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_ends_the_call_after_the_time_that_is_set() {
    let mut bench = Bench::with(Revision::V2026_07_28, |config| config.questions.timeout = Duration::from_secs(7));
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let began = Instant::now();
    let mut body = asked(&mut bench, &id, &[ASK]).await.into_body();
    frame(&mut body).await;
    assert!(frame(&mut body).await.contains(r#""requestId":1"#));
    assert_eq!(began.elapsed().as_secs(), 7);
    let why = why(&mut body).await;
    assert!(why.contains("`up`") && why.contains("7 s") && why.contains("`questions.timeout`"), "{why}");
    assert!(bench.hands.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_withdraws_its_questions_and_says_nothing_more() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let mut body = asked(&mut bench, &id, &[ASK, ROOTS]).await.into_body();
    frame(&mut body).await;
    frame(&mut body).await;
    bench.legacy(&id, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    for id in [1, 2] {
        assert!(frame(&mut body).await.contains(&format!(r#""requestId":{id}"#)));
    }
    assert_eq!(piece(&mut body).await, None);
    accept(&bench, &id, "1").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(bench.hands.is_empty());
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_face_the_questions_are_withdrawn_and_the_call_is_answered() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let mut body = asked(&mut bench, &id, &[ASK]).await.into_body();
    frame(&mut body).await;
    bench.tasks.end();
    assert!(frame(&mut body).await.contains("notifications/cancelled"));
    assert!(why(&mut body).await.contains("the gateway is shutting down"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_counts_and_the_next_one_is_told_so() {
    let mut bench = Bench::with(Revision::V2026_07_28, |config| config.questions.max_open = 1);
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let mut body = asked(&mut bench, &id, &[ASK]).await.into_body();
    frame(&mut body).await;
    let refused = text(asked(&mut bench, &id, &[ASK]).await).await;
    assert!(refused.contains("isError") && refused.contains("`questions.max_open`"), "{refused}");
    accept(&bench, &id, "1").await;
    bench.hands.next().await.complete("{}");
    assert!(frame(&mut body).await.contains("result"));
    assert_eq!(piece(&mut body).await, None);
    let mut body = asked(&mut bench, &id, &[ASK]).await.into_body();
    assert!(frame(&mut body).await.contains("elicitation/create"));
}

#[tokio::test(start_paused = true)]
async fn questions_that_cannot_be_read_are_said_to_be_so() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let many = vec![ROOTS; 65];
    for result in [Outcome::InputRequired(object(r#"{"resultType":"input_required"}"#)), asks(&["7"]), asks(&many)] {
        let (face, read) =
            (bench.client.clone(), r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}"#);
        let (response, ()) = tokio::join!(face.legacy(&id, read), async {
            bench.hands.next().await.end(result);
        });
        assert_eq!(code(response).await, (200, -32603));
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_stateless_clients_can_say_is_not_passed_for_a_handshake_client() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let forged = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","requestState":"s","inputResponses":{},"a":1}}"#;
    let face = bench.client.clone();
    let (response, ()) = tokio::join!(face.legacy(&id, forged), async {
        let hand = bench.hands.next().await;
        assert_eq!(hand.call.params.raw(), r#"{"name":"x","a":1}"#);
        hand.complete("{}");
    });
    assert!(text(response).await.contains("result"));
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_no_text_ends_the_call_which_is_not_made_again() {
    let mut bench = modern();
    let (id, _listen) = able(&mut bench, "2025-11-25").await;
    let (face, frame) = (bench.client.clone(), call("1", "x"));
    let (response, ()) = tokio::join!(face.legacy(&id, &frame), async {
        bench.hands.next().await.end(Outcome::InputRequired(object(r#"{"requestState":5}"#)));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(bench.hands.is_empty(), "the call is made again");
    });
    let got = text(response).await;
    assert!(got.contains("`requestState` is no text") && got.contains(r#""isError":true"#), "{got}");
}

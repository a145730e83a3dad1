//! On a pipe: to and fro, and every way in which a question ends.

use super::*;
use crate::call::refusal::Reason;
use crate::call::reply::{Failure, Outcome};
use crate::protocol::frame::rpc_error::RpcError;
use crate::protocol::value::Key;
use crate::upstream::tests::rig::{config, outcome};

#[tokio::test(start_paused = true)]
async fn a_question_comes_in_the_reply_and_its_answer_goes_back_under_its_own_id() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let mut reply = rig.upstream().call(modern());
    let (id, _, _) = rig.far.request().await;
    elicits(&mut rig.far, r#""q\u0031""#).await;
    let ask = question(&mut reply).await;
    assert_eq!((&ask.method, &*ask.upstream, ask.revision), (&Method::Elicitation, "a", LEGACY));
    assert_eq!(ask.request.raw(), FORM);
    give(ask.answer, LEGACY, "{\"action\":\"accept\",\n\"content\":{\"x\":1e400}}");
    let said = rig.far.line().await;
    assert_eq!(said, r#"{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"accept", "content":{"x":1e400}}}"#);
    rig.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut reply).await, Outcome::Complete(_)));
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_said_by_kind_and_a_clients_error_is_passed_on() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let mut reply = rig.upstream().call(modern());
    rig.far.request().await;
    for (method, said) in [
        ("elicitation/create", r#""result":{"action":"cancel"}"#),
        ("sampling/createMessage", r#""error":{"code":-1,"#),
        ("roots/list", r#""error":{"code":-32603,"#),
    ] {
        asks(&mut rig.far, "7", method, "{}").await;
        drop(question(&mut reply).await);
        let line = rig.far.line().await;
        assert!(line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":7,{said}"#)), "{line}");
    }
    asks(&mut rig.far, "8", "roots/list", "{}").await;
    let ask = question(&mut reply).await;
    let error = RpcError::new(-7, "no", Some("[1]"));
    ask.answer.give(Answered { revision: MODERN, body: Err(error) }).unwrap();
    assert_eq!(rig.far.line().await, r#"{"jsonrpc":"2.0","id":8,"error":{"code":-7,"message":"no","data":[1]}}"#);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_said_is_not_called_silence() {
    let mut rig = Rig::new(config());
    rig.met(Revision::V2025_06_18, "{}");
    let mut reply = rig.upstream().call(modern());
    rig.far.request().await;
    asks(&mut rig.far, "7", "sampling/createMessage", "{}").await;
    let image = r#"{"type":"image","data":"","mimeType":"image/png"}"#;
    let answer = question(&mut reply).await.answer;
    give(answer, MODERN, &format!(r#"{{"role":"assistant","model":"m","content":[{image},{image}]}}"#));
    let line = rig.far.line().await;
    let said = r#"{"code":-1,"message":"the client answered, but its answer cannot be said in revision 2025-06-18""#;
    assert!(line.contains(said), "{line}");
    for (method, code) in [("sampling/createMessage", "-1"), ("roots/list", "-32603")] {
        asks(&mut rig.far, "8", method, "{}").await;
        let error = RpcError::from_raw(r#"{"code":"x"}"#.into());
        question(&mut reply).await.answer.give(Answered { revision: MODERN, body: Err(error) }).unwrap();
        let line = rig.far.line().await;
        let said = format!(r#"{{"code":{code},"message":"the client answered with an error that cannot be read""#);
        assert!(line.contains(&said), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_upstream_withdraws_is_closed_and_not_answered() {
    let mut rig = rig(config());
    let (mut reply, _) = started(&mut rig, modern()).await;
    elicits(&mut rig.far, "\"a\"").await;
    elicits(&mut rig.far, "\"b\"").await;
    let (mut one, two) = (question(&mut reply).await, question(&mut reply).await);
    rig.far.notify("notifications/cancelled", r#"{"requestId":"a"}"#).await;
    rig.far.notify("notifications/cancelled", r#"{"requestId":"unknown"}"#).await;
    within(one.answer.closed()).await;
    drop(one);
    assert!(rig.far.is_quiet().await);
    assert!(!two.answer.is_closed());
    give(two.answer, MODERN, "{}");
    assert_eq!(rig.far.line().await, r#"{"jsonrpc":"2.0","id":"b","result":{}}"#);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_in_time_is_over_on_both_sides() {
    let mut rig = rig(Config { question_timeout: Duration::from_secs(90), ..config() });
    let (mut reply, _) = started(&mut rig, modern()).await;
    let begun = tokio::time::Instant::now();
    asks(&mut rig.far, "1", "sampling/createMessage", "{}").await;
    let mut ask = question(&mut reply).await;
    let said = rig.far.line().await;
    assert!(said.contains(r#""id":1,"error":{"code":-1,"#), "{said}");
    assert_eq!(begun.elapsed().as_secs(), 90);
    within(ask.answer.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_calls_questions_are_answered_before_it_is_withdrawn() {
    let mut rig = rig(config());
    let (mut reply, id) = started(&mut rig, modern()).await;
    elicits(&mut rig.far, "1").await;
    let mut delivered = question(&mut reply).await;
    elicits(&mut rig.far, "2").await;
    rig.far.notify("notifications/tools/list_changed", "{}").await;
    while rig.instance.offering.reads.begin() != crate::upstream::instance::inventory::schedule::ListKinds::TOOLS {
        tokio::task::yield_now().await;
    }
    drop(reply);
    for id in ["1", "2"] {
        assert_eq!(rig.far.line().await, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"cancel"}}}}"#));
    }
    let (method, params) = rig.far.notification().await;
    assert_eq!((method, params.get(Key::RequestId)), (Method::Cancelled, Some(&id.raw()[..])));
    within(delivered.answer.closed()).await;
    assert!(rig.far.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_takes_its_questions_along() {
    let mut rig = rig(config());
    let (mut reply, id) = started(&mut rig, modern()).await;
    elicits(&mut rig.far, "1").await;
    let mut ask = question(&mut reply).await;
    rig.far.result(&id, "{}").await;
    assert!(rig.far.line().await.contains(r#""id":1,"result":{"action":"cancel"}"#));
    within(ask.answer.closed()).await;
    assert!(matches!(outcome(&mut reply).await, Outcome::Complete(_)));
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_dies_takes_its_questions_along() {
    let mut rig = rig(config());
    let (mut reply, _) = started(&mut rig, modern()).await;
    elicits(&mut rig.far, "1").await;
    let mut ask = question(&mut reply).await;
    drop(rig.far);
    within(ask.answer.closed()).await;
    let Outcome::Error(Failure::Refused(refusal)) = outcome(&mut reply).await else { panic!() };
    assert_eq!(refusal.reason, Reason::OutcomeUnknown);
}

#[tokio::test(start_paused = true)]
async fn so_many_questions_and_no_more() {
    let mut rig = rig(config());
    let (mut reply, _) = started(&mut rig, Call { progress: true, ..modern() }).await;
    for id in 0..17 {
        elicits(&mut rig.far, &id.to_string()).await;
    }
    let line = rig.far.line().await;
    assert!(line.contains(r#""id":16,"error":{"code":-32602,"message":"too many"#), "{line}");
    let error = rig.board.snapshot().remove(0).last_error.expect("the operator sees it");
    assert_eq!(error.cause.full(), "questions_full: too many questions of it are open");
    // None of those that wait is lost to what comes after it.
    for value in 0..200 {
        rig.far.notify("notifications/progress", &format!(r#"{{"progressToken":1,"progress":{value}}}"#)).await;
    }
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(question(&mut reply).await);
    }
    give(open.remove(0).answer, MODERN, "{}");
    assert!(rig.far.line().await.contains(r#""id":0,"result":{}"#));
}

#[tokio::test(start_paused = true)]
async fn a_stateless_upstream_that_asks_live_is_not_answered() {
    let mut rig = Rig::new(config());
    rig.met(MODERN, "{}");
    let (mut reply, id) = started(&mut rig, modern()).await;
    elicits(&mut rig.far, "1").await;
    asks(&mut rig.far, "2", "ping", "{}").await;
    assert!(rig.far.is_quiet().await);
    rig.far.result(&id, r#"{"resultType":"complete"}"#).await;
    assert!(matches!(outcome(&mut reply).await, Outcome::Complete(_)));
}

#[tokio::test(start_paused = true)]
async fn what_a_client_answers_may_be_anything() {
    let mut rig = rig(config());
    let (mut reply, _) = started(&mut rig, modern()).await;
    for (body, said) in [
        (Err(RpcError::from_raw("7".into())), r#""result":{"action":"cancel"}"#),
        (Err(RpcError::from_raw("{\n\"code\":1}".into())), r#""error":{ "code":1}"#),
    ] {
        elicits(&mut rig.far, "1").await;
        question(&mut reply).await.answer.give(Answered { revision: LEGACY, body }).unwrap();
        assert_eq!(rig.far.line().await, format!(r#"{{"jsonrpc":"2.0","id":1,{said}}}"#));
    }
}

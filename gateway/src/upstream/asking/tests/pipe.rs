//! On a pipe, where nothing says which call a question belongs to.

use super::super::super::tests::rig::{Far, Rig, config, outcome};
use super::*;
use crate::call::{Outcome, Tenant};
use crate::protocol::error::RpcError;

const FORM: &str = r#"{"message":"?","requestedSchema":{"type":"object"}}"#;

async fn asks(far: &mut Far, id: &str, method: &str, params: &str) {
    far.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)).await;
}

async fn elicits(far: &mut Far, id: &str) {
    asks(far, id, "elicitation/create", FORM).await;
}

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
async fn it_is_whose_calls_alone_are_open() {
    let (one, two) = (session("1"), session("2"));
    let of = |tenant: &Arc<Tenant>| tool(LEGACY, ALL, Some(tenant));
    for (calls, whose) in [
        (vec![], None),
        (vec![modern()], Some(0)),
        (vec![modern(), modern()], None),
        (vec![of(&one)], Some(0)),
        (vec![of(&one), of(&one)], Some(1)),
        (vec![of(&one), of(&two)], None),
        (vec![of(&one), modern()], None),
        (vec![modern(), of(&one)], None),
    ] {
        let mut rig = Rig::new(config());
        rig.met(LEGACY, "{}");
        let mut replies: Vec<_> = calls.into_iter().map(|call| rig.upstream().call(call)).collect();
        for _ in &replies {
            rig.far.request().await;
        }
        for (method, code) in
            [("elicitation/create", -32602), ("sampling/createMessage", -32601), ("roots/list", -32601)]
        {
            asks(&mut rig.far, "1", method, "{}").await;
            match whose {
                Some(at) => {
                    give(question(&mut replies[at]).await.answer, LEGACY, "{}");
                    assert_eq!(rig.far.line().await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
                }
                None => {
                    let line = rig.far.line().await;
                    assert!(line.contains(&format!("\"code\":{code},")), "{line}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_asked_is_not() {
    for (can, method, params, refused) in [
        (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", "{}", Some("elicitation by form")),
        (r#"{"elicitation":{}}"#, "elicitation/create", r#"{"mode":"form"}"#, None),
        (r#"{"elicitation":{}}"#, "elicitation/create", r#"{"mode":"url"}"#, Some("elicitation by URL")),
        (ALL, "elicitation/create", r#"{"mode":"voice"}"#, Some("elicitation of that mode")),
        (ALL, "elicitation/create", r#"{"mode":7}"#, Some("elicitation of that mode")),
        ("{}", "sampling/createMessage", "{}", Some("sampling")),
        (r#"{"sampling":{}}"#, "sampling/createMessage", r#"{"tools":null,"includeContext":"none"}"#, None),
        (r#"{"sampling":{}}"#, "sampling/createMessage", r#"{"tools":[]}"#, Some("sampling with tools")),
        (
            r#"{"sampling":{}}"#,
            "sampling/createMessage",
            r#"{"includeContext":"thisServer"}"#,
            Some("sampling with context"),
        ),
        (r#"{"sampling":{}}"#, "roots/list", "{}", Some("roots")),
        (r#"{"roots":{}}"#, "roots/list", "{}", None),
    ] {
        let mut rig = Rig::new(config());
        rig.met(LEGACY, "{}");
        let mut reply = rig.upstream().call(tool(MODERN, can, None));
        rig.far.request().await;
        asks(&mut rig.far, "1", method, params).await;
        match refused {
            None => drop(question(&mut reply).await),
            Some(what) => {
                let line = rig.far.line().await;
                let code = if method.starts_with("elicitation") { -32602 } else { -32601 };
                let error = format!(r#""error":{{"code":{code},"message":"the client did not declare {what} for"#);
                assert!(line.contains(&error), "{line}");
            }
        }
    }
}

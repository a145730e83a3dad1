//! Whose a question is on a pipe, where nothing says it, and whether they can be asked.

use super::*;
use crate::call::reply::Outcome;
use crate::protocol::capabilities::Capabilities;
use crate::upstream::declaring::declares;
use crate::upstream::owner::Ownership;
use crate::upstream::tests::rig::{config, outcome};
use std::sync::Mutex;

#[tokio::test(start_paused = true)]
async fn it_is_whose_calls_alone_are_open() {
    let (one, two) = (session("1"), session("2"));
    let of = |tenant: &Arc<ClientSession>| tool(LEGACY, ALL, Some(tenant));
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

#[tokio::test(start_paused = true)]
async fn a_sessions_question_outlives_the_call_it_came_on_but_not_the_last() {
    let mut rig = rig(config());
    let tenant = session("1");
    let of = || tool(LEGACY, ALL, Some(&tenant));
    let (first, _) = started(&mut rig, of()).await;
    let (mut second, id) = started(&mut rig, of()).await;
    elicits(&mut rig.far, "1").await;
    let mut ask = question(&mut second).await;
    rig.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut second).await, Outcome::Complete(_)));
    assert!(rig.far.is_quiet().await);
    assert!(!ask.answer.is_closed());
    drop(first);
    assert!(rig.far.line().await.contains(r#""id":1,"result":{"action":"cancel"}"#));
    within(ask.answer.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn only_calls_prompts_and_reads_count_and_parked_ones_do() {
    let mut rig = rig(config());
    let completion = Call { method: Method::Complete, ..modern() };
    let (_aside, _) = started(&mut rig, completion).await;
    let read = Call { method: Method::ResourcesRead, ..modern() };
    let (mut reply, _) = started(&mut rig, read).await;
    elicits(&mut rig.far, "1").await;
    let parked = question(&mut reply).await;
    // Nobody reads the reply now.
    let (mut other, _) = started(&mut rig, modern()).await;
    elicits(&mut rig.far, "2").await;
    assert!(rig.far.line().await.contains(r#""id":2,"error":{"code":-32602,"#));
    drop(reply);
    rig.far.line().await;
    rig.far.notification().await;
    assert!(parked.answer.is_closed());
    elicits(&mut rig.far, "3").await;
    drop(question(&mut other).await);
}

#[tokio::test(start_paused = true)]
async fn who_has_an_upstream_alone_is_asked_without_a_call_too() {
    let asked: Arc<Mutex<Vec<Box<Ask>>>> = Arc::default();
    let taking = asked.clone();
    let tenant = ClientSession::new("1".into(), move |ask| {
        taking.lock().unwrap().push(ask);
        Ok(())
    });
    let tenant = Arc::new(tenant.able(Capabilities::ROOTS));
    let mut rig = Rig::held(config(), Ownership::session(&tenant, &Default::default()));
    rig.met(LEGACY, "{}");
    for id in 0..17 {
        asks(&mut rig.far, &id.to_string(), "roots/list", "{}").await;
    }
    assert!(rig.far.line().await.contains(r#""id":16,"error":{"code":-32601,"message":"too many"#));
    let first = asked.lock().unwrap().remove(0);
    give(first.answer, LEGACY, r#"{"roots":[]}"#);
    assert_eq!(rig.far.line().await, r#"{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}"#);
    // A call of somebody else does not make it theirs, and one of its own carries it.
    let (_stranger, _) = started(&mut rig, modern()).await;
    let (mut own, id) = started(&mut rig, tool(LEGACY, ALL, Some(&tenant))).await;
    elicits(&mut rig.far, "50").await;
    let ask = question(&mut own).await;
    rig.far.result(&id, "{}").await;
    outcome(&mut own).await;
    assert!(rig.far.is_quiet().await);
    give(ask.answer, LEGACY, "{}");
    assert_eq!(rig.far.line().await, r#"{"jsonrpc":"2.0","id":50,"result":{}}"#);
    // What the session did not declare is refused without a call too.
    elicits(&mut rig.far, "51").await;
    assert!(rig.far.line().await.contains(r#""id":51,"error":{"code":-32602,"#));
    assert!(asked.lock().unwrap().iter().all(|ask| ask.method == Method::RootsList));
    // A session that cannot be asked is not waited for.
    let silent = ClientSession::mute("2").able(Capabilities::ROOTS);
    let mut mute = Rig::held(config(), Ownership::session(&Arc::new(silent), &Default::default()));
    mute.met(LEGACY, "{}");
    asks(&mut mute.far, "1", "roots/list", "{}").await;
    assert!(mute.far.line().await.contains(r#""error":{"code":-32601,"#));
}

#[tokio::test(start_paused = true)]
async fn configured_roots_are_told_whoever_is_there() {
    let roots: Arc<[Box<str>]> = ["file:///a".into(), "file:///b%20c".into()].into();
    let mut rig = rig(Config { roots: Some(roots), ..config() });
    asks(&mut rig.far, "1", "roots/list", "{}").await;
    let said = r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[{"uri":"file:///a"},{"uri":"file:///b%20c"}]}}"#;
    assert_eq!(rig.far.line().await, said);
    assert!(declares(&rig.instance.owner, &rig.instance.config).await.can.has(Capabilities::ROOTS));
    let bare = Rig::new(config()).instance;
    assert!(!declares(&bare.owner, &bare.config).await.can.has(Capabilities::ROOTS));
}

#[tokio::test(start_paused = true)]
async fn a_client_without_a_way_back_is_told_so() {
    let mut rig = rig(config());
    let (_reply, _) = started(&mut rig, tool(LEGACY, "{}", Some(&session("1")))).await;
    elicits(&mut rig.far, "1").await;
    let line = rig.far.line().await;
    assert!(line.contains("did not declare elicitation by form, or takes no event stream"), "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_stateless_upstream_is_told_what_each_calls_client_can_be_asked() {
    let mut rig = Rig::new(config());
    rig.met(MODERN, "{}");
    let odd = r#"{"elicitation":{"form":{"x":1}},"y":2}"#;
    let in_session = r#"{"elicitation":{},"sampling":{"tools":{}},"roots":{"listChanged":true},"y":2}"#;
    for (revision, can, told) in [
        (MODERN, odd, odd),
        (MODERN, "7", "{}"),
        (LEGACY, "{}", "{}"),
        (LEGACY, in_session, r#"{"elicitation":{"form":{}},"sampling":{"tools":{}},"roots":{}}"#),
        (Revision::V2025_06_18, in_session, r#"{"elicitation":{"form":{}},"sampling":{},"roots":{}}"#),
        (Revision::V2024_11_05, in_session, r#"{"sampling":{},"roots":{}}"#),
    ] {
        let _reply = rig.upstream().call(tool(revision, can, None));
        let (_, _, params) = rig.far.request().await;
        let meta =
            crate::protocol::meta::Meta::parse(&params.share(crate::protocol::value::Key::Meta).unwrap()).unwrap();
        assert_eq!(meta.capabilities.unwrap(), told);
        drop(_reply);
        rig.far.notification().await;
    }
}

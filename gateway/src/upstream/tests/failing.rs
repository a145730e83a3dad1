//! What fails by the doing of an upstream is counted, kept as its last error, and told to the operator: it never shows nowhere.

use super::*;

/// The last error that is shown.
fn shown(rig: &Rig) -> String {
    let error = rig.board.snapshot().remove(0).last_error;
    error.map(|error| error.cause.full().into_owned()).unwrap_or_default()
}

async fn refused(reply: crate::call::reply::Reply) -> Reason {
    match reply.outcome().await.1 {
        Outcome::Error(Failure::Refused(refusal)) => refusal.reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_against_the_protocol_is_the_last_error_of_its_upstream() {
    for (answer, why) in [
        (r#""result":{"content":[],"content":[]}"#, "stands twice"),
        (r#""result":7"#, "the result is not an object"),
        (r#""result":{},"error":{"code":1,"message":"m"}"#, "and not both"),
        (r#""error":"boom""#, "or an error that is an object"),
        (r#""error":{"code":1e400,"message":{"a":1}}"#, "`code` of the error in it is not an integer"),
        (r#""error":{"code":9223372036854775808,"message":"m"}"#, "`code` of the error in it is not an integer"),
        (r#""error":{"code":1.5,"message":"m"}"#, "`code` of the error in it is not an integer"),
        (r#""error":{"code":"x"}"#, "`code` of the error in it is not an integer"),
        (r#""error":{"message":"m"}"#, "`code` of the error in it is not an integer"),
        (r#""error":{"code":1}"#, "`message` of the error in it is not a string"),
        (r#""error":{"code":1,"message":5}"#, "`message` of the error in it is not a string"),
    ] {
        let mut rig = Rig::new(config());
        rig.met(LEGACY, r#"{"tools":{}}"#);
        rig.instance.status.transition(State::Ready, None, None, None);
        let reply = rig.upstream().call(call(LEGACY, Method::ToolsCall, r#"{"name":"x"}"#));
        let (id, _, _) = rig.far.request().await;
        let id = String::from_utf8_lossy(id.raw()).into_owned();
        rig.far.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#)).await;
        assert_eq!(refused(reply).await, Reason::BadAnswer);
        let shown = shown(&rig);
        assert!(shown.starts_with("bad_answer: `tools/call` of `x`: ") && shown.contains(why), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_in_time_is_the_last_error_of_its_upstream() {
    let mut rig = Rig::new(Config { call_timeout: Some(Duration::from_secs(3)), ..config() });
    rig.met(LEGACY, r#"{"tools":{}}"#);
    rig.instance.status.transition(State::Ready, None, None, None);
    let reply = rig.upstream().call(call(LEGACY, Method::ToolsCall, r#"{"name":"x"}"#));
    rig.far.request().await;
    assert_eq!(refused(reply).await, Reason::Timeout);
    assert_eq!(shown(&rig), "timeout: no answer to `tools/call` of `x` within 3 s (`call_timeout`)");
}

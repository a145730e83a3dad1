//! Frames to and fro over an in-memory pipe: what belongs where, what is dropped, how it ends.

mod shapes;

use crate::call::LogLevel;
use crate::call::refusal::Reason;
use crate::call::reply::{Event, Failure, Outcome, Step};
use crate::health::{Cause, CauseCode};
use crate::protocol::frame::Method;
use crate::protocol::frame::message::Id;
use crate::protocol::revision::Revision;
use crate::protocol::value::Key;
use crate::upstream::tests::rig::{Rig, call, config, outcome};

const LEGACY: Revision = Revision::V2025_06_18;

fn tool(name: &str) -> crate::call::Call {
    call(LEGACY, Method::ToolsCall, &format!(r#"{{"name":"{name}","arguments":{{"big":18446744073709551616}}}}"#))
}

fn reason(outcome: Outcome) -> Reason {
    match outcome {
        Outcome::Error(Failure::Refused(refusal)) => refusal.reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn answers_find_their_calls_in_any_order_byte_for_byte() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    let (mut one, mut two) = (upstream.call(tool("one")), upstream.call(tool("two")));
    let (first, _, params) = rig.far.request().await;
    assert_eq!(params.raw(), r#"{"name":"one","arguments":{"big":18446744073709551616}}"#);
    let (second, _, _) = rig.far.request().await;
    rig.far.result(&second, r#"{"content":[ ],"x":1e400}"#).await;
    rig.far.error(&first, -5).await;
    let Outcome::Complete(result) = outcome(&mut two).await else { panic!() };
    assert_eq!(result.raw(), r#"{"content":[ ],"x":1e400}"#);
    let Outcome::Error(Failure::Upstream(error)) = outcome(&mut one).await else { panic!() };
    assert_eq!(error.code(), Some(-5));
    assert_eq!(rig.pipe.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_withdrawn_and_its_late_answer_dropped() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    let gone = upstream.call(tool("gone"));
    let (id, _, _) = rig.far.request().await;
    drop(gone);
    let (method, params) = rig.far.notification().await;
    assert_eq!((method, params.get(Key::RequestId)), (Method::Cancelled, Some(&id.raw()[..])));
    rig.far.result(&id, "{}").await;
    // The next call is not touched by it.
    let mut next = upstream.call(tool("next"));
    let (id, _, _) = rig.far.request().await;
    rig.far.result(&id, r#"{"next":1}"#).await;
    assert!(matches!(outcome(&mut next).await, Outcome::Complete(result) if result.raw() == r#"{"next":1}"#));
    // Nor is one withdrawn that was answered.
    drop(next);
    assert!(rig.far.is_quiet().await);
}

/// What was last wrong with the upstream.
fn last_error(rig: &Rig) -> Option<String> {
    rig.board.snapshot().remove(0).last_error.map(|error| error.cause.full().into_owned())
}

#[tokio::test(start_paused = true)]
async fn what_comes_late_for_a_call_that_was_given_up_is_no_fault_and_a_second_answer_is_one() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    let gone = upstream.call(crate::call::Call { progress: true, ..tool("gone") });
    let (late, _, _) = rig.far.request().await;
    drop(gone);
    rig.far.notification().await;
    let progress = |id: &Id| {
        let token = String::from_utf8_lossy(id.raw()).into_owned();
        format!(r#"{{"progressToken":{token},"progress":1}}"#)
    };
    rig.far.notify("notifications/progress", &progress(&late)).await;
    rig.far.result(&late, "{}").await;
    let mut next = upstream.call(tool("next"));
    let (id, _, _) = rig.far.request().await;
    rig.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut next).await, Outcome::Complete(_)));
    assert_eq!(last_error(&rig), None, "they have crossed the withdrawal");
    rig.far.result(&id, "{}").await;
    assert!(rig.far.is_quiet().await);
    assert_eq!(last_error(&rig).as_deref(), Some("duplicate_answer: a second response to one request"));
    rig.far.notify("notifications/progress", &progress(&id)).await;
    assert!(rig.far.is_quiet().await);
    assert!(last_error(&rig).is_some_and(|said| said.starts_with("unknown_token")), "it goes on after its answer");
    // What lies in the pipe when it is closed has crossed that.
    let mut open = upstream.call(crate::call::Call { progress: true, ..tool("open") });
    let (id, _, _) = rig.far.request().await;
    rig.pipe.close(Cause::new(CauseCode::PipeClosed, "drained"));
    assert!(matches!(outcome(&mut open).await, Outcome::Error(_)));
    rig.far.notify("notifications/progress", &progress(&id)).await;
    tokio::time::sleep(crate::runtime::complaints::SAID_EVERY).await;
    assert!(last_error(&rig).is_some_and(|said| !said.contains("late")), "{:?}", last_error(&rig));
}

#[tokio::test(start_paused = true)]
async fn progress_goes_to_its_call_before_the_outcome() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let mut reply = rig.upstream().call(crate::call::Call { progress: true, ..tool("slow") });
    let (id, _, params) = rig.far.request().await;
    let token = String::from_utf8_lossy(id.raw()).into_owned();
    assert_eq!(params.get(Key::Meta), Some(format!(r#"{{"progressToken":{token}}}"#).as_bytes()));
    for (token, value) in [(token.as_str(), 1), ("999", 2), (&token, 1), (&token, 5)] {
        rig.far.notify("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":{value}}}"#)).await;
    }
    rig.far.result(&id, "{}").await;
    let mut seen = Vec::new();
    while let Step::Event(Event::Progress(params)) = reply.next().await {
        seen.push(params.find("progress").unwrap().to_vec());
    }
    assert_eq!(seen, [b"1".to_vec(), b"5".to_vec()]);
}

#[tokio::test(start_paused = true)]
async fn a_log_message_goes_to_the_only_call_that_can_have_made_it() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, r#"{"logging":{}}"#);
    let upstream = rig.upstream();
    let wanting = || crate::call::Call { log_level: Some(LogLevel::Info), ..tool("t") };
    let mut one = upstream.call(wanting());
    // The level is told before the call that wants it.
    let (_, method, _) = rig.far.request().await;
    assert_eq!(method, Method::SetLevel);
    rig.far.notify("notifications/message", r#"{"level":"warning","data":1}"#).await;
    assert!(matches!(one.next().await, Step::Event(Event::Log(LogLevel::Warning, _))));
    // What it does not want is still of its making: nobody else hears it.
    rig.far.notify("notifications/message", r#"{"level":"debug","data":2}"#).await;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let silent = upstream.call(tool("silent"));
    rig.far.notify("notifications/message", r#"{"level":"warning","data":3}"#).await;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(rig.notices.lock().unwrap().len(), 1, "of two calls it is nobody's");
    drop(silent);
    rig.far.notify("notifications/message", r#"{"level":"warning","data":4}"#).await;
    assert!(
        matches!(one.next().await, Step::Event(Event::Log(LogLevel::Warning, params)) if params.find("data") == Some(b"4"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_with_calls_in_flight_is_told_at_once_to_each() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    let mut sent: Vec<_> = (0..32).map(|n| upstream.call(tool(&n.to_string()))).collect();
    for _ in 0..32 {
        rig.far.request().await;
    }
    let begun = tokio::time::Instant::now();
    drop(rig.far);
    for reply in &mut sent {
        assert_eq!(reason(outcome(reply).await), Reason::OutcomeUnknown);
    }
    assert!(begun.elapsed().is_zero());
    // What comes now waits for the next life, nothing sent, and not for ever.
    let mut late = upstream.call(tool("late"));
    assert_eq!(reason(outcome(&mut late).await), Reason::Unavailable);
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_was_still_in_our_queue_was_not_sent() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    // The pipe holds 64 KiB and nobody reads: the writer is stuck with the first frame, the second waits behind it.
    let mut stuck = upstream.call(call(LEGACY, Method::ToolsCall, &format!(r#"{{"name":"{}"}}"#, "x".repeat(100_000))));
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    let mut queued = upstream.call(tool("queued"));
    rig.pipe.close("gone".into());
    assert_eq!(reason(outcome(&mut stuck).await), Reason::OutcomeUnknown);
    assert_eq!(reason(outcome(&mut queued).await), Reason::Unavailable);
    // What was sent in part is not completed: its caller was told that the outcome is unknown.
    let sent = rig.far.so_far().await;
    assert!((60_000..100_000).contains(&sent.len()) && !sent.contains(&b'\n'), "{} bytes", sent.len());
}

#[tokio::test(start_paused = true)]
async fn garbage_is_skipped_and_questions_are_answered_at_once() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    let mut reply = upstream.call(tool("t"));
    let (id, _, _) = rig.far.request().await;
    rig.far.write("Loading...\n\n{\"half\":\n[]\n").await;
    for (method, code) in [
        ("ping", None),
        ("roots/list", Some("-32601")),
        ("sampling/createMessage", Some("-32601")),
        ("elicitation/create", Some("-32602")),
        ("x/y", Some("-32601")),
    ] {
        rig.far.write(&format!(r#"{{"jsonrpc":"2.0","id":"q","method":"{method}"}}"#)).await;
        let answer = rig.far.line().await;
        assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":"q","#), "{answer}");
        assert!(
            answer.contains(&code.map_or(r#""result":{}"#.to_owned(), |code| format!(r#""code":{code}"#))),
            "{answer}"
        );
    }
    rig.far
        .write(&format!(r#"[{{"jsonrpc":"2.0","id":{},"result":{{"batched":1}}}}]"#, String::from_utf8_lossy(id.raw())))
        .await;
    assert!(matches!(outcome(&mut reply).await, Outcome::Complete(_)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_text_ends_its_call_and_keeps_the_pipe() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    let mut reply = upstream.call(tool("t"));
    let (id, _, _) = rig.far.request().await;
    let mut text =
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":""#, String::from_utf8_lossy(id.raw())).into_bytes();
    text.extend_from_slice(b"\xff\"}}\n");
    rig.far.write_raw(&text).await;
    match outcome(&mut reply).await {
        Outcome::Error(Failure::Refused(refusal)) => assert!(refusal.message.contains("invalid UTF-8"), "{refusal}"),
        other => panic!("{other:?}"),
    }
    assert!(!rig.pipe.is_closed());
}

#[tokio::test(start_paused = true)]
async fn what_never_speaks_mcp_is_not_read_for_ever() {
    let mut rig = Rig::new(config());
    rig.far.write(&"no\n".repeat(1001)).await;
    assert!(rig.pipe.closed().await.full().contains("NotMcp"));
}

#[tokio::test(start_paused = true)]
async fn time_limits_hold_and_progress_extends_a_call() {
    use std::time::Duration;
    let mut config = config();
    config.call_timeout = Some(Duration::from_secs(10));
    config.max_call_time = Some(Duration::from_secs(25));
    let mut rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    let begun = tokio::time::Instant::now();
    // Not a call that may take long: bounded by the request's limit.
    let mut completion = upstream.call(call(LEGACY, Method::Complete, "{}"));
    rig.far.request().await;
    let mut reply = upstream.call(crate::call::Call { progress: true, ..tool("slow") });
    let (id, _, _) = rig.far.request().await;
    let token = String::from_utf8_lossy(id.raw()).into_owned();
    for value in 1..=3 {
        tokio::time::sleep(Duration::from_secs(8)).await;
        rig.far.notify("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":{value}}}"#)).await;
        assert!(matches!(reply.next().await, Step::Event(Event::Progress(_))));
    }
    assert_eq!(reason(outcome(&mut reply).await), Reason::Timeout);
    assert_eq!(begun.elapsed().as_secs(), 25);
    let (method, params) = rig.far.notification().await;
    assert_eq!((method, params.get(Key::RequestId)), (Method::Cancelled, Some(token.as_bytes())));
    assert_eq!(reason(outcome(&mut completion).await), Reason::Timeout);
    assert_eq!(begun.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_is_too_long_or_too_deep_ends() {
    let mut config = config();
    config.max_message = 4096;
    let mut rig = Rig::new(config);
    rig.met(LEGACY, "{}");
    let upstream = rig.upstream();
    let (long, deep) = (format!("\"{}\"", "x".repeat(9000)), format!("{}{}", "[".repeat(500), "]".repeat(500)));
    for value in [&long, &deep] {
        for order in [true, false] {
            let mut reply = upstream.call(tool("big"));
            let (id, _, _) = rig.far.request().await;
            let (id, result) = (String::from_utf8_lossy(id.raw()).into_owned(), format!("{{\"x\":{value}}}"));
            rig.far
                .write(&match order {
                    true => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"),
                    false => format!("{{\"result\":{result},\"jsonrpc\":\"2.0\",\"id\": {id} }}"),
                })
                .await;
            assert_eq!(reason(outcome(&mut reply).await), Reason::BadAnswer);
        }
    }
    // Some languages write numbers that JSON does not have.
    let mut reply = upstream.call(tool("nan"));
    let (id, _, _) = rig.far.request().await;
    rig.far.result(&id, "{\"x\":NaN}").await;
    assert_eq!(reason(outcome(&mut reply).await), Reason::BadAnswer);
    // A request that cannot be taken ends no call, whatever its id.
    let mut reply = upstream.call(tool("small"));
    let (id, _, _) = rig.far.request().await;
    let raw = String::from_utf8_lossy(id.raw()).into_owned();
    rig.far.write(&format!("{{\"method\":\"x\",\"params\":{{\"x\":{long}}},\"id\":{raw}}}")).await;
    rig.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut reply).await, Outcome::Complete(_)));
}

#[tokio::test(start_paused = true)]
async fn half_an_answer_is_an_end_and_not_a_wrong_answer() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    let mut reply = rig.upstream().call(tool("half"));
    let (id, _, _) = rig.far.request().await;
    let id = String::from_utf8_lossy(id.raw()).into_owned();
    rig.far.write_raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"resu").as_bytes()).await;
    drop(rig.far);
    assert_eq!(reason(outcome(&mut reply).await), Reason::OutcomeUnknown);
}

//! Tools that run as tasks only, for callers that know none.

use super::rig::{Far, Rig, call, config, outcome};
use super::*;
use crate::call::refusal::Reason;
use crate::call::reply::{Change, Event, Failure, Outcome, Reply, Step};
use crate::call::{Call, ListenFilter};
use crate::protocol::frame::message::Id;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use std::time::Duration;

const WORKING: &str =
    r#"{"taskId":"t-1","status":"working","createdAt":"","lastUpdatedAt":"","ttl":null,"pollInterval":5000}"#;

/// An upstream whose tool `slow` runs as a task only.
fn rig(limit: Option<Duration>) -> Rig {
    let rig = Rig::new(Config { max_call_time: limit, ..config() });
    rig.met(Revision::V2025_11_25, r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#);
    rig.instance.offering.only_as_tasks(&["slow"]);
    rig
}

fn ask(rig: &Rig, revision: Revision, params: &str) -> Reply {
    rig.upstream().call(call(revision, Method::ToolsCall, params))
}

/// The next request of a method, with this parameter.
async fn next(far: &mut Far, method: Method, key: &str, value: &str) -> Id {
    let request = tokio::time::timeout(Duration::from_secs(60), far.request());
    let (id, asked, params) = request.await.unwrap_or_else(|_| panic!("no {method:?}"));
    assert_eq!(asked, method);
    assert_eq!(params.find(key), Some(value.as_bytes()), "{:?}", params.raw());
    id
}

/// Polls until the upstream has something to read, and no longer.
async fn while_reading<T>(reply: &mut Reply, reading: impl Future<Output = T>) -> T {
    tokio::select! {
        step = reply.next() => panic!("{step:?}"),
        read = reading => read,
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_of_a_tool_that_is_a_task_is_driven_to_its_end() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut rig = rig(None);
        let mut reply = ask(&rig, revision, r#"{"name":"slow","arguments":{"a":1}}"#);
        let id = while_reading(&mut reply, next(&mut rig.far, Method::ToolsCall, "task", "{}")).await;
        rig.far.result(&id, &format!("{{\"task\":{WORKING}}}")).await;
        for _ in 0..2 {
            let id = while_reading(&mut reply, next(&mut rig.far, Method::TasksGet, "taskId", "\"t-1\"")).await;
            rig.far.result(&id, WORKING).await;
        }
        let id = while_reading(&mut reply, next(&mut rig.far, Method::TasksGet, "taskId", "\"t-1\"")).await;
        rig.far.result(&id, &WORKING.replace("working", "completed")).await;
        let id = while_reading(&mut reply, next(&mut rig.far, Method::TasksResult, "taskId", "\"t-1\"")).await;
        let meta = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}"#;
        rig.far.result(&id, &format!(r#"{{"content":[],{meta}}}"#)).await;
        match outcome(&mut reply).await {
            Outcome::Complete(result) => assert_eq!(result.raw(), r#"{"content":[]}"#, "{revision}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(reply.revision(), Revision::V2025_11_25);
        drop(reply);
        assert!(rig.far.is_quiet().await, "what has ended is not withdrawn");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_call_has_nothing_of_another_task() {
    for is_over in [false, true] {
        let mut rig = rig(None);
        let mut reply = ask(&rig, Revision::V2025_06_18, r#"{"name":"slow"}"#);
        let id = while_reading(&mut reply, next(&mut rig.far, Method::ToolsCall, "task", "{}")).await;
        rig.far.result(&id, &format!("{{\"task\":{WORKING}}}")).await;
        let id = while_reading(&mut reply, next(&mut rig.far, Method::TasksGet, "taskId", "\"t-1\"")).await;
        let ended = WORKING.replace("working", "completed");
        if is_over {
            rig.far.result(&id, &ended).await;
            let id = while_reading(&mut reply, next(&mut rig.far, Method::TasksResult, "taskId", "\"t-1\"")).await;
            let meta = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-2"}}"#;
            rig.far.result(&id, &format!(r#"{{"content":[],{meta}}}"#)).await;
        } else {
            rig.far.result(&id, &ended.replace("t-1", "t-2")).await;
        }
        let ended = tokio::time::timeout(Duration::from_secs(60), outcome(&mut reply)).await;
        match ended.expect("the call ends") {
            Outcome::Error(Failure::Refused(refusal)) => {
                assert_eq!(refusal.reason, Reason::BadAnswer);
                assert!(refusal.message.contains("about another one"), "{}", refusal.message);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_withdrawn_with_its_call() {
    let mut rig = rig(None);
    let mut reply = ask(&rig, Revision::V2025_06_18, r#"{"name":"slow"}"#);
    let id = while_reading(&mut reply, next(&mut rig.far, Method::ToolsCall, "task", "{}")).await;
    rig.far.result(&id, &format!("{{\"task\":{WORKING}}}")).await;
    let id = while_reading(&mut reply, next(&mut rig.far, Method::TasksGet, "taskId", "\"t-1\"")).await;
    rig.far.result(&id, WORKING).await;
    tokio::select! {
        biased;
        step = reply.next() => panic!("{step:?}"),
        () = tokio::time::sleep(Duration::from_secs(1)) => {}
    }
    drop(reply);
    next(&mut rig.far, Method::TasksCancel, "taskId", "\"t-1\"").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_takes_no_longer_than_a_call_may() {
    let mut rig = rig(Some(Duration::from_secs(8)));
    let mut reply = ask(&rig, Revision::V2026_07_28, r#"{"name":"slow"}"#);
    let id = while_reading(&mut reply, next(&mut rig.far, Method::ToolsCall, "task", "{}")).await;
    rig.far.result(&id, &format!("{{\"task\":{WORKING}}}")).await;
    let id = while_reading(&mut reply, next(&mut rig.far, Method::TasksGet, "taskId", "\"t-1\"")).await;
    rig.far.result(&id, WORKING).await;
    match outcome(&mut reply).await {
        Outcome::Error(Failure::Refused(refusal)) => assert_eq!(refusal.reason, Reason::Timeout),
        other => panic!("{other:?}"),
    }
    next(&mut rig.far, Method::TasksCancel, "taskId", "\"t-1\"").await;
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_a_task_is_given_one() {
    let mut rig = rig(None);
    let mut reply = ask(&rig, Revision::V2025_11_25, r#"{"name":"slow","task":{"ttl":9}}"#);
    let id = while_reading(&mut reply, next(&mut rig.far, Method::ToolsCall, "task", r#"{"ttl":9}"#)).await;
    rig.far.result(&id, &format!("{{\"task\":{WORKING}}}")).await;
    match outcome(&mut reply).await {
        Outcome::Complete(result) => assert_eq!(result.find("task"), Some(WORKING.as_bytes())),
        other => panic!("{other:?}"),
    }
    // A tool that need not be a task is called as it is.
    let mut plain = ask(&rig, Revision::V2025_11_25, r#"{"name":"quick"}"#);
    let (id, _, params) = while_reading(&mut plain, rig.far.request()).await;
    assert_eq!(params.find("task"), None);
    rig.far.result(&id, r#"{"content":[]}"#).await;
    assert!(matches!(outcome(&mut plain).await, Outcome::Complete(_)));
}

#[tokio::test(start_paused = true)]
async fn who_knows_no_task_of_the_upstreams_form_asks_for_none_and_is_given_none() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let mut rig = rig(None);
        let mut reply = ask(&rig, revision, r#"{"name":"quick","task":{"ttl":9},"arguments":{"task":1}}"#);
        let (id, _, params) = while_reading(&mut reply, rig.far.request()).await;
        let (task, arguments) = (params.find("task"), params.find("arguments"));
        assert_eq!((task, arguments), (None, Some(&br#"{"task":1}"#[..])), "{revision}");
        rig.far.result(&id, &format!("{{\"task\":{WORKING}}}")).await;
        match outcome(&mut reply).await {
            Outcome::Error(Failure::Refused(refusal)) => assert_eq!(refusal.reason, Reason::BadAnswer),
            other => panic!("{revision}: {other:?}"),
        }
    }
}

const PROGRESS: &str = "notifications/progress";

#[tokio::test(start_paused = true)]
async fn progress_of_a_task_goes_on_when_its_call_is_answered() {
    let mut rig = rig(None);
    let asks = call(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"slow","task":{}}"#);
    let mut reply = rig.upstream().call(Call { progress: true, ..asks });
    let id = while_reading(&mut reply, next(&mut rig.far, Method::ToolsCall, "task", "{}")).await;
    let token = String::from_utf8_lossy(id.raw()).into_owned();
    let progress = |value: u32| format!(r#"{{"progressToken":{token},"progress":{value}}}"#);
    rig.far.result(&id, &format!("{{\"task\":{WORKING}}}")).await;
    rig.far.notify(PROGRESS, &progress(1)).await;
    settled().await;
    // What came while nobody had read the answer is told on the call.
    assert!(
        matches!(reply.next().await, Step::Event(Event::Progress(params)) if params.find("progress") == Some(b"1"))
    );
    assert!(matches!(outcome(&mut reply).await, Outcome::Complete(_)));
    for value in [1, 2] {
        rig.far.notify(PROGRESS, &progress(value)).await;
    }
    rig.far.notify(PROGRESS, &progress(3).replace(&token, "77")).await;
    settled().await;
    let notices = std::mem::take(&mut *rig.notices.lock().unwrap());
    assert!(
        matches!(&notices[..], [Notice::TaskProgress { task, params, .. }]
        if &**task == "t-1" && params.find("progress") == Some(b"2")),
        "{notices:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_task_is_told_on_the_plain_call_that_it_runs_for() {
    let mut rig = rig(None);
    let asks = call(Revision::V2025_06_18, Method::ToolsCall, r#"{"name":"slow"}"#);
    let mut reply = rig.upstream().call(Call { progress: true, ..asks });
    let id = while_reading(&mut reply, next(&mut rig.far, Method::ToolsCall, "task", "{}")).await;
    let token = String::from_utf8_lossy(id.raw()).into_owned();
    rig.far.result(&id, &format!("{{\"task\":{WORKING}}}")).await;
    let _get = while_reading(&mut reply, next(&mut rig.far, Method::TasksGet, "taskId", "\"t-1\"")).await;
    rig.far.notify(PROGRESS, &format!(r#"{{"progressToken":{token},"progress":5}}"#)).await;
    assert!(
        matches!(reply.next().await, Step::Event(Event::Progress(params)) if params.find("progress") == Some(b"5"))
    );
    assert!(rig.notices.lock().unwrap().is_empty());
}

/// Lets everything that is due happen.
async fn settled() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Takes a listen call to these tasks; all of them are honoured.
async fn taken(far: &mut Far, tasks: &[&str]) -> String {
    let (id, method, params) = far.request().await;
    let filter = ListenFilter::parse(&params).unwrap();
    assert_eq!((method, filter.tasks.iter().map(|id| &**id).collect::<Vec<_>>()), (Method::Listen, tasks.to_vec()));
    let id = String::from_utf8_lossy(id.raw()).into_owned();
    let tag = format!(r#"{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let params = format!(r#"{{"_meta":{tag},"notifications":{}}}"#, filter.to_json());
    far.notify("notifications/subscriptions/acknowledged", &params).await;
    id
}

async fn change(reply: &mut Reply) -> Change {
    match tokio::time::timeout(Duration::from_secs(60), reply.next()).await.expect("a change comes") {
        Step::Event(Event::Change(change)) => change,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_tasks_that_ended_is_opened_anew_and_what_was_missed_is_told() {
    let modern = Revision::V2026_07_28;
    let mut rig = Rig::new(config());
    rig.met(modern, r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
    let listen = call(modern, Method::Listen, r#"{"notifications":{"taskIds":["a","b"]}}"#);
    let mut reply = rig.upstream().call(listen);
    let first = taken(&mut rig.far, &["a", "b"]).await;
    assert!(matches!(change(&mut reply).await, Change::Acknowledged(filter) if filter.tasks.len() == 2));
    let tag = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{first}}}"#);
    for task in ["strange", "a"] {
        let params = format!(r#"{{{tag},"taskId":"{task}","status":"completed"}}"#);
        rig.far.notify("notifications/tasks", &params).await;
    }
    assert!(matches!(change(&mut reply).await, Change::Task(told) if told.find("taskId") == Some(b"\"a\"")));
    rig.far.notify("notifications/cancelled", &format!(r#"{{"requestId":{first}}}"#)).await;
    // What is over is not asked for again.
    let second = while_reading(&mut reply, taken(&mut rig.far, &["b"])).await;
    let id = while_reading(&mut reply, next(&mut rig.far, Method::TasksGet, "taskId", "\"b\"")).await;
    rig.far.result(&id, r#"{"resultType":"complete","taskId":"b","status":"input_required"}"#).await;
    match change(&mut reply).await {
        Change::Task(told) => assert_eq!(told.raw(), r#"{"taskId":"b","status":"input_required"}"#),
        other => panic!("{other:?}"),
    }
    drop(reply);
    let (method, params) = rig.far.notification().await;
    assert_eq!((method, params.find("requestId")), (Method::Cancelled, Some(second.as_bytes())));
}

#[test]
fn a_task_only_tool_is_known_by_its_definition() {
    let tool = |text: &'static str| Item::new("t".into(), Object::parse(text.into()).unwrap()).runs_as_a_task();
    assert!(tool(r#"{"name":"t","execution":{"taskSupport":"required"}}"#));
    assert!(!tool(r#"{"name":"t","execution":{"taskSupport":"optional"}}"#));
    assert!(!tool(r#"{"name":"t"}"#));
}

//! Tools that run as tasks only, for callers that know none.

use super::rig::{Far, Rig, call, config, outcome};
use super::*;
use crate::call::{Failure, Outcome, Reason, Reply};
use crate::protocol::{Id, Object, Revision};
use std::time::Duration;

const WORKING: &str =
    r#"{"taskId":"t-1","status":"working","createdAt":"","lastUpdatedAt":"","ttl":null,"pollInterval":5000}"#;

/// An upstream whose tool `slow` runs as a task only.
fn rig(limit: Option<Duration>) -> Rig {
    let rig = Rig::new(Config { max_call_time: limit, ..config() });
    rig.met(Revision::V2025_11_25, r#"{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}"#);
    rig.standing.as_tasks.store(Arc::new(["slow".into()].into()));
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

#[test]
fn a_task_only_tool_is_known_by_its_definition() {
    let tool = |text: &'static str| {
        Item { key: "t".into(), definition: Object::parse(text.into()).unwrap(), headers: None }.runs_as_a_task()
    };
    assert!(tool(r#"{"name":"t","execution":{"taskSupport":"required"}}"#));
    assert!(!tool(r#"{"name":"t","execution":{"taskSupport":"optional"}}"#));
    assert!(!tool(r#"{"name":"t"}"#));
}

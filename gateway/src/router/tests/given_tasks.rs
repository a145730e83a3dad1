//! Tasks that an upstream gives or names as it should not.

use super::tasks::{EXTENSION, id_in, of, session};
use super::*;
use crate::protocol::value::splice;

/// An upstream that answers every call as it is told to.
fn answering(revision: Revision, answer: impl Fn(&Call) -> String + Send + Sync + 'static) -> Arc<Scripted> {
    let told = move |call: &Call| Some(Reply::complete(revision, Object::parse(answer(call).into()).unwrap()));
    let upstream = Scripted::answering("a", "a", told);
    let supports = Supports { tools: true, tasks: true, ..Supports::default() };
    upstream.offer(Inventory { revision, supports, ..inventory(&["t"]) });
    upstream
}

/// A call that asks for a task.
const MAKE: &str = r#"{"name":"a__t","task":{}}"#;

#[tokio::test(start_paused = true)]
async fn a_task_without_a_sound_id_or_a_known_status_is_a_bad_answer() {
    let long = format!(r#""taskId":"{}","status":"working""#, "x".repeat(50_000));
    for (task, why) in [
        (r#""taskId":5,"status":"working""#, "its `taskId` is missing or no text"),
        (r#""status":"working""#, "its `taskId` is missing or no text"),
        (&long, "its `taskId` is too long (50000 bytes)"),
        (r#""taskId":"own","status":"exploded""#, "its `status` is none that the protocol has"),
        (r#""taskId":"own""#, "its `status` is none that the protocol has"),
    ] {
        for (revision, capabilities) in [(Revision::V2025_11_25, "{}"), (Revision::V2026_07_28, EXTENSION)] {
            let made = match revision.is_modern() {
                true => format!(r#"{{"resultType":"task",{task}}}"#),
                false => format!(r#"{{"task":{{{task}}}}}"#),
            };
            let upstream = answering(revision, move |_| made.clone());
            let stage = Stage::new(Strategy::Prefix, &[&upstream]);
            settle().await;
            let said = told(stage.router.handle(of("p", revision, capabilities, Method::ToolsCall, MAKE))).await;
            let expected =
                format!("BadAnswer: upstream `a` answered `tools/call` with a task that cannot be used: {why}");
            assert_eq!(said, expected, "{revision}");
            // One that has an id is told not to go on: nobody can reach it.
            let heard = upstream.heard.lock().unwrap().clone();
            let id = splice::text(format!("{{{task}}}").as_bytes(), &["taskId"]).map(|(own, _)| own);
            let cancel = id.map(|own| format!("tasks/cancel {{\"taskId\":{}}}", json::quote(&own)));
            assert_eq!(heard[1..].first().cloned(), cancel, "{why}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_a_task_names_it_and_says_how_it_stands() {
    for (answer, why) in [
        (r#"{"status":"working"}"#, Some("its `taskId` is missing or no text")),
        (r#"{"taskId":"own","status":"exploded"}"#, Some("its `status` is none that the protocol has")),
        (r#"{"taskId":"own"}"#, Some("its `status` is none that the protocol has")),
        (r#"{"taskId":"own","status":"working"}"#, None),
    ] {
        for (revision, capabilities) in [(Revision::V2025_11_25, "{}"), (Revision::V2026_07_28, EXTENSION)] {
            let made = match revision.is_modern() {
                true => r#"{"resultType":"task","taskId":"own","status":"working"}"#,
                false => r#"{"task":{"taskId":"own","status":"working"}}"#,
            };
            let upstream = answering(revision, move |call| match &call.method {
                Method::ToolsCall => made.to_owned(),
                _ => answer.to_owned(),
            });
            let stage = Stage::new(Strategy::Prefix, &[&upstream]);
            settle().await;
            let ask = async |method, params: &str| {
                told(stage.router.handle(of("p", revision, capabilities, method, params))).await
            };
            let id = id_in(&ask(Method::ToolsCall, MAKE).await);
            for method in [Method::TasksGet, Method::TasksCancel] {
                // A stateless upstream only acknowledges that it was told to cancel.
                let why = why.filter(|_| method == Method::TasksGet || !revision.is_modern());
                let said = ask(method.clone(), &format!(r#"{{"taskId":"{id}"}}"#)).await;
                let name = method.as_str();
                match why {
                    Some(why) => {
                        let bad =
                            format!("BadAnswer: upstream `a` answered `{name}` with a task that cannot be used: {why}");
                        assert_eq!(said, bad, "{revision}");
                    }
                    None => assert!(!said.contains("BadAnswer"), "{said}"),
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_may_answer_at_once_where_a_task_was_asked_for() {
    for result in [r#"{"content":[]}"#, r#"{"content":[],"task":null}"#] {
        let upstream = answering(Revision::V2025_11_25, move |_| result.to_owned());
        let stage = Stage::new(Strategy::Prefix, &[&upstream]);
        settle().await;
        let said = told(stage.router.handle(of("p", Revision::V2025_11_25, "{}", Method::ToolsCall, MAKE))).await;
        assert_eq!(said, result);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_named_a_task_of_another_also_where_nobody_says_who_they_are() {
    let legacy = Revision::V2025_11_25;
    let tied = |own: &str| {
        format!(r#"{{"content":[],"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{own}"}}}}}}"#)
    };
    let upstream = answering(legacy, move |call| match &call.method {
        Method::ToolsCall if call.params.find("task").is_some() => {
            r#"{"task":{"taskId":"own","status":"working"}}"#.to_owned()
        }
        Method::TasksResult if call.params.find("more").is_some() => tied("own"),
        _ => tied("theirs"),
    });
    let stage = Stage::new(Strategy::Prefix, &[&upstream]);
    settle().await;
    for principal in [Principal::anonymous(), Principal::named("p")] {
        let (tenant, _) = session("1");
        let ask = async |method, params: &str| {
            let asked = of("", legacy, "{}", method, params);
            let (principal, tenant) = (principal.clone(), Some(tenant.clone()));
            let caller = Caller { principal, tenant, ..(*asked.caller).clone() };
            told(stage.router.handle(Call { caller: Arc::new(caller), ..asked })).await
        };
        let id = id_in(&ask(Method::ToolsCall, MAKE).await);
        let said = ask(Method::TasksResult, &format!(r#"{{"taskId":"{id}"}}"#)).await;
        assert_eq!(said, "BadAnswer: upstream `a` answered `tasks/result` about another task");
        let said = ask(Method::TasksResult, &format!(r#"{{"taskId":"{id}","more":1}}"#)).await;
        assert_eq!(said, tied(&id));
        assert_eq!(ask(Method::ToolsCall, r#"{"name":"a__t"}"#).await, tied("theirs"), "as it came: it opens nothing");
    }
}

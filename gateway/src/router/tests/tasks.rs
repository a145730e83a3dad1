//! Tasks and extensions: wrapped ids, who may have them, and what passes beyond the protocol.

use super::*;
use crate::call::caller::Can;
use crate::call::reply::{Source, Step};
use crate::upstream::notice::{Audience, Notice};
use std::pin::Pin;
use std::task::{Context, Poll};

pub(super) const EXTENSION: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A call of a client with these capabilities.
pub(super) fn of(
    principal: &str,
    revision: Revision,
    capabilities: &'static str,
    method: Method,
    params: &str,
) -> Call {
    let plain = call(method, params);
    let caller = Caller {
        principal: Principal::named(principal),
        revision,
        capabilities: capabilities.into(),
        can: Can::default(),
        ..(*plain.caller).clone()
    };
    Call { caller: Arc::new(caller), ..plain }
}

/// An upstream that makes a task of every call and knows how each stands.
fn tasked(name: &str, revision: Revision) -> Arc<Scripted> {
    let result = |text: String| Object::parse(text.into()).unwrap();
    let upstream = Scripted::answering(name, name, move |call| {
        let made = match revision.is_modern() {
            true => r#"{"resultType":"task","taskId":"own","status":"working"}"#.to_owned(),
            false => r#"{"task":{"taskId":"own","status":"working"}}"#.to_owned(),
        };
        let stands = format!(
            r#"{{"taskId":{},"status":"working"}}"#,
            crate::protocol::json::quote(
                &call.params.find("taskId").and_then(crate::protocol::json::unquote).unwrap_or_default()
            )
        );
        let told = if call.method == Method::ToolsCall { made } else { stands };
        Some(Reply::complete(revision, result(told)))
    });
    let supports = Supports { tools: true, tasks: true, ..Supports::default() };
    upstream.offer(Inventory { revision, supports, ..inventory(&["t"]) });
    upstream
}

pub(super) fn id_in(result: &str) -> String {
    let raw = result.as_bytes();
    let id = crate::protocol::json::get(raw, "taskId")
        .or_else(|| crate::protocol::json::get(crate::protocol::json::get(raw, "task")?, "taskId"));
    crate::protocol::json::unquote(id.unwrap_or_else(|| panic!("{result}"))).unwrap().into_owned()
}

#[tokio::test(start_paused = true)]
async fn ids_of_tasks_lead_back_to_their_upstream_and_to_nobody_else() {
    use Revision::{V2025_11_25 as Legacy, V2026_07_28 as Modern};
    for (revision, capabilities) in [(Legacy, "{}"), (Modern, EXTENSION)] {
        let (one, other) = (tasked("a", revision), tasked("b", revision));
        let stage = Stage::new(Strategy::Prefix, &[&one, &other]);
        settle().await;
        let ask = |principal: &str, method, params: &str| {
            told(stage.router.handle(of(principal, revision, capabilities, method, params)))
        };
        let public = id_in(&ask("p", Method::ToolsCall, r#"{"name":"b__t","task":{}}"#).await);
        assert_ne!(public, "own");
        assert_eq!(id_in(&ask("p", Method::ToolsCall, r#"{"name":"b__t","task":{}}"#).await), public, "the same text");
        let elsewhere = id_in(&ask("p", Method::ToolsCall, r#"{"name":"a__t","task":{}}"#).await);
        assert_ne!(elsewhere, public);
        drop((one.heard(), other.heard()));
        let params = format!(r#"{{"taskId":"{public}"}}"#);
        for method in [Method::TasksGet, Method::TasksCancel] {
            assert_eq!(id_in(&ask("p", method.clone(), &params).await), public);
            assert_eq!(other.heard(), [format!(r#"{} {{"taskId":"own"}}"#, method.as_str())]);
        }
        assert!(one.heard().is_empty());
        let (foreign, nothing) =
            (ask("q", Method::TasksGet, &params).await, ask("p", Method::TasksGet, r#"{"taskId":"own"}"#).await);
        assert_eq!(foreign, nothing, "not yours is not there");
        assert!(foreign.starts_with("InvalidParams"), "{foreign}");
        assert!(other.heard().is_empty() && one.heard().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_known_as_one_whatever_stands_beside_its_id() {
    let upstream = Scripted::answering("a", "a", |call| {
        let made = r#"{"content":[],"resultType":"task","taskId":"own","status":"working"}"#;
        let result =
            if call.method == Method::ToolsCall { made } else { r#"{"taskId":"own","status":"working","content":[]}"# };
        Some(Reply::complete(Revision::V2026_07_28, Object::parse(result.into()).unwrap()))
    });
    let supports = Supports { tools: true, tasks: true, ..Supports::default() };
    upstream.offer(Inventory { revision: Revision::V2026_07_28, supports, ..inventory(&["t"]) });
    let stage = Stage::new(Strategy::Prefix, &[&upstream]);
    settle().await;
    let modern = Revision::V2026_07_28;
    let ask = |method, params: &str| told(stage.router.handle(of("p", modern, EXTENSION, method, params)));
    let id = id_in(&ask(Method::ToolsCall, r#"{"name":"a__t"}"#).await);
    assert_ne!(id, "own");
    assert_eq!(id_in(&ask(Method::TasksGet, &format!(r#"{{"taskId":"{id}"}}"#)).await), id);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_an_upstream_names_is_wrapped_only_for_who_was_given_it() {
    for (revision, capabilities) in [(Revision::V2025_11_25, "{}"), (Revision::V2026_07_28, EXTENSION)] {
        let related = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"theirs"}}"#;
        let upstream = Scripted::answering("a", "a", move |call| {
            let result = match call.method {
                Method::TasksGet => r#"{"taskId":"theirs","status":"working"}"#.to_owned(),
                Method::ToolsCall if call.params.find("task").is_none() => format!(r#"{{"content":[],{related}}}"#),
                _ if revision.is_modern() => r#"{"resultType":"task","taskId":"own","status":"working"}"#.to_owned(),
                _ => r#"{"task":{"taskId":"own","status":"working"}}"#.to_owned(),
            };
            Some(Reply::complete(revision, Object::parse(result.into()).unwrap()))
        });
        let supports = Supports { tools: true, tasks: true, ..Supports::default() };
        upstream.offer(Inventory { revision, supports, ..inventory(&["t"]) });
        let stage = Stage::new(Strategy::Prefix, &[&upstream]);
        settle().await;
        let ask = |method, params: &str| told(stage.router.handle(of("p", revision, capabilities, method, params)));
        let id = id_in(&ask(Method::ToolsCall, r#"{"name":"a__t","task":{}}"#).await);
        let said = ask(Method::TasksGet, &format!(r#"{{"taskId":"{id}"}}"#)).await;
        assert!(said.starts_with("BadAnswer") && said.contains("another task"), "{said}");
        let said = ask(Method::ToolsCall, r#"{"name":"a__t"}"#).await;
        assert_eq!(said, format!(r#"{{"content":[],{related}}}"#), "as it came: it opens nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_request_is_tied_to_is_the_callers_own_or_the_request_is_refused() {
    let revision = Revision::V2025_11_25;
    let echo = move |call: &Call| {
        let result = match call.params.get(crate::protocol::value::Key::Task) {
            Some(_) => r#"{"task":{"taskId":"own","status":"working"}}"#.to_owned(),
            None => format!("{{\"content\":[],\"seen\":{{{}}}}}", String::from_utf8_lossy(&call.meta)),
        };
        Some(Reply::complete(revision, Object::parse(result.into()).unwrap()))
    };
    let (one, other) = (Scripted::answering("a", "a", echo), Scripted::answering("b", "b", echo));
    let supports = Supports { tools: true, tasks: true, ..Supports::default() };
    one.offer(Inventory { revision, supports, ..inventory(&["t"]) });
    other.offer(Inventory { revision, supports, ..inventory(&["t"]) });
    let stage = Stage::new(Strategy::Prefix, &[&one, &other]);
    settle().await;
    let ask = async |who: &str, tool: &str, task: Option<&str>| {
        let asked = of(who, revision, "{}", Method::ToolsCall, &format!(r#"{{"name":"{tool}"}}"#));
        let tied = |id: &str| format!(r#"{{"k":1,"io.modelcontextprotocol/related-task":{{"taskId":"{id}"}}}}"#);
        let meta = task.map(|id| crate::protocol::meta::Meta::parse(&tied(id).into()).unwrap().rest);
        told(stage.router.handle(Call { meta: meta.unwrap_or_default(), ..asked })).await
    };
    let id = id_in(
        &told(stage.router.handle(of("p", revision, "{}", Method::ToolsCall, r#"{"name":"a__t","task":{}}"#))).await,
    );
    let seen = r#"{"content":[],"seen":{"io.modelcontextprotocol/related-task":{"taskId":"own"},"k":1}}"#;
    assert_eq!(ask("p", "a__t", Some(&id)).await, seen);
    for (who, tool, task) in [("q", "a__t", &*id), ("p", "b__t", &*id), ("p", "a__t", "own")] {
        assert_eq!(ask(who, tool, Some(task)).await, "InvalidParams: Unknown task", "{who} {tool} {task}");
    }
}

/// A reply that never comes.
struct Silent;

impl Source for Silent {
    fn poll_step(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Step> {
        Poll::Pending
    }
    fn revision(&self) -> Revision {
        Revision::V2025_11_25
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_lists_what_it_was_given_page_by_page_and_nobody_elses() {
    let legacy = Revision::V2025_11_25;
    let count = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Scripted::answering("a", "a", move |call| {
        let id = call.params.find("taskId").and_then(crate::protocol::json::unquote);
        let told = match (&call.method, id.as_deref()) {
            (Method::ToolsCall, _) => {
                let own = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                format!(r#"{{"task":{{"taskId":"{own}","status":"working"}}}}"#)
            }
            // It no longer knows the first, and does not answer for the second.
            (_, Some("0")) => return Some(Reply::refuse(legacy, Refusal::new(Reason::InvalidParams, "no such task"))),
            (_, Some("1")) => return Some(Reply::live(Silent)),
            (_, id) => format!(r#"{{"_meta":{{"x":1}},"taskId":"{}","status":"working"}}"#, id.unwrap_or_default()),
        };
        Some(Reply::complete(legacy, Object::parse(told.into()).unwrap()))
    });
    let supports = Supports { tools: true, tasks: true, ..Supports::default() };
    upstream.offer(Inventory { revision: legacy, supports, ..inventory(&["t"]) });
    let stage = Stage::new(Strategy::Prefix, &[&upstream]);
    settle().await;
    let ask = |who: &str, method, params: &str| told(stage.router.handle(of(who, legacy, "{}", method, params)));
    let mut given = Vec::new();
    for _ in 0..60 {
        given.push(id_in(&ask("p", Method::ToolsCall, r#"{"name":"a__t","task":{}}"#).await));
    }
    let other = id_in(&ask("q", Method::ToolsCall, r#"{"name":"a__t","task":{}}"#).await);
    let first = ask("p", Method::TasksList, "{}").await;
    let cursor = crate::protocol::json::get(first.as_bytes(), "nextCursor")
        .and_then(crate::protocol::json::unquote)
        .expect("another page")
        .into_owned();
    let second = ask("p", Method::TasksList, &format!(r#"{{"cursor":"{cursor}"}}"#)).await;
    let ids = |page: &str| {
        let tasks = crate::protocol::json::get(page.as_bytes(), "tasks").unwrap().to_vec();
        let places = crate::protocol::json::elements(&tasks).unwrap();
        places.into_iter().map(|place| id_in(&String::from_utf8_lossy(&tasks[place]))).collect::<Vec<_>>()
    };
    assert_eq!([ids(&first), ids(&second)].concat(), given[2..], "{first}");
    assert!(!second.contains("nextCursor"), "{second}");
    assert!(!first.contains("_meta"), "{first}");
    assert_eq!(ask("p", Method::TasksList, r#"{"cursor":null}"#).await, first, "null is absent, as in other lists");
    assert_eq!(ids(&ask("q", Method::TasksList, "{}").await), [other]);
    assert_eq!(ask("z", Method::TasksList, "{}").await, r#"{"tasks":[]}"#);
    let strange = ask("q", Method::TasksList, &format!(r#"{{"cursor":"{cursor}"}}"#)).await;
    assert_eq!(strange, ask("p", Method::TasksList, r#"{"cursor":"x"}"#).await);
    assert!(strange.starts_with("InvalidParams"), "{strange}");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_says_who_they_are_a_session_lists_its_own_alone() {
    let legacy = Revision::V2025_11_25;
    let stage = Stage::new(Strategy::Prefix, &[&tasked("a", legacy)]);
    settle().await;
    let ask = async |tenant: &Arc<ClientSession>, method, params: &str| {
        let asked = of("", legacy, "{}", method, params);
        let (principal, tenant) = (Principal::anonymous(), Some(tenant.clone()));
        let caller = Caller { principal, tenant, ..(*asked.caller).clone() };
        told(stage.router.handle(Call { caller: Arc::new(caller), ..asked })).await
    };
    let ((mine, _), (yours, _)) = (session("1"), session("2"));
    let id = id_in(&ask(&mine, Method::ToolsCall, r#"{"name":"a__t","task":{}}"#).await);
    let listed = ask(&mine, Method::TasksList, "{}").await;
    assert_eq!(listed, format!(r#"{{"tasks":[{{"taskId":"{id}","status":"working"}}]}}"#));
    assert_eq!(ask(&yours, Method::TasksList, "{}").await, r#"{"tasks":[]}"#);
}

/// A session of a principal, and what it is told.
pub(super) fn session(id: &str) -> (Arc<ClientSession>, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = told.clone();
    let tenant = ClientSession::mute(id).telling(move |method, params| {
        hears.lock().unwrap().push(format!("{} {}", method.as_str(), String::from_utf8_lossy(params.raw())));
    });
    (Arc::new(tenant), told)
}

#[tokio::test(start_paused = true)]
async fn how_a_task_stands_is_told_to_whoever_was_given_it_until_it_is_over() {
    let legacy = Revision::V2025_11_25;
    let (one, other) = (tasked("a", legacy), tasked("b", legacy));
    let stage = Stage::new(Strategy::Prefix, &[&one, &other]);
    settle().await;
    let give = async |principal: &str, tenant: &Arc<ClientSession>| {
        let asked = of(principal, legacy, "{}", Method::ToolsCall, r#"{"name":"b__t","task":{}}"#);
        let caller = Caller { tenant: Some(tenant.clone()), ..(*asked.caller).clone() };
        id_in(&told(stage.router.handle(Call { caller: Arc::new(caller), ..asked })).await)
    };
    let notices = stage.listeners.notices();
    let say = |upstream: &str, whose: &Audience, status: &str| {
        let related = r#"{"io.modelcontextprotocol/related-task":{"taskId":"own"}}"#;
        let params = format!(r#"{{"_meta":{related},"taskId":"own","status":"{status}"}}"#);
        let params = Object::parse(params.into()).unwrap();
        notices(Notice::Task { upstream: upstream.into(), whose: whose.clone(), params });
    };
    let ((mine, hears), (yours, overhears)) = (session("1"), session("2"));
    let heard = || std::mem::take(&mut *hears.lock().unwrap());
    let everyone = Audience::Everyone;
    let id = give("p", &mine).await;
    assert_eq!(give("p", &mine).await, id, "given twice it is told once");
    say("a", &everyone, "working");
    say("b", &Audience::Session("2".into()), "working");
    say("b", &Audience::Principal(Principal::named("q")), "working");
    assert!(heard().is_empty(), "of others");
    for whose in [&everyone, &Audience::Session("1".into()), &Audience::Principal(Principal::named("p"))] {
        say("b", whose, "working");
        let related = format!(r#"{{"io.modelcontextprotocol/related-task":{{"taskId":"{id}"}}}}"#);
        let expected = format!(r#"{{"_meta":{related},"taskId":"{id}","status":"working"}}"#);
        assert_eq!(heard(), [format!("notifications/tasks/status {expected}")]);
    }
    // Two of one id: nothing says whose it is, but where the instance is one's own.
    give("q", &yours).await;
    say("b", &everyone, "working");
    assert!(heard().is_empty());
    say("b", &Audience::Session("1".into()), "completed");
    say("b", &Audience::Session("1".into()), "working");
    assert_eq!(heard().len(), 1, "until it is over");
    assert!(overhears.lock().unwrap().is_empty());
    notices(Notice::Gone { upstream: "a".into(), whose: everyone.clone() });
    say("b", &everyone, "working");
    assert_eq!(overhears.lock().unwrap().len(), 1);
    notices(Notice::Gone { upstream: "b".into(), whose: everyone.clone() });
    say("b", &everyone, "working");
    assert_eq!(overhears.lock().unwrap().len(), 1, "the next process gives out ids anew");
}

#[tokio::test(start_paused = true)]
async fn each_form_of_tasks_has_its_own_methods() {
    let upstream = tasked("a", Revision::V2026_07_28);
    let stage = Stage::new(Strategy::Prefix, &[&upstream]);
    settle().await;
    let ask = |revision, capabilities, method| {
        told(stage.router.handle(of("p", revision, capabilities, method, r#"{"taskId":"x"}"#)))
    };
    let (legacy, modern) = (Revision::V2025_11_25, Revision::V2026_07_28);
    for (revision, capabilities, method, expected) in [
        (modern, "{}", Method::TasksGet, "MissingCapability"),
        (modern, EXTENSION, Method::TasksGet, "InvalidParams"),
        (modern, EXTENSION, Method::TasksResult, "UnknownMethod"),
        (modern, EXTENSION, Method::TasksList, "UnknownMethod"),
        (legacy, "{}", Method::TasksUpdate, "UnknownMethod"),
        (legacy, "{}", Method::TasksResult, "InvalidParams"),
        (Revision::V2025_06_18, "{}", Method::TasksGet, "UnknownMethod"),
    ] {
        let said = ask(revision, capabilities, method.clone()).await;
        assert!(said.starts_with(expected), "{revision} {method:?}: {said}");
    }
}

fn offering(name: &str, capabilities: &str) -> Arc<Scripted> {
    let upstream = Scripted::new(name, name);
    let capabilities = Object::parse(Bytes::copy_from_slice(capabilities.as_bytes())).unwrap();
    upstream.offer(Inventory { revision: Revision::V2026_07_28, capabilities, ..inventory(&["t"]) });
    upstream
}

#[tokio::test(start_paused = true)]
async fn what_one_upstream_has_beyond_the_protocol_passes() {
    let one = offering("a", r#"{"extensions":{"v/one":{"k":1},"v/both":{}},"experimental":{"e":{}}}"#);
    let other = offering("b", r#"{"extensions":{"v/both":{},"io.modelcontextprotocol/ui":{}}}"#);
    let stage = Stage::new(Strategy::Prefix, &[&one, &other]);
    settle().await;
    let said = told(stage.ask(Method::Discover, "{}")).await;
    assert!(said.contains(r#""extensions":{"io.modelcontextprotocol/ui":{},"v/one":{"k":1}}"#), "{said}");
    assert!(said.contains(r#""experimental":{"e":{}}"#) && !said.contains("v/both"), "{said}");
    drop((one.heard(), other.heard()));
    told(stage.ask(Method::parse("experimental/x"), "{}")).await;
    assert_eq!(one.heard(), ["experimental/x {}"]);
    // What two upstreams have is nobody's; what one has is its own.
    told(stage.ask(Method::parse("v/call"), "{}")).await;
    assert_eq!((one.heard(), other.heard()), (vec!["v/call {}".to_owned()], Vec::new()));
}

#[test]
fn unknown_extensions_are_stripped_or_refused_where_that_is_said() {
    use super::super::config::Unknown;
    use crate::router::calls::admit;
    let declared = r#"{"extensions":{"v/one":{},"io.modelcontextprotocol/ui":{}}}"#;
    let ask = || of("p", Revision::V2026_07_28, declared, Method::ToolsCall, "{}");
    assert_eq!(admit(ask(), Unknown::Pass).unwrap().caller.capabilities, declared);
    let stripped = admit(ask(), Unknown::Strip).unwrap();
    assert_eq!(stripped.caller.capabilities, r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#);
    let refused = admit(ask(), Unknown::Refuse).unwrap_err();
    assert!(refused.reason == Reason::InvalidParams && refused.message.contains("`v/one`"), "{refused:?}");
}

/// A caller in a session, and what the session is told.
fn in_session(principal: &str, id: &str) -> (Caller, Arc<Mutex<Vec<String>>>) {
    let (tenant, told) = session(id);
    let asked = of(principal, Revision::V2025_11_25, "{}", Method::ToolsCall, "{}");
    (Caller { tenant: Some(tenant), ..(*asked.caller).clone() }, told)
}

#[test]
fn nobody_is_told_no_more_how_a_task_stands_since_another_was_given_many() {
    let (notifier, upstream): (_, Arc<str>) = (crate::router::tasks::TaskNotifier::default(), "a".into());
    let ((bob, hears), (ann, _)) = (in_session("bob", "b"), in_session("ann", "a"));
    notifier.given(&upstream, &bob, "of bob", "public");
    for number in 0..3000 {
        notifier.given(&upstream, &ann, &number.to_string(), "x");
    }
    let params = Object::parse(r#"{"taskId":"of bob","status":"completed"}"#.into()).unwrap();
    notifier.told("a", &Audience::Everyone, &params);
    assert_eq!(hears.lock().unwrap().len(), 1);
}

#[test]
fn nobodys_tasks_are_forgotten_since_another_was_given_many() {
    let (granted, upstream): (_, Arc<str>) = (crate::router::tasks::GrantedTasks::default(), "a".into());
    let (bob, _) = in_session("bob", "b");
    granted.given(&upstream, &bob, "of bob");
    // Sessions of no principal, all of one address.
    for number in 0..5000 {
        let (mut one, _) = in_session("", &format!("s{}", number / 200));
        one.principal = Principal::anonymous();
        granted.given(&upstream, &one, &number.to_string());
    }
    assert!(granted.has(&bob, "a", "of bob"));
}

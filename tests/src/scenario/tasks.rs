//! Tasks: in the form that both sides know, for callers that know none, and where there are none.

use serde_json::Value;

use crate::client::{Answer, Request, tool};
use crate::frame::{Frame, quote};
use crate::journal::{Event, What};
use crate::revision::Revision;
use crate::scenario::Case;
use crate::within::until;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A task that its caller asked for: made, asked after under an id of its own, its result fetched.
pub(crate) async fn same_form(case: &Case) {
    if !is_common(case) {
        return;
    }
    let id = id_in(&case.client.request(made(case, "{\"polls\":1}")).await);
    if !is_direct(case) {
        assert!(!id.trim_end_matches(char::is_numeric).ends_with("own-"), "an id of the gateway's own, not {id}");
    }
    let told = until_status(case, &id, "completed").await;
    let result = match case.client.revision.is_modern() {
        true => told["result"].clone(),
        false => case.client.request(about(case, "tasks/result", &id)).await.value(),
    };
    assert_eq!(result["content"][0]["text"], "task done", "{result}");
    if !case.client.revision.is_modern() {
        assert_eq!(result["_meta"][RELATED]["taskId"], id.as_str(), "{result}");
    }
}

/// A task that asks: on the stream of its result, or in what it tells of itself.
pub(crate) async fn asks(case: &Case) {
    if !is_common(case) {
        return;
    }
    let id = id_in(&case.client.request(made(case, "{\"polls\":0,\"plan\":\"roots\",\"who\":\"ada\"}")).await);
    let told = until_status(case, &id, "input_required").await;
    let result = if case.client.revision.is_modern() {
        let keys = told["inputRequests"].as_object().unwrap_or_else(|| panic!("no questions: {told}"));
        let (key, question) = keys.iter().next().expect("one question");
        assert_eq!(question["method"], "roots/list", "{told}");
        let answers = format!("{{{}:{{\"roots\":[{{\"uri\":\"file:///home/ada\"}}]}}}}", quote(key));
        let params = format!("{{\"taskId\":{},\"inputResponses\":{answers}}}", quote(&id));
        let update = Request::new("tasks/update", &params).capabilities(&declared(case));
        assert!(case.client.request(update).await.value().is_object());
        until_status(case, &id, "completed").await["result"].clone()
    } else {
        case.client.request(about(case, "tasks/result", &id)).await.value()
    };
    assert!(result["content"][0]["text"].to_string().contains("file:///home/ada"), "{result}");
}

/// A task that its owner withdraws.
pub(crate) async fn withdrawn(case: &Case) {
    if !is_common(case) {
        return;
    }
    let mark = case.upstream.events.mark();
    let id = id_in(&case.client.request(made(case, "{\"polls\":1000000}")).await);
    case.client.request(about(case, "tasks/cancel", &id)).await.value();
    hears_of_the_end(case, mark).await;
    until_status(case, &id, "cancelled").await;
}

/// Whoever made a task hears how it stands: on its listen call, or in the session.
pub(crate) async fn told(case: &Case) {
    if !is_common(case) {
        return;
    }
    let id = id_in(&case.client.request(made(case, "{\"polls\":1000000}")).await);
    let (ear, method) = match case.client.revision.is_modern() {
        true => {
            let filter = format!("{{\"notifications\":{{\"taskIds\":[{}]}}}}", quote(&id));
            let listen = Request::new("subscriptions/listen", &filter).capabilities(&declared(case));
            (case.client.listen_by(listen).await.0, "notifications/tasks")
        }
        false => (case.client.listen(&[]).await, "notifications/tasks/status"),
    };
    let cancelling = case.client.start(about(case, "tasks/cancel", &id)).await;
    let with_the_answer = cancelling.notices.clone();
    cancelling.answer().await.value();
    let is_its = |frame: &Frame| frame.is_notice(method) && frame.param_text("taskId").as_deref() == Some(&id);
    let pick = |frame: &Frame| is_its(frame).then(|| frame.param_text("status"));
    // In the handshake's form any stream of the session may tell of it, also that of the answer.
    let status = match with_the_answer.find(0, pick) {
        Some(status) => status,
        None => ear.heard.wait("the client hears of its task", pick).await,
    };
    assert_eq!(status.as_deref(), Some("cancelled"));
}

/// Whoever asks for no task has the result, however the upstream runs it; its questions are the caller's.
pub(crate) async fn plain(case: &Case) {
    if are_both_stateless(case) {
        return refused_as_it_is(case).await;
    }
    if !is_driven(case) {
        return;
    }
    for arguments in ["{\"polls\":1}", "{\"polls\":1,\"plan\":\"roots\",\"who\":\"ada\"}"] {
        let answer = case.client.converse(tool(&case.name("task"), arguments)).await.answer;
        let expected = if arguments.contains("plan") { "file:///home/ada" } else { "task done" };
        assert!(answer.text().contains(expected), "{}", answer.result());
        // The text says what the upstream was answered, and that is tied to its task; the client's own result is not.
        assert!(answer.value()["_meta"].get(RELATED).is_none(), "{}", answer.result());
    }
}

/// A stateless client has the words of its stateless upstream, which sees what that very request declares.
async fn refused_as_it_is(case: &Case) {
    for is_declared in [false, true, false] {
        let call = tool(&case.name("task"), "{\"polls\":0}");
        let call = if is_declared { call.capabilities(&declared(case)) } else { call };
        let answer = case.client.request(call).await;
        if is_declared {
            assert!(answer.value()["taskId"].is_string(), "{answer:?}");
            continue;
        }
        let error = answer.error_value();
        assert_eq!((answer.code(), &error["message"]), (-32021, &"this runs as a task only".into()), "{answer:?}");
        let needs = &error["data"]["requiredCapabilities"]["extensions"][EXTENSION];
        assert!(needs.is_object(), "{answer:?}");
    }
}

/// The task of a plain call ends with that.
pub(crate) async fn plain_cancelled(case: &Case) {
    if !is_driven(case) {
        return;
    }
    let mark = case.upstream.events.mark();
    let open = case.client.start(tool(&case.name("task"), "{\"polls\":1000000}")).await;
    let asked = |event: &Event| match &event.what {
        What::Frame { raw, .. } => raw.contains("\"tasks/get\"").then_some(()),
        _ => None,
    };
    case.upstream.events.wait_from(mark, "the task is asked after", asked).await;
    open.cancel().await;
    hears_of_the_end(case, mark).await;
}

/// Where there are no tasks, or they were not declared, their methods are refused; and so is what nobody made.
pub(crate) async fn refused(case: &Case) {
    if is_direct(case) {
        return;
    }
    let ask = async |method: &str, capabilities: &str| {
        let request = Request::new(method, "{\"taskId\":\"nobody's\"}").capabilities(capabilities);
        case.client.request(request).await.code()
    };
    let (plain, declared) = (case.client.desk.capabilities(), declared(case));
    let expected = match case.client.revision {
        Revision::R2026_07_28 => [-32602, -32602, -32601, -32601],
        Revision::R2025_11_25 => [-32602, -32601, -32602, -32601],
        _ => [-32601; 4],
    };
    for (method, code) in ["tasks/get", "tasks/update", "tasks/result", "tasks/list"].into_iter().zip(expected) {
        if method != "tasks/list" || !is_listed(case) {
            assert_eq!(ask(method, &declared).await, code, "{method}");
        }
    }
    if case.client.revision.is_modern() {
        assert_eq!(ask("tasks/get", &plain).await, -32021, "the extension was not declared");
    }
}

/// Whoever made a task finds it in the list of its own.
pub(crate) async fn listed(case: &Case) {
    if is_direct(case) || !is_listed(case) {
        return;
    }
    let id = id_in(&case.client.request(made(case, "{\"polls\":1000000}")).await);
    let list = case.client.request(Request::new("tasks/list", "{}")).await.value();
    let tasks = list["tasks"].as_array().unwrap_or_else(|| panic!("no list: {list}"));
    let one = tasks.iter().find(|task| task["taskId"] == id).unwrap_or_else(|| panic!("{id} is not in {list}"));
    assert_eq!(one["status"], "working");
    case.client.request(about(case, "tasks/cancel", &id)).await.value();
}

/// Whether tasks can be listed.
fn is_listed(case: &Case) -> bool {
    is_common(case) && !case.client.revision.is_modern()
}

/// Whether both sides know tasks in the same form.
fn is_common(case: &Case) -> bool {
    case.client.revision == case.upstream_revision && case.client.revision >= Revision::R2025_11_25
}

/// Whether a plain call of the tool is run as a task on behalf of its caller. Not between stateless peers: there the client is told
/// what to declare.
fn is_driven(case: &Case) -> bool {
    case.upstream_revision >= Revision::R2025_11_25 && !is_direct(case) && !are_both_stateless(case)
}

fn are_both_stateless(case: &Case) -> bool {
    case.client.revision.is_modern() && case.upstream_revision.is_modern()
}

fn is_direct(case: &Case) -> bool {
    case.prefix.is_empty()
}

/// What the client declares, and the extension.
fn declared(case: &Case) -> String {
    let mut whole: Value = serde_json::from_str(&case.client.desk.capabilities()).expect("JSON");
    whole["extensions"][EXTENSION] = serde_json::json!({});
    whole.to_string()
}

/// A call that asks for a task.
fn made(case: &Case, arguments: &str) -> Request {
    let name = case.name("task");
    match case.client.revision.is_modern() {
        true => tool(&name, arguments).capabilities(&declared(case)),
        false => {
            let rest = format!("\"arguments\":{arguments},\"task\":{{\"ttl\":60000}}");
            Request::new("tools/call", &format!("{{\"name\":{},{rest}}}", quote(&name)))
        }
    }
}

fn about(case: &Case, method: &str, id: &str) -> Request {
    Request::new(method, &format!("{{\"taskId\":{}}}", quote(id))).capabilities(&declared(case))
}

fn id_in(answer: &Answer) -> String {
    let told = answer.value();
    let id = told["taskId"].as_str().or_else(|| told["task"]["taskId"].as_str());
    id.unwrap_or_else(|| panic!("no task in {told}")).to_owned()
}

async fn until_status(case: &Case, id: &str, status: &str) -> Value {
    until(&format!("the task is {status}"), || async {
        let told = case.client.request(about(case, "tasks/get", id)).await.value();
        assert_eq!(told["taskId"], id, "{told}");
        (told["status"] == status).then_some(told)
    })
    .await
}

async fn hears_of_the_end(case: &Case, mark: usize) {
    let withdrawn = |event: &Event| match &event.what {
        What::Cancelled { how, .. } => (how == "task").then_some(()),
        _ => None,
    };
    case.upstream.events.wait_from(mark, "the upstream hears that the task is withdrawn", withdrawn).await;
}

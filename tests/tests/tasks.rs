//! Tasks through the gateway: in the form of both sides, and run to their end for callers that know none.

mod doubled;
mod driven;

use serde_json::Value;
use trunkline_tests::client::{Answer, Client, Desk, Request, tool};
use trunkline_tests::frame::{Frame, quote};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::until;

const EXTENSION: &str = "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}";
const WAYS: [Way; 2] = [Way::Stdio, Way::Http];

/// An upstream with a tool that runs as a task only, and the gateway before it.
struct Stage {
    upstream: Upstream,
    gateway: Gateway,
}

impl Stage {
    async fn set(way: Way, revision: Revision) -> Stage {
        Stage::set_with(way, revision, Config::new()).await
    }

    async fn set_with(way: Way, revision: Revision, config: Config) -> Stage {
        let upstream = Upstream::start(way, Script::new("up", revision).tasked()).await;
        let gateway = Gateway::serve(&config.upstream(&upstream)).await;
        Stage { upstream, gateway }
    }

    async fn client(&self, revision: Revision, desk: Desk) -> Client {
        let client = Client::connect_with(&self.gateway.reach(), revision, desk).await;
        client.tools_until("the upstream is up", |tools| tools.contains(&"up__task".into())).await;
        client
    }

    /// A client of one of two principals.
    async fn named(&self, name: &str, revision: Revision) -> Client {
        let desk = Desk::willing(name).declaring("{}");
        let client = Client::bearing_with(&self.gateway.reach(), revision, &token(name), desk).await;
        client.tools_until("the upstream is up", |tools| tools.contains(&"up__task".into())).await;
        client
    }

    /// Waits until the upstream's task was withdrawn.
    async fn withdrawn(&self) -> String {
        let pick = |event: &trunkline_tests::journal::Event| match &event.what {
            What::Cancelled { id, how } if how == "task" => Some(id.clone()),
            _ => None,
        };
        self.upstream.events.wait("the task is withdrawn", pick).await
    }

    async fn content(&self, clients: &[&Client]) {
        assert_eq!(self.upstream.complaints().await, Vec::<String>::new());
        for client in clients {
            assert_eq!(client.complaints.all(), Vec::<String>::new());
        }
    }
}

fn token(name: &str) -> String {
    format!("{name}-has-a-long-token")
}

/// A gateway that knows two principals.
fn of_two() -> Config {
    let tokens =
        ["ann", "bob"].map(|name| format!("[[auth.tokens]]\nname = \"{name}\"\ntoken = \"{}\"\n", token(name)));
    Config::new().section(&tokens.concat())
}

/// A call that asks for a task, in the form of a revision.
fn as_task(revision: Revision, arguments: &str) -> Request {
    match revision.is_modern() {
        true => tool("up__task", arguments).capabilities(EXTENSION),
        false => {
            let params = format!("{{\"name\":\"up__task\",\"arguments\":{arguments},\"task\":{{\"ttl\":60000}}}}");
            Request::new("tools/call", &params)
        }
    }
}

fn about(revision: Revision, method: &str, id: &str) -> Request {
    let request = Request::new(method, &format!("{{\"taskId\":\"{id}\"}}"));
    if revision.is_modern() { request.capabilities(EXTENSION) } else { request }
}

fn id_in(answer: &Answer) -> String {
    let told = answer.value();
    let id = told["taskId"].as_str().or_else(|| told["task"]["taskId"].as_str());
    id.unwrap_or_else(|| panic!("no task in {told}")).to_owned()
}

/// Asks how a task stands until it stands so.
async fn until_status(client: &Client, id: &str, status: &str) -> Value {
    until(&format!("the task is {status}"), || async {
        let told = client.request(about(client.revision, "tasks/get", id)).await.value();
        assert_eq!(told["taskId"], id, "{told}");
        (told["status"] == status).then_some(told)
    })
    .await
}

#[tokio::test]
async fn the_same_form_on_both_sides_passes_with_wrapped_ids() {
    for way in WAYS {
        for revision in [Revision::R2025_11_25, Revision::R2026_07_28] {
            let stage = Stage::set(way, revision).await;
            let client = stage.client(revision, Desk::willing("ada").declaring("{}")).await;
            let made = client.request(as_task(revision, "{\"polls\":1}")).await;
            let id = id_in(&made);
            assert!(!id.trim_end_matches(char::is_numeric).ends_with("own-"), "{way:?} {revision} {id}");
            let told = until_status(&client, &id, "completed").await;
            let result = match revision.is_modern() {
                true => told["result"].clone(),
                false => client.request(about(revision, "tasks/result", &id)).await.value(),
            };
            assert_eq!(result["content"][0]["text"], "task done", "{result}");
            if !revision.is_modern() {
                assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id.as_str(), "{result}");
            }
            let (raw, headers) = stage.upstream.received("tasks/get").await;
            assert!(raw.contains("\"taskId\":\"own-0\""), "{raw}");
            if revision.is_modern() && way == Way::Http {
                assert!(headers.contains(&("mcp-name".into(), "own-0".into())), "{headers:?}");
            }
            stage.content(&[&client]).await;
        }
    }
}

#[tokio::test]
async fn a_task_is_withdrawn_by_its_owner() {
    for revision in [Revision::R2025_11_25, Revision::R2026_07_28] {
        let stage = Stage::set(Way::Http, revision).await;
        let client = stage.client(revision, Desk::willing("ada").declaring("{}")).await;
        let id = id_in(&client.request(as_task(revision, "{\"polls\":1000000}")).await);
        until_status(&client, &id, "working").await;
        client.request(about(revision, "tasks/cancel", &id)).await.value();
        assert_eq!(stage.withdrawn().await, "own-0");
        until_status(&client, &id, "cancelled").await;
        stage.content(&[&client]).await;
    }
}

#[tokio::test]
async fn a_task_of_another_principal_is_not_there() {
    for revision in [Revision::R2025_11_25, Revision::R2026_07_28] {
        let stage = Stage::set_with(Way::Http, revision, of_two()).await;
        let (ann, bob) = (&stage.named("ann", revision).await, &stage.named("bob", revision).await);
        let id = id_in(&ann.request(as_task(revision, "{\"polls\":1000000}")).await);
        until_status(ann, &id, "working").await;
        let methods = match revision.is_modern() {
            true => ["tasks/get", "tasks/update", "tasks/cancel"],
            false => ["tasks/get", "tasks/result", "tasks/cancel"],
        };
        for method in methods {
            let foreign = bob.request(about(revision, method, &id)).await;
            let nothing = ann.request(about(revision, method, "nothing")).await;
            assert_eq!(foreign.error(), nothing.error(), "{method}");
            assert_eq!(foreign.code(), -32602);
        }
        until_status(ann, &id, "working").await;
        stage.content(&[ann, bob]).await;
    }
}

#[tokio::test]
async fn how_a_task_stands_is_told_to_the_session_that_was_given_it_alone() {
    const STATUS: &str = "notifications/tasks/status";
    let revision = Revision::R2025_11_25;
    for way in WAYS {
        let stage = Stage::set_with(way, revision, of_two()).await;
        let ann = stage.named("ann", revision).await;
        let others = [stage.named("ann", revision).await, stage.named("bob", revision).await];
        let ear = ann.listen(&[]).await;
        let ears = [others[0].listen(&[]).await, others[1].listen(&[]).await];
        let id = id_in(&ann.request(as_task(revision, "{\"polls\":1000000}")).await);
        let theirs = id_in(&others[1].request(as_task(revision, "{\"polls\":1000000}")).await);
        ann.request(about(revision, "tasks/cancel", &id)).await.value();
        let told = ear.hears(0, STATUS).await;
        assert_eq!(told.param_text("taskId"), Some(id), "{way:?} {told:?}");
        assert_eq!(told.param_text("status").as_deref(), Some("cancelled"), "{way:?} {told:?}");
        // What would have come to the others came before this.
        stage.upstream.order(Order::AddTool("later".into())).await;
        for ear in &ears {
            ear.hears(0, "notifications/tools/list_changed").await;
            assert!(!ear.heard.all().iter().any(|frame| frame.is_notice(STATUS)), "{way:?} {:?}", ear.heard.all());
        }
        others[1].request(about(revision, "tasks/cancel", &theirs)).await.value();
        assert_eq!(ears[1].hears(0, STATUS).await.param_text("taskId"), Some(theirs), "{way:?}");
        stage.content(&[&ann, &others[0], &others[1]]).await;
    }
}

#[tokio::test]
async fn progress_of_a_task_goes_on_under_the_token_of_the_call_that_made_it() {
    const PROGRESS: &str = "notifications/progress";
    let revision = Revision::R2025_11_25;
    for way in WAYS {
        let stage = Stage::set(way, revision).await;
        let client = stage.client(revision, Desk::willing("ada").declaring("{}")).await;
        let other = stage.client(revision, Desk::willing("bob").declaring("{}")).await;
        let (ear, overhears) = (client.listen(&[]).await, other.listen(&[]).await);
        let made = client.request(as_task(revision, "{\"polls\":1000000}").token("\"mine\"")).await;
        let silent = client.request(as_task(revision, "{\"polls\":1000000}")).await;
        for reached in 1..=2 {
            let mark = ear.heard.mark();
            client.request(about(revision, "tasks/get", &id_in(&silent))).await.value();
            client.request(about(revision, "tasks/get", &id_in(&made))).await.value();
            let told = ear.hears(mark, PROGRESS).await;
            let said = |name: &str| told.param(name).map(|raw| raw.get().to_owned());
            assert_eq!(said("progress"), Some(reached.to_string()), "{way:?} {told:?}");
            assert_eq!(said("progressToken").as_deref(), Some("\"mine\""), "{way:?} {told:?}");
        }
        stage.upstream.order(Order::AddTool("later".into())).await;
        overhears.hears(0, "notifications/tools/list_changed").await;
        assert!(!overhears.heard.all().iter().any(|frame| frame.is_notice(PROGRESS)), "{:?}", overhears.heard.all());
        stage.content(&[&client, &other]).await;
    }
}

#[tokio::test]
async fn progress_of_a_task_is_told_on_the_plain_call_that_it_runs_for() {
    for way in WAYS {
        let stage = Stage::set(way, Revision::R2025_11_25).await;
        for revision in Revision::ALL {
            let client = stage.client(revision, Desk::willing("ada")).await;
            let open = client.start(tool("up__task", "{\"polls\":3}").token("\"mine\"")).await;
            let told = open.progress(1).await;
            assert_eq!(told["progressToken"], "mine", "{way:?} {revision}");
            assert_eq!(open.answer().await.text(), "task done");
            stage.content(&[&client]).await;
        }
    }
}

/// A listen call to these tasks.
fn listen_to(ids: &[&str]) -> Request {
    let ids = ids.iter().map(|id| quote(id)).collect::<Vec<_>>().join(",");
    Request::new("subscriptions/listen", &format!("{{\"notifications\":{{\"taskIds\":[{ids}]}}}}"))
}

/// The tasks that an acknowledgement honours.
fn honoured(acknowledged: &Frame) -> Value {
    let told: Value = serde_json::from_str(acknowledged.params.as_ref().expect("parameters").get()).expect("JSON");
    told["notifications"]["taskIds"].clone()
}

#[tokio::test]
async fn a_stateless_client_listens_to_its_own_tasks_alone() {
    const CHANGED: &str = "notifications/tasks";
    let revision = Revision::R2026_07_28;
    for way in WAYS {
        let stage = Stage::set_with(way, revision, of_two()).await;
        let (ann, bob) = (&stage.named("ann", revision).await, &stage.named("bob", revision).await);
        let long = || as_task(revision, "{\"polls\":1000000}");
        let (mine, other) = (id_in(&ann.request(long()).await), id_in(&ann.request(long()).await));
        let theirs = id_in(&bob.request(long()).await);
        let listen = || listen_to(&[&mine, &theirs, "nothing"]).capabilities(EXTENSION);
        let (ear, acknowledged) = ann.listen_by(listen()).await;
        assert_eq!(honoured(&acknowledged), serde_json::json!([mine]), "{way:?}");
        let (strange, acknowledged) = bob.listen_by(listen_to(&[&mine]).capabilities(EXTENSION)).await;
        assert_eq!(honoured(&acknowledged), Value::Null, "{way:?}");
        let (raw, _) = stage.upstream.received("taskIds").await;
        assert!(raw.contains("[\"own-0\"]"), "{raw}");
        for (whose, id) in [(ann, &other), (bob, &theirs), (ann, &mine)] {
            whose.request(about(revision, "tasks/cancel", id)).await.value();
        }
        let told = ear.hears(0, CHANGED).await;
        let field = |name: &str| told.param_text(name);
        assert_eq!((field("taskId"), field("status")), (Some(mine.clone()), Some("cancelled".into())), "{told:?}");
        let tag = told.meta("io.modelcontextprotocol/subscriptionId").expect("a tag");
        assert_eq!(tag.get(), ear.listen.as_ref().expect("a call").id, "{told:?}");
        assert_eq!(ear.heard.all().len(), 2, "the acknowledgement, and this: {:?}", ear.heard.all());
        assert_eq!(strange.heard.all().len(), 1, "{:?}", strange.heard.all());
        stage.content(&[ann, bob]).await;
    }
}

#[tokio::test]
async fn who_did_not_declare_tasks_or_wants_too_many_may_not_listen_to_them() {
    let revision = Revision::R2026_07_28;
    let stage = Stage::set(Way::Http, revision).await;
    let client = stage.client(revision, Desk::willing("ada").declaring("{}")).await;
    let id = id_in(&client.request(as_task(revision, "{\"polls\":1}")).await);
    let refused = client.request(listen_to(&[&id])).await;
    assert_eq!(refused.code(), -32021);
    let data = &refused.error_value()["data"];
    assert!(data["requiredCapabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{data}");
    let many = vec![&*id; 65];
    assert_eq!(client.request(listen_to(&many).capabilities(EXTENSION)).await.code(), -32602);
    stage.content(&[&client]).await;
}

#[tokio::test]
async fn a_task_of_the_other_form_is_not_there() {
    let (legacy, modern) = (Revision::R2025_11_25, Revision::R2026_07_28);
    for (asking, foreign) in [(legacy, modern), (modern, legacy)] {
        let stage = Stage::set(Way::Http, asking).await;
        let client = stage.client(asking, Desk::willing("ada").declaring("{}")).await;
        let other = stage.client(foreign, Desk::willing("ada").declaring("{}")).await;
        let id = id_in(&client.request(as_task(asking, "{\"polls\":1000000}")).await);
        for method in ["tasks/get", "tasks/cancel"] {
            let there = other.request(about(foreign, method, &id)).await;
            let nothing = other.request(about(foreign, method, "nothing")).await;
            assert_eq!((there.code(), there.error()), (-32602, nothing.error()), "{method}");
        }
        if foreign.is_modern() {
            let (_ear, acknowledged) = other.listen_by(listen_to(&[&id]).capabilities(EXTENSION)).await;
            assert_eq!(honoured(&acknowledged), Value::Null);
        }
        until_status(&client, &id, "working").await;
        stage.content(&[&client, &other]).await;
    }
}

#[tokio::test]
async fn who_knows_no_task_of_the_upstreams_form_never_sees_one() {
    let stage = Stage::set(Way::Http, Revision::R2025_11_25).await;
    for revision in [Revision::R2025_06_18, Revision::R2026_07_28] {
        let client = stage.client(revision, Desk::willing("ada").declaring("{}")).await;
        let params = "{\"name\":\"up__task\",\"arguments\":{\"polls\":1},\"task\":{\"ttl\":60000}}";
        let answer = client.request(Request::new("tools/call", params).capabilities(EXTENSION)).await;
        assert_eq!(answer.text(), "task done", "{revision}: {}", answer.result());
        let made = stage.upstream.seen().await;
        let made = made.iter().filter_map(|event| match &event.what {
            What::Frame { raw, .. } if raw.contains("tools/call") => Some(raw.matches("\"task\":{").count()),
            _ => None,
        });
        assert_eq!(
            made.collect::<std::collections::BTreeSet<_>>(),
            [1].into(),
            "{revision}: asked for once, by the gateway"
        );
        stage.content(&[&client]).await;
    }
}

//! Where a client and an upstream share an era, what they say passes as it is, and the upstream is spoken to in no other one.

use super::*;
use serde_json::{Value, json};
use trunkline_tests::client::{Desk, Request};
use trunkline_tests::gateway::StdioGateway;
use trunkline_tests::script::{Act, Rule};

const WAYS: [Way; 2] = [Way::Stdio, Way::Http];
const TASKS: &str = "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}";

/// An upstream that speaks both eras, and a gateway that may speak to it in both.
async fn stage(way: Way, change: impl FnOnce(&mut Script)) -> (Upstream, Gateway) {
    let script = Script::new("up", LEGACY).with(|script| script.revisions.push(Revision::MODERN)).with(change);
    let upstream = Upstream::start(way, script).await;
    let keys = if way == Way::Stdio { "eras = \"both\"" } else { "" };
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    (upstream, gateway)
}

#[tokio::test]
async fn a_stdio_gateway_opens_its_child_in_the_era_of_its_clients_first_frame() {
    for revision in [LEGACY, Revision::MODERN] {
        let upstream = dual(Way::Stdio).await;
        let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
        let client = Client::connect(&gateway.reach(), revision).await;
        client.tools_until("the tools are listed", |tools| tools.contains(&"up__echo".into())).await;
        assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        let opened = [count(&upstream, "initialize").await, count(&upstream, "server/discover").await];
        assert_eq!(opened, if revision.is_modern() { [0, 1] } else { [1, 0] }, "{revision}");
        let (call, _) = upstream.received("tools/call").await;
        let said = "io.modelcontextprotocol/protocolVersion";
        assert_eq!(call.contains(said), revision.is_modern(), "its calls are of that era: {call}");
        assert_eq!(started(&upstream).await, 1, "{revision}");
        assert_eq!(upstream.complaints().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_an_upstream_refuses_for_a_capability_comes_back_as_it_is() {
    // Of an extension that nobody here knows.
    let data = "{\"requiredCapabilities\":{\"extensions\":{\"com.example/x\":{\"a\":[1, 2]}}},\"more\": null}";
    let declares = "{\"elicitation\":{\"url\":{}},\"extensions\":{\"com.example/y\":{}}}";
    for way in WAYS {
        let act = Act::Error { code: -32021, message: "com.example/x is missing".into(), data: Some(data.into()) };
        let (upstream, gateway) = stage(way, |script| script.rules.push(Rule::on_tool("echo", vec![act]))).await;
        let client = listed(&gateway, Revision::MODERN).await;
        let refused = client.request(tool("up__echo", "{}").capabilities(declares)).await;
        let said = refused.error_value();
        assert_eq!((&said["code"], &said["message"]), (&json!(-32021), &json!("com.example/x is missing")), "{way:?}");
        assert!(refused.error().contains(data), "byte for byte: {}", refused.error());
        assert_eq!(refused.status, 400, "{way:?}");
        let (call, _) = upstream.received("tools/call").await;
        let heard: Value = serde_json::from_str(&call).expect("JSON");
        let heard = &heard["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*heard, serde_json::from_str::<Value>(declares).expect("JSON"), "its own, and no others: {way:?}");
        assert_eq!(bridged(&gateway, "modern").await, 0, "{way:?}");
    }
}

#[tokio::test]
async fn no_task_is_driven_for_a_client_whose_upstream_speaks_its_era() {
    for way in WAYS {
        let (upstream, gateway) = stage(way, |script| {
            script.tasks = true;
            script.tools.push("task".into());
        })
        .await;
        let desk = Desk::willing("ada").declaring("{}");
        let client = Client::connect_with(&gateway.reach(), Revision::MODERN, desk).await;
        client.tools_until("the tools are listed", |tools| tools.contains(&"up__task".into())).await;
        let refused = client.call("up__task", "{}").await;
        assert_eq!((refused.code(), refused.message().as_str()), (-32021, "this runs as a task only"), "{way:?}");
        let made = client.request(tool("up__task", "{\"polls\":3}").capabilities(TASKS)).await.value();
        let about = format!("{{\"taskId\":{}}}", made["taskId"]);
        for _ in 0..2 {
            let got = client.request(Request::new("tasks/get", &about).capabilities(TASKS)).await.value();
            assert_eq!(got["status"], "working", "{way:?}: {got}");
        }
        assert_eq!(count(&upstream, "tasks/get").await, 2, "its client alone asks how it stands: {way:?}");
        assert_eq!(upstream.executed().await.len(), 1, "{way:?}");
        assert_eq!(bridged(&gateway, "modern").await, 0, "{way:?}");
    }
}

#[tokio::test]
async fn status_shows_both_sides_of_an_upstream() {
    for way in WAYS {
        let (upstream, gateway) = stage(way, |_| {}).await;
        for revision in [LEGACY, Revision::MODERN] {
            listed(&gateway, revision).await.call("up__echo", "{}").await.text();
        }
        let said = gateway.command(&["status", "up", "--json"]).output().await.expect("it runs");
        let said: Value = serde_json::from_slice(&said.stdout).expect("JSON");
        let (one, other) = (&said, &said["instances"][0]);
        let sides = [one, other].map(|side| [&side["state"], &side["era"], &side["revision"]]);
        let mut sides = sides.map(|side| side.map(|text| text.as_str().unwrap_or_default().to_owned()));
        sides.sort();
        let expected = [["ready", "handshake", "2025-11-25"], ["ready", "stateless", "2026-07-28"]];
        assert_eq!(sides, expected.map(|side| side.map(str::to_owned)), "{way:?}: {said:#}");
        let said = gateway.command(&["status", "up"]).output().await.expect("it runs");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        for text in ["2025-11-25 (handshake)", "2026-07-28 (stateless)"] {
            assert!(said.contains(text), "{way:?} {text}: {said}");
        }
        assert_eq!(upstream.complaints().await, Vec::<String>::new());
    }
}

//! The demo over a pipe in memory, with the clock paused.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex, split};

use super::speak;

struct Client {
    lines: Lines<BufReader<tokio::io::ReadHalf<DuplexStream>>>,
    input: tokio::io::WriteHalf<DuplexStream>,
    _demo: tokio::task::JoinSet<std::io::Result<()>>,
}

impl Client {
    fn new() -> Self {
        let (ours, theirs) = duplex(1 << 16);
        let (read, write) = split(theirs);
        let mut demo = tokio::task::JoinSet::new();
        demo.spawn(speak(read, write));
        let (read, input) = split(ours);
        Self { lines: BufReader::new(read).lines(), input, _demo: demo }
    }

    async fn of(revision: &str) -> Self {
        let mut client = Self::new();
        if revision < "2026" {
            let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let result = client.ask("initialize", params).await;
            assert_eq!(result["result"]["protocolVersion"], revision);
            client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        }
        client
    }

    async fn send(&mut self, frame: Value) {
        self.input.write_all(format!("{frame}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().expect("a frame")).unwrap()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params })).await;
        self.next().await
    }

    async fn call(&mut self, id: Value, name: &str, arguments: Value, meta: Value) {
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }
}

fn modern() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[tokio::test(start_paused = true)]
async fn every_revision_lists_and_calls() {
    for revision in LEGACY.into_iter().chain(["2026-07-28"]) {
        let mut client = Client::of(revision).await;
        let meta = if revision < "2026" { json!({}) } else { modern() };
        let tools = client.ask("tools/list", json!({ "_meta": meta })).await;
        let tools = tools["result"]["tools"].as_array().unwrap().clone();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["echo", "add", "clock", "sleep", "fail", "blob"]);
        assert_eq!(tools[1].get("outputSchema").is_some(), revision >= "2025-06-18", "{revision}");
        client.call(json!(1), "add", json!({ "a": 2, "b": 3 }), meta.clone()).await;
        let sum = client.next().await;
        assert_eq!((&sum["id"], &sum["result"]["content"][0]["text"]), (&json!(1), &json!("5")));
        assert_eq!(sum["result"].get("structuredContent").is_some(), revision >= "2025-06-18");
        assert_eq!(sum["result"].get("resultType").is_some(), revision >= "2026");
        client.call(json!("x"), "fail", json!({}), meta.clone()).await;
        assert_eq!(client.next().await["result"]["isError"], true);
        let unknown = client.ask("resources/read", json!({ "uri": "demo://none", "_meta": meta })).await;
        assert_eq!(unknown["error"]["code"], if revision < "2026" { -32002 } else { -32602 });
        let greeting = client.ask("resources/read", json!({ "uri": "demo://greeting/Ada", "_meta": meta })).await;
        assert_eq!(greeting["result"]["contents"][0]["text"], "Hello, Ada!");
        let prompt =
            client.ask("prompts/get", json!({ "name": "greet", "arguments": { "name": "Ada" }, "_meta": meta })).await;
        assert!(prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains("Ada"));
        let reference = json!({ "type": "ref/prompt", "name": "greet" });
        let completion = client
            .ask(
                "completion/complete",
                json!({ "ref": reference, "argument": { "name": "style", "value": "f" }, "_meta": meta }),
            )
            .await;
        assert_eq!(completion["result"]["completion"]["values"], json!(["formal", "friendly"]));
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_says_what_modern_clients_need_and_refusals_are_recognised() {
    let mut client = Client::new();
    let found = client.ask("server/discover", json!({ "_meta": modern() })).await;
    let result = &found["result"];
    assert_eq!(
        (&result["supportedVersions"], &result["resultType"], &result["cacheScope"]),
        (&json!(["2026-07-28"]), &json!("complete"), &json!("public"))
    );
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "trunkline-demo");
    let mut other = modern();
    other["io.modelcontextprotocol/protocolVersion"] = json!("2030-01-01");
    let refused = client.ask("server/discover", json!({ "_meta": other })).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["supported"]),
        (&json!(-32022), &json!(["2026-07-28"]))
    );
    let bare =
        client.ask("tools/list", json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } })).await;
    assert_eq!(bare["error"]["code"], -32602);
    assert_eq!(client.ask("ping", json!({ "_meta": modern() })).await["error"]["code"], -32601);
    assert_eq!(client.ask("tools/list", json!({})).await["error"]["code"], -32600);
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn sleeps_tell_their_progress_run_side_by_side_and_can_be_cancelled() {
    for (revision, meta) in [("2025-11-25", json!({})), ("2026-07-28", modern())] {
        let mut client = Client::of(revision).await;
        let mut told = meta.clone();
        told["progressToken"] = json!("p");
        client.call(json!(1), "sleep", json!({ "ms": 250 }), told).await;
        client.call(json!("1"), "sleep", json!({ "ms": 60_000 }), meta.clone()).await;
        client.call(json!(3), "sleep", json!({ "ms": 5_000 }), meta.clone()).await;
        // A call that takes no time does not wait for those that do.
        client.call(json!(4), "echo", json!({ "text": "now" }), meta.clone()).await;
        assert_eq!(client.next().await["id"], 4);
        client
            .send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "1" } }))
            .await;
        for progress in [100, 200, 250] {
            let notice = client.next().await;
            assert_eq!(
                (&notice["params"]["progressToken"], &notice["params"]["progress"]),
                (&json!("p"), &json!(progress))
            );
        }
        assert_eq!(client.next().await["id"], 1);
        assert_eq!(client.next().await["id"], 3);
        // Past the end of the cancelled one there is nothing but what is asked now.
        tokio::time::sleep(std::time::Duration::from_secs(120)).await;
        client.call(json!(5), "echo", json!({ "text": "later" }), meta).await;
        assert_eq!(client.next().await["id"], 5);
    }
}

#[tokio::test(start_paused = true)]
async fn the_counter_is_told_to_those_who_want_to_know() {
    let mut client = Client::of("2025-06-18").await;
    let count = async |client: &mut Client| {
        let read = client.ask("resources/read", json!({ "uri": "demo://counter" })).await;
        read["result"]["contents"][0]["text"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let before = count(&mut client).await;
    client.ask("resources/subscribe", json!({ "uri": "demo://counter" })).await;
    let notice = client.next().await;
    assert_eq!(
        (&notice["method"], &notice["params"]),
        (&json!("notifications/resources/updated"), &json!({ "uri": "demo://counter" }))
    );
    assert!(count(&mut client).await > before);
    client.ask("resources/unsubscribe", json!({ "uri": "demo://counter" })).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(client.ask("ping", json!({})).await["id"], "q");
    assert_eq!(client.ask("resources/subscribe", json!({ "uri": "demo://none" })).await["error"]["code"], -32002);
}

#[tokio::test(start_paused = true)]
async fn a_listen_is_acknowledged_tagged_and_ended() {
    let mut client = Client::new();
    let wanted = json!({ "resourceSubscriptions": ["demo://counter", "demo://none"], "toolsListChanged": true });
    let frame = json!({ "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": { "notifications": wanted, "_meta": modern() } });
    client.send(frame).await;
    let first = client.next().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({ "resourceSubscriptions": ["demo://counter"] }));
    for _ in 0..2 {
        let notice = client.next().await;
        assert_eq!(notice["method"], "notifications/resources/updated");
        assert_eq!(notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    }
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } })).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(client.ask("server/discover", json!({ "_meta": modern() })).await["id"], "q");
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_its_input_ends_and_bad_lines_do_not_end_it() {
    let (ours, theirs) = duplex(1 << 16);
    let (read, write) = split(theirs);
    let (mut lines, mut input) = split(ours);
    let client = async {
        input.write_all(b"\n{\n[]\n{\"id\":1}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n").await.unwrap();
        let sleep = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "sleep", "arguments": { "ms": 600_000 }, "_meta": modern() } });
        input.write_all(format!("{sleep}\n").as_bytes()).await.unwrap();
        input.shutdown().await.unwrap();
    };
    let started = tokio::time::Instant::now();
    let (done, ()) = tokio::join!(speak(read, write), client);
    done.unwrap();
    assert!(started.elapsed() < std::time::Duration::from_secs(1), "a sleep kept it alive");
    let mut out = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut lines, &mut out).await.unwrap();
    let codes: Vec<_> = out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|frame| frame["error"]["code"].as_i64())
        .collect();
    assert_eq!(codes, [Some(-32700), Some(-32600), None]);
}

#[tokio::test(start_paused = true)]
async fn numbers_that_the_demo_cannot_hold_are_answered_with_their_id() {
    let mut client = Client::of("2025-11-25").await;
    let call = r#"{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"name":"echo","arguments":{"n":1e400}}}"#;
    client.input.write_all(format!("{call}\n{{\"id\":\n").as_bytes()).await.unwrap();
    let refused = client.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("big"), &json!(-32602)));
    let refused = client.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32700)));
}

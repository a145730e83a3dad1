//! Upstreams that know calls of tools and nothing else of the protocol: plain HTTP, answers in parts, and the bare dialect of a WebSocket.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};
use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;

/// A server that answers each POST by itself, and whatever is no call of a tool, or a list of them, with 404.
fn plain() -> Script {
    let nothing = |method| Rule::on(method, vec![Act::status(404, "text/plain", "no such method")]);
    Script::new("plain", LEGACY)
        .with(|script| script.http.sessions = false)
        .rule(nothing("initialize"))
        .rule(nothing("server/discover"))
        .rule(nothing("ping"))
}

async fn connected(gateway: &Gateway, revision: Revision, tool: &str) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.iter().any(|name| name == tool)).await;
    client
}

#[tokio::test]
async fn without_sessions_tools_are_listed_and_called_with_nothing_before() {
    let upstream = Upstream::start(Way::Http, plain()).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "sessions = \"off\"")).await;
    for revision in [LEGACY, Revision::MODERN] {
        let client = connected(&gateway, revision, "plain__echo").await;
        assert_eq!(client.call("plain__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    }
    for method in ["initialize", "server/discover", "notifications/initialized", "ping"] {
        assert_eq!(upstream.frames_with(&format!("\"{method}\"")), 0, "{method}");
    }
    assert_eq!(upstream.visits(), 0, "nor is a stream asked for");
    let page = gateway.look("/readyz?verbose&format=json").await;
    let row = &serde_json::from_slice::<Value>(&page.body).expect("JSON")["upstreams"][0];
    assert_eq!((&row["state"], row.get("revision").filter(|it| !it.is_null())), (&json!("ready"), None), "{row}");
    assert!(row.get("remarks").is_none_or(|all| *all == json!([])), "it was asked for its tools: {row}");
}

#[tokio::test]
async fn a_server_that_refuses_a_handshake_and_lists_tools_is_found_to_have_no_sessions() {
    let upstream = Upstream::start(Way::Http, plain()).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = connected(&gateway, LEGACY, "plain__echo").await;
    assert_eq!(client.call("plain__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

#[tokio::test]
async fn tools_that_are_defined_are_not_asked_for_and_a_status_without_an_answer_says_what_happened() {
    let refused = |name, status| Rule::on_tool(name, vec![Act::status(status, "text/plain", "out of paper")]);
    let error = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32050,\"message\":\"jammed\"}}";
    let script = plain()
        .rule(Rule::on("tools/list", vec![Act::status(405, "text/plain", "no lists")]))
        .rule(refused("print", 503))
        .rule(refused("scan", 422))
        .rule(Rule::on_tool("staple", vec![Act::status(500, "application/json", error)]));
    let upstream = Upstream::start(Way::Http, script).await;
    let keys = "sessions = \"off\"\n[upstreams.plain.tools.define]\necho = '{\"description\":\"says it\"}'\n\
                print = '{\"inputSchema\":{\"type\":\"object\",\"required\":[\"text\"]}}'\nscan = '{}'\nstaple = '{}'\n";
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, keys)).await;
    let said = "its tools are those of `tools.define`: the first call shows whether it answers";
    let page = gateway.look_until("/readyz?verbose", "it is remarked", |page| page.contains(said)).await;
    assert!(!page.contains("2025-11-25"), "it has named no revision: {page}");
    let client = connected(&gateway, LEGACY, "plain__echo").await;
    let list = client.request(trunkline_tests::client::Request::new("tools/list", "{}")).await.value();
    let of = |name: &str| {
        let tools = list["tools"].as_array().expect("a list").clone();
        tools.into_iter().find(|tool| tool["name"] == format!("plain__{name}")).expect("it is listed")
    };
    assert_eq!(
        (of("echo")["description"].clone(), of("echo")["inputSchema"].clone()),
        (json!("says it"), json!({"type":"object"}))
    );
    assert_eq!(of("print")["inputSchema"]["required"], json!(["text"]));
    assert_eq!(client.call("plain__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    for (name, says) in [("print", "503"), ("scan", "422")] {
        let answer = client.call(&format!("plain__{name}"), "{}").await;
        assert!(answer.message().contains("plain") && answer.message().contains(says), "{}", answer.error());
    }
    let answer = client.call("plain__staple", "{}").await;
    assert_eq!((answer.code(), answer.message()), (-32050, "jammed".to_owned()), "the error in the body is the answer");
    assert_eq!(upstream.frames_with("\"tools/list\""), 0);
}

#[tokio::test]
async fn a_server_without_a_list_of_tools_says_what_to_define() {
    let upstream =
        Upstream::start(Way::Http, plain().rule(Rule::on("tools/list", vec![Act::error(-32601, "what?")]))).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "sessions = \"off\"")).await;
    gateway
        .look_until("/readyz?verbose", "the cause is shown", |page| {
            page.contains("refused `tools/list` with error -32601")
                && page.contains("define its tools in `tools.define`")
        })
        .await;
}

/// A call whose answer is this stream of events.
async fn in_events(events: &str) -> trunkline_tests::client::Answer {
    let act = Act::status(200, "text/event-stream", events);
    let script = plain().rule(Rule::on_tool("tool_error", vec![act]));
    let upstream = Upstream::start(Way::Http, script).await;
    let gateway = Gateway::serve(&Config::new().upstream_with(&upstream, "sessions = \"off\"")).await;
    let client = connected(&gateway, LEGACY, "plain__echo").await;
    let answer = client.call("plain__tool_error", "{}").await;
    assert_eq!(upstream.frames_with("\"tool_error\""), 1, "it was sent once");
    assert_eq!(client.call("plain__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "the next call works");
    answer
}

#[tokio::test]
async fn an_answer_in_parts_is_joined_and_its_end_says_whether_it_is_one() {
    let part = |text: &str| {
        format!("event: result\ndata: {{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}\n\n: heartbeat\n\n")
    };
    let parts = [part("one"), part("two")].concat();
    let answer = in_events(&format!("{parts}event: complete\ndata: {{\"isError\":false}}\n\n")).await.value();
    let text = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(
        (answer["content"].clone(), answer["isError"].clone()),
        (json!([text("one"), text("two")]), json!(false))
    );
    let whole = "event: complete\ndata: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"whole\"}]}}\n\n";
    assert_eq!(in_events(&format!("{parts}{whole}")).await.text(), "whole");
    let failed = in_events(&format!("{parts}event: error\ndata: {{\"code\":-32050,\"message\":\"jammed\"}}\n\n")).await;
    assert_eq!((failed.code(), failed.message()), (-32050, "jammed".to_owned()));
    let cut = in_events(&parts).await;
    assert!(cut.message().contains("may or may not have run"), "parts without an end are no answer: {}", cut.error());
}

#[tokio::test]
async fn a_part_that_cannot_be_read_and_an_error_without_a_text_say_so_and_name_the_upstream() {
    let end = "event: complete\ndata: {}\n\n";
    let unread = in_events(&format!("event: result\ndata: {{\"content\":[],\"x\":NaN}}\n\n{end}")).await;
    let said = unread.message();
    assert!(said.contains("plain") && said.contains("a part of its answer cannot be read"), "{}", unread.error());
    let silent = in_events("event: error\ndata:\n\n").await;
    let expected = "the upstream `plain` gave an error without a text".to_owned();
    assert_eq!((silent.code(), silent.message()), (-32000, expected));
}

/// A server that takes `{id, name, arguments}` on a WebSocket, and what it was sent.
struct Bare {
    address: std::net::SocketAddr,
    seen: Arc<Tape<Value>>,
    _served: JoinSet<()>,
}

impl Bare {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let seen = Arc::new(Tape::default());
        let told = seen.clone();
        let mut served = JoinSet::new();
        served.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                clients.spawn(serve(stream, told.clone()));
            }
        });
        Self { address, seen, _served: served }
    }

    fn section(&self) -> String {
        let tools: String = ["echo", "chatty", "refuse", "hang", "drop", "text", "float", "array"]
            .iter()
            .map(|name| format!("{name} = '{{}}'\n"))
            .collect();
        let url = format!("ws://{}/", self.address);
        format!(
            "[upstreams.bare]\nurl = \"{url}\"\ndialect = \"bare\"\nstart_wait = \"50s\"\n[upstreams.bare.tools.define]\n{tools}"
        )
    }
}

#[allow(clippy::result_large_err, reason = "what the library wants")]
async fn serve(stream: TcpStream, seen: Arc<Tape<Value>>) {
    let subprotocol = |request: &Request, response: Response| {
        let named = request.headers().get("sec-websocket-protocol");
        seen.push(json!({ "subprotocol": named.map(|named| named.to_str().unwrap_or_default()) }));
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(stream, subprotocol).await else { return };
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = message {
            let call: Value = serde_json::from_str(&text).expect("JSON");
            seen.push(call.clone());
            if answer(&mut socket, &call).await.is_none() {
                return;
            }
        }
    }
}

async fn answer(socket: &mut WebSocketStream<TcpStream>, call: &Value) -> Option<()> {
    let id = &call["id"];
    let answers = match call["name"].as_str().expect("a name") {
        "echo" => vec![
            json!({ "id": id, "result": { "content": [{ "type": "text", "text": call["arguments"].to_string() }] } }),
        ],
        "chatty" => vec![
            json!({ "type": "ping" }),
            json!({ "method": "notifications/message", "params": {} }),
            json!({ "id": id, "result": { "pages": 3 } }),
        ],
        "text" => vec![
            json!({ "id": "none of ours", "result": "other" }),
            json!({ "result": "other" }),
            json!({ "id": id.to_string(), "result": "mine" }),
        ],
        "float" => vec![json!({ "id": id.as_f64(), "result": "mine" })],
        "array" => vec![json!([{ "type": "ping" }, { "id": id, "result": "mine" }])],
        "refuse" => vec![json!({ "id": id, "error": "no paper" })],
        "drop" => {
            let _ = socket.close(Some(CloseFrame { code: 1011.into(), reason: "".into() })).await;
            while let Some(Ok(_)) = socket.next().await {}
            return None;
        }
        _ => Vec::new(),
    };
    for answer in answers {
        socket.send(Message::text(answer.to_string())).await.ok()?;
    }
    Some(())
}

#[tokio::test]
async fn in_the_bare_dialect_calls_have_growing_ids_and_nothing_else_is_sent() {
    let server = Bare::start().await;
    let gateway = Gateway::serve(&Config::new().section(&server.section())).await;
    for revision in [LEGACY, Revision::MODERN] {
        let client = connected(&gateway, revision, "bare__echo").await;
        assert_eq!(client.call("bare__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert_eq!(
            client.call("bare__chatty", "{}").await.text(),
            "{\"pages\":3}",
            "a ping and a notice answer nothing"
        );
        let refused = client.call("bare__refuse", "{}").await;
        assert_eq!((refused.code(), refused.message()), (-32000, "no paper".to_owned()));
    }
    let seen = server.seen.all();
    assert_eq!(seen[0], json!({ "subprotocol": null }));
    let ids: Vec<u64> = seen[1..].iter().map(|call| call["id"].as_u64().expect("a number")).collect();
    assert!(ids.len() == 6 && ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    for call in &seen[1..] {
        let keys: Vec<&String> = call.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["arguments", "id", "name"], "{call}");
    }
}

#[tokio::test]
async fn in_the_bare_dialect_an_id_may_be_a_text_or_a_float_and_an_answer_without_one_is_told_of_and_taken_for_none() {
    let server = Bare::start().await;
    let gateway = Gateway::serve(&Config::new().section(&server.section())).await;
    let client = connected(&gateway, LEGACY, "bare__echo").await;
    for name in ["text", "float", "array"] {
        assert_eq!(client.call(&format!("bare__{name}"), "{}").await.text(), "mine", "{name}");
    }
    gateway.says(&["unknown_id", "an answer to an unknown id", "none of ours"]).await;
    let counted = "trunkline_protocol_violations_total{upstream=\"bare\",kind=\"unknown_id\"} 2";
    gateway.look_until("/metrics", "both are counted", |page| page.contains(counted)).await;
}

#[tokio::test]
async fn in_the_bare_dialect_a_drop_ends_all_calls_with_its_code_and_the_next_call_has_a_new_connection() {
    let server = Bare::start().await;
    let gateway = Gateway::serve(&Config::new().section(&server.section())).await;
    let client = connected(&gateway, LEGACY, "bare__echo").await;
    let hangs = client.start(tool("bare__hang", "{}")).await;
    server.seen.wait("it was sent", |call| (call["name"] == "hang").then_some(())).await;
    for answer in [client.call("bare__drop", "{}").await, hangs.answer().await] {
        assert!(answer.message().contains("1011"), "{}", answer.error());
        assert!(answer.message().contains("may or may not have run"), "{}", answer.error());
    }
    assert_eq!(client.call("bare__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!(server.seen.all().iter().filter(|call| call["name"] == "hang").count(), 1, "nothing is sent again");
}

//! What other systems say beside the published revisions: their codes, their batches, their texts and their chunks.

use serde_json::json;
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Client, Reach, Request, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const OLDEST: Revision = Revision::R2024_11_05;
const MODERN: Revision = Revision::MODERN;

async fn join(gateway: &Gateway, revision: Revision) -> Client {
    let client = Client::connect(&gateway.reach(), revision).await;
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    client
}

/// The frame with which the upstream was answered.
async fn answer_to(upstream: &Upstream, id: &str) -> (String, Vec<(String, String)>) {
    let text = format!("\"id\":\"{id}\"");
    let pick = |event: &Event| match &event.what {
        What::Frame { raw, headers } if raw.contains(&text) => Some((raw.clone(), headers.clone())),
        _ => None,
    };
    upstream.events.wait(&format!("{} is answered", upstream.name), pick).await
}

/// A2: `ping` is answered, and what nobody knows is refused.
#[tokio::test]
async fn a2_an_upstream_that_asks_whether_we_are_there_is_told() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    join(&gateway, LEGACY).await;
    for (id, method) in [("p", "ping"), ("x", "made/up")] {
        upstream
            .order(Order::Write(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"{method}\"}}\n")))
            .await;
    }
    assert!(answer_to(&upstream, "p").await.0.contains("\"result\":{}"));
    assert!(answer_to(&upstream, "x").await.0.contains("-32601"));
}

/// A8: what an upstream asks on a stream is answered by a POST of its own, in the same session.
#[tokio::test]
async fn a8_what_is_asked_on_a_stream_is_answered_by_a_post() {
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":\"on-stream\",\"method\":\"ping\"}\n\n";
    let rule = Rule::on_tool("echo", vec![Act::Write(ping.into())]);
    let upstream = Upstream::http(Script::new("up", LEGACY).rule(rule)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = join(&gateway, LEGACY).await;
    client.call("up__echo", "{\"n\":1}").await.text();
    let (raw, headers) = answer_to(&upstream, "on-stream").await;
    assert!(raw.contains("\"result\":{}"), "{raw}");
    assert!(headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")), "{headers:?}");
}

/// C5: an upstream's own codes reach handshake clients as they are; the one that stateless revisions took back is changed.
#[tokio::test]
async fn c5_codes_of_an_upstream_arrive_as_its_client_knows_them() {
    let upstream = Upstream::http(Script::new("up", OLDEST)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    for revision in [OLDEST, LEGACY, MODERN] {
        let client = join(&gateway, revision).await;
        for code in -32005..=-32000 {
            let arguments = format!("{{\"code\":{code},\"message\":\"no é\",\"data\":{{\"uri\":\"a:1\",\"n\":1e2}}}}");
            let answer = client.call("up__fail", &arguments).await;
            let expected = if revision == MODERN && code == -32002 { -32602 } else { code };
            assert_eq!((answer.code(), answer.message().as_str()), (expected, "no é"), "{revision}");
            assert!(answer.error().contains("\"n\":1e2"), "the data is theirs: {}", answer.error());
        }
    }
}

/// C6: each client and each upstream agree with the gateway by themselves.
#[tokio::test]
async fn c6_each_side_agrees_on_a_revision_by_itself() {
    let (old, new) =
        (Upstream::http(Script::new("up", OLDEST)).await, Upstream::http(Script::new("new", LEGACY)).await);
    let gateway = Gateway::serve(&Config::new().upstream(&old).upstream(&new)).await;
    join(&gateway, OLDEST).await;
    for (asked, agreed) in [
        ("2024-10-07", "2024-10-07"),
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let client = Client::open(&gateway.reach(), LEGACY).await;
        let params = format!(
            "{{\"protocolVersion\":\"{asked}\",\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"x\",\"version\":\"1\"}}}}"
        );
        let answer = client.request(Request::new("initialize", &params)).await;
        assert_eq!(answer.value()["protocolVersion"], agreed, "asked for {asked}");
    }
    let said = gateway.look_until("/readyz?verbose", "both are shown", |text| text.contains("2025-11-25")).await;
    assert!(said.contains("2024-11-05"), "{said}");
}

/// C7: a text in place of content is taken from such an upstream, and given to such a client beside its content.
#[tokio::test]
async fn c7_a_text_is_content_and_content_a_text() {
    let greeting = "{\"protocolVersion\":\"2024-10-07\",\"capabilities\":{\"tools\":{}},\
                    \"serverInfo\":{\"name\":\"old\",\"version\":\"1\"}}";
    let script = Script::new("up", OLDEST)
        .only_tools(&["echo"])
        .rule(Rule::on("initialize", vec![Act::Result(greeting.into())]))
        .rule(Rule::on_tool("echo", vec![Act::Result("{\"text\":\"so \\u0041\",\"isError\":false}".into())]));
    let upstream = Upstream::stdio(script).await;
    let other = Upstream::http(Script::new("new", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream).upstream(&other)).await;
    for revision in [OLDEST, LEGACY, MODERN] {
        let client = join(&gateway, revision).await;
        assert_eq!(client.call("up__echo", "{}").await.text(), "so A", "{revision}");
    }
    let stdio = StdioGateway::prepare(&Config::new().upstream(&other));
    let client = Client::open(&stdio.reach(), OLDEST).await;
    let params =
        "{\"protocolVersion\":\"2024-10-07\",\"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}";
    let greeted = client.request(Request::new("initialize", params)).await.value();
    assert_eq!(greeted["protocolVersion"], "2024-10-07");
    client.notify("notifications/initialized", "{}").await;
    client.tools_until("the upstream is there", |tools| !tools.is_empty()).await;
    let answer = client.call("new__echo", "{\"n\":1}").await;
    assert_eq!(answer.value()["text"], answer.text(), "{}", answer.result());
}

/// An answer that announces its result in chunks, two chunks of it, a gate, and what comes then.
fn in_chunks(way: Way, then: Act) -> Rule {
    let end = if way == Way::Http { "\n\n" } else { "\n" };
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{{\"stream\":true,\"streamId\":\"s1\"}}}}{end}");
    let acts = vec![
        Act::Write(head),
        Act::Write(chunk(way, "one ", false)),
        Act::Write(chunk(way, "two ", false)),
        Act::Gate("then".into()),
        then,
        Act::Cut,
        Act::Hang,
    ];
    Rule::on_tool("echo", acts)
}

fn chunk(way: Way, content: &str, is_final: bool) -> String {
    let end = if way == Way::Http { "\n\n" } else { "\n" };
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/stream/chunk\",\"params\":{{\"streamId\":\"s1\",\
         \"chunk\":{{\"type\":\"text\",\"content\":\"{content}\",\"final\":{is_final}}}}}}}{end}"
    )
}

/// C8: chunks that follow an answer are told as progress where that was asked for, and end as one result.
#[tokio::test]
async fn c8_chunks_become_one_result_and_progress() {
    for way in [Way::Stdio, Way::Http] {
        let rule = in_chunks(way, Act::Write(chunk(way, "three", true)));
        let upstream = Upstream::start(way, Script::new("up", LEGACY).rule(rule)).await;
        let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
        for revision in [LEGACY, MODERN] {
            let client = join(&gateway, revision).await;
            let call = client.start(tool("up__echo", "{}").token("\"t\"")).await;
            assert_eq!(call.progress(1).await["message"], "one ");
            assert_eq!(call.progress(2).await["message"], "two ");
            upstream.order(Order::Release("then".into())).await;
            assert_eq!(call.answer().await.text(), "one two three", "{way:?} {revision}");
            let mark = upstream.events.mark();
            let silent = client.start(tool("up__echo", "{}")).await;
            upstream.waiting_at_from(mark, "then").await;
            upstream.order(Order::Release("then".into())).await;
            let notices = silent.notices.clone();
            assert_eq!(silent.answer().await.text(), "one two three");
            assert!(notices.all().is_empty(), "progress that was not asked for");
        }
    }
}

/// C8: an upstream that ends between two chunks has not answered.
#[tokio::test]
async fn c8_an_upstream_that_ends_between_chunks_ends_the_call_with_an_error() {
    for (way, end) in [(Way::Stdio, Act::Exit(3)), (Way::Http, Act::Cut)] {
        let upstream = Upstream::start(way, Script::new("up", LEGACY).rule(in_chunks(way, end))).await;
        let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
        let client = join(&gateway, MODERN).await;
        let call = client.start(tool("up__echo", "{}").token("0")).await;
        call.progress(2).await;
        upstream.order(Order::Release("then".into())).await;
        let answer = call.answer().await;
        assert!(answer.message().contains("`up`"), "{way:?} {}", answer.error());
        assert!(answer.message().contains("may or may not have run"), "{way:?} {}", answer.error());
    }
}

/// C9: the method `batch`, over both transports.
async fn batch(client: &Client) {
    let requests = "{\"requests\":[\
        {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{\"name\":\"up__echo\",\"arguments\":{\"n\":1}}},\
        {\"id\":7,\"method\":\"ping\"},\
        {\"id\":\"a\",\"method\":\"made/up\"}]}";
    let answer = client.request(Request::new("batch", requests)).await.value();
    let responses = answer["responses"].as_array().expect("responses").clone();
    assert_eq!(responses.iter().map(|one| one["id"].clone()).collect::<Vec<_>>(), [json!("a"), json!(7), json!("a")]);
    assert_eq!(responses[0]["result"]["content"][0]["text"], "{\"n\":1}");
    assert_eq!((&responses[1]["result"], &responses[2]["error"]["code"]), (&json!({}), &json!(-32601)));
    let many = vec!["{\"id\":1,\"method\":\"ping\"}"; 65].join(",");
    for wrong in
        ["{}", "{\"requests\":[]}", "{\"requests\":[{\"method\":\"ping\"}]}", &format!("{{\"requests\":[{many}]}}")]
    {
        assert_eq!(client.request(Request::new("batch", wrong)).await.code(), -32602, "{wrong:.60}");
    }
}

#[tokio::test]
async fn c9_a_batch_by_its_method_is_answered_in_its_shape() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let config = Config::new().upstream(&upstream);
    let gateway = Gateway::serve(&config).await;
    batch(&join(&gateway, LEGACY).await).await;
    let stdio = StdioGateway::prepare(&config);
    let client = Client::connect(&stdio.reach(), OLDEST).await;
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__echo".into())).await;
    batch(&client).await;
}

/// C9: a batch by its method that is cancelled takes all that it holds along.
#[tokio::test]
async fn c9_a_cancelled_batch_is_cancelled_whole() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let stdio = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = Client::connect(&stdio.reach(), LEGACY).await;
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__wait".into())).await;
    let wait = |id: u8| {
        format!(
            "{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"up__wait\",\"arguments\":{{\"gate\":\"g{id}\"}}}}}}"
        )
    };
    let open = client.start(Request::new("batch", &format!("{{\"requests\":[{},{}]}}", wait(1), wait(2)))).await;
    let ids = [upstream.waiting_at("g1").await, upstream.waiting_at("g2").await];
    open.cancel().await;
    for id in ids {
        let pick = |event: &Event| matches!(&event.what, What::Cancelled { id: of, .. } if *of == id).then_some(());
        upstream.events.wait("both calls are cancelled", pick).await;
    }
}

const ARRAYS: Revision = Revision::R2025_03_26;

fn array(gate: &str) -> String {
    format!(
        "[{{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/call\",\"params\":{{\"name\":\"up__wait\",\"arguments\":{{\"gate\":\"{gate}\"}}}}}},\
         {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/made/up\"}},\
         {{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"tools/call\",\"params\":{{\"name\":\"up__wait\",\"arguments\":{{\"gate\":\"{gate}\"}}}}}},\
         {{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}}]"
    )
}

fn many() -> String {
    format!("[{}]", vec!["{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"; 65].join(","))
}

/// The ids of an array of answers.
fn ids(text: &str) -> Vec<serde_json::Value> {
    let frames: Vec<serde_json::Value> = serde_json::from_str(text).expect("an array");
    frames.iter().map(|frame| frame["id"].clone()).collect()
}

/// C9: arrays over HTTP, answered as one array; a cancelled element has no answer; caps.
#[tokio::test]
async fn c9_an_array_over_http_is_answered_by_an_array() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = join(&gateway, ARRAYS).await;
    let (Reach::Url(url), Some(session)) = (gateway.reach(), client.http().session_id()) else {
        panic!("a session over HTTP");
    };
    let headers =
        [("content-type", "application/json"), ("accept", "application/json"), ("mcp-session-id", session.as_str())];
    let (whole, cancelled) = (array("whole"), array("cancelled"));
    let order = async {
        upstream.waiting(2).await;
        upstream.order(Order::Open("whole".into())).await;
    };
    let (answer, ()) = tokio::join!(exchange(&url, "POST", &headers, &whole), order);
    assert_eq!(ids(std::str::from_utf8(&answer.body).unwrap()), [json!("a"), json!("b"), json!(7)], "{answer:?}");
    let cancel = async {
        // Each call has a connection of its own: the one that is withdrawn may come last.
        upstream.waiting(4).await;
        let mark = upstream.events.mark();
        client.notify("notifications/cancelled", "{\"requestId\":\"a\"}").await;
        upstream.cancelled(mark).await;
        upstream.order(Order::Open("cancelled".into())).await;
    };
    let (answer, ()) = tokio::join!(exchange(&url, "POST", &headers, &cancelled), cancel);
    assert_eq!(ids(std::str::from_utf8(&answer.body).unwrap()), [json!("b"), json!(7)], "{answer:?}");
    let silent = "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/made/up\"}]";
    assert_eq!(exchange(&url, "POST", &headers, silent).await.status, 202);
    let each = exchange(&url, "POST", &headers, "[7]").await;
    let frames: Vec<serde_json::Value> = serde_json::from_slice(&each.body).expect("an array");
    assert_eq!((each.status, frames.len(), &frames[0]["error"]["code"]), (400, 1, &json!(-32600)));
    for wrong in ["[]", &many()] {
        let answer = exchange(&url, "POST", &headers, wrong).await;
        assert_eq!((answer.status, answer.code()), (400, -32600), "{wrong:.60}");
    }
}

/// C9: the same over stdio; who speaks another revision is refused.
#[tokio::test]
async fn c9_an_array_over_stdio_is_answered_by_an_array() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let config = Config::new().upstream(&upstream);
    let stdio = StdioGateway::prepare(&config);
    let client = Client::connect(&stdio.reach(), ARRAYS).await;
    client.tools_until("the upstream is there", |tools| tools.contains(&"up__wait".into())).await;
    let wire = client.stdio();
    wire.keep_lines();
    wire.write(array("g").as_bytes()).await;
    upstream.waiting_at("g").await;
    upstream.order(Order::Open("g".into())).await;
    let line = wire.lines.wait("an array of answers", |line| line.starts_with('[').then(|| line.clone())).await;
    assert_eq!(ids(&line), [json!("a"), json!("b"), json!(7)], "{line}");
    let refused = |line: &String| line.contains("-32600").then_some(());
    wire.write(many().as_bytes()).await;
    wire.lines.wait("too many are refused", refused).await;
    let stdio = StdioGateway::prepare(&config);
    let other = Client::connect(&stdio.reach(), LEGACY).await;
    other.stdio().keep_lines();
    other.stdio().write(array("g").as_bytes()).await;
    other.stdio().lines.wait("no arrays in this revision", refused).await;
}

/// C2: what the upstreams declare and how they are to be used, in one answer.
#[tokio::test]
async fn c2_capabilities_and_instructions_of_all_are_merged() {
    let plain =
        Script::new("plain", LEGACY).only_tools(&["echo"]).with(|script| script.instructions = "Plainly é.".into());
    let up = Script::new("up", OLDEST).with(|script| script.instructions = "Up it goes.".into());
    let (plain, up) = (Upstream::stdio(plain).await, Upstream::http(up).await);
    let gateway = Gateway::serve(&Config::new().upstream(&plain).upstream(&up)).await;
    for revision in [OLDEST, LEGACY] {
        let first = join(&gateway, revision).await;
        first.tools_until("both are there", |tools| tools.contains(&"plain__echo".into())).await;
        let client = Client::connect(&gateway.reach(), revision).await;
        let greeting = client.greeting.expect("a handshake").value();
        let capabilities = &greeting["capabilities"];
        assert_eq!(capabilities["resources"], json!({"subscribe": true, "listChanged": true}), "{greeting}");
        assert!(capabilities["tools"].is_object() && capabilities["prompts"].is_object(), "{greeting}");
        assert!(capabilities["logging"].is_object(), "{greeting}");
        let instructions = greeting["instructions"].as_str().expect("instructions");
        assert!(instructions.contains("Plainly é.") && instructions.contains("Up it goes."), "{greeting}");
    }
}

/// C10: experimental capabilities are shown where one upstream has them, and its methods reach it and are answered.
#[tokio::test]
async fn c10_what_is_experimental_reaches_the_one_that_has_it() {
    let lab = Script::new("up", LEGACY)
        .with(|script| script.capabilities = "{\"tools\":{},\"experimental\":{\"lab\":{\"n\":1e2}}}".into())
        .rule(Rule::on("experimental/run", vec![Act::Result("{\"ran\":1e2}".into())]));
    let (up, other) = (Upstream::http(lab).await, Upstream::stdio(Script::new("other", LEGACY)).await);
    let gateway = Gateway::serve(&Config::new().upstream(&up).upstream(&other)).await;
    for revision in [OLDEST, LEGACY, MODERN] {
        let client = join(&gateway, revision).await;
        client.tools_until("both are there", |tools| tools.contains(&"other__echo".into())).await;
        let answer = client.request(Request::new("experimental/run", "{\"how\":2e2}")).await;
        assert!(answer.result().contains("\"ran\":1e2"), "{revision} {}", answer.result());
        if !revision.is_modern() {
            let client = Client::connect(&gateway.reach(), revision).await;
            let greeting = client.greeting.expect("a handshake");
            assert!(greeting.result().contains("\"experimental\":{\"lab\":{\"n\":1e2}}"), "{}", greeting.result());
        }
    }
    assert!(up.received("experimental/run").await.0.contains("\"how\":2e2"));
}

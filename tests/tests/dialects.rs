//! What other systems say beside the published revisions: their codes, their batches, their texts and their chunks.

use trunkline_tests::client::{Client, Request, tool};
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

/// C8: chunks that follow an answer are told as progress where that was asked for, and end as one result.
#[tokio::test]
async fn c8_chunks_become_one_result_and_progress() {
    let chunk = |content: &str, is_final: bool| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/stream/chunk\",\"params\":{{\"streamId\":\"s1\",\
             \"chunk\":{{\"type\":\"text\",\"content\":\"{content}\",\"final\":{is_final}}}}}}}\n"
        )
    };
    let head = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"stream\":true,\"streamId\":\"s1\"}}\n";
    let acts = vec![
        Act::Write(head.into()),
        Act::Write(chunk("one ", false)),
        Act::Write(chunk("two ", false)),
        Act::Gate("last".into()),
        Act::Write(chunk("three", true)),
        Act::Hang,
    ];
    let script = Script::new("up", LEGACY).rule(Rule::on_tool("echo", acts));
    let upstream = Upstream::start(Way::Stdio, script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    for revision in [LEGACY, MODERN] {
        let client = join(&gateway, revision).await;
        let call = client.start(tool("up__echo", "{}").token("\"t\"")).await;
        assert_eq!(call.progress(1).await["message"], "one ");
        assert_eq!(call.progress(2).await["message"], "two ");
        upstream.order(Order::Release("last".into())).await;
        assert_eq!(call.answer().await.text(), "one two three", "{revision}");
        let silent = client.start(tool("up__echo", "{}")).await;
        upstream.order(Order::Release("last".into())).await;
        let notices = silent.notices.clone();
        assert_eq!(silent.answer().await.text(), "one two three");
        assert!(notices.all().is_empty(), "progress that was not asked for");
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
    assert_eq!(
        responses.iter().map(|one| one["id"].clone()).collect::<Vec<_>>(),
        ["a".into(), 7.into(), serde_json::json!("a")]
    );
    assert_eq!(responses[0]["result"]["content"][0]["text"], "{\"n\":1}");
    assert_eq!((&responses[1]["result"], &responses[2]["error"]["code"]), (&serde_json::json!({}), &(-32601).into()));
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

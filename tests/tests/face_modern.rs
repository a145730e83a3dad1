//! The stateless face over HTTP: status and code for every refusal, and what every result carries.

use std::sync::Arc;

use hyper::Method;
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::stream::EventStream;
use trunkline_tests::client::{Answer, Client, Request, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::Upstream;

const VERSION: &str = "2026-07-28";
const REGION: &str = concat!(
    r#"{"name":"deploy","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"#,
    r#""count":{"type":"integer","x-mcp-header":"Count"},"nonce":{"type":"string"}}}}"#
);

async fn stage() -> (Upstream, Gateway, Client) {
    let script = Script::new("up", Revision::MODERN).with(|script| script.raw_tools.push(REGION.into()));
    let upstream = Upstream::http(script).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), Revision::MODERN).await;
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"up__deploy".into())).await;
    (upstream, gateway, client)
}

/// A request by hand: the `_meta`, and the headers beside those that every POST has.
async fn send(gateway: &Gateway, method: &str, params: &str, meta: &str, headers: &[(&str, &str)]) -> Answer {
    let rest = params.strip_prefix('{').expect("an object");
    let comma = if rest == "}" { "" } else { "," };
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"x1\",\"method\":\"{method}\",\"params\":{{\"_meta\":{meta}{comma}{rest}}}"
    );
    let basic = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let headers: Vec<_> = basic.iter().chain(headers).copied().collect();
    exchange(&gateway.url, "POST", &headers, &body).await
}

fn meta(version: &str) -> String {
    format!(
        "{{\"io.modelcontextprotocol/protocolVersion\":\"{version}\",\"io.modelcontextprotocol/clientCapabilities\":{{}}}}"
    )
}

#[tokio::test]
async fn meta_must_be_there_and_whole() {
    let (_upstream, gateway, _client) = stage().await;
    let headers = [("mcp-protocol-version", VERSION), ("mcp-method", "tools/list")];
    let bad = [
        "{}".to_owned(),
        format!("{{\"io.modelcontextprotocol/protocolVersion\":\"{VERSION}\"}}"),
        meta(VERSION).replace("Capabilities\":{}", "Capabilities\":7"),
        meta(VERSION).replace(&format!("\"{VERSION}\""), "7"),
    ];
    for meta in bad {
        let answer = send(&gateway, "tools/list", "{}", &meta, &headers).await;
        assert_eq!((answer.status, answer.code()), (400, -32602), "{meta}");
        assert_eq!(answer.id(), "\"x1\"", "the id as it was");
    }
}

#[tokio::test]
async fn unknown_versions_are_refused_with_the_known_ones() {
    let (_upstream, gateway, _client) = stage().await;
    for version in ["2027-01-01", "2025-11-25", "nonsense"] {
        let headers = [("mcp-protocol-version", version), ("mcp-method", "tools/list")];
        let answer = send(&gateway, "tools/list", "{}", &meta(version), &headers).await;
        assert_eq!((answer.status, answer.code()), (400, -32022), "{version}");
        let data = answer.error_value()["data"].clone();
        assert_eq!(data["requested"], version);
        assert!(data["supported"].as_array().is_some_and(|known| known.iter().any(|known| known == VERSION)), "{data}");
    }
}

#[tokio::test]
async fn headers_must_agree_with_the_body() {
    let (_upstream, gateway, _client) = stage().await;
    let version = ("mcp-protocol-version", VERSION);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "up__echo");
    let bad: [&[(&str, &str)]; 10] = [
        &[method, name],
        &[version, name],
        &[version, method],
        &[("mcp-protocol-version", "2025-11-25"), method, name],
        &[version, ("mcp-method", "tools/list"), name],
        &[version, ("mcp-method", "Tools/Call"), name],
        &[version, method, ("mcp-name", "up__wait")],
        &[version, method, ("mcp-name", "UP__ECHO")],
        &[version, method, ("mcp-name", "=?base64?dXBfX2Vj?=")],
        &[version, method, ("mcp-name", "=?base64?dXBfX2VjaG8?=")],
    ];
    let call = "{\"name\":\"up__echo\",\"arguments\":{}}";
    for headers in bad {
        let answer = send(&gateway, "tools/call", call, &meta(VERSION), headers).await;
        assert_eq!((answer.status, answer.code()), (400, -32020), "{headers:?}");
    }
    for good in ["up__echo", "=?base64?dXBfX2VjaG8=?="] {
        let answer = send(&gateway, "tools/call", call, &meta(VERSION), &[version, method, ("mcp-name", good)]).await;
        assert_eq!(answer.status, 200, "{good}: {answer:?}");
    }
}

#[tokio::test]
async fn unknown_methods_are_not_found() {
    let (_upstream, gateway, client) = stage().await;
    for method in ["ping", "initialize", "resources/subscribe", "logging/setLevel", "tasks/list", "no/such"] {
        let answer = client.request(Request::new(method, "{}")).await;
        assert_eq!((answer.status, answer.code()), (404, -32601), "{method}");
    }
    let element = Request::new("tools/list", "{}").text(Revision::MODERN, "1");
    let headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let batch = exchange(&gateway.url, "POST", &headers, &format!("[{element}]")).await;
    assert_eq!((batch.status, batch.code()), (400, -32600), "a batch of stateless requests");
}

#[tokio::test]
async fn sessions_do_not_exist_here() {
    let (_upstream, gateway, _client) = stage().await;
    let headers = [
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/list"),
        ("mcp-session-id", "whatever"),
        ("last-event-id", "whatever"),
    ];
    let answer = send(&gateway, "tools/list", "{}", &meta(VERSION), &headers).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("mcp-session-id"), None, "none is made or echoed");
}

#[tokio::test]
async fn every_result_says_its_type_and_who_gives_it() {
    let (_upstream, _gateway, client) = stage().await;
    let requests = [
        (Request::new("server/discover", "{}"), true),
        (Request::new("tools/list", "{}"), true),
        (Request::new("resources/list", "{}"), true),
        (Request::new("resources/templates/list", "{}"), true),
        (Request::new("prompts/list", "{}"), true),
        (Request::new("resources/read", "{\"uri\":\"script://up/text\"}"), true),
        (tool("up__echo", "{}"), false),
        (Request::new("prompts/get", "{\"name\":\"up__greet\"}"), false),
    ];
    for (request, cacheable) in requests {
        let method = request.method.clone();
        let result = client.request(request).await.value();
        assert_eq!(result["resultType"], "complete", "{method}: {result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "trunkline", "{method}: {result}");
        assert_eq!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), cacheable, "{method}: {result}");
    }
}

#[tokio::test]
async fn discovery_offers_what_there_is() {
    let (_upstream, _gateway, client) = stage().await;
    let found = client.request(Request::new("server/discover", "{}")).await.value();
    assert!(found["supportedVersions"].as_array().is_some_and(|known| known.iter().any(|known| known == VERSION)));
    for list in ["tools", "resources", "prompts"] {
        assert_eq!(found["capabilities"][list]["listChanged"], true, "{list}: {found}");
    }
    assert!(found["capabilities"]["completions"].is_object(), "{found}");
}

#[tokio::test]
async fn annotated_arguments_stand_in_headers_on_both_sides() {
    let (upstream, gateway, _client) = stage().await;
    let call = "{\"name\":\"up__deploy\",\"arguments\":{\"region\":\"süd\",\"count\":3}}";
    let fixed = [("mcp-protocol-version", VERSION), ("mcp-method", "tools/call"), ("mcp-name", "up__deploy")];
    let with = |more: &[(&'static str, &'static str)]| fixed.iter().chain(more).copied().collect::<Vec<_>>();
    let region = ("mcp-param-region", "=?base64?c8O8ZA==?=");
    let bad: [&[(&str, &str)]; 4] = [
        &[],
        &[region],
        &[region, ("mcp-param-count", "4")],
        &[("mcp-param-region", "nord"), ("mcp-param-count", "3")],
    ];
    for more in bad {
        let answer = send(&gateway, "tools/call", call, &meta(VERSION), &with(more)).await;
        assert_eq!((answer.status, answer.code()), (400, -32020), "{more:?}");
    }
    let good = with(&[region, ("mcp-param-count", "3.0"), ("mcp-param-other", "ignored")]);
    let answer = send(&gateway, "tools/call", call, &meta(VERSION), &good).await;
    assert_eq!(answer.status, 200, "integers are compared as numbers: {answer:?}");
    let (_, headers) = upstream.received("tools/call").await;
    let has = |name: &str, value: &str| headers.iter().any(|(known, given)| known == name && given == value);
    assert!(has("mcp-param-region", "=?base64?c8O8ZA==?=") && has("mcp-param-count", "3"), "{headers:?}");
    assert!(has("mcp-name", "deploy"), "the upstream's own name: {headers:?}");
    assert!(!headers.iter().any(|(name, _)| name == "mcp-param-other"), "made anew, not forwarded");
}

#[tokio::test]
async fn a_stream_is_not_buffered_and_ends_with_the_answer() {
    let (upstream, _gateway, client) = stage().await;
    let open = client.start(tool("up__progress", "{\"steps\":1,\"gate\":\"g\"}").token("1")).await;
    open.progress(1).await;
    upstream.order(Order::Open("g".into())).await;
    let answer = open.answer().await;
    assert!(answer.is_stream());
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert!(answer.events.iter().all(|event| event.id.is_none()), "nothing here can be resumed");
    let last = answer.events.iter().rev().find_map(|event| event.data.clone()).expect("events");
    assert!(last.contains("\"result\""), "the answer is the last event");
}

#[tokio::test]
async fn a_listen_hears_only_what_it_asked_for() {
    let (upstream, _gateway, client) = stage().await;
    let listening = |event: &Event| matches!(event.what, What::Listening(_)).then_some(());
    upstream.events.wait("the gateway listens at the upstream", listening).await;
    let ask = |filter: &str| Request::new("subscriptions/listen", &format!("{{\"notifications\":{{{filter}}}}}"));
    let tools = client.start(ask("\"toolsListChanged\":true").id("\"L\"")).await;
    let prompts = client.start(ask("\"promptsListChanged\":true").id("\"L\"")).await;
    for open in [&tools, &prompts] {
        let first = open.notices.wait("the acknowledgement", |frame| Some(frame.clone())).await;
        assert!(first.is_notice("notifications/subscriptions/acknowledged"), "{first:?}");
    }
    client.call("up__touch", "{}").await.text();
    let changed = tools.notices.wait_from(1, "the change", |frame| Some(frame.clone())).await;
    assert!(changed.is_notice("notifications/tools/list_changed"), "{changed:?}");
    let tag = changed.meta("io.modelcontextprotocol/subscriptionId").map(|raw| raw.get().to_owned());
    assert_eq!(tag.as_deref(), Some("\"L\""));
    assert_eq!(prompts.notices.all().len(), 1, "the other one hears nothing: {:?}", prompts.notices.all());
}

#[tokio::test]
async fn a_lasting_stream_is_kept_alive() {
    let upstream = Upstream::http(Script::new("up", Revision::MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream).server("sse_keepalive = \"200ms\"")).await;
    let client = Client::connect(&gateway.reach(), Revision::MODERN).await;
    client.tools_until("the upstream is up", |tools| tools.contains(&"up__wait".into())).await;
    let call = tool("up__wait", "{\"gate\":\"g\"}").capabilities("{}").text(Revision::MODERN, "1");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "up__wait"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    // The stream opens some time after the call, before there is anything to tell.
    let open = EventStream::open(client.http(), Method::POST, &headers, &call, Arc::new(Tape::default())).await;
    for _ in 0..2 {
        let mark = open.events.mark();
        open.events.wait_from(mark, "a comment", |event| event.as_ref()?.comment.clone()).await;
    }
    upstream.order(Order::Open("g".into())).await;
    open.frame("the answer", |frame| frame.is_answer().then_some(())).await;
}

//! Traces: the spans of a call, whose child each is, and the context that goes on with it, whether spans are made or not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_tests::client::{Client, Reach, Request, tool};
use trunkline_tests::collector::{Collector, Span};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::What;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

/// The context of a caller that no other test has.
struct Caller {
    trace: String,
    span: String,
}

impl Caller {
    fn new() -> Caller {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Caller { trace: format!("{:016x}{number:016x}", std::process::id()), span: format!("{number:016x}") }
    }

    fn parent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.span)
    }

    /// A request that bears it in `_meta`.
    fn in_meta(&self, request: Request) -> Request {
        request
            .meta("traceparent", &format!("\"{}\"", self.parent()))
            .meta("tracestate", "\"vendor=of-the-caller\"")
            .meta("baggage", "\"tenant=blue,note=a%20b\"")
    }

    /// The same as headers of each request.
    fn in_headers(&self, client: &Client) {
        client.http().always("traceparent", &self.parent());
        client.http().always("tracestate", "vendor=of-the-caller");
        client.http().always("baggage", "tenant=blue,note=a%20b");
    }
}

fn traced(collector: &Collector, service: &str, more: &str) -> String {
    format!("[traces]\nendpoint = \"{}\"\nservice_name = \"{service}\"\n{more}", collector.url)
}

/// What an upstream got of the last call: the trace context in `_meta`, and in headers.
async fn received(upstream: &Upstream) -> [BTreeMap<String, String>; 2] {
    const KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];
    let events = upstream.seen().await;
    let calls = events.iter().rev().find_map(|event| match &event.what {
        What::Frame { raw, headers } if raw.contains("\"tools/call\"") => Some((raw.clone(), headers.clone())),
        _ => None,
    });
    let (raw, headers) = calls.expect("a call came");
    let frame: serde_json::Value = serde_json::from_str(&raw).expect("a frame is JSON");
    let meta = &frame["params"]["_meta"];
    let of_meta = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), meta[key].as_str()?.to_owned())));
    let of_headers = headers.into_iter().filter(|(name, _)| KEYS.contains(&name.as_str()));
    [of_meta.collect(), of_headers.collect()]
}

/// The one span of this service and kind.
fn one<'a>(spans: &'a [Span], service: &str, kind: u64) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.service == service && span.kind == kind);
    let span = found.next().unwrap_or_else(|| panic!("no span of {service}: {spans:?}"));
    assert!(found.next().is_none(), "{spans:?}");
    span
}

/// One call through two gateways, and what came of it.
async fn through_two(client_revision: Revision, upstream_revision: Revision, way: Way, is_in_meta: bool) {
    let collector = Collector::start().await;
    let up = Upstream::start(way, Script::new("up", upstream_revision)).await;
    let below = Gateway::serve(&Config::new().upstream(&up).section(&traced(&collector, "below", ""))).await;
    let chained = format!("[upstreams.below]\nurl = \"{}\"", below.url);
    let config = Config::new().section(&chained).section(&traced(&collector, "above", ""));
    let above = Gateway::serve(&config).await;
    let client = Client::connect(&above.reach(), client_revision).await;
    let name = "below__up__echo";
    client.tools_until("the tool is listed", |tools| tools.contains(&name.into())).await;
    let caller = Caller::new();
    let call = tool(name, "{\"canary\":\"argument-canary\"}");
    let call = if is_in_meta { caller.in_meta(call) } else { call };
    if !is_in_meta {
        caller.in_headers(&client);
    }
    client.request(call).await.text();
    let what = format!("{client_revision} to {upstream_revision} over {way:?}");
    let spans = collector.trace(&caller.trace, 4).await;
    let [first, second] = [one(&spans, "above", SERVER), one(&spans, "above", CLIENT)];
    let [third, fourth] = [one(&spans, "below", SERVER), one(&spans, "below", CLIENT)];
    let parents = [first, second, third, fourth].map(|span| span.parent.as_str());
    assert_eq!(parents, [&*caller.span, &first.id, &second.id, &third.id], "{what}: {spans:?}");
    for span in &spans {
        assert_eq!((&*span.state, span.status), ("vendor=of-the-caller", 0), "{what}: {span:?}");
        assert_eq!(span.attributes["mcp.method.name"], "tools/call", "{what}");
        assert!(span.time.0 > 0 && span.time.0 <= span.time.1, "{what}: {span:?}");
        // Who made its parent is another process, where it is the side that receives.
        assert_eq!(span.flags & 0x301, if span.kind == SERVER { 0x301 } else { 0x101 }, "{what}: {span:?}");
    }
    assert_eq!((&*first.name, &*third.name), ("tools/call below__up__echo", "tools/call up__echo"), "{what}");
    assert_eq!(fourth.attributes["gen_ai.tool.name"], "echo", "{what}: the name that the upstream gives");
    assert_eq!(fourth.attributes["mcp.protocol.version"], upstream_revision.text(), "{what}");
    assert_eq!(fourth.attributes["trunkline.upstream"], "up", "{what}");
    let transport = if way == Way::Stdio { "pipe" } else { "tcp" };
    assert_eq!(fourth.attributes["network.transport"], transport, "{what}");
    assert_eq!(fourth.attributes.contains_key("server.port"), way != Way::Stdio, "{what}");
    // What goes on names the last span, and leaves the rest as it came.
    let [meta, headers] = received(&up).await;
    assert_eq!(meta["traceparent"], format!("00-{}-{}-01", caller.trace, fourth.id), "{what}");
    assert_eq!((&*meta["tracestate"], &*meta["baggage"]), ("vendor=of-the-caller", "tenant=blue,note=a%20b"), "{what}");
    assert_eq!(headers, if way == Way::Http { meta } else { BTreeMap::new() }, "{what}");
    let sent = collector.requests.all();
    assert!(sent.iter().all(|(_, body)| !body.contains("argument-canary") && !body.contains("tenant=blue")), "{what}");
}

#[tokio::test]
async fn a_call_through_two_gateways_is_one_trace_over_http_in_both_eras() {
    through_two(LEGACY, LEGACY, Way::Http, true).await;
    through_two(Revision::MODERN, Revision::MODERN, Way::Http, false).await;
}

#[tokio::test]
async fn a_call_through_two_gateways_is_one_trace_over_stdio_in_both_eras() {
    through_two(LEGACY, Revision::MODERN, Way::Stdio, false).await;
    through_two(Revision::MODERN, LEGACY, Way::Stdio, true).await;
}

#[tokio::test]
async fn the_message_names_the_parent_and_the_context_of_its_transport_is_a_link() {
    let collector = Collector::start().await;
    let up = Upstream::http(Script::new("up", Revision::MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up).section(&traced(&collector, "one", ""))).await;
    let client = Client::open(&gateway.reach(), Revision::MODERN).await;
    client.tools_until("the tool is listed", |tools| tools.contains(&"up__echo".into())).await;
    let (of_message, of_transport) = (Caller::new(), Caller::new());
    of_transport.in_headers(&client);
    client.request(of_message.in_meta(tool("up__echo", "{}"))).await.text();
    let spans = collector.trace(&of_message.trace, 2).await;
    let server = one(&spans, "one", SERVER);
    assert_eq!(server.parent, of_message.span, "{server:?}");
    assert_eq!(server.links, [(of_transport.trace.clone(), of_transport.span.clone())], "{server:?}");
    // A call that bears no context begins a trace of its own; one that fails says so, without a word of the upstream.
    let alone = Client::open(&gateway.reach(), Revision::MODERN).await;
    assert_eq!(alone.call("up__fail", "{}").await.code(), 4242);
    let is_failed = |span: &Span| (span.name == "tools/call up__fail").then(|| span.clone());
    let failed = collector.spans.wait("the failed call comes", is_failed).await;
    assert_eq!((&*failed.parent, failed.status, &*failed.attributes["error.type"]), ("", 2, "4242"), "{failed:?}");
    // Names that a client invents make no names of spans.
    alone.call("up__invented-canary", "{}").await;
    assert!(gateway.stop().await.success());
    let sent: String = collector.requests.all().into_iter().map(|(_, body)| body).collect();
    assert!(!sent.contains("invented-canary") && sent.contains("execute_tool"));
}

/// What an upstream gets where spans are made of nothing: of a context in `_meta`, and of one in headers.
async fn passed_on(config: Config, up: &Upstream) -> [(Caller, [BTreeMap<String, String>; 2]); 2] {
    let gateway = Gateway::serve(&config.upstream(up)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the tool is listed", |tools| tools.contains(&"up__echo".into())).await;
    let (first, second) = (Caller::new(), Caller::new());
    client.request(first.in_meta(tool("up__echo", "{}"))).await.text();
    let of_meta = received(up).await;
    second.in_headers(&client);
    client.call("up__echo", "{}").await.text();
    let of_headers = received(up).await;
    assert!(gateway.stop().await.success());
    [(first, of_meta), (second, of_headers)]
}

#[tokio::test]
async fn without_sampling_nothing_is_sent_and_the_context_goes_on() {
    let collector = Collector::start().await;
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let never = traced(&collector, "never", "sample_ratio = 0\nparent_based = false");
    for (caller, [meta, headers]) in passed_on(Config::new().section(&never), &up).await {
        let parent = &meta["traceparent"];
        assert!(parent.starts_with(&format!("00-{}-", caller.trace)) && parent.ends_with("-00"), "{parent}");
        assert_eq!(meta["baggage"], "tenant=blue,note=a%20b");
        assert_eq!(headers, meta);
    }
    assert!(collector.requests.all().is_empty());
}

#[tokio::test]
async fn where_traces_are_off_the_context_of_a_caller_goes_on_as_it_came_in_meta_and_in_headers() {
    let up = Upstream::http(Script::new("up", Revision::MODERN)).await;
    // A variable that is there for other programs turns nothing on.
    let collector = Collector::start().await;
    let off = Config::new().env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url);
    for (caller, [meta, headers]) in passed_on(off, &up).await {
        assert_eq!((&*meta["traceparent"], &*meta["tracestate"]), (&*caller.parent(), "vendor=of-the-caller"));
        assert_eq!(headers, meta);
    }
    assert!(collector.requests.all().is_empty());
}

#[tokio::test]
async fn a_client_on_stdio_is_traced_by_what_opentelemetrys_variables_say() {
    let collector = Collector::start().await;
    let up = Upstream::stdio(Script::new("up", LEGACY)).await;
    let config = Config::new()
        .upstream(&up)
        .section("[traces]\nenabled = true")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=header-canary")
        .env("OTEL_SERVICE_NAME", "on-stdio");
    let gateway = StdioGateway::prepare(&config);
    let reach: Reach = gateway.reach();
    let client = Client::connect(&reach, LEGACY).await;
    client.tools_until("the tool is listed", |tools| tools.contains(&"up__echo".into())).await;
    let caller = Caller::new();
    client.request(caller.in_meta(tool("up__echo", "{}"))).await.text();
    let spans = collector.trace(&caller.trace, 2).await;
    assert_eq!(one(&spans, "on-stdio", CLIENT).parent, one(&spans, "on-stdio", SERVER).id);
    let (head, _) = collector.requests.all().remove(0);
    assert!(head.starts_with("post /v1/traces http/1.1\r\n") && head.contains("x-api-key: header-canary"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
}

#[tokio::test]
async fn a_collector_that_is_down_costs_calls_nothing_and_is_told_of_once() {
    let collector = Collector::start().await;
    collector.answers(400);
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&up).section(&traced(&collector, "one", ""))).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the tool is listed", |tools| tools.contains(&"up__echo".into())).await;
    client.call("up__echo", "{}").await.text();
    gateway.says(&["the collector of traces", "takes none", "HTTP 400"]).await;
    client.call("up__echo", "{}").await.text();
    let twice = || async { (collector.requests.mark() >= 2).then_some(()) };
    trunkline_tests::within::until("a second batch is refused", twice).await;
    let is_dropped = |page: &str| {
        let dropped =
            page.lines().find_map(|line| line.strip_prefix("trunkline_trace_spans_total{outcome=\"dropped\"} "));
        dropped.is_some_and(|count| count.parse::<f64>().is_ok_and(|count| count >= 4.0))
    };
    gateway.look_until("/metrics", "what was lost is counted", is_dropped).await;
    collector.answers(200);
    let caller = Caller::new();
    client.request(caller.in_meta(tool("up__echo", "{}"))).await.text();
    collector.trace(&caller.trace, 2).await;
    gateway.says(&["traces are sent again"]).await;
    let said = gateway.stderr.all().iter().filter(|line| line.contains("the collector of traces")).count();
    assert_eq!(said, 1);
}

//! What the metrics say of the way to an upstream, of clients, lists and the configuration; and the spans of a call that was sent twice.

use trunkline_tests::client::{Client, Reach, http, tool};
use trunkline_tests::collector::{Collector, Span};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::process::{GATEWAY, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::tape::Tape;
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;

/// The value of a series as it is written.
fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

async fn page(gateway: &Gateway) -> String {
    String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned()
}

#[tokio::test]
async fn a_call_that_is_sent_twice_is_two_attempts_one_retry_and_two_spans() {
    let collector = Collector::start().await;
    let up = Upstream::http(Script::new("up", LEGACY)).await;
    let traces = format!("[traces]\nendpoint = \"{}\"\n", collector.url);
    let gateway = Gateway::serve(&Config::new().upstream(&up).section(&traces)).await;
    let client = Client::connect(&gateway.reach(), Revision::MODERN).await;
    client.tools_until("it is listed", |tools| tools.contains(&"up__echo".into())).await;
    client.call("up__echo", "{}").await.text();
    up.order(Order::ForgetSessions).await;
    client.call("up__echo", "{}").await.text();
    let page = page(&gateway).await;
    let requests = |outcome: &str| {
        let labels = format!("upstream=\"up\",method=\"tools/call\",outcome=\"{outcome}\"");
        value(&page, &format!("trunkline_upstream_requests_total{{{labels}}}"))
    };
    assert_eq!([requests("ok"), requests("upstream_unavailable")], [Some(2.0), Some(1.0)], "{page}");
    let retries = |reason: &str| {
        value(&page, &format!("trunkline_upstream_retries_total{{upstream=\"up\",reason=\"{reason}\"}}"))
    };
    assert_eq!([retries("session_lost"), retries("revision")], [Some(1.0), Some(0.0)], "{page}");
    let timed = "trunkline_upstream_request_duration_seconds_count{upstream=\"up\",method=\"tools/call\"}";
    assert_eq!(value(&page, timed), Some(3.0), "{page}");
    let lost = |span: &Span| {
        let is_it = span.attributes.get("error.type").is_some_and(|error| error == "session_lost");
        is_it.then(|| span.clone())
    };
    let first = collector.spans.wait("the span of the first attempt", lost).await;
    let spans = collector.trace(&first.trace, 3).await;
    let server = spans.iter().find(|span| span.kind == 2).expect("a span of the call");
    let attempts: Vec<_> = spans.iter().filter(|span| span.kind == 3).collect();
    assert_eq!(attempts.len(), 2, "{spans:?}");
    assert!(attempts.iter().all(|span| span.parent == server.id), "{spans:?}");
    assert_eq!(server.attributes["network.transport"], "tcp", "{server:?}");
    for span in &attempts {
        let known = ["gen_ai.tool.name", "network.transport", "mcp.protocol.version"].map(|key| &*span.attributes[key]);
        assert_eq!(known, ["echo", "tcp", LEGACY.text()], "{span:?}");
    }
    assert_eq!(attempts.iter().filter(|span| span.attributes.contains_key("error.type")).count(), 1, "{spans:?}");
}

#[tokio::test]
async fn clients_lists_workers_and_the_configuration_are_measured() {
    let (one, other) =
        (Upstream::http(Script::new("one", LEGACY)).await, Upstream::stdio(Script::new("two", LEGACY)).await);
    let filter = "[upstreams.two.tools]\ndeny = [\"echo\"]\n";
    let of = |more: &str| Config::new().upstream(&one).upstream(&other).section(filter).section(more);
    let gateway = Gateway::serve(&of("[metrics]\nper_tool = true\n")).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    let all = |tools: &[String]| tools.contains(&"one__echo".into()) && tools.contains(&"two__wait".into());
    client.tools_until("all are listed", all).await;
    let before = page(&gateway).await;
    let mut wrong = Vec::new();
    for (series, least) in [
        ("trunkline_http_connections{face=\"http\"}", 1.0),
        ("trunkline_client_info{client=\"_other\",version_major=\"\",protocol_version=\"2025-11-25\"}", 1.0),
        ("trunkline_catalog_refresh_total{upstream=\"one\",outcome=\"ok\"}", 1.0),
        ("trunkline_catalog_refresh_total{upstream=\"one\",outcome=\"failed\"}", 0.0),
        ("trunkline_catalog_read_timestamp_seconds{upstream=\"two\"}", 1e9),
        ("trunkline_catalog_bytes{upstream=\"two\"}", 100.0),
        ("trunkline_tools_hidden{reason=\"filtered\"}", 1.0),
        ("trunkline_tools_hidden{reason=\"contested\"}", 0.0),
        ("trunkline_name_conflicts", 0.0),
        ("trunkline_upstream_connections{upstream=\"one\",state=\"idle\"}", 0.0),
        ("trunkline_breaker_transitions_total{upstream=\"one\",to=\"open\"}", 0.0),
        ("trunkline_config_last_reload_timestamp_seconds", 1e9),
        ("trunkline_config_hash", 1.0),
        ("trunkline_tokio_workers", 1.0),
        ("trunkline_tokio_global_queue_depth", 0.0),
        ("trunkline_tokio_busy_seconds_total", 1e-6),
        ("trunkline_tokio_parks_total", 1.0),
        // Before the first call of it.
        ("trunkline_tool_calls_total{upstream=\"one\",tool=\"one__echo\",outcome=\"ok\"}", 0.0),
    ] {
        if value(&before, series).is_none_or(|value| value < least) {
            wrong.push(format!("{series} is {:?}", value(&before, series)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?} in\n{before}");
    let none = value(&before, "trunkline_tool_calls_total{upstream=\"two\",tool=\"two__echo\",outcome=\"ok\"}");
    assert_eq!(none, None, "a tool that nobody can call");
    // The session ends.
    let id = client.http().session_id().expect("it has one");
    assert!(http::exchange(&gateway.url, "DELETE", &[("mcp-session-id", &id)], "").await.status < 300);
    let lasted = |page: &str| value(page, "trunkline_session_duration_seconds_count") == Some(1.0);
    gateway.look_until("/metrics", "the session is timed", lasted).await;
    let program = "trunkline_client_info{client=\"_other\",version_major=\"\",protocol_version=\"2025-11-25\"}";
    gateway.look_until("/metrics", "nobody has that program", |page| value(page, program) == Some(0.0)).await;
    gateway.configure(&of("[metrics]\nper_tool = true\n[limits]\ncalls = \"9/s\"\n"));
    let hash = |page: &str| value(page, "trunkline_config_hash");
    gateway
        .look_until("/metrics", "another configuration has another number", |page| hash(page) != hash(&before))
        .await;
}

#[tokio::test]
async fn breakers_tokens_notices_and_connections_in_use_are_measured() {
    let failing = Act::status(500, "text/plain", "no");
    let sick = Upstream::http(Script::new("sick", LEGACY).rule(Rule::on_tool("echo", vec![failing]))).await;
    let lent = Upstream::http(Script::new("lent", Revision::MODERN)).await;
    let child = Upstream::stdio(Script::new("child", LEGACY)).await;
    let token = r#"args = ['{"token":"a-token-of-a-command","expires_in":600}']"#;
    let auth = format!("auth = {{ type = \"exec\", command = \"echo\", {token} }}");
    let config =
        Config::new().upstream_with(&sick, "breaker = { failures = 2 }").upstream_with(&lent, &auth).upstream(&child);
    let gateway = Gateway::serve(&config).await;
    let client = Client::connect(&gateway.reach(), Revision::MODERN).await;
    let all = ["sick__echo", "lent__wait", "child__echo"];
    client.tools_until("all are listed", |tools| all.iter().all(|one| tools.contains(&(*one).into()))).await;
    for _ in 0..3 {
        client.call_once("sick__echo", "{}").await;
    }
    let in_use = |page: &str| value(page, "trunkline_upstream_connections{upstream=\"lent\",state=\"in_use\"}");
    let before = in_use(&page(&gateway).await).expect("it is counted");
    let _open = client.start(tool("lent__wait", "{\"gate\":\"never\"}")).await;
    lent.waiting_at("never").await;
    gateway.look_until("/metrics", "one more is in use", |page| in_use(page) == Some(before + 1.0)).await;
    let message = "{\"level\":\"info\",\"data\":\"a word\"}";
    child.order(Order::Notify("notifications/message".into(), message.into())).await;
    let told = "trunkline_notifications_total{upstream=\"child\",method=\"notifications/message\"}";
    let page = gateway.look_until("/metrics", "the notice is counted", |page| value(page, told) == Some(1.0)).await;
    let mut wrong = Vec::new();
    for (series, is_right) in [
        ("trunkline_breaker_transitions_total{upstream=\"sick\",to=\"open\"}", 1.0..2.0),
        ("trunkline_breaker_transitions_total{upstream=\"sick\",to=\"closed\"}", 0.0..1.0),
        ("trunkline_breaker_state{upstream=\"sick\"}", 2.0..3.0),
        ("trunkline_breaker_state{upstream=\"lent\"}", 0.0..1.0),
        ("trunkline_oauth_refresh_total{upstream=\"lent\",result=\"ok\"}", 1.0..2.0),
        ("trunkline_oauth_refresh_total{upstream=\"lent\",result=\"failed\"}", 0.0..1.0),
        ("trunkline_oauth_token_expiry_seconds{upstream=\"lent\"}", 300.0..600.5),
        ("trunkline_upstream_connections{upstream=\"lent\",state=\"in_use\"}", 1.0..9.0),
        ("trunkline_upstream_connections{upstream=\"sick\",state=\"in_use\"}", 0.0..9.0),
    ] {
        if value(&page, series).is_none_or(|value| !is_right.contains(&value)) {
            wrong.push(format!("{series} is {:?}", value(&page, series)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?} in\n{page}");
}

/// The messages of a leg of the gateway: from clients or upstreams, and to them.
async fn messages(gateway: &Gateway, leg: &str) -> [u64; 2] {
    let page = page(gateway).await;
    ["in", "out"].map(|direction| {
        let series = format!("trunkline_messages_total{{leg=\"{leg}\",direction=\"{direction}\"}}");
        value(&page, &series).unwrap_or_else(|| panic!("there is no {series} in\n{page}")) as u64
    })
}

/// So many messages, and a few: an upstream may be asked for its lists, or whether it is there.
fn about(calls: u64, counted: [[u64; 2]; 2]) -> bool {
    counted[0].iter().zip(counted[1]).all(|(before, after)| (calls..calls + 15).contains(&(after - before)))
}

#[tokio::test]
async fn names_that_two_upstreams_have_are_measured_as_conflicts_and_their_tools_as_hidden() {
    let (one, other) =
        (Upstream::http(Script::new("one", LEGACY)).await, Upstream::http(Script::new("two", LEGACY)).await);
    let flat = Config::new().section("[naming]\nstrategy = \"flat\"").upstream(&one).upstream(&other);
    let gateway = Gateway::serve(&flat).await;
    let is_hidden = |page: &str| {
        let [hidden, conflicts] = ["trunkline_tools_hidden{reason=\"contested\"}", "trunkline_name_conflicts"];
        value(page, hidden) >= Some(1.0) && value(page, conflicts) >= Some(1.0)
    };
    gateway.look_until("/metrics", "the second has the names of the first", is_hidden).await;
}

const CALLS: u64 = 20;

/// The messages to and from an upstream over HTTP that are no calls and answers.
async fn are_counted_beside_calls(gateway: &Gateway, client: &Client, upstream: &Upstream) {
    // What an upstream refuses by a status, with a message all the same; and what it is told of calls that are withdrawn.
    let before = messages(gateway, "upstream").await;
    for _ in 0..CALLS {
        assert_eq!(client.call_once("up1__tool_error", "{}").await.code(), -32602);
    }
    let after = messages(gateway, "upstream").await;
    assert!(about(CALLS, [before, after]), "of refusals: {before:?} {after:?}");
    for at in 0..CALLS {
        let open = client.start(tool("up1__wait", &format!("{{\"gate\":\"g{at}\"}}"))).await;
        upstream.waiting_at(&format!("g{at}")).await;
        open.cancel().await;
    }
    let withdrawn = |page: &str| {
        let series = "trunkline_messages_total{leg=\"upstream\",direction=\"out\"}";
        value(page, series).is_some_and(|sent| sent as u64 >= after[1] + 2 * CALLS)
    };
    gateway.look_until("/metrics", "the calls and their withdrawals are counted", withdrawn).await;
    // What an upstream tells on streams beside the calls: each of its sessions has one.
    let told = |page: &str| {
        let series = "trunkline_notifications_total{upstream=\"up1\",method=\"notifications/message\"}";
        value(page, series).unwrap_or_default() as u64
    };
    let before = messages(gateway, "upstream").await[0];
    for _ in 0..CALLS {
        let message = "{\"level\":\"info\",\"data\":\"a word\"}";
        upstream.order(Order::Notify("notifications/message".into(), message.into())).await;
    }
    let page = gateway.look_until("/metrics", "all of it is told", |page| told(page) >= CALLS).await;
    let after = messages(gateway, "upstream").await[0];
    assert!(after - before >= told(&page), "of a stream: {before} {after}, {} told", told(&page));
}

#[tokio::test]
async fn messages_are_counted_on_both_legs_over_every_transport_and_those_of_an_array_one_by_one() {
    let ways = [Way::Stdio, Way::Http, Way::Sse, Way::WebSocket];
    let (mut upstreams, mut config) = (Vec::new(), Config::new());
    for (at, way) in ways.into_iter().enumerate() {
        let refused = Act::status(
            400,
            "application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"error\":{\"code\":-32602,\"message\":\"no\"}}",
        );
        let script = Script::new(&format!("up{at}"), LEGACY).rule(Rule::on_tool("tool_error", vec![refused]));
        let upstream = Upstream::start(way, script).await;
        config = config.upstream(&upstream);
        upstreams.push(upstream);
    }
    let gateway = Gateway::serve(&config).await;
    let all = |tools: &[String]| (0..4).all(|at| tools.contains(&format!("up{at}__echo")));
    let first = Client::connect(&gateway.reach(), LEGACY).await;
    first.tools_until("all are listed", all).await;
    let clients = [
        first,
        Client::connect(&gateway.reach(), Revision::MODERN).await,
        Client::connect(&gateway.reach_by(Way::Sse), LEGACY).await,
        Client::connect(&gateway.reach_by(Way::WebSocket), LEGACY).await,
    ];
    for (at, client) in clients.iter().enumerate() {
        let before = [messages(&gateway, "client").await, messages(&gateway, "upstream").await];
        for _ in 0..CALLS {
            client.call(&format!("up{at}__echo"), "{}").await.text();
        }
        let after = [messages(&gateway, "client").await, messages(&gateway, "upstream").await];
        for leg in [0, 1] {
            let counted = [before[leg], after[leg]];
            assert!(about(CALLS, counted), "{:?} of {}: {counted:?}", ways[at], ["client", "upstream"][leg]);
        }
    }
    // An array and its answer.
    let guest = Client::connect(&gateway.reach(), Revision::R2025_03_26).await;
    let before = messages(&gateway, "client").await;
    let ping = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
    let pings = format!("[{}]", (0..CALLS).map(ping).collect::<Vec<_>>().join(","));
    let answer = guest.http().post(Vec::new(), pings, &Tape::default()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let after = messages(&gateway, "client").await;
    assert!(about(CALLS, [before, after]), "of an array: {before:?} {after:?}");
    // By lines over the control socket.
    let file = gateway.file.display().to_string();
    let mut shared = Program::ours(GATEWAY, &["stdio", "--shared", "--config", &file]);
    let home = gateway.runtime().parent().expect("it is in a folder").to_owned();
    for (name, path) in
        [("HOME", home.clone()), ("XDG_RUNTIME_DIR", gateway.runtime()), ("XDG_CACHE_HOME", home.join("cache"))]
    {
        shared.env.push((name.to_owned(), path.display().to_string()));
    }
    let joined = Client::connect(&Reach::Child(shared), LEGACY).await;
    let before = messages(&gateway, "client").await;
    for _ in 0..CALLS {
        joined.call("up0__echo", "{}").await.text();
    }
    let after = messages(&gateway, "client").await;
    assert!(about(CALLS, [before, after]), "of lines: {before:?} {after:?}");
    are_counted_beside_calls(&gateway, &clients[0], &upstreams[1]).await;
}

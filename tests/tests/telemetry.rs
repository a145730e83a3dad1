//! What the admin address counts, by name and labels, and what it says while the gateway drains.

use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::Order;
use trunkline_tests::log;
use trunkline_tests::process::{self, Program};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;

const LEGACY: Revision = Revision::R2025_11_25;

/// The value of a series: its name, and each of these labels among its own.
fn value(page: &str, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    page.lines().find_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (own, inside) = series.split_once('{').unwrap_or((series, "}"));
        let inside: Vec<&str> = inside.trim_end_matches('}').split("\",").collect();
        let has = |(label, wanted): &(&str, &str)| {
            inside.iter().any(|pair| pair.trim_end_matches('"') == format!("{label}=\"{wanted}"))
        };
        (own == name && labels.iter().all(has)).then(|| value.parse().ok())?
    })
}

#[tokio::test]
async fn calls_upstreams_and_sessions_are_counted_by_their_names() {
    let child = Upstream::stdio(Script::new("child", LEGACY)).await;
    let host = Upstream::http(Script::new("host", Revision::MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&child).upstream(&host)).await;
    let session = Client::connect(&gateway.reach(), LEGACY).await;
    let _ear = session.listen(&[]).await;
    let both = |tools: &[String]| tools.contains(&"child__echo".into()) && tools.contains(&"host__echo".into());
    session.tools_until("both are listed", both).await;
    let stateless = Client::open(&gateway.reach(), Revision::MODERN).await;
    for _ in 0..3 {
        session.call("child__echo", "{}").await.text();
        stateless.call("host__echo", "{}").await.text();
    }
    session.call("child__tool_error", "{}").await.text();
    assert_eq!(stateless.call("host__fail", "{}").await.code(), 4242);
    assert_eq!(stateless.call("nobody__echo", "{}").await.code(), -32602);
    // A call that takes longer may have a stream of its own.
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    assert_eq!(value(&page, "trunkline_streams", &[("kind", "sse")]), Some(1.0), "{page}");
    let open = session.start(tool("child__wait", "{\"gate\":\"g\"}")).await;
    child.waiting_at("g").await;
    let calls = "trunkline_requests_total";
    let is_under_way = |page: &str| value(page, "trunkline_inflight_requests", &[("upstream", "child")]) == Some(1.0);
    let page = gateway.look_until("/metrics", "a call is under way", is_under_way).await;
    let wanted = [
        (calls, vec![("method", "tools/call"), ("upstream", "child"), ("outcome", "ok")], 3.0),
        (calls, vec![("method", "tools/call"), ("upstream", "host"), ("outcome", "ok")], 3.0),
        (calls, vec![("method", "tools/call"), ("upstream", "child"), ("outcome", "tool_error")], 1.0),
        (calls, vec![("method", "tools/call"), ("upstream", "host"), ("outcome", "rpc_error")], 1.0),
        ("trunkline_request_duration_seconds_count", vec![("method", "tools/call"), ("upstream", "child")], 4.0),
        ("trunkline_upstream_up", vec![("upstream", "child")], 1.0),
        ("trunkline_upstream_state", vec![("upstream", "host"), ("state", "ready")], 1.0),
        ("trunkline_upstream_state", vec![("upstream", "host"), ("state", "starting")], 0.0),
        ("trunkline_upstream_start_duration_seconds_count", vec![("upstream", "child")], 1.0),
        ("trunkline_sessions", vec![("transport", "http")], 1.0),
        ("trunkline_catalog_items", vec![("upstream", "child"), ("kind", "tools")], 6.0),
    ];
    for (name, labels, wanted) in wanted {
        assert_eq!(value(&page, name, &labels), Some(wanted), "{name} {labels:?} in\n{page}");
    }
    let overhead = value(&page, "trunkline_overhead_seconds_count", &[("method", "tools/call")]);
    assert!(overhead.is_some_and(|count| count >= 8.0), "the gateway's own share: {page}");
    assert!(value(&page, "trunkline_build_info", &[]).is_some(), "{page}");
    assert!(!page.contains("nobody"), "a name that a client made up is no label: {page}");
    child.order(Order::Open("g".into())).await;
    open.answer().await.text();
    let (pid, _) = child.started(0).await;
    process::signal(pid, "KILL");
    let restarts = [("upstream", "child"), ("reason", "crash")];
    let is_counted = |page: &str| value(page, "trunkline_upstream_restarts_total", &restarts) == Some(1.0);
    gateway.look_until("/metrics", "the restart is counted", is_counted).await;
}

#[tokio::test]
async fn processes_are_measured_and_counters_begin_at_nothing() {
    let child = Upstream::stdio(Script::new("child", LEGACY)).await;
    let host = Upstream::http(Script::new("host", Revision::MODERN)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&child).upstream(&host)).await;
    child.started(0).await;
    let has_child = |page: &str| value(page, "trunkline_child_open_fds", &[("upstream", "child")]) >= Some(3.0);
    let page = gateway.look_until("/metrics", "the child is measured", has_child).await;
    let memory = value(&page, "trunkline_child_memory_bytes", &[("upstream", "child")]);
    assert!(memory > Some(4096.0), "{page}");
    assert!(page.contains("# TYPE trunkline_child_cpu_seconds_total counter\n"), "{page}");
    assert_eq!(value(&page, "trunkline_child_memory_bytes", &[("upstream", "host")]), None, "it has no child");
    let own = |name: &str| value(&page, name, &[]).unwrap_or_else(|| panic!("no {name} in {page}"));
    assert!(own("process_resident_memory_bytes") > 1e6 && own("process_open_fds") > 5.0, "{page}");
    assert!(own("process_max_fds") >= own("process_open_fds") && own("process_threads") >= 2.0, "{page}");
    assert!(own("process_start_time_seconds") > 1e9 && own("process_cpu_seconds_total") >= 0.0, "{page}");
    for (name, labels) in [
        ("trunkline_refused_total", &[("full", "sessions")][..]),
        ("trunkline_sessions_evicted_total", &[("reason", "cap")]),
        ("trunkline_request_states_refused_total", &[("reason", "lost")]),
        ("trunkline_log_lines_lost_total", &[]),
        ("trunkline_upstream_restarts_total", &[("upstream", "child"), ("reason", "hang")]),
        ("trunkline_questions_total", &[("upstream", "host"), ("kind", "roots"), ("outcome", "timeout")]),
        ("trunkline_breaker_state", &[("upstream", "host")]),
        ("trunkline_breaker_state", &[("upstream", "child")]),
    ] {
        assert_eq!(value(&page, name, labels), Some(0.0), "{name} {labels:?} in {page}");
    }
}

#[tokio::test]
async fn edges_are_counted_and_a_call_has_a_line_where_that_is_asked_for() {
    let child = Upstream::stdio(Script::new("child", LEGACY)).await;
    let host = Upstream::http(Script::new("host", LEGACY)).await;
    let tokens = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n";
    let config = Config::new().section(tokens).section("[log]\ncalls = true").section("[metrics]\nper_tool = true");
    let gateway = Gateway::serve(&config.upstream(&child).upstream(&host)).await;
    for (token, kind) in [(None, "missing"), (Some("Bearer of-somebody-else"), "unknown")] {
        let headers: Vec<_> = token.iter().map(|token| ("authorization", *token)).collect();
        assert_eq!(trunkline_tests::client::http::exchange(&gateway.url, "POST", &headers, "{}").await.status, 401);
        gateway.says(&["authentication failed", kind, "127.0.0.1"]).await;
    }
    let mut ann = Client::open(&gateway.reach(), LEGACY).await;
    ann.http().always("authorization", "Bearer ann-has-a-long-token");
    ann.greet().await;
    let both = |tools: &[String]| tools.contains(&"child__echo".into()) && tools.contains(&"host__echo".into());
    ann.tools_until("both are listed", both).await;
    ann.call("child__echo", "{\"a\":\"argument\"}").await.text();
    ann.call("host__tool_error", "{}").await.text();
    let line = gateway.says(&["\"call\"", "child__echo"]).await;
    for part in [
        "\"principal\":\"token:ann\"",
        "\"upstream\":\"child\"",
        "\"outcome\":\"ok\"",
        "\"session\":\"",
        "bytes_in",
        "duration_ms",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!line.contains("argument"), "{line}");
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    let at_least = |name: &str, labels: &[(&str, &str)], least: f64| {
        let found = value(&page, name, labels);
        assert!(found >= Some(least), "{name} {labels:?} is {found:?} in\n{page}");
    };
    at_least("trunkline_auth_total", &[("outcome", "missing")], 1.0);
    at_least("trunkline_auth_total", &[("outcome", "unknown")], 1.0);
    at_least("trunkline_auth_total", &[("outcome", "accepted")], 3.0);
    at_least("trunkline_http_requests_total", &[("face", "http"), ("code", "401")], 2.0);
    at_least("trunkline_http_requests_total", &[("face", "http"), ("code", "200")], 3.0);
    for direction in ["in", "out"] {
        at_least("trunkline_face_bytes_total", &[("face", "http"), ("direction", direction)], 500.0);
        at_least("trunkline_upstream_bytes_total", &[("upstream", "child"), ("direction", direction)], 100.0);
        at_least("trunkline_upstream_bytes_total", &[("upstream", "host"), ("direction", direction)], 100.0);
    }
    at_least("trunkline_principal_calls_total", &[("principal", "token:ann")], 3.0);
    let tool = [("upstream", "child"), ("tool", "child__echo"), ("outcome", "ok")];
    assert_eq!(value(&page, "trunkline_tool_calls_total", &tool), Some(1.0), "{page}");
    let failed = [("mcp_method_name", "tools/call"), ("error_type", "tool_error")];
    assert_eq!(value(&page, "mcp_server_operation_duration_seconds_count", &failed), Some(1.0), "{page}");
    let done = "mcp_client_operation_duration_seconds_count{mcp_method_name=\"tools/call\",error_type=\"\"} 1\n";
    assert!(page.contains(done), "{page}");
    assert!(page.contains("error_type=\"\",le=\"0.02\""), "OpenTelemetry's borders: {page}");
}

#[tokio::test]
async fn it_is_not_ready_while_it_drains() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    assert_eq!(gateway.look("/readyz").await.status, 200);
    let open = client.start(tool("up__wait", "{\"gate\":\"g\"}")).await;
    upstream.waiting_at("g").await;
    process::signal(gateway.pid, "TERM");
    gateway.look_until("/readyz", "it says that it drains", |page| page.contains("draining")).await;
    assert_eq!(gateway.look("/readyz").await.status, 503);
    assert_eq!(gateway.look("/livez").await.status, 200, "alive all the same");
    upstream.order(Order::Open("g".into())).await;
    assert_eq!(open.answer().await.text(), "released", "what runs may finish");
    assert!(gateway.ended().await.success());
}

#[tokio::test]
async fn whoever_looks_is_answered_while_calls_pile_up() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("its tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let mut open = Vec::new();
    for _ in 0..200 {
        open.push(client.start(tool("up__wait", "{\"gate\":\"g\"}")).await);
    }
    upstream.waiting(200).await;
    // Further ones come and go meanwhile, as fast as they can.
    let flood = || async {
        let one = Client::connect(&gateway.reach(), Revision::MODERN).await;
        loop {
            assert_eq!(one.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        }
    };
    let looks = async {
        for _ in 0..25 {
            for path in ["/livez", "/readyz", "/readyz?verbose", "/metrics"] {
                let answer = gateway.look(path).await;
                assert_eq!(answer.status, 200, "{path}");
            }
        }
    };
    let floods = async { tokio::join!(flood(), flood(), flood(), flood(), flood(), flood(), flood(), flood()) };
    tokio::select! {
        () = looks => {}
        _ = floods => unreachable!("they come for ever"),
    }
    let page = String::from_utf8_lossy(&gateway.look("/metrics").await.body).into_owned();
    let under_way = value(&page, "trunkline_inflight_requests", &[("upstream", "up")]);
    assert!(under_way >= Some(200.0), "all of them still wait: {under_way:?}");
    upstream.order(Order::Open("g".into())).await;
    for call in open {
        assert_eq!(call.answer().await.text(), "released");
    }
}

#[tokio::test]
async fn off_a_terminal_each_line_of_serve_is_one_object() {
    for format in ["", "[log]\nformat = \"json\""] {
        let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
        let broken = Program { path: "/no/such/program".into(), args: Vec::new(), env: Vec::new() };
        // A misspelt filter is told before all else.
        let config = Config::new().env("RUST_LOG", "loud=very").section(format).upstream(&upstream);
        let gateway = Gateway::serve(&config.program("gone", &broken, "")).await;
        gateway.says(&["\"level\":\"WARN\"", "RUST_LOG"]).await;
        gateway.says(&["\"state\":\"ready\"", "\"upstream\":\"up\"", "\"tools\":6"]).await;
        gateway.says(&["\"state\":\"failed\"", "\"upstream\":\"gone\"", "does not exist"]).await;
        gateway.says(&["\"usable\":1", "\"upstreams\":2", "\"tools\":6"]).await;
        assert!(gateway.stop().await.success());
        let lines = gateway.stderr.all();
        let served = lines.iter().find(|line| log::has_message(line, "serving")).expect("it says where it serves");
        let is_address = |name| log::field(served, name).is_some_and(|url| url.starts_with("http://127.0.0.1:"));
        assert!(is_address("clients") && is_address("admin"), "{served}");
        for line in lines.iter().filter(|line| *line != "(stderr has ended)") {
            let value: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            assert!(["timestamp", "level", "message"].iter().all(|member| value[member].is_string()), "{line}");
        }
    }
}

#[tokio::test]
async fn text_for_people_is_written_where_it_is_asked_for() {
    let upstream = Upstream::stdio(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().section("[log]\nformat = \"text\"").upstream(&upstream)).await;
    gateway.says(&["  ready        up   stdio   6 tools"]).await;
    gateway.says(&["1 of 1 server ready, 6 tools"]).await;
    assert!(gateway.stop().await.success());
    let lines = gateway.stderr.all();
    assert!(!lines.iter().any(|line| line.starts_with("{\"")), "{lines:#?}");
}

/// A host shows the lines to a person.
#[tokio::test]
async fn stdio_writes_text_off_a_terminal_too() {
    let broken = Program { path: "/no/such/program".into(), args: Vec::new(), env: Vec::new() };
    for (format, is_text) in [("", true), ("[log]\nformat = \"json\"", false)] {
        let gateway = StdioGateway::prepare(&Config::new().section(format).program("gone", &broken, ""));
        let client = Client::connect(&gateway.reach(), LEGACY).await;
        let log = &client.stdio().stderr;
        let says = |line: &String| {
            (log::field(line, "upstream") == Some("gone") && line.contains("does not exist")).then(|| line.clone())
        };
        let line = log.wait("the log says why", says).await;
        assert_eq!(!line.starts_with('{'), is_text, "{line}");
        assert!(log.all().iter().all(|line| line.starts_with('{') != is_text), "{:#?}", log.all());
    }
}

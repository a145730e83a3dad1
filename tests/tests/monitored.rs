//! A real Prometheus scrapes a gateway under load: what the dashboard and the alerts ask of it has an answer.

// Real faults fire the alerts that are meant for them.
mod faults;

use std::collections::BTreeMap;

use serde_json::Value;
use trunkline_tests::client::{Client, Desk, http, tool};
use trunkline_tests::collector::{Collector, Span};
use trunkline_tests::gateway::{Config, Gateway, free_port};
use trunkline_tests::journal::Order;
use trunkline_tests::peers::Prometheus;
use trunkline_tests::process::Program;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{LIMIT, until};

const LEGACY: Revision = Revision::R2025_11_25;
const TOKEN: &str = "Bearer ann-has-a-long-token";

/// A file of the chart.
fn file(name: &str) -> String {
    format!("{}/../helm/trunkline/files/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// All texts of this key, wherever they stand.
fn texts(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get(key).and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| texts(member, key, found));
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, key, found)),
        _ => {}
    }
}

/// A query of the dashboard, as Grafana fills it in where everything is chosen; the rates of a minute are there after two scrapes.
fn filled(expression: &str) -> String {
    let filled = expression.replace("$__rate_interval", "1m").replace("$__range", "1m");
    let variables = ["$namespace", "$job", "$instance", "$upstream", "$method"];
    variables.iter().fold(filled, |text, variable| text.replace(variable, ".+"))
}

/// The expression of an alert with its last thresholds as values: it has a result whether the alert fires or not.
fn without_thresholds(expression: &str) -> String {
    // What is absent, and what is gone, has no other value.
    if let Some(inner) = expression.strip_prefix("absent(") {
        return inner.trim_end_matches(')').to_owned();
    }
    let marks = [" == ", " > ", " < ", " >= ", " <= "];
    marks.iter().fold(expression.to_owned(), |text, mark| text.replace(mark, &format!("{mark}bool ")))
}

/// A gateway with upstreams of every kind and in every state, and clients of both eras.
struct Busy {
    gateway: Gateway,
    session: Client,
    stateless: Client,
    upstreams: Vec<Upstream>,
    _files: Scratch,
}

impl Busy {
    async fn start() -> Busy {
        let child = Upstream::stdio(Script::new("child", LEGACY).asking()).await;
        // It logs where only messages may stand, and answers one tool with what is no answer.
        let noisy = Script::new("noisy", LEGACY)
            .rule(Rule::on_tool("echo", vec![Act::Write("this is no message\n".into()), Act::Stderr(1), Act::Late(0)]));
        let noisy = Upstream::stdio(noisy).await;
        let host = Upstream::http(Script::new("host", Revision::MODERN)).await;
        let failing = Act::status(500, "text/plain", "no");
        let sick = Upstream::http(Script::new("sick", LEGACY).rule(Rule::on_tool("echo", vec![failing]))).await;
        let gone = Program { path: "/no/such/program".into(), args: Vec::new(), env: Vec::new() };
        let tokens = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n";
        let config = Config::new().section(tokens).section("[metrics]\nper_tool = true");
        // Its token comes of a command, and ends.
        let auth = "auth = { type = \"exec\", command = \"echo\", args = ['{\"token\":\"a-token-of-a-command\",\"expires_in\":600}'] }";
        let config = config.upstream(&child).upstream(&noisy).upstream_with(&host, auth).upstream(&sick);
        let config = config.program("gone", &gone, "");
        // A second listener, over TLS.
        let files = Scratch::new();
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate is made");
        let (cert, key) =
            (files.file("cert.pem", &own.cert.pem()), files.file("key.pem", &own.signing_key.serialize_pem()));
        let tls = format!("tls = {{ cert = \"{}\", key = \"{}\" }}", cert.display(), key.display());
        let address = format!("[[server.listeners]]\naddress = \"127.0.0.1:{}\"\n{}", free_port(), tls);
        let gateway = Gateway::serve(&config.listed("").section(&address)).await;
        let mut session = Client::open_with(&gateway.reach(), LEGACY, Desk::willing("ada")).await;
        session.http().always("authorization", TOKEN);
        session.greet().await;
        let stateless = Client::open_with(&gateway.reach(), Revision::MODERN, Desk::willing("ada")).await;
        stateless.http().always("authorization", TOKEN);
        let all = ["child__echo", "noisy__echo", "host__echo", "sick__echo"];
        session.tools_until("all are listed", |tools| all.iter().all(|one| tools.contains(&(*one).into()))).await;
        Busy { gateway, session, stateless, upstreams: vec![child, noisy, host, sick], _files: files }
    }

    /// Calls of every kind and outcome, once.
    async fn work(&self) {
        for client in [&self.session, &self.stateless] {
            for name in [
                "child__echo",
                "noisy__echo",
                "host__echo",
                "child__tool_error",
                "sick__echo",
                "nobody__echo",
                "gone__echo",
            ] {
                client.call_once(name, "{}").await;
            }
            client.call_once("host__fail", "{}").await;
        }
        let ask = tool("child__ask", "{\"plan\":\"form\",\"who\":\"ada\",\"nonce\":\"n\"}");
        self.session.request(ask.clone()).await;
        self.stateless.converse(ask).await;
        // What belongs to no call.
        let [child, ..] = &self.upstreams[..] else { unreachable!("there are four") };
        let message = "{\"level\":\"info\",\"data\":\"a word\"}";
        child.order(Order::Notify("notifications/message".into(), message.into())).await;
        // A client without a token.
        http::exchange(&self.gateway.url, "POST", &[], "{}").await;
    }
}

/// Those of these queries that have no result now, and why.
async fn empty(prometheus: &Prometheus, queries: &BTreeMap<String, String>) -> Vec<String> {
    let mut empty = Vec::new();
    for (of, query) in queries {
        match prometheus.query(query).await {
            Ok(series) if series.is_empty() => empty.push(format!("{of}: no data: {query}")),
            Ok(_) => {}
            Err(why) => empty.push(format!("{of}: {why}: {query}")),
        }
    }
    empty
}

#[tokio::test]
async fn every_expression_of_the_dashboard_and_of_the_alerts_has_data_under_load() {
    let busy = Busy::start().await;
    let Some(prometheus) = Prometheus::scraping(&busy.gateway, &file("alerts.yaml")).await else { return };
    let dashboard = std::fs::read_to_string(file("dashboard.json")).expect("there is a dashboard");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("it is JSON");
    let mut expressions = Vec::new();
    texts(&dashboard["panels"], "expr", &mut expressions);
    assert!(expressions.len() > 50, "{}", expressions.len());
    let mut queries: BTreeMap<String, String> =
        expressions.iter().map(|one| (format!("dashboard {one}"), filled(one))).collect();
    let alerts = until("Prometheus has read the alerts", || async {
        let alerts = prometheus.alerts().await;
        (!alerts.is_empty()).then_some(alerts)
    })
    .await;
    assert!(alerts.len() >= 20, "{alerts:?}");
    queries.extend(alerts.iter().map(|(name, query, _)| (format!("alert {name}"), without_thresholds(query))));
    // A rate needs two scrapes with work between them.
    let mut left = vec!["nothing was asked".to_owned()];
    let asking = async {
        while !left.is_empty() {
            busy.work().await;
            left = empty(&prometheus, &queries).await;
        }
    };
    let _in_time = tokio::time::timeout(LIMIT, asking).await;
    assert_eq!(left, [""; 0]);
    // What Grafana offers to choose from.
    for (label, selector) in [
        ("namespace", "trunkline_build_info"),
        ("job", "trunkline_build_info"),
        ("instance", "trunkline_build_info"),
        ("upstream", "trunkline_upstream_up"),
        ("method", "trunkline_requests_total"),
    ] {
        assert!(!prometheus.label_values(selector, label).await.is_empty(), "{label} of {selector}");
    }
    let failed: Vec<_> = prometheus.alerts().await.into_iter().filter(|(.., error)| !error.is_empty()).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[tokio::test]
async fn a_prometheus_keeps_the_trace_of_a_request_beside_what_was_counted_of_it() {
    let collector = Collector::start().await;
    let host = Upstream::http(Script::new("host", Revision::MODERN)).await;
    let traces = format!("[traces]\nendpoint = \"{}\"\n", collector.url);
    let gateway = Gateway::serve(&Config::new().section(&traces).upstream(&host)).await;
    let client = Client::open(&gateway.reach(), Revision::MODERN).await;
    client.tools_until("it is listed", |tools| tools.contains(&"host__echo".into())).await;
    client.call("host__echo", "{}").await.text();
    let called = |span: &Span| (span.name == "tools/call host__echo").then(|| span.trace.clone());
    let trace = collector.spans.wait("the span of the call", called).await;
    let Some(prometheus) = Prometheus::scraping(&gateway, &file("alerts.yaml")).await else { return };
    for name in ["trunkline_request_duration_seconds", "mcp_server_operation_duration_seconds"] {
        let selector = format!("{name}_bucket{{method=\"tools/call\"}}");
        let selector = if name.starts_with("mcp") { format!("{name}_bucket") } else { selector };
        until("the trace is an exemplar", || async {
            prometheus.traces(&selector).await.contains(&trace).then_some(())
        })
        .await;
    }
}

//! Every known way of refusing `server/discover` leads to a working upstream, and so does every way of taking it.

use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::journal::{Event, Order, What};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_06_18;

/// The upstream's tools can be used, and it was spoken to in its own era.
async fn works(upstream: &Upstream, keys: &str) {
    let gateway = Gateway::serve(&Config::new().upstream_with(upstream, keys)).await;
    serves(&Client::connect(&gateway.reach(), Revision::R2025_11_25).await, upstream).await;
}

/// The same for a stateless client alone: a child that is started for it is asked first.
async fn works_when_asked(upstream: &Upstream, keys: &str) {
    let gateway = StdioGateway::prepare(&Config::new().upstream_with(upstream, keys));
    serves(&Client::connect(&gateway.reach(), Revision::MODERN).await, upstream).await;
}

async fn serves(client: &Client, upstream: &Upstream) {
    client.tools_until("the upstream's tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    assert_eq!(upstream.complaints().await, Vec::<String>::new());
}

async fn refuses(way: Way, acts: Vec<Act>) {
    let script = Script::new("up", LEGACY).rule(Rule::on("server/discover", acts));
    let upstream = Upstream::start(way, script).await;
    match way {
        Way::Stdio => works_when_asked(&upstream, "").await,
        _ => works(&upstream, "").await,
    }
    assert_eq!(count(&upstream, "server/discover").await, 1);
}

/// How often the upstream received this method.
async fn count(upstream: &Upstream, method: &str) -> usize {
    let wanted = format!("\"{method}\"");
    let fits = |event: &&Event| matches!(&event.what, What::Frame { raw, .. } if raw.contains(&wanted));
    upstream.seen().await.iter().filter(fits).count()
}

macro_rules! refusals {
    ($($name:ident: $way:ident, $act:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            refuses(Way::$way, vec![$act]).await;
        }
    )*};
}

refusals! {
    stdio_method_not_found: Stdio, Act::error(-32601, "Method not found");
    stdio_invalid_params: Stdio, Act::error(-32602, "Invalid request parameters");
    stdio_invalid_request: Stdio, Act::error(-32600, "Server not initialized");
    stdio_server_error: Stdio, Act::error(-32000, "Bad Request: Server not initialized");
    stdio_internal_error: Stdio, Act::error(-32603, "Internal error");
    stdio_code_zero: Stdio, Act::error(0, "Received request before initialization was complete");
    stdio_empty_result: Stdio, Act::Result("{}".into());
    stdio_silence: Stdio, Act::Hang;
    stdio_garbage: Stdio, Act::Frame("Traceback (most recent call last):".into());
    http_400_with_server_error: Http, Act::status(
        400, "application/json", r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#);
    http_400_with_own_id: Http, Act::status(
        400, "application/json", r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32600,"message":"Missing session ID"}}"#);
    http_400_text: Http, Act::status(400, "text/plain", "Bad Request");
    http_400_empty: Http, Act::status(400, "", "");
    http_404_page: Http, Act::status(404, "text/html", "<html><body>Not Found</body></html>");
    http_405: Http, Act::status(405, "", "");
    http_406: Http, Act::status(406, "application/json", r#"{"error":"Not Acceptable"}"#);
    http_415: Http, Act::status(415, "", "");
    http_422: Http, Act::status(422, "application/json", r#"{"detail":[{"msg":"field required"}]}"#);
    http_200_method_not_found: Http, Act::error(-32601, "Method not found");
    http_200_empty_result: Http, Act::Result("{}".into());
}

#[tokio::test]
async fn an_exit_after_the_probe_means_a_handshake_in_the_next_process() {
    let script = Script::new("up", LEGACY).rule(Rule::on("server/discover", vec![Act::Exit(1)]));
    let upstream = Upstream::stdio(script).await;
    works_when_asked(&upstream, "restart = { backoff_min = \"15s\", backoff_max = \"15s\" }").await;
    assert_eq!(count(&upstream, "server/discover").await, 1, "the second process is not probed");
    upstream.started(1).await;
}

#[tokio::test]
async fn a_late_answer_to_the_probe_does_no_harm() {
    let late = Rule::on("server/discover", vec![Act::Gate("late".into()), Act::error(-32601, "Method not found")]);
    let upstream = Upstream::stdio(Script::new("up", LEGACY).rule(late)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = Client::connect(&gateway.reach(), Revision::MODERN).await;
    client.tools_until("silence leads to a handshake", |tools| tools.contains(&"up__echo".into())).await;
    upstream.order(Order::Open("late".into())).await;
    assert_eq!(client.call("up__echo", "{}").await.text(), "{}");
    assert_eq!(count(&upstream, "initialize").await, 1);
}

#[tokio::test]
async fn a_modern_error_means_modern() {
    for way in [Way::Stdio, Way::Http] {
        let data = r#"{"supported":["2026-07-28"],"requested":"2027-01-01"}"#;
        let act = match way {
            Way::Stdio => Act::Error { code: -32022, message: "Unsupported".into(), data: Some(data.into()) },
            _ => {
                let error = format!(r#"{{"code":-32022,"message":"Unsupported","data":{data}}}"#);
                Act::status(400, "application/json", &format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{error}}}"#))
            }
        };
        let script = Script::new("up", Revision::MODERN).rule(Rule::on("server/discover", vec![act]).once());
        let upstream = Upstream::start(way, script).await;
        works(&upstream, "").await;
        assert_eq!(count(&upstream, "initialize").await, 1, "one refusal is enough");
    }
}

#[tokio::test]
async fn an_outage_says_nothing_about_the_era() {
    let down = Rule::on("*", vec![Act::status(503, "text/plain", "try later")]);
    let upstream = Upstream::http(Script::new("up", Revision::MODERN).rule(Rule { times: 1, ..down })).await;
    works(&upstream, "").await;
    assert_eq!(count(&upstream, "initialize").await, 1, "503 is no reason to shake hands; a handshake client is");
}

#[tokio::test]
async fn the_configured_era_is_not_probed() {
    for way in [Way::Stdio, Way::Http] {
        let upstream = Upstream::start(way, Script::new("up", LEGACY)).await;
        works(&upstream, "era = \"legacy\"").await;
        assert_eq!(count(&upstream, "server/discover").await, 0);
    }
}

#[tokio::test]
async fn an_upstream_of_both_eras_shakes_hands_for_a_handshake_client() {
    for way in [Way::Stdio, Way::Http] {
        let script = Script::new("up", LEGACY).with(|script| script.revisions.push(Revision::MODERN));
        let upstream = Upstream::start(way, script).await;
        works(&upstream, "").await;
        assert!(count(&upstream, "initialize").await > 0);
        let discoveries = if way == Way::Http { 1 } else { 0 };
        assert_eq!(count(&upstream, "server/discover").await, discoveries, "a child is pinned by what opens it");
    }
}

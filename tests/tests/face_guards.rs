//! Who may come in: hosts, origins, content types, sizes and tokens, before any revision is known.

use std::process::Command;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Answer, Client, tool};
use trunkline_tests::gateway::{ADMIN_TOKEN, Config, Gateway, free_port};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const JSON: (&str, &str) = ("content-type", "application/json");
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n"
);

async fn gateway(config: Config) -> (Upstream, Gateway) {
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let gateway = Gateway::serve(&config.upstream(&upstream)).await;
    (upstream, gateway)
}

async fn greet(url: &str, headers: &[(&str, &str)]) -> Answer {
    let headers: Vec<_> = [JSON, ACCEPT].iter().chain(headers).copied().collect();
    exchange(url, "POST", &headers, GREETING).await
}

#[tokio::test]
async fn foreign_hosts_are_refused_on_every_route() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    for host in ["evil.example", "evil.example:8808", "127.0.0.1.evil.example", "localhost.evil.example"] {
        assert_eq!(greet(&gateway.url, &[("host", host)]).await.status, 403, "{host}");
        for (method, url) in [
            ("GET", gateway.url.clone()),
            ("DELETE", gateway.url.clone()),
            ("GET", format!("{}/readyz?verbose", gateway.admin)),
            ("POST", format!("{}/upstreams/up/stop", gateway.admin)),
        ] {
            assert_eq!(exchange(&url, method, &[("host", host)], "").await.status, 403, "{method} {url} as {host}");
        }
    }
    let port = gateway.url.split(':').nth(2).and_then(|rest| rest.split('/').next()).expect("a port");
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("LOCALHOST:{port}")] {
        assert_eq!(greet(&gateway.url, &[("host", &host)]).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn probes_and_metrics_have_any_name_and_the_rest_those_of_the_admin_section() {
    let config = Config::new().server("allowed_hosts = [\"mcp.example\"]").admin("allowed_hosts = [\"admin.example\"]");
    let (_upstream, gateway) = gateway(config).await;
    let bearer = format!("Bearer {ADMIN_TOKEN}");
    let look = async |path: &str, host: &str| {
        let headers = [("host", host), ("authorization", bearer.as_str())];
        exchange(&format!("{}{path}", gateway.admin), "GET", &headers, "").await.status
    };
    for path in ["/livez", "/readyz", "/startupz", "/metrics"] {
        for host in ["10.1.2.3:9808", "pod-7.cluster.local", "mcp.example"] {
            assert_eq!(look(path, host).await, 200, "{path} as {host}");
        }
        let page = [("host", "x"), ("origin", "http://evil.example")];
        assert_eq!(exchange(&format!("{}{path}", gateway.admin), "GET", &page, "").await.status, 403, "{path}");
    }
    for path in ["/readyz?verbose", "/readyz?format=json", "/gateway"] {
        assert_eq!(look(path, "admin.example").await, 200, "{path}");
        for host in ["10.1.2.3:9808", "pod-7.cluster.local", "mcp.example"] {
            assert_eq!(look(path, host).await, 403, "{path} as {host}");
        }
    }
}

#[tokio::test]
async fn the_public_address_comes_in_and_is_what_clients_are_told() {
    let (_upstream, gateway) = gateway(Config::new().server("public_url = \"https://mcp.example.com/gw\"")).await;
    let root = gateway.url.trim_end_matches("/mcp").to_owned();
    for headers in [&[("host", "mcp.example.com")][..], &[("origin", "https://mcp.example.com")]] {
        assert_eq!(greet(&gateway.url, headers).await.status, 200, "{headers:?}");
    }
    assert_eq!(greet(&gateway.url, &[("host", "example.com")]).await.status, 403);
    gateway.says(&["\"public_url\":\"https://mcp.example.com/gw\""]).await;
    let address = root.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.expect("it listens");
    let ask = format!("GET /sse HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.expect("it is sent");
    let mut told = String::new();
    let endpoint = async {
        while !told.contains("sessionId=") {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).await.expect("it answers");
            assert!(count > 0, "{told}");
            told.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        told
    };
    let told = within("the endpoint is told", endpoint).await;
    assert!(told.contains("data: /gw/message?sessionId="), "{told}");
}

#[tokio::test]
async fn foreign_origins_are_refused() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    for origin in ["http://evil.example", "null", "https://localhost.evil.example", "http://evil.example:8808"] {
        let refused = greet(&gateway.url, &[("origin", origin)]).await;
        assert_eq!(refused.status, 403, "{origin}");
        assert_eq!(exchange(&gateway.url, "GET", &[("origin", origin)], "").await.status, 403, "GET from {origin}");
    }
    let own = gateway.url.trim_end_matches("/mcp").to_owned();
    for origin in [own.clone(), own.replace("127.0.0.1", "localhost")] {
        assert_eq!(greet(&gateway.url, &[("origin", &origin)]).await.status, 200, "{origin}");
    }
}

#[tokio::test]
async fn configured_hosts_and_origins_come_in() {
    let keys = "allowed_hosts = [\"mcp.example.com\"]\nallowed_origins = [\"https://app.example.com\"]";
    let (_upstream, gateway) = gateway(Config::new().server(keys)).await;
    let both = [("host", "mcp.example.com"), ("origin", "https://app.example.com")];
    assert_eq!(greet(&gateway.url, &both).await.status, 200);
    assert_eq!(greet(&gateway.url, &[("host", "other.example.com")]).await.status, 403);
    assert_eq!(
        greet(&gateway.url, &[("host", "mcp.example.com"), ("origin", "http://app.example.com")]).await.status,
        403
    );
}

#[tokio::test]
async fn other_content_types_are_refused() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"] {
        let answer = exchange(&gateway.url, "POST", &[("content-type", kind), ACCEPT], GREETING).await;
        assert_eq!(answer.status, 415, "{kind}");
    }
    assert_eq!(exchange(&gateway.url, "POST", &[ACCEPT], GREETING).await.status, 415, "none at all");
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        let answer = exchange(&gateway.url, "POST", &[("content-type", kind), ACCEPT], GREETING).await;
        assert_eq!(answer.status, 200, "{kind}");
    }
}

#[tokio::test]
async fn bodies_over_the_limit_are_refused_and_those_at_it_are_not() {
    let (_upstream, gateway) = gateway(Config::new().server("max_body = 2000")).await;
    let filled = |length: usize| format!("{GREETING}{}", " ".repeat(length - GREETING.len()));
    assert_eq!(exchange(&gateway.url, "POST", &[JSON, ACCEPT], &filled(2000)).await.status, 200);
    assert_eq!(exchange(&gateway.url, "POST", &[JSON, ACCEPT], &filled(2001)).await.status, 413);
}

#[tokio::test]
async fn other_paths_and_methods_end_at_once() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    let root = gateway.url.trim_end_matches("/mcp");
    for path in [
        "/",
        "/mcpx",
        "/mcp/",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/register",
    ] {
        assert_eq!(exchange(&format!("{root}{path}"), "GET", &[], "").await.status, 404, "{path}");
    }
    for method in ["PUT", "PATCH"] {
        assert_eq!(exchange(&gateway.url, method, &[JSON], "{}").await.status, 405, "{method}");
    }
    let lonely = exchange(&gateway.url, "GET", &[("accept", "text/event-stream")], "").await.status;
    assert!((400..500).contains(&lonely), "a GET without a session ends at once: {lonely}");
}

#[tokio::test]
async fn tokens_are_asked_for_before_the_revision_is_known() {
    let (_upstream, gateway) = gateway(Config::new().section(TOKENS)).await;
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let wrong =
        [None, Some("Bearer wrong"), Some("Bearer "), Some("Basic YW5uOmE="), Some("bearer-ann-has-a-long-token")];
    for given in wrong {
        for (method, body) in [("POST", GREETING), ("POST", modern), ("POST", "nonsense"), ("GET", ""), ("DELETE", "")]
        {
            let mut headers = vec![JSON, ACCEPT];
            headers.extend(given.map(|value| ("authorization", value)));
            let answer = exchange(&gateway.url, method, &headers, body).await;
            assert_eq!(answer.status, 401, "{method} with {given:?}");
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            assert!(challenge.starts_with("Bearer"), "{challenge:?}");
        }
    }
    let query = format!("{}?access_token=ann-has-a-long-token", gateway.url);
    assert_eq!(greet(&query, &[]).await.status, 401, "never in the query");
    assert_eq!(greet(&gateway.url, &[("authorization", "Bearer ann-has-a-long-token")]).await.status, 200);
}

#[tokio::test]
async fn a_session_belongs_to_whom_it_was_given() {
    let (_upstream, gateway) = gateway(Config::new().section(TOKENS)).await;
    let mut ann = Client::open(&gateway.reach(), Revision::R2025_11_25).await;
    ann.http().always("authorization", "Bearer ann-has-a-long-token");
    ann.greet().await;
    let session = ann.http().session_id().expect("a session id");
    let ask = async |session: &str| {
        let headers = [JSON, ACCEPT, ("authorization", "Bearer bob-has-a-long-token"), ("mcp-session-id", session)];
        exchange(&gateway.url, "POST", &headers, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await
    };
    let (foreign, unknown) = (ask(&session).await, ask("no-such-session").await);
    assert_eq!((foreign.status, &foreign.body), (404, &unknown.body), "not yours is the same as not there");
    assert_eq!(unknown.status, 404);
    ann.tools_until("the owner goes on", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(ann.request(tool("up__echo", "{}")).await.text(), "{}");
}

#[tokio::test]
async fn a_clients_token_never_reaches_an_upstream() {
    let (upstream, gateway) = gateway(Config::new().section(TOKENS)).await;
    let mut ann = Client::open(&gateway.reach(), Revision::R2025_11_25).await;
    ann.http().always("authorization", "Bearer ann-has-a-long-token");
    ann.greet().await;
    ann.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
    ann.call("up__echo", "{}").await.text();
    let seen = format!("{:?}", upstream.seen().await);
    assert!(seen.contains("tools/call") && !seen.contains("ann-has-a-long-token"));
}

#[test]
fn it_does_not_listen_beyond_loopback_without_tokens() {
    let scratch = Scratch::new();
    let text = format!("[server]\nlisten = \"0.0.0.0:{}\"\n[admin]\nlisten = \"off\"\n", free_port());
    let file = scratch.file("open.toml", &text);
    let run = Command::new(process::beside(process::GATEWAY))
        .args(["serve", "--config", &file.display().to_string()])
        .env("HOME", scratch.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success(), "it refuses");
    assert!(said.contains("allow_unauthenticated") || said.contains("auth.tokens"), "and says what to do: {said}");
}

#[tokio::test]
async fn probes_and_metrics_are_on_an_address_of_their_own() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    let client = Client::connect(&gateway.reach(), Revision::R2025_11_25).await;
    client.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
    client.call("up__echo", "{}").await.text();
    assert_eq!(gateway.look("/livez").await.status, 200);
    gateway.look_until("/readyz?verbose", "upstream ready", |page| page.contains("up")).await;
    assert_eq!(gateway.look("/readyz").await.status, 200);
    let metrics = gateway.look("/metrics").await;
    assert_eq!(metrics.status, 200);
    assert!(String::from_utf8_lossy(&metrics.body).contains("trunkline_"), "metrics have the gateway's name");
    let root = gateway.url.trim_end_matches("/mcp");
    assert_eq!(exchange(&format!("{root}/metrics"), "GET", &[], "").await.status, 404, "never beside the endpoint");
}

#[tokio::test]
async fn a_header_that_decides_stands_once() {
    let (_upstream, gateway) = gateway(Config::new().section(TOKENS)).await;
    let token = ("authorization", "Bearer ann-has-a-long-token");
    let mut ann = Client::open(&gateway.reach(), Revision::R2025_11_25).await;
    ann.http().always(token.0, token.1);
    ann.greet().await;
    let session = ann.http().session_id().expect("a session id");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let own = [JSON, ACCEPT, token, ("mcp-session-id", &session), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!(exchange(&gateway.url, "POST", &own, ping).await.status, 200);
    for (name, value) in [
        ("mcp-session-id", &*session),
        ("mcp-session-id", "another"),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "2025-06-18"),
        ("mcp-method", "ping"),
        ("mcp-name", "x"),
        ("last-event-id", "1"),
    ] {
        let once = own.iter().any(|(known, _)| *known == name);
        let headers: Vec<_> = own.into_iter().chain([(name, value)]).chain((!once).then_some((name, value))).collect();
        for (method, body) in [("POST", ping), ("POST", GREETING), ("GET", ""), ("DELETE", "")] {
            let answer = exchange(&gateway.url, method, &headers, body).await;
            let said = String::from_utf8_lossy(&answer.body).to_ascii_lowercase();
            assert_eq!(answer.status, 400, "{method} with {name}: {said}");
            assert!(said.contains(name) && said.contains("twice"), "{method} with {name}: {said}");
        }
    }
    for value in [token.1, "Bearer bob-has-a-long-token"] {
        let headers: Vec<_> = own.into_iter().chain([("authorization", value)]).collect();
        assert_eq!(exchange(&gateway.url, "POST", &headers, ping).await.status, 401, "nobody bears two tokens");
    }
    assert_eq!(exchange(&gateway.url, "POST", &own, ping).await.status, 200, "the session goes on");
}

#[tokio::test]
async fn a_length_that_is_none_is_no_large_head() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    let address = gateway.url.trim_start_matches("http://").trim_end_matches("/mcp");
    for length in [
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999999999999999999999",
        "18446744073709551613",
    ] {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{{}}"
        );
        stream.write_all(head.as_bytes()).await.expect("it reads");
        let mut begin = [0; 12];
        within("it answers", stream.read_exact(&mut begin)).await.expect("an answer");
        let status = if length.ends_with("613") { "413" } else { "400" };
        assert_eq!(String::from_utf8_lossy(&begin[9..]), status, "{length}");
    }
}

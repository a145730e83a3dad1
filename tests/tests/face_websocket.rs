//! Clients over WebSocket: the upgrade and its checks, both eras on one connection, close codes, and what ends with the connection.

mod broken;
mod cases;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use trunkline_tests::client::bridge::{connect, connect_with};
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Answer, Client, Reach, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::journal::Order;
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::{Upstream, Way};
use trunkline_tests::within::within;

const LEGACY: Revision = Revision::R2025_11_25;
const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const TOKENS: &str = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n";
/// What every upgrade has.
const UPGRADE: [(&str, &str); 4] = [
    ("connection", "keep-alive, Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

async fn gateway(config: Config) -> (Upstream, Gateway) {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&config.upstream(&upstream)).await;
    (upstream, gateway)
}

fn url(gateway: &Gateway) -> String {
    match gateway.reach_by(Way::WebSocket) {
        Reach::WebSocket(url) => url,
        _ => unreachable!("it was asked for"),
    }
}

/// A request for an upgrade, with these headers in place of the usual ones or besides.
async fn ask(gateway: &Gateway, method: &str, other: &[(&str, &str)]) -> Answer {
    let is_other = |name: &str| other.iter().any(|(changed, _)| *changed == name);
    let usual = UPGRADE.iter().filter(|(name, _)| !is_other(name));
    let headers: Vec<_> = usual.chain(other.iter().filter(|(_, value)| !value.is_empty())).copied().collect();
    exchange(&url(gateway).replace("ws://", "http://"), method, &headers, "").await
}

type Socket = WebSocketStream<TcpStream>;

/// The next text.
async fn text(socket: &mut Socket) -> String {
    let next = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(_)) => {}
                end => panic!("the connection ended: {end:?}"),
            }
        }
    };
    within("a message comes", next).await
}

/// The code and the reason that the connection is closed with.
async fn closed(socket: &mut Socket) -> (u16, String) {
    loop {
        match within("the connection is closed", socket.next()).await {
            Some(Ok(Message::Close(Some(frame)))) => return (frame.code.into(), frame.reason.to_string()),
            Some(Ok(_)) => {}
            end => panic!("no close frame: {end:?}"),
        }
    }
}

fn ping(id: u32) -> Message {
    Message::text(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}"))
}

#[tokio::test]
async fn hosts_origins_and_tokens_are_checked_before_the_upgrade() {
    let (_upstream, gateway) = gateway(Config::new().section(TOKENS)).await;
    let bearer = ("authorization", "Bearer ann-has-a-long-token");
    for (headers, status) in [
        (vec![bearer, ("host", "evil.example")], 403),
        (vec![bearer, ("origin", "https://evil.example")], 403),
        (vec![bearer, ("origin", "null")], 403),
        (vec![], 401),
        (vec![("authorization", "Bearer somebody-else-entirely")], 401),
        (vec![bearer], 101),
        (vec![bearer, ("origin", "http://localhost:3000")], 101),
    ] {
        assert_eq!(ask(&gateway, "GET", &headers).await.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_no_upgrade_says_what_is_missing() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    for (method, other, status, says) in [
        ("GET", ("upgrade", ""), 426, "Upgrade: websocket"),
        ("GET", ("upgrade", "h2c"), 426, "Streamable HTTP is at /mcp"),
        ("GET", ("connection", "keep-alive"), 426, "Connection: Upgrade"),
        ("GET", ("sec-websocket-version", "8"), 426, "must be 13"),
        ("GET", ("sec-websocket-key", ""), 400, "16 bytes in base64"),
        ("GET", ("sec-websocket-key", "c2hvcnQ="), 400, "16 bytes in base64"),
        ("POST", ("x", "y"), 405, "opened with GET"),
    ] {
        let answer = ask(&gateway, method, &[other]).await;
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(answer.status == status && body.contains(says), "{other:?}: {} {body}", answer.status);
        if status == 426 {
            assert_eq!(answer.header("sec-websocket-version"), Some("13"));
        }
    }
}

#[tokio::test]
async fn the_subprotocol_is_named_where_it_is_offered_and_no_extension_is() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    for (offered, named) in [("", None), ("mcp", Some("mcp")), ("graphql-ws, MCP", Some("mcp")), ("chat", None)] {
        let more = [("sec-websocket-protocol", offered), ("sec-websocket-extensions", "permessage-deflate")];
        let answer = ask(&gateway, "GET", &more).await;
        assert_eq!((answer.status, answer.header("sec-websocket-protocol")), (101, named), "{offered}");
        assert_eq!(answer.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!(answer.header("sec-websocket-extensions"), None);
    }
}

#[tokio::test]
async fn it_can_be_turned_off() {
    let (_upstream, gateway) = gateway(Config::new().server("websocket = false")).await;
    assert_eq!(ask(&gateway, "GET", &[]).await.status, 404);
}

#[tokio::test]
async fn both_eras_are_served_on_one_connection() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    let mut socket = connect(&url(&gateway)).await;
    let modern = |id: u32, method: &str| {
        let meta = "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}";
        Message::text(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{\"_meta\":{meta}}}}}"
        ))
    };
    socket.send(modern(7, "server/discover")).await.unwrap();
    assert!(text(&mut socket).await.contains("supportedVersions"));
    socket.send(Message::text(GREETING)).await.unwrap();
    assert!(text(&mut socket).await.contains("\"protocolVersion\":\"2025-11-25\""));
    socket.send(ping(2)).await.unwrap();
    assert_eq!(text(&mut socket).await, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
    socket.send(modern(3, "tools/list")).await.unwrap();
    let listed = loop {
        let text = text(&mut socket).await;
        if text.contains("\"id\":3,") {
            break text;
        }
    };
    assert!(listed.contains("\"ttlMs\"") && listed.contains("\"tools\":["), "{listed}");
}

#[tokio::test]
async fn pings_are_answered_and_a_silent_connection_is_pinged() {
    let (_upstream, gateway) = gateway(Config::new().server("sse_keepalive = \"200ms\"")).await;
    let mut socket = connect(&url(&gateway)).await;
    socket.send(Message::Ping("are you there".into())).await.unwrap();
    let (mut has_pong, mut has_ping) = (false, false);
    while !has_pong || !has_ping {
        match within("pong and ping come", socket.next()).await {
            Some(Ok(Message::Pong(bytes))) => has_pong |= bytes == "are you there",
            Some(Ok(Message::Ping(_))) => has_ping = true,
            other => panic!("{other:?}"),
        }
    }
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = within("it is closed", socket.next()).await {}
}

#[tokio::test]
async fn a_message_as_long_as_it_may_be_is_taken_and_a_longer_one_closes_the_connection() {
    let (_upstream, gateway) = gateway(Config::new().server("max_body = \"100KiB\"")).await;
    let mut socket = connect(&url(&gateway)).await;
    let frame = "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"x\":\"\"}";
    let filled = |bytes: usize| {
        Message::text(frame.replace("\"x\":\"", &format!("\"x\":\"{}", "y".repeat(bytes - frame.len()))))
    };
    socket.send(Message::text(GREETING)).await.unwrap();
    text(&mut socket).await;
    socket.send(filled(100 << 10)).await.unwrap();
    assert_eq!(text(&mut socket).await, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}");
    socket.send(filled((100 << 10) + 1)).await.unwrap();
    let (code, reason) = closed(&mut socket).await;
    assert!(code == 1009 && reason.contains("server.max_body"), "{code} {reason}");
}

#[tokio::test]
async fn calls_are_cancelled_when_the_connection_goes() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    for (count, is_told) in [true, false].into_iter().enumerate() {
        let mut socket = connect(&url(&gateway)).await;
        socket.send(Message::text(GREETING)).await.unwrap();
        text(&mut socket).await;
        let before = upstream.events.mark();
        let call = tool("up__wait", &format!("{{\"gate\":\"{is_told}\"}}")).text(LEGACY, "9");
        socket.send(Message::text(call)).await.unwrap();
        upstream.waiting(count + 1).await;
        if is_told {
            socket.close(None).await.unwrap();
        }
        drop(socket);
        upstream.cancelled(before).await;
    }
}

#[tokio::test]
async fn at_the_end_of_the_gateway_what_runs_may_finish_and_the_connection_is_closed_with_1012() {
    let upstream = Upstream::http(Script::new("up", LEGACY)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the tools are listed", |tools| tools.contains(&"up__wait".into())).await;
    let mut socket = connect(&url(&gateway)).await;
    socket.send(Message::text(GREETING)).await.unwrap();
    text(&mut socket).await;
    socket.send(Message::text(tool("up__wait", "{\"gate\":\"g\"}").text(LEGACY, "9"))).await.unwrap();
    upstream.waiting(1).await;
    process::signal(gateway.pid, "TERM");
    gateway.says(&["shutting down"]).await;
    upstream.order(Order::Open("g".into())).await;
    assert!(text(&mut socket).await.starts_with("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\""));
    assert_eq!(closed(&mut socket).await.0, 1012);
}

#[tokio::test]
async fn a_token_that_is_taken_away_closes_its_connections_with_1008() {
    let (upstream, gateway) = gateway(Config::new().section(TOKENS)).await;
    let answered = ask(&gateway, "GET", &[("authorization", "Bearer ann-has-a-long-token")]).await;
    assert_eq!(answered.status, 101);
    let mut socket = connect_with(&url(&gateway), &[("authorization", "Bearer ann-has-a-long-token")]).await;
    socket.send(Message::text(GREETING)).await.unwrap();
    text(&mut socket).await;
    let others = "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n";
    gateway.configure(&Config::new().section(others).upstream(&upstream));
    assert_eq!(closed(&mut socket).await.0, 1008);
}

#[tokio::test]
async fn a_client_that_does_not_read_blocks_nobody_and_is_bounded() {
    let (_upstream, gateway) = gateway(Config::new().server("memory_limit = \"64MiB\"")).await;
    let client = Client::connect(&gateway.reach(), LEGACY).await;
    client.tools_until("the tools are listed", |tools| tools.contains(&"up__echo".into())).await;
    let mut deaf = connect(&url(&gateway)).await;
    deaf.send(Message::text(GREETING)).await.unwrap();
    text(&mut deaf).await;
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20));
    let call = tool("up__echo", &large).text(LEGACY, "9");
    // What it sends is taken until as much waits for it as may.
    let sending = async {
        for id in 0..200 {
            let call = call.replace("\"id\":9", &format!("\"id\":{}", id + 100));
            if deaf.send(Message::text(call)).await.is_err() {
                return;
            }
        }
    };
    let _in_time = tokio::time::timeout(std::time::Duration::from_secs(5), sending).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

//! Several listeners of one gateway: each has its own faces, tokens, hosts and certificate, and they end together.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline_tests::client::http::exchange;
use trunkline_tests::client::{Answer, Client, Reach};
use trunkline_tests::gateway::{Config, Gateway, free_port};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const TOKENS: &str = concat!(
    "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n",
    "[[auth.tokens]]\nname = \"bob\"\ntoken = \"bob-has-a-long-token\"\n"
);
const ANN: (&str, &str) = ("authorization", "Bearer ann-has-a-long-token");
const BOB: (&str, &str) = ("authorization", "Bearer bob-has-a-long-token");

async fn ask(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let json = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    exchange(url, method, &[&json, headers].concat(), body).await
}

async fn greet(url: &str, headers: &[(&str, &str)]) -> u16 {
    ask("POST", url, headers, GREETING).await.status
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// A further listener, and how its URLs begin.
fn listener(keys: &str) -> (String, String) {
    let address = format!("127.0.0.1:{}", free_port());
    (format!("[[server.listeners]]\naddress = \"{address}\"\n{keys}\n"), format!("http://{address}"))
}

#[tokio::test]
async fn each_serves_its_own_faces_to_its_own_tokens_and_hosts_and_all_end_together() {
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let (second, at_second) =
        listener("faces = [\"sse\", \"ws\"]\ntokens = [\"bob\"]\nallowed_hosts = [\"second.example\"]");
    let (third, at_third) = listener("tokens = []");
    let first = "faces = [\"mcp\"]\ntokens = [\"ann\"]\n";
    let sections = format!("{second}{third}{TOKENS}");
    let gateway = Gateway::serve(&Config::new().listed(first).section(&sections).upstream(&upstream)).await;

    // Tokens.
    assert_eq!((greet(&gateway.url, &[ANN]).await, greet(&gateway.url, &[BOB]).await), (200, 401));
    let messages = |base: &str| format!("{base}/message?sessionId=none");
    let asked = async |token| ask("POST", &messages(&at_second), &[token], GREETING).await.status;
    assert_eq!((asked(ANN).await, asked(BOB).await), (401, 404));
    assert_eq!(greet(&format!("{at_third}/mcp"), &[]).await, 200);

    // Faces.
    let base = gateway.url.trim_end_matches("/mcp").to_owned();
    for path in ["/sse", "/ws", "/message?sessionId=none"] {
        let answer = ask("GET", &format!("{base}{path}"), &[ANN], "").await;
        assert!(answer.status == 404 && text(&answer).contains("the MCP endpoint is at /mcp"), "{path}");
    }
    let answer = ask("POST", &format!("{at_second}/mcp"), &[BOB], GREETING).await;
    assert!(answer.status == 404 && text(&answer).contains("the MCP endpoint is at /sse"), "{}", text(&answer));
    assert_eq!(ask("GET", &format!("{at_second}/ws"), &[BOB], "").await.status, 426);
    let third_at = |scheme: &str, path: &str| at_third.replace("http", scheme) + path;
    for reach in [Reach::WebSocket(third_at("ws", "/ws")), Reach::Sse(third_at("http", "/sse"))] {
        let client = Client::connect(&reach, Revision::R2025_11_25).await;
        client.call("up__echo", "{}").await.result();
    }

    // Hosts.
    let named = ("host", "second.example");
    assert_eq!(greet(&gateway.url, &[ANN, named]).await, 403);
    assert_eq!(ask("GET", &format!("{at_second}/ws"), &[BOB, named], "").await.status, 426);

    // They are shown, and they end together.
    for url in [&gateway.url, &format!("{at_second}/sse"), &format!("{at_third}/mcp")] {
        gateway.says(&["serving", url]).await;
    }
    let page = String::from_utf8_lossy(&gateway.look("/api/v1/status").await.body).into_owned();
    let status: serde_json::Value = serde_json::from_str(&page).expect("JSON");
    let shown = serde_json::json!([
        { "url": gateway.url, "faces": ["mcp"] },
        { "url": format!("{at_second}/sse"), "faces": ["sse", "ws"] },
        { "url": format!("{at_third}/mcp"), "faces": ["mcp", "sse", "ws"] },
    ]);
    assert_eq!(status["gateway"]["listeners"], shown, "{page}");
    let written = String::from_utf8_lossy(&gateway.look("/api/v1/config").await.body).into_owned();
    assert!(written.contains("second.example") && written.contains("server.listeners"), "{written}");
    assert!(gateway.stop().await.success());
    for base in [&base, &at_second, &at_third] {
        assert!(TcpStream::connect(base.trim_start_matches("http://")).await.is_err(), "{base}");
    }
}

#[tokio::test]
async fn tokens_of_a_listener_change_with_a_reload_and_its_address_with_a_restart() {
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let (second, at_second) = listener("tokens = [\"ann\"]");
    let endpoint = format!("{at_second}/mcp");
    let of = |first: &str, more: &str| Config::new().listed(first).section(more).section(TOKENS).upstream(&upstream);
    let gateway = Gateway::serve(&of("tokens = [\"ann\"]", &second)).await;
    let session = ask("POST", &gateway.url, &[ANN], GREETING).await;
    let session = session.header("mcp-session-id").expect("it has one").to_owned();
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let pings = async || ask("POST", &gateway.url, &[ANN, ("mcp-session-id", &session)], ping).await.status;
    assert_eq!(pings().await, 200);

    // Which tokens count.
    gateway.configure(&of("tokens = [\"bob\"]", &second));
    until("bob's counts", || async { (greet(&gateway.url, &[BOB]).await == 200).then_some(()) }).await;
    assert_eq!((pings().await, greet(&endpoint, &[ANN]).await, greet(&endpoint, &[BOB]).await), (401, 200, 401));
    let page = "/readyz?verbose";
    let is_applied = |page: &str| page.contains("1 reload ") && !page.contains("next start");
    gateway.look_until(page, "nothing waits for a start", is_applied).await;
    // Back again: the session has ended meanwhile.
    gateway.configure(&of("", &second));
    until("both count", || async { (greet(&gateway.url, &[ANN]).await == 200).then_some(()) }).await;
    assert_eq!((pings().await, greet(&gateway.url, &[BOB]).await), (404, 200));

    // Addresses, and what counts at one that the file does not name any more.
    let (other, at_other) = listener("tokens = [\"bob\"]");
    gateway.configure(&of("", &other));
    let says = |page: &str| page.contains("takes effect at the next start: [[server.listeners]]");
    gateway.look_until(page, "that it waits for a start", says).await;
    assert!(TcpStream::connect(at_other.trim_start_matches("http://")).await.is_err());
    assert_eq!(
        (greet(&endpoint, &[ANN]).await, greet(&endpoint, &[BOB]).await, greet(&endpoint, &[]).await),
        (200, 401, 401)
    );
    // A listener that named tokens is not left open by those that go.
    let (open, _) = listener("");
    gateway.configure(&Config::new().listed("").section(&open).upstream(&upstream));
    gateway.says(&["configuration not reloaded", "none of the tokens that count at", "would be left"]).await;
    assert_eq!(greet(&endpoint, &[]).await, 401);
}

/// How one opens the stream of a session at an address; resolves with what reads the rest of it.
async fn stream(base: &str, session: &str) -> TcpStream {
    let address = base.split('/').nth(2).expect("an address");
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    let head = format!(
        "GET /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\naccept: text/event-stream\r\n{}: {}\r\n\
         mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n\r\n",
        ANN.0, ANN.1
    );
    stream.write_all(head.as_bytes()).await.expect("it is taken");
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        seen.push(within("a head", stream.read_u8()).await.expect("it goes on"));
    }
    assert!(seen.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&seen));
    stream
}

#[tokio::test]
async fn a_listener_that_drops_a_token_ends_what_came_through_it_and_nothing_that_came_through_another() {
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let (second, at_second) = listener("tokens = [\"ann\"]");
    let endpoint = format!("{at_second}/mcp");
    let of = |first: &str| Config::new().listed(first).section(&second).section(TOKENS).upstream(&upstream);
    let gateway = Gateway::serve(&of("tokens = [\"ann\"]")).await;
    let open = async |url: &str| {
        let session = ask("POST", url, &[ANN], GREETING).await;
        session.header("mcp-session-id").expect("it has one").to_owned()
    };
    let (own, other) = (open(&gateway.url).await, open(&endpoint).await);
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let pings = async |session: &str| ask("POST", &endpoint, &[ANN, ("mcp-session-id", session)], ping).await.status;
    assert_eq!((pings(&own).await, pings(&other).await), (200, 200));
    // A session of the one listener, read through the other.
    let mut through = stream(&gateway.url, &other).await;
    gateway.configure(&of("tokens = [\"bob\"]"));
    until("bob's counts", || async { (greet(&gateway.url, &[BOB]).await == 200).then_some(()) }).await;
    within("the stream ends", through.read_to_end(&mut Vec::new())).await.expect("it ends");
    // Its stream ends with the listener's tokens, its session in the same moment or the next.
    until("the session of the listener has ended", || async { (pings(&own).await == 404).then_some(()) }).await;
    assert_eq!(pings(&other).await, 200);
    let _again = stream(&endpoint, &other).await;
}

#[tokio::test]
async fn an_address_that_is_taken_keeps_the_gateway_from_its_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = taken.local_addr().expect("it is bound");
    let of = |port: u16| format!("[[server.listeners]]\naddress = \"127.0.0.1:{port}\"\n");
    let scratch = Scratch::new();
    let file = scratch.file("a.toml", &format!("{}{}[admin]\nlisten = \"off\"\n", of(free_port()), of(address.port())));
    let mut command = tokio::process::Command::new(process::beside(process::GATEWAY));
    command.args(["serve", "--config", &file.display().to_string()]).env("HOME", scratch.path()).kill_on_drop(true);
    let output = within("it ends", command.output()).await.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(&format!("cannot listen on {address}")), "{said}");
}

//! Clients over a Unix socket: for this user alone, by Streamable HTTP, HTTP+SSE and WebSocket, with tokens where they are asked for.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::process;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::{until, within};

const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const TOKEN: &str = "[[auth.tokens]]\nname = \"ann\"\ntoken = \"ann-has-a-long-token\"\n";
const BEARER: &str = "authorization: Bearer ann-has-a-long-token\r\n";

fn socket(path: &Path, keys: &str) -> String {
    format!("[[server.listeners]]\naddress = \"unix:{}\"\n{keys}\n", path.display())
}

/// Beside its port, a gateway with a socket.
async fn gateway(path: &Path, keys: &str, more: &str) -> (Upstream, Gateway) {
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let config = Config::new().listed("").section(&socket(path, keys)).section(more).upstream(&upstream);
    (upstream, Gateway::serve(&config).await)
}

/// What is answered up to a text, or to the end.
async fn exchange(path: &Path, request: &str, end: &str) -> String {
    let mut stream = UnixStream::connect(path).await.expect("somebody listens");
    stream.write_all(request.as_bytes()).await.expect("it is taken");
    read_to(&mut stream, end).await
}

async fn read_to(stream: &mut UnixStream, end: &str) -> String {
    let mut seen = Vec::new();
    within("the answer", async {
        let mut buffer = [0; 4096];
        while end.is_empty() || !String::from_utf8_lossy(&seen).contains(end) {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => seen.extend_from_slice(&buffer[..read]),
            }
        }
    })
    .await;
    String::from_utf8(seen).expect("text")
}

fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn greets(path: &Path, headers: &str) -> (u16, String) {
    let answer = exchange(path, &post(headers, GREETING), "").await;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap_or_default();
    (status, session.to_owned())
}

/// This user, as the gateway names it.
fn user(scratch: &Scratch) -> String {
    format!("unix:{}", std::fs::metadata(scratch.path()).expect("it is there").uid())
}

#[tokio::test]
async fn every_transport_is_served_to_this_user_who_is_a_principal_of_its_own() {
    let scratch = Scratch::new();
    let path = scratch.path().join("own/mcp.sock");
    let (_upstream, gateway) = self::gateway(&path, "", "").await;
    gateway.says(&["serving", &format!("unix://{}#/mcp", path.display())]).await;
    let seen = std::fs::symlink_metadata(&path).expect("it is there");
    assert!(seen.file_type().is_socket() && seen.permissions().mode() & 0o777 == 0o600);
    assert_eq!(std::fs::metadata(path.parent().expect("a folder")).expect("it is there").mode() & 0o777, 0o700);

    // Streamable HTTP, by whatever name; its session is none of the port's.
    let (status, session) = greets(&path, "").await;
    assert_eq!((status, greets(&path, "origin: https://evil.example\r\n").await.0), (200, 403));
    let named = post("", GREETING).replace("host: localhost", "host: anything.example");
    assert!(exchange(&path, &named, "").await.starts_with("HTTP/1.1 200"));
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let with = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
    assert!(exchange(&path, &post(&with, ping), "").await.starts_with("HTTP/1.1 200"));
    let accept = ("accept", "application/json, text/event-stream");
    let at_port = [("content-type", "application/json"), accept, ("mcp-session-id", &session)];
    assert_eq!(trunkline_tests::client::http::exchange(&gateway.url, "POST", &at_port, ping).await.status, 404);
    let principal = format!("principal=\"{}\"", user(&scratch));
    gateway.look_until("/metrics", "it is counted", |page| page.contains(&principal)).await;

    // HTTP+SSE and WebSocket.
    let stream =
        exchange(&path, "GET /sse HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n", "sessionId=").await;
    assert!(stream.contains("event: endpoint"), "{stream}");
    let upgrade = "GET /ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let answer = exchange(&path, upgrade, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 101") && answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{answer}");

    // Another program, and another gateway.
    let mut curl = tokio::process::Command::new("curl");
    curl.args(["-sS", "--unix-socket"]).arg(&path).args(["-H", "content-type: application/json", "-d", GREETING]);
    curl.args(["-H", "accept: application/json, text/event-stream", "http://localhost/mcp"]).kill_on_drop(true);
    let output = within("it answers", curl.output()).await.expect("curl runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("\"protocolVersion\":\"2025-11-25\""), "{said}");
    let far = format!("[upstreams.far]\nurl = \"unix://{}#/mcp\"\nstart_wait = \"50s\"\n", path.display());
    let other = Gateway::serve(&Config::new().section(&far)).await;
    let client = Client::connect(&other.reach(), Revision::R2025_11_25).await;
    client.tools_until("it is up", |tools| tools.iter().any(|tool| tool == "far__up__echo")).await;
    client.call("far__up__echo", "{}").await.result();
    assert!(other.stop().await.success());

    assert!(gateway.stop().await.success());
    assert!(!path.exists(), "the socket goes with the gateway");
}

#[tokio::test]
async fn tokens_are_asked_for_where_the_listener_asks_and_those_without_lose_their_sessions() {
    let scratch = Scratch::new();
    let path = scratch.path().join("own/mcp.sock");
    let upstream = Upstream::http(Script::new("up", Revision::R2025_11_25)).await;
    let of = |keys: &str, more: &str| {
        Config::new().listed("").section(&socket(&path, keys)).section(more).upstream(&upstream)
    };
    let gateway = Gateway::serve(&of("tokens = []", TOKEN)).await;
    let (status, session) = greets(&path, "").await;
    assert_eq!(status, 200);
    let stream = format!(
        "GET /mcp HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\
         mcp-protocol-version: 2025-11-25\r\n\r\n"
    );
    let mut open = UnixStream::connect(&path).await.expect("somebody listens");
    open.write_all(stream.as_bytes()).await.expect("it is taken");
    assert!(read_to(&mut open, "\r\n\r\n").await.starts_with("HTTP/1.1 200"));

    gateway.configure(&of("", TOKEN));
    until("a token is asked for", || async { (greets(&path, "").await.0 == 401).then_some(()) }).await;
    gateway.says(&["tokens are required from now on"]).await;
    read_to(&mut open, "").await;
    assert_eq!(greets(&path, BEARER).await.0, 200);
    gateway.configure(&of("tokens = []", TOKEN));
    until("none is asked for", || async { (greets(&path, "").await.0 == 200).then_some(()) }).await;
    let ping = post(
        &format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n"),
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
    );
    assert!(exchange(&path, &ping, "").await.starts_with("HTTP/1.1 404"), "it has ended");
}

#[tokio::test]
async fn a_socket_of_a_dead_gateway_is_replaced_and_one_of_a_living_one_is_not() {
    let scratch = Scratch::new();
    let path = scratch.path().join("own/mcp.sock");
    let (upstream, mut first) = self::gateway(&path, "", "").await;
    let config = Config::new().listed("").section(&socket(&path, "")).upstream(&upstream);
    let refused = async |path: &PathBuf| {
        let file = scratch.file("second.toml", &format!("{}[admin]\nlisten = \"off\"\n", socket(path, "")));
        let mut command = tokio::process::Command::new(process::beside(process::GATEWAY));
        command.args(["serve", "--config", &file.display().to_string()]).env("HOME", scratch.path()).kill_on_drop(true);
        let output = within("it ends", command.output()).await.expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&path).await;
    assert!(
        said.contains(&format!("cannot listen on unix:{}", path.display()))
            && said.contains("another process listens there"),
        "{said}"
    );
    assert_eq!(greets(&path, "").await.0, 200, "the first is not touched");
    first.kill().await;
    assert!(path.exists() && UnixStream::connect(&path).await.is_err());
    first.again(&config).await;
    assert_eq!(greets(&path, "").await.0, 200);

    // A socket of another program, a file, and a folder that others may look into.
    let foreign = scratch.path().join("own/foreign.sock");
    let _held = UnixListener::bind(&foreign).expect("the folder is ours");
    assert!(refused(&foreign).await.contains("another process listens there"));
    let text = scratch.path().join("own/text");
    std::fs::write(&text, "text").expect("the folder is ours");
    assert!(refused(&text).await.contains("something else at the path"));
    let open = scratch.path().join("open");
    std::fs::create_dir(&open).expect("the folder is ours");
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let said = refused(&open.join("mcp.sock")).await;
    assert!(said.contains("mode 755") && said.contains("chmod 700"), "{said}");
    assert!(first.stop().await.success());
}

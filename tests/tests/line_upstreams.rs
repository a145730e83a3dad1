//! Upstreams on a socket of this machine or at a port: lines of MCP, and HTTP behind a socket.

use crate::frail::stage;
use trunkline_tests::client::{Client, tool};
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::judge;
use trunkline_tests::revision::Revision;
use trunkline_tests::scratch::Scratch;
use trunkline_tests::script::{Act, Rule, Script};
use trunkline_tests::upstream::{Upstream, Way};

const LEGACY: Revision = Revision::R2025_11_25;

#[tokio::test]
async fn one_connection_serves_all_and_is_opened_anew_when_it_breaks() {
    for way in [Way::Unix, Way::Tcp] {
        let cut = Rule::on_tool("tool_error", vec![Act::Run, Act::Cut]).once();
        let stage = stage(way, Script::new("frail", LEGACY).rule(cut), "").await;
        assert_eq!(stage.client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
        assert_eq!(stage.upstream.visits(), 1, "{way:?}");
        let nonce = judge::nonce();
        let waits = stage.client.start(tool("frail__wait", &format!("{{\"gate\":\"g\",\"nonce\":\"{nonce}\"}}"))).await;
        stage.upstream.waiting(1).await;
        for answer in [stage.client.call("frail__tool_error", "{}").await, waits.answer().await] {
            assert!(answer.message().contains("may or may not have run"), "{}", answer.error());
        }
        assert_eq!(stage.client.call("frail__echo", "{\"a\":2}").await.text(), "{\"a\":2}", "it is opened anew");
        assert_eq!(stage.upstream.frames_with(&nonce), 1, "nothing is sent again");
        assert_eq!(stage.upstream.visits(), 2);
        assert_eq!(stage.upstream.complaints().await, Vec::<String>::new());
        let word = if way == Way::Unix { "unix" } else { "tcp" };
        stage.gateway.look_until("/api/v1/upstreams", "its transport is shown", |page| page.contains(word)).await;
    }
}

#[tokio::test]
async fn http_sse_and_websocket_are_spoken_behind_a_socket() {
    for (way, at, keys) in [
        (Way::Http, "/mcp", ""),
        (Way::Sse, "/sse", "transport = \"sse\""),
        (Way::WebSocket, "/ws", "transport = \"websocket\""),
    ] {
        let upstream = Upstream::start(way, Script::new("frail", LEGACY)).await;
        let path = upstream.socket().display().to_string();
        let as_host = format!("http+unix://{}{at}", path.replace('/', "%2F"));
        for url in [format!("unix://{path}#{at}"), as_host] {
            let section = format!("[upstreams.frail]\nurl = \"{url}\"\nstart_wait = \"50s\"\n{keys}");
            let gateway = Gateway::serve(&Config::new().section(&section)).await;
            let client = Client::connect(&gateway.reach(), LEGACY).await;
            client.tools_until("its tools are listed", |tools| tools.contains(&"frail__echo".into())).await;
            assert_eq!(client.call("frail__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "{url}");
        }
        let hosts = upstream.seen().await.into_iter().filter_map(|event| match event.what {
            trunkline_tests::journal::What::Visit { headers, .. } => Some(headers),
            _ => None,
        });
        let named: Vec<_> = hosts.flatten().filter(|(name, _)| name == "host").collect();
        assert!(named.iter().all(|(_, value)| value == "localhost"), "{named:?}");
    }
}

#[tokio::test]
async fn a_socket_that_is_missing_or_has_nobody_behind_it_says_what_to_do() {
    let upstream = Upstream::start(Way::Unix, Script::new("frail", LEGACY)).await;
    let left = upstream.socket();
    upstream.stop();
    trunkline_tests::within::until("nobody listens at the socket", || async {
        std::os::unix::net::UnixStream::connect(&left).is_err().then_some(())
    })
    .await;
    for (path, says) in [
        (left.with_extension("none"), "start the server that makes this socket"),
        (left.clone(), "nobody listens there"),
    ] {
        let section = format!("[upstreams.frail]\nurl = \"unix:{}\"", path.display());
        let gateway = Gateway::serve(&Config::new().section(&section)).await;
        gateway.look_until("/readyz?verbose", "the cause is shown", |page| page.contains(says)).await;
    }
}

#[tokio::test]
async fn a_path_that_leads_to_no_stream_socket_says_what_is_there() {
    let folder = Scratch::new();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), "x").expect("a file can be written");
    std::fs::create_dir(at("folder")).expect("a folder can be made");
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
    assert!(made.expect("there is mkfifo").success());
    let _datagrams = std::os::unix::net::UnixDatagram::bind(at("datagrams")).expect("a socket can be made");
    for (name, says) in [
        ("file", "a regular file is there, and no socket"),
        ("folder", "a folder is there, and no socket"),
        ("pipe", "a named pipe (FIFO) is there, and no socket"),
        ("datagrams", "have the server make a stream socket"),
    ] {
        for at in ["", "#/mcp"] {
            let path = folder.path().join(name).display().to_string();
            let gateway =
                Gateway::serve(&Config::new().section(&format!("[upstreams.frail]\nurl = \"unix:{path}{at}\""))).await;
            gateway.look_until("/readyz?verbose", "the cause is shown", |page| page.contains(says)).await;
        }
    }
}

#[tokio::test]
async fn what_speaks_http_or_tls_in_place_of_lines_is_said_with_how_to_write_its_address() {
    let upstream = Upstream::start(Way::Http, Script::new("frail", LEGACY)).await;
    let alert = Rule::on("*", vec![Act::Write("\u{15}\u{3}\u{1}\0\u{2}\u{2}F".into()), Act::Cut]);
    let secured = Upstream::start(Way::Tcp, Script::new("frail", LEGACY).rule(alert)).await;
    let socket = upstream.socket().display().to_string();
    for (url, says) in [
        (format!("tcp://{}", upstream.address()), ["it speaks HTTP", "http://127.0.0.1:9000/mcp"]),
        (format!("unix:{socket}"), ["it speaks HTTP", "unix:///run/mcp.sock#/mcp"]),
        (format!("tcp://{}", secured.address()), ["it speaks TLS", "https://"]),
    ] {
        let gateway = Gateway::serve(&Config::new().section(&format!("[upstreams.frail]\nurl = \"{url}\""))).await;
        let is_said = |page: &str| says.iter().all(|said| page.contains(said)) && !page.contains("wrong framing");
        gateway.look_until("/readyz?verbose", "the cause is shown", is_said).await;
    }
}

#[tokio::test]
async fn what_speaks_no_mcp_on_its_line_is_told_so_and_left_alone() {
    let noise = Rule::on("*", vec![Act::Write("220 mail.example ESMTP\n".repeat(1_500)), Act::Hang]);
    let upstream = Upstream::start(Way::Tcp, Script::new("frail", LEGACY).rule(noise)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let is_shown = |page: &str| page.contains("not an MCP server: 1000 messages, none of them MCP");
    gateway.look_until("/readyz?verbose", "the cause is shown", is_shown).await;
}

//! Clients out of order, and HTTP as few speak it: each is answered for itself, and the next request rightly.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trunkline_tests::client::{Client, Request, tool};
use trunkline_tests::frame::Frame;
use trunkline_tests::gateway::{Config, Gateway, StdioGateway};
use trunkline_tests::revision::Revision;
use trunkline_tests::script::Script;
use trunkline_tests::upstream::Upstream;
use trunkline_tests::within::within;

const NEWEST: Revision = Revision::R2025_11_25;

fn greeting(version: &str) -> Request {
    let params = "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}";
    Request::new("initialize", &format!("{{\"protocolVersion\":\"{version}\",{params}}}"))
}

#[tokio::test]
async fn a_handshake_out_of_order_changes_nothing() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
    let client = Client::open(&gateway.reach(), NEWEST).await;
    let early = client.call("up__echo", "{}").await;
    assert_eq!(early.code(), -32600, "before the handshake: {early:?}");
    assert!(early.message().contains("initialize"), "it says what to do: {early:?}");
    assert_eq!(client.request(greeting("2025-06-18")).await.value()["protocolVersion"], "2025-06-18");
    // Without `notifications/initialized` it is served all the same.
    client.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
    let again = client.request(greeting("2024-11-05")).await;
    assert_eq!(again.code(), -32600, "a second handshake: {again:?}");
    client.stdio().keep_lines();
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
    let refused = client.stdio().lines.mark();
    client.stdio().write(b"[{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}]").await;
    let told = |line: &String| line.contains("2025-06-18").then_some(());
    client.stdio().lines.wait_from(refused, "the revision is the one that was agreed on", told).await;
}

#[tokio::test]
async fn a_session_is_not_opened_twice() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let client = Client::connect(&gateway.reach(), NEWEST).await;
    let session = client.http().session_id();
    let again = client.request(greeting("2025-03-26")).await;
    let other = again.header("mcp-session-id").map(str::to_owned);
    assert!(again.frame().error.is_some() || other != session, "a session of its own, or none: {again:?}");
    client.tools_until("the first one goes on", |tools| tools.contains(&"up__echo".into())).await;
    assert_eq!(client.call("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}");
}

#[tokio::test]
async fn a_cancellation_that_crosses_its_answer_leaves_at_most_one() {
    for revision in [NEWEST, Revision::MODERN] {
        let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
        let gateway = StdioGateway::prepare(&Config::new().upstream(&upstream));
        let client = Client::connect(&gateway.reach(), revision).await;
        client.tools_until("the upstream is up", |tools| tools.contains(&"up__echo".into())).await;
        client.stdio().keep_lines();
        let mark = client.stdio().lines.mark();
        for round in 0..400 {
            let call = tool("up__echo", "{}").text(revision, &format!("\"r{round}\""));
            let cancel = Request::new("notifications/cancelled", &format!("{{\"requestId\":\"r{round}\"}}"));
            let cancel = cancel.notification(revision);
            if round % 4 == 0 {
                // Both in one piece.
                client.stdio().write_raw(format!("{call}\n{cancel}\n").as_bytes()).await;
                continue;
            }
            client.stdio().write(call.as_bytes()).await;
            for _ in 0..round % 40 {
                tokio::task::yield_now().await;
            }
            client.stdio().write(cancel.as_bytes()).await;
        }
        let last = client.call("up__echo", "{\"last\":1}").await;
        assert_eq!(last.text(), "{\"last\":1}", "nothing is stuck");
        let lines = client.stdio().lines.all().split_off(mark);
        let mut ids: Vec<_> = lines
            .iter()
            .map(|line| Frame::parse(line.as_bytes()).expect("a frame").id_text().to_owned())
            .filter(|id| id.starts_with("\"r"))
            .collect();
        let answers = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), answers, "no call was answered twice");
        assert_eq!(upstream.complaints().await, Vec::<String>::new());
    }
}

/// Sends raw bytes in pieces, closes nothing, and reads until so many heads of responses have come, or the end; where the last
/// request is to be answered, to that answer.
async fn raw(gateway: &Gateway, pieces: &[String], responses: usize, to_last: bool) -> String {
    let address = gateway.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut socket = TcpStream::connect(&address).await.expect("it listens");
    let mut text = String::new();
    for piece in pieces {
        socket.write_all(piece.replace("$HOST", &address).as_bytes()).await.expect("it reads");
    }
    within("the responses", async {
        let mut buffer = [0; 4096];
        loop {
            let heads = text.matches("HTTP/1.").count();
            if heads >= responses && (!to_last || text.contains("\"id\":\"last\"")) {
                return;
            }
            match socket.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(count) => text.push_str(&String::from_utf8_lossy(&buffer[..count])),
            }
        }
    })
    .await;
    text
}

fn post(line: &str, id: &str, headers: &str) -> String {
    let body = greeting("2025-11-25").text(NEWEST, id);
    let common = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    format!("{line}\r\nHost: $HOST\r\n{common}{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn http_as_few_speak_it_is_answered_and_so_is_what_follows() {
    let upstream = Upstream::stdio(Script::new("up", NEWEST)).await;
    let gateway = Gateway::serve(&Config::new().upstream(&upstream)).await;
    let line = "POST /mcp HTTP/1.1";
    let last = post(line, "\"last\"", "");
    let body = greeting("2025-11-25").text(NEWEST, "1");
    let (half, rest) = body.split_at(20);
    let chunked = format!(
        "{line}\r\nHost: $HOST\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{half}\r\n{:x};a=b\r\n{rest}\r\n0\r\nX-Trailer: 1\r\n\r\n",
        half.len(),
        rest.len()
    );
    let absolute = post("POST http://$HOST/mcp HTTP/1.1", "1", "");
    let expecting = post(line, "1", "Expect: 100-continue\r\n");
    let continued = expecting.find("\r\n\r\n").expect("a head") + 4;
    let expecting = [expecting[..continued].to_owned(), expecting[continued..].to_owned(), last.clone()];
    for (what, pieces, responses) in [
        ("in one go", vec![format!("{}{}{last}", post(line, "1", ""), post(line, "2", ""))], 3),
        ("in chunks", vec![chunked, last.clone()], 2),
        ("absolute", vec![absolute, last.clone()], 2),
        ("asking first", expecting.to_vec(), 2),
    ] {
        let told = raw(&gateway, &pieces, responses, true).await;
        let good = told.matches("HTTP/1.1 200").count();
        assert_eq!(good, if what == "in one go" { 3 } else { 2 }, "{what}: {told}");
        let order: Vec<_> = told.match_indices("\"id\":").map(|(at, _)| told[at + 5..].chars().next()).collect();
        assert_eq!(order.last(), Some(&Some('"')), "{what}: the answers are in order: {told}");
    }
    // A client of 1.0 keeps no connection open unless it says so.
    let told = raw(&gateway, &[post("POST /mcp HTTP/1.0", "\"last\"", "")], 1, true).await;
    assert!(told.contains(" 200 ") && told.contains("\"id\":\"last\""), "{told}");
    // Two lengths, a length and chunks, a foreign target: refused, and nothing behind it is taken for a request.
    for bad in [
        post(line, "1", "Content-Length: 3\r\n"),
        post(line, "1", "Transfer-Encoding: chunked\r\n"),
        post("POST http://evil.example/mcp HTTP/1.1", "1", ""),
        post("POST /mcp HTTP/9.9", "1", ""),
        post("POST  /mcp HTTP/1.1", "1", ""),
    ] {
        let told = raw(&gateway, std::slice::from_ref(&bad), 1, false).await;
        assert!(!told.contains(" 200 "), "{bad}: {told}");
    }
}

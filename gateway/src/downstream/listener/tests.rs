//! The accept loop over real sockets on loopback.

use super::{Patience, serve};
use crate::call::Handler;
use crate::downstream::config::Config;
use crate::downstream::guard::GuardLayer;
use crate::downstream::http::Face;
use crate::downstream::scripted::{Hands, scripted};
use crate::lifecycle::Tasks;
use crate::protocol::Revision;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::Layer;

struct Bench {
    address: SocketAddr,
    hands: Hands,
    tasks: Tasks,
}

async fn start(patience: Patience) -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (handler, hands) = scripted(Revision::V2025_11_25);
    let tasks = Tasks::new();
    let face = Face::new(handler as Handler, Config::default(), tasks.clone());
    let service = GuardLayer::new(address, &[], &[]).layer(face);
    tasks.clone().spawn(serve(listener, service, patience, tasks.clone()));
    Bench { address, hands, tasks }
}

fn patience() -> Patience {
    Patience { head: Duration::from_secs(10), grace: Duration::from_secs(3600) }
}

fn post(body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: NAME\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn call(name: &str) -> String {
    let meta =
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","_meta":{meta}}}}}"#);
    post(&body).replace("NAME", name)
}

/// Reads up to a text, or to the end.
async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut seen = Vec::new();
    let read = async {
        let mut buffer = [0; 4096];
        while !String::from_utf8_lossy(&seen).contains(end) {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => seen.extend_from_slice(&buffer[..read]),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), read).await.expect("the text comes, or the end");
    String::from_utf8(seen).unwrap()
}

#[tokio::test]
async fn calls_share_a_connection_and_have_a_length() {
    let bench = start(patience()).await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    for _ in 0..3 {
        stream.write_all(call("echo").as_bytes()).await.unwrap();
        let answer = read_to(&mut stream, "\"structuredContent\":{}}}").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("\r\ncontent-length: "), "{answer}");
    }
    let pipelined = format!("{}{}", call("echo"), "GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(pipelined.as_bytes()).await.unwrap();
    let both = read_to(&mut stream, "400 Bad Request").await;
    assert!(both.starts_with("HTTP/1.1 200 OK\r\n"), "{both}");
}

#[tokio::test]
async fn a_refused_body_does_not_become_the_next_request() {
    let bench = start(patience()).await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    let hidden = "GET /hidden HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let refused =
        format!("POST /mcp HTTP/1.1\r\nhost: evil.example\r\ncontent-length: {}\r\n\r\n{hidden}", hidden.len());
    stream.write_all(refused.as_bytes()).await.unwrap();
    stream.write_all(call("echo").as_bytes()).await.unwrap();
    let answers = read_to(&mut stream, "structuredContent").await;
    assert!(answers.starts_with("HTTP/1.1 403") && !answers.contains("404"), "{answers}");
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_its_stateless_call() {
    let mut bench = start(patience()).await;
    for is_reset in [false, true] {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(call("slow").as_bytes()).await.unwrap();
        let hand = bench.hands.next().await;
        if is_reset {
            stream.set_zero_linger().unwrap();
        }
        drop(stream);
        hand.cancelled().await;
    }
}

#[tokio::test]
async fn a_head_that_never_ends_is_cut_off_and_an_idle_connection_is_not() {
    let bench = start(Patience { head: Duration::from_millis(300), grace: Duration::from_secs(5) }).await;
    let mut slow = TcpStream::connect(bench.address).await.unwrap();
    let mut idle = TcpStream::connect(bench.address).await.unwrap();
    idle.write_all(call("echo").as_bytes()).await.unwrap();
    read_to(&mut idle, "structuredContent").await;
    slow.write_all(b"POST /mcp HTTP/1.1\r\nhost: ").await.unwrap();
    assert_eq!(read_to(&mut slow, "never").await, "");
    idle.write_all(call("echo").as_bytes()).await.unwrap();
    assert!(read_to(&mut idle, "structuredContent").await.starts_with("HTTP/1.1 200"));
    idle.write_all(b"POST /mcp HTTP/1.1\r\nhost: ").await.unwrap();
    assert_eq!(read_to(&mut idle, "HTTP/1.1 200").await, "");
}

#[tokio::test]
async fn the_end_lets_calls_finish_and_closes_idle_connections() {
    let mut bench = start(patience()).await;
    let mut busy = TcpStream::connect(bench.address).await.unwrap();
    let mut idle = TcpStream::connect(bench.address).await.unwrap();
    idle.write_all(call("echo").as_bytes()).await.unwrap();
    read_to(&mut idle, "structuredContent").await;
    busy.write_all(call("slow").as_bytes()).await.unwrap();
    let hand = bench.hands.next().await;
    bench.tasks.end();
    read_to(&mut idle, "never").await;
    assert!(TcpStream::connect(bench.address).await.is_err());
    hand.complete(r#"{"content":[]}"#);
    assert!(read_to(&mut busy, "\"id\":1").await.starts_with("HTTP/1.1 200"));
    tokio::time::timeout(Duration::from_secs(60), bench.tasks.ended())
        .await
        .expect("all tasks end long before the grace");
}

#[tokio::test]
async fn other_services_are_guarded_too() {
    let routes = axum::Router::new().route("/livez", axum::routing::get(async || "ok"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tasks, service) = (Tasks::new(), GuardLayer::new(address, &[], &[]).layer(routes));
    tasks.spawn(serve(listener, service, patience(), tasks.clone()));
    for (host, status) in [("localhost", "200"), ("evil.example", "403")] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET /livez HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await.unwrap();
        assert!(read_to(&mut stream, "\r\n\r\n").await.starts_with(&format!("HTTP/1.1 {status}")));
    }
}

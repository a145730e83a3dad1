//! The accept loop over real sockets on loopback.

use super::{Bounds, NO_ROOM, Patience, rest, serve};
use crate::call::Handler;
use crate::call::caller::credential::LetIn;
use crate::config::Config;
use crate::http::McpService;
use crate::listen::connections::{Arrival, Connections};
use crate::listen::guard::GuardLayer;
use crate::listen::leaving::Leaving;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::protocol::revision::Revision;
use crate::runtime::Tasks;
use crate::runtime::complaints::Complaints;
use crate::scripted::{Hands, scripted};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, ServiceExt};
use tracing::Metadata;
use tracing::span::{Attributes, Id, Record};

// How responses are written to a connection.
mod writes;

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
    let face = McpService::new(
        handler as Handler,
        Config::default(),
        (tasks.clone(), patience.cut.clone()),
        (&Budget::default(), &Refusals::default()),
    );
    let guard = GuardLayer::new(address, &[], &[]);
    let service = move |arrival: &Arrival| guard.layer(face.on(arrival).map_request(LetIn::from));
    tasks.clone().spawn(serve(listener, service, patience, bounds(), tasks.clone()));
    Bench { address, hands, tasks }
}

fn bounds() -> Bounds {
    let room = Connections::new(100, false, Vec::new());
    let face = crate::metrics::edges::Face::new("http");
    Bounds { room, budget: Budget::default(), refusals: Refusals::default(), face }
}

fn patience() -> Patience {
    let config = Config::default();
    Patience::new(config.header_read_timeout, config.shutdown_grace, Leaving::default(), Tasks::new())
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
async fn a_head_of_which_two_programs_could_think_differently_is_refused() {
    let bench = start(patience()).await;
    let chunked = "transfer-encoding: chunked\r\n";
    let whole = call("echo");
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    // Whole, whichever of the two counts.
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let both = format!("content-length: {}\r\n{}", chunks.len(), chunked.trim_end());
    let both = format!("{}\r\n\r\n{chunks}", head.replace(&format!("content-length: {}", body.len()), &both));
    for doubtful in [
        both,
        call("echo").replacen("host: localhost\r\n", "host: localhost\n", 1),
        call("echo").replacen("host: localhost\r\n", &format!("host: localhost\r\n{chunked}"), 1),
        call("echo").replacen("\r\n\r\n", &format!("\r\n{chunked}\r\n"), 1),
    ] {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(format!("{}{doubtful}", call("echo")).as_bytes()).await.unwrap();
        let answer = read_to(&mut stream, "HTTP/1.1 400 Bad Request").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("HTTP/1.1 400 Bad Request"), "{answer}");
        assert_eq!(answer.matches("\"structuredContent\"").count(), 1, "{answer}");
    }
}

#[tokio::test]
async fn a_head_of_more_than_100_headers_is_refused() {
    let bench = start(patience()).await;
    let own = call("echo").split_once("\r\n\r\n").unwrap().0.lines().count() - 1;
    for (headers, status) in [(100, "200 OK"), (101, "431 Request Header Fields Too Large")] {
        let more: String = (own..headers).map(|at| format!("x-{at}: y\r\n")).collect();
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        let request = call("echo").replacen("\r\n\r\n", &format!("\r\n{more}\r\n"), 1);
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to(&mut stream, "\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{headers}: {answer}");
    }
}

#[tokio::test]
async fn a_body_of_which_two_programs_could_think_differently_ends_its_connection() {
    let bench = start(patience()).await;
    let whole = call("echo");
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    let length = format!("content-length: {}", body.len());
    let head = head.replace(&length, "transfer-encoding: chunked");
    let chunk = |extension: &str| format!("{:x}{extension}\r\n{body}\r\n", body.len());
    let sound = format!("{head}\r\n\r\n{}0\r\n\r\n", chunk(";a=b"));
    for doubtful in [
        format!("{}0\r\n\r\n", chunk(";a\nb")),
        format!("{}0;a\nb\r\n\r\n", chunk("")),
        format!("{}0\r\nx: a\ny: b\r\n\r\n", chunk("")),
        format!("{}0\r\n\n", chunk("")),
    ] {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(sound.as_bytes()).await.unwrap();
        read_to(&mut stream, "structuredContent").await;
        stream.write_all(format!("{head}\r\n\r\n{doubtful}{whole}").as_bytes()).await.unwrap();
        let answer = read_to(&mut stream, "never").await;
        assert!(!answer.contains("structuredContent"), "{doubtful:?}: {answer}");
    }
}

#[tokio::test]
async fn a_head_of_more_than_32_kib_is_not_read() {
    let bench = start(patience()).await;
    for (size, status) in [(30_000, "200"), (33_000, "431"), (40_000, "431"), (50_000, "431")] {
        let long = format!("host: localhost\r\nx: {}\r\n", "a".repeat(size));
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(call("echo").replacen("host: localhost\r\n", &long, 1).as_bytes()).await.unwrap();
        let answer = read_to(&mut stream, "\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{size}: {answer}");
    }
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
    let pipelined =
        format!("{}{}", call("echo"), "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n");
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
    let bench = start(Patience { head: Duration::from_millis(300), ..patience() }).await;
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
async fn what_still_runs_when_time_is_over_has_its_last_word() {
    let patience = patience();
    let cut = patience.cut.clone();
    let mut bench = start(patience).await;
    let mut busy = TcpStream::connect(bench.address).await.unwrap();
    busy.write_all(call("slow").as_bytes()).await.unwrap();
    let hand = bench.hands.next().await;
    bench.tasks.end();
    cut.end();
    let answer = read_to(&mut busy, "never").await;
    assert!(answer.contains("the gateway shut down before `tools/call`") && answer.contains("\"id\":1"), "{answer}");
    hand.cancelled().await;
    tokio::time::timeout(Duration::from_secs(60), bench.tasks.ended()).await.expect("and nothing is left");
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
async fn a_request_that_was_on_its_way_at_the_end_is_answered_and_closes_its_connection() {
    let patience = Patience { linger: Duration::from_secs(50), ..patience() };
    let leaving = patience.leaving.clone();
    let bench = start(patience).await;
    let mut idle = TcpStream::connect(bench.address).await.unwrap();
    idle.write_all(call("echo").as_bytes()).await.unwrap();
    assert!(!read_to(&mut idle, "structuredContent").await.contains("connection: close"));
    leaving.ask();
    bench.tasks.end();
    // Nobody is let in any more: the connection has been told, too.
    while TcpStream::connect(bench.address).await.is_ok() {}
    idle.write_all(call("echo").as_bytes()).await.unwrap();
    let last = read_to(&mut idle, "never").await;
    assert!(last.starts_with("HTTP/1.1 200") && last.contains("connection: close\r\n"), "{last}");
    tokio::time::timeout(Duration::from_secs(40), bench.tasks.ended()).await.expect("and is not waited for");
}

#[tokio::test]
async fn who_is_asked_to_leave_is_served_and_closed() {
    let patience = patience();
    let leaving = patience.leaving.clone();
    let bench = start(patience).await;
    leaving.ask();
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    stream.write_all(call("echo").as_bytes()).await.unwrap();
    let answer = read_to(&mut stream, "never").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_read_on_and_its_client_reads_the_answer() {
    let bench = start(patience()).await;
    let size = (16 << 20) + 1;
    let (head, _) = call("echo").split_once("\r\n\r\n").map(|(head, body)| (head.to_owned(), body.len())).unwrap();
    let (head, _) = head.rsplit_once("\r\n").unwrap();
    // More than the system keeps on the way: who is not read cannot send it.
    let more = vec![b'x'; 16 << 20];
    for (length, chunk) in
        [(format!("content-length: {size}"), ""), ("transfer-encoding: chunked".into(), "1000001\r\n")]
    {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        let sent = async {
            stream.write_all(format!("{head}\r\n{length}\r\n\r\n{chunk}x").as_bytes()).await?;
            stream.write_all(&more).await?;
            stream.write_all(if chunk.is_empty() { b"" } else { b"\r\n0\r\n\r\n" }).await
        };
        sent.await.expect("it is read to its end");
        let answer = read_to(&mut stream, "never").await;
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("connection: close\r\n"), "{answer}");
        assert!(answer.contains("`server.max_body`"), "{answer}");
    }
}

#[tokio::test]
async fn who_asks_first_whether_it_may_send_too_much_is_told_no() {
    let bench = start(patience()).await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    let asking = post("").replace("content-length: 0", "content-length: 99999999\r\nexpect: 100-continue");
    stream.write_all(asking.as_bytes()).await.unwrap();
    let answer = read_to(&mut stream, "server.max_body").await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    drop(stream);
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    let whole = call("echo");
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    stream.write_all(format!("{head}\r\nexpect: 100-continue\r\n\r\n").as_bytes()).await.unwrap();
    assert!(read_to(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 100 Continue"), "what fits is asked for");
    stream.write_all(body.as_bytes()).await.unwrap();
    assert!(read_to(&mut stream, "structuredContent").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn whoever_had_connected_before_the_end_is_served() {
    let bench = start(patience()).await;
    // Nobody runs meanwhile: they are all still to be accepted.
    let early: Vec<_> = (0..20).map(|_| std::net::TcpStream::connect(bench.address).unwrap()).collect();
    bench.tasks.end();
    for stream in early {
        stream.set_nonblocking(true).unwrap();
        let mut stream = TcpStream::from_std(stream).unwrap();
        stream.write_all(call("echo").as_bytes()).await.unwrap();
        assert!(read_to(&mut stream, "structuredContent").await.starts_with("HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn other_services_are_guarded_too() {
    let routes = axum::Router::new().route("/livez", axum::routing::get(async || "ok"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tasks, service) = (Tasks::new(), GuardLayer::new(address, &[], &[]).layer(routes));
    tasks.spawn(serve(listener, move |_: &Arrival| service.clone(), patience(), bounds(), tasks.clone()));
    for (host, status) in [("localhost", "200"), ("evil.example", "403")] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET /livez HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await.unwrap();
        assert!(read_to(&mut stream, "\r\n\r\n").await.starts_with(&format!("HTTP/1.1 {status}")));
    }
}

/// Counts the lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicUsize>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_full_table_of_files_is_logged_now_and_then() {
    let (lines, complaints) = (Lines::default(), Complaints::default());
    let _scope = tracing::subscriber::set_default(lines.clone());
    let begun = tokio::time::Instant::now();
    for _ in 0..250 {
        rest(&std::io::Error::other("too many open files"), &complaints).await;
    }
    assert_eq!((lines.0.load(Ordering::Relaxed), begun.elapsed()), (3, 250 * NO_ROOM));
}

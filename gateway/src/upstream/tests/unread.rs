//! Upstreams that stop reading: what has ended before anything of it was sent never runs, and that they do not read is shown.

use super::super::config::{BreakerConfig, Remote, Transport};
use super::http::start;
use super::rig::{Rig, call, config, outcome};
use super::*;
use crate::call::refusal::Refusal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::{Instant, sleep};

const LIMIT: Duration = Duration::from_secs(3);

fn large(name: &str) -> Call {
    let text = "x".repeat(600 * 1024);
    call(LEGACY, Method::ToolsCall, &format!(r#"{{"name":"{name}","arguments":{{"text":"{text}"}}}}"#))
}

async fn refused(reply: &mut Reply) -> Refusal {
    match outcome(reply).await {
        Outcome::Error(Failure::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// An upstream that does not read, and five calls of it: something of the first is sent, and nothing of the others.
async fn five() -> (Rig, Vec<Reply>) {
    let rig = Rig::new(Config { call_timeout: Some(LIMIT), ..config() });
    rig.met(LEGACY, "{}");
    rig.instance.status.came_up();
    let upstream = rig.upstream();
    let calls = ["one", "two", "three", "four", "five"].map(|name| upstream.call(large(name)));
    sleep(Duration::from_millis(1)).await;
    (rig, calls.into())
}

fn shown(rig: &Rig) -> (State, String) {
    let health = rig.board.snapshot().remove(0);
    (health.state, health.cause.unwrap_or_default().full().into_owned())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ended_before_it_was_sent_never_is_and_says_so() {
    let (mut rig, mut calls) = five().await;
    let begun = Instant::now();
    let first = refused(&mut calls[0]).await;
    assert_eq!((first.reason.clone(), first.is_retriable()), (Reason::Timeout, false), "a part of it was sent");
    for call in &mut calls[1..] {
        let refusal = refused(call).await;
        assert!(refusal.is_retriable() && refusal.message.contains("was not sent"), "{refusal}");
    }
    assert!((3..=5).contains(&begun.elapsed().as_secs()) && rig.pipe.in_flight() == 0);
    // It reads again: the one that it has a part of is written whole, and withdrawn. Nothing else comes.
    assert!(rig.far.line().await.contains("\"one\""));
    assert_eq!(rig.far.notification().await.0, Method::Cancelled);
    assert!(rig.far.is_quiet().await);
    let mut next = rig.upstream().call(call(LEGACY, Method::ToolsCall, r#"{"name":"next"}"#));
    let (id, _, params) = rig.far.request().await;
    assert_eq!(params.text(Key::Name).as_deref(), Some("next"));
    rig.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut next).await, Outcome::Complete(_)));
    assert_eq!(shown(&rig).0, State::Ready);
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_before_a_call_was_sent_has_it_taken_back() {
    let (mut rig, mut calls) = five().await;
    // Whoever is in the middle, the last and the first.
    drop(calls.remove(2));
    drop(calls.pop());
    drop(calls.remove(0));
    let answering = async {
        for name in ["one", "two", "four"] {
            let (id, _, params) = rig.far.request().await;
            assert_eq!(params.text(Key::Name).as_deref(), Some(name));
            rig.far.result(&id, "{}").await;
        }
        assert_eq!(rig.far.notification().await.0, Method::Cancelled, "of the first, which was sent in part");
        assert!(rig.far.is_quiet().await);
    };
    let hearing = async {
        for call in &mut calls {
            assert!(matches!(outcome(call).await, Outcome::Complete(_)));
        }
    };
    tokio::join!(answering, hearing);
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_in_part_and_over_is_never_sent_whole_where_nothing_moves_for_long() {
    let (mut rig, mut calls) = five().await;
    let begun = Instant::now();
    assert!(!rig.pipe.is_closed());
    for call in &mut calls {
        refused(call).await;
    }
    sleep(Duration::from_secs(4)).await;
    let (state, cause) = shown(&rig);
    assert_eq!(state, State::Degraded);
    assert!(cause.contains("input not read"), "{cause}");
    let cause = rig.pipe.closed().await;
    assert!(cause.full().contains("input not read"), "{cause:?}");
    assert!((12..=18).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    // What it has is no message.
    let half = rig.far.so_far().await;
    assert!(half.len() < 100 * 1024 && !half.contains(&b'\n'), "{} bytes", half.len());
    let error = rig.board.snapshot().remove(0).last_error.expect("it is kept");
    assert!(error.cause.full().contains("not read"), "{:?}", error.cause);
}

#[tokio::test(start_paused = true)]
async fn calls_whose_callers_wait_do_not_end_a_pipe_that_does_not_move() {
    let mut rig = Rig::new(config());
    rig.met(LEGACY, "{}");
    rig.instance.status.came_up();
    let mut slow = rig.upstream().call(large("slow"));
    // Nobody is in a hurry: it may be at work.
    for _ in 0..60 {
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!((rig.pipe.is_closed(), shown(&rig).0), (false, State::Degraded));
    let (id, _, _) = rig.far.request().await;
    rig.far.result(&id, "{}").await;
    assert!(matches!(outcome(&mut slow).await, Outcome::Complete(_)));
    assert_eq!(shown(&rig).0, State::Ready);
}

/// An HTTP upstream that answers the handshake and lists, and then takes no byte of a call.
fn deaf_host() -> (TcpListener, Config) {
    let socket = TcpSocket::new_v4().unwrap();
    // What its system has taken cannot be had back: that is to be less than the call.
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(64).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    let transport = Transport::Http(Remote::new(url, ::http::HeaderMap::new()));
    let breaker = Some(BreakerConfig { failures: 100, ..BreakerConfig::default() });
    (listener, Config { transport, breaker, call_timeout: Some(LIMIT), ..config() })
}

/// Reads a request, and answers it with what a bare upstream would; the body of a call is not read.
async fn serve(stream: &mut tokio::net::TcpStream) -> Option<()> {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        let length: usize = length.unwrap_or_default();
        if length > 100_000 {
            return Some(());
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let id = crate::protocol::json::get(&body, "id").map(|raw| String::from_utf8_lossy(raw).into_owned());
        let text = String::from_utf8_lossy(&body);
        let answer = match id {
            None => "HTTP/1.1 202 X\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Some(_) if text.contains("server/discover") => "HTTP/1.1 400 X\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Some(id) => {
                let result = match text.contains("initialize") {
                    true => r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#,
                    false => r#"{"tools":[{"name":"t","inputSchema":{}}]}"#,
                };
                super::host::json(200, "", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
            }
        };
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

#[tokio::test]
async fn a_body_that_was_not_taken_in_time_is_never_sent_whole() {
    let (listener, config) = deaf_host();
    let (upstream, board, tasks) = start(config);
    let (taken, mut calls) = tokio::sync::mpsc::channel(8);
    tasks.spawn_until_end(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let taken = taken.clone();
            crate::runtime::Tasks::new().spawn(async move {
                if serve(&mut stream).await.is_some() {
                    taken.send(stream).await.unwrap();
                }
            });
        }
    });
    super::http::is(&board, State::Ready).await;
    let text = "x".repeat(16 << 20);
    let body = format!(r#"{{"name":"t","arguments":{{"text":"{text}"}}}}"#);
    let mut reply = upstream.call(call(LEGACY, Method::ToolsCall, &body));
    let refusal = refused(&mut reply).await;
    assert_eq!(refusal.reason, Reason::Timeout, "{refusal}");
    let mut stream = super::http::bounded(calls.recv()).await.unwrap();
    // It reads again, long after.
    let mut read = Vec::new();
    let ended = super::http::bounded(stream.read_to_end(&mut read)).await;
    assert!(read.len() < body.len(), "{} of {} bytes came, and then {ended:?}", read.len(), body.len());
}

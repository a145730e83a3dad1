//! HTTP upstreams that flood the stream of a call: with large events, and with requests whose answers they do not take.

#![allow(clippy::disallowed_methods, reason = "a test's tasks end with its runtime")]

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const SHAKEN: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"flood","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"flood","inputSchema":{"type":"object"}}]}"#;
const DONE: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;
/// Each session has an id of its own: two clients would not be let into one.
static SESSIONS: AtomicUsize = AtomicUsize::new(1);
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// What floods a call, so often: made of the call's id and of how often it came before.
#[derive(Clone, Copy)]
struct Flood {
    events: fn(&str, usize) -> String,
    times: usize,
}

/// Starts an upstream whose tool is answered behind a flood; what answers its own requests is left without a response.
async fn start(flood: Flood) -> (Config, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let host = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, flood));
        }
    });
    (tokens().section(&format!("[upstreams.up]\nurl = \"http://127.0.0.1:{port}/mcp\"")), host)
}

async fn serve(stream: TcpStream, flood: Flood) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (verb, body) = request(&mut stream).await?;
        let id = body.split("\"id\":").nth(1).map_or("", |rest| rest.split([',', '}']).next().unwrap_or_default());
        let result = |headers: &str, result: &str| {
            let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
            let length = body.len();
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}"
            )
        };
        let empty = |status: u16| format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        let answer = match () {
            () if verb == "GET" => empty(405),
            () if verb == "DELETE" => empty(200),
            () if body.contains("server/discover") => empty(400),
            () if body.contains("\"initialize\"") => {
                let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
                result(&format!("mcp-session-id: s{number}\r\n"), SHAKEN)
            }
            () if body.contains("\"notifications/") => empty(202),
            () if body.contains("tools/list") => result("", TOOLS),
            () if body.contains("tools/call") => {
                stream.write_all(STREAM.as_bytes()).await.ok()?;
                for at in 0..flood.times {
                    stream.write_all((flood.events)(id, at).as_bytes()).await.ok()?;
                }
                let done = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{DONE}}}\n\n");
                return stream.write_all(done.as_bytes()).await.ok();
            }
            () => std::future::pending().await,
        };
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

async fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).await.ok()?;
    let verb = line.split(' ').next()?.to_owned();
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((verb, String::from_utf8(body).ok()?))
}

/// Four calls at once, each behind its flood: the neighbour is served meanwhile, and afterwards all of the memory is back.
async fn floods(flood: Flood) {
    let _part = crate::part().await;
    let (config, host) = start(flood).await;
    let stage = begin(config).await;
    let client = stage.client().await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(client.start(tool("up__flood", "{}").token("\"p\"")).await);
    }
    stage.serves().await;
    for call in calls {
        let answer = within("the call ends", call.answer()).await;
        assert_eq!(answer.text(), "done");
    }
    stage.serves().await;
    stage.comes_back().await;
    host.abort();
}

#[tokio::test]
async fn large_progress_comes_back() {
    let events = |id: &str, at: usize| {
        // With escapes and white space it has several normal forms, each of which is searched for secrets.
        let text = "m \\n".repeat(225_000);
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{id},\"progress\":{at},\"message\":\"{text}\"}}}}\n\n"
        )
    };
    floods(Flood { events, times: 3 }).await;
}

#[tokio::test]
async fn pings_whose_answers_are_not_taken_are_not_kept() {
    let events = |_: &str, at: usize| {
        let ping = |n| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"{at}-{n}\",\"method\":\"ping\"}}\n\n");
        (0..500).map(ping).collect()
    };
    floods(Flood { events, times: 50 }).await;
}

#[tokio::test]
async fn requests_that_nobody_knows_and_whose_answers_are_not_taken_are_not_kept() {
    let events = |_: &str, at: usize| {
        let asked = |n| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":\"{at}-{n}\",\"method\":\"no/such\"}}\n\n");
        (0..500).map(asked).collect()
    };
    floods(Flood { events, times: 50 }).await;
}

//! The upstream of the benchmark: the least that answers, over HTTP or stdio, so that the hop before it is what is measured.

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::io::{BufRead, Write};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mode = args.next().context("usage: bench-upstream stdio|http:ADDR [TOOLS]")?;
    let tools: usize = args.next().map_or(Ok(1), |count| count.parse())?;
    let upstream = Upstream { tools: tool_list(tools) };
    match mode.strip_prefix("http:") {
        Some(address) => serve_http(upstream, address),
        None => serve_stdio(&upstream),
    }
}

/// Answers by the method and copies what varies; it never parses more than it must.
struct Upstream {
    tools: String,
}

fn tool_list(count: usize) -> String {
    let tool = |at: usize| {
        let name = if at == 0 { "echo".to_owned() } else { format!("tool_{at:04}") };
        format!(
            "{{\"name\":\"{name}\",\"description\":\"Answers with what it was given, number {at} of many of its kind.\",\
             \"inputSchema\":{{\"type\":\"object\",\"properties\":{{\"text\":{{\"type\":\"string\",\"description\":\"What to answer with\"}}}},\"required\":[\"text\"]}}}}"
        )
    };
    (0..count).map(tool).collect::<Vec<_>>().join(",")
}

impl Upstream {
    fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(frame).ok()?;
        let id = between(text, "\"id\":", &[',', '}'])?;
        let result = if text.contains("\"tools/call\"") {
            let words = between(text, "\"text\":\"", &['"'])?;
            format!("{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"{words}\"}}]}}")
        } else if text.contains("\"tools/list\"") {
            format!("{{\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",\"tools\":[{}]}}", self.tools)
        } else if text.contains("\"server/discover\"") {
            "{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{\"tools\":{}},\"ttlMs\":0,\"cacheScope\":\"private\"}".into()
        } else if text.contains("\"initialize\"") {
            "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}".into()
        } else {
            return Some(
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32601,\"message\":\"no\"}}}}").into(),
            );
        };
        Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into())
    }
}

fn between<'a>(text: &'a str, start: &str, end: &[char]) -> Option<&'a str> {
    let rest = text[text.find(start)? + start.len()..].trim_start();
    rest.find(end).map(|at| &rest[..at])
}

fn serve_stdio(upstream: &Upstream) -> Result<()> {
    let mut input = std::io::BufReader::with_capacity(1 << 16, std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    let (mut line, mut out) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Some(answer) = upstream.answer(&line) {
            out.extend_from_slice(&answer);
            out.push(b'\n');
        }
        // Answers go out together while more questions lie ready.
        if memchr_newline(input.buffer()).is_none() && !out.is_empty() {
            output.write_all(&out)?;
            output.flush()?;
            out.clear();
        }
    }
}

fn memchr_newline(buffer: &[u8]) -> Option<usize> {
    buffer.iter().position(|byte| *byte == b'\n')
}

fn serve_http(upstream: Upstream, address: &str) -> Result<()> {
    let upstream: &'static Upstream = Box::leak(Box::new(upstream));
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async move {
        let listener = tokio::net::TcpListener::bind(address).await?;
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            let service = service_fn(move |request: Request<hyper::body::Incoming>| async move {
                let body = request.into_body().collect().await?.to_bytes();
                let (status, body) = match upstream.answer(&body) {
                    Some(answer) => (200, Bytes::from(answer)),
                    None => (202, Bytes::new()),
                };
                let response = Response::builder().status(status).header("content-type", "application/json");
                Ok::<_, hyper::Error>(response.body(Full::new(body)).expect("a constant response is well formed"))
            });
            #[allow(clippy::disallowed_methods, reason = "the process ends with its benchmark")]
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(hyper_util::rt::TokioIo::new(socket), service),
            );
        }
    })
}

//! The upstream of the benchmark: the least that answers, over any transport, so that the hop before it is what is measured.

#![allow(clippy::disallowed_methods, reason = "the process ends with its benchmark")]

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::HeaderValue;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};
use tokio_tungstenite::tungstenite::Message;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: bench-upstream stdio|http:ADDR|sse:ADDR|ws:ADDR|unix:ADDR|h2:ADDR [TOOLS] [SOCKET | CERT KEY]";
    let mode = args.next().context(usage)?;
    let tools: usize = args.next().map_or(Ok(1), |count| count.parse())?;
    let upstream = Upstream { tools: tool_list(tools), lines: LINE.repeat(FILL_MAX / LINE.len()) };
    let Some((way, address)) = mode.split_once(':') else { return serve_stdio(&upstream) };
    let upstream: &'static Upstream = Box::leak(Box::new(upstream));
    let rest: Vec<String> = args.collect();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async move {
        // Where it is a socket that is called, this shows that it is there.
        let listener = TcpListener::bind(address).await?;
        match (way, &rest[..]) {
            ("http", _) => serve_http(upstream, listener, None).await,
            ("h2", [cert, key]) => serve_http(upstream, listener, Some(acceptor(cert, key)?)).await,
            ("ws", _) => serve_websocket(upstream, listener).await,
            ("sse", _) => serve_sse(upstream, listener).await,
            ("unix", [socket]) => serve_lines(upstream, socket).await,
            _ => bail!(usage),
        }
    })
}

/// Answers by the method and copies what varies; it never parses more than it must.
struct Upstream {
    tools: String,
    /// Lines of text, as a JSON string has them.
    lines: String,
}

/// The most bytes that a call may add to its answer.
const FILL_MAX: usize = 1 << 20;
/// One line of the text that is added.
const LINE: &str = "\\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd";

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
    /// Whole lines of about as many bytes as the arguments' `fill` asks for.
    fn fill(&self, frame: &str) -> &str {
        let bytes: usize = between(frame, "\"fill\":", &[',', '}']).and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        let bytes = bytes.min(self.lines.len()).next_multiple_of(LINE.len());
        &self.lines[..bytes]
    }

    fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(frame).ok()?;
        let id = between(text, "\"id\":", &[',', '}'])?;
        let result = if text.contains("\"tools/call\"") {
            let words = between(text, "\"text\":\"", &['"'])?;
            let fill = self.fill(text);
            format!("{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"{words}{fill}\"}}]}}")
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

/// How long a call wants to wait for its answer.
fn wait(frame: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(frame).ok()?;
    between(text, "\"wait\":", &[',', '}'])?.parse().ok().map(Duration::from_millis)
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

type Reply = Response<BoxBody<Bytes, Infallible>>;

fn whole(status: u16, body: impl Into<Bytes>) -> Reply {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(BoxBody::new(Full::new(body.into()))).expect("a constant response is well formed")
}

async fn serve_http(upstream: &'static Upstream, listener: TcpListener, tls: Option<TlsAcceptor>) -> Result<()> {
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let service = service_fn(move |request: Request<Incoming>| async move {
            let body = request.into_body().collect().await?.to_bytes();
            if let Some(wait) = wait(&body) {
                tokio::time::sleep(wait).await;
            }
            Ok::<_, hyper::Error>(match upstream.answer(&body) {
                Some(answer) => whole(200, answer),
                None => whole(202, ""),
            })
        });
        match tls.clone() {
            None => drop(tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service))),
            Some(tls) => drop(tokio::spawn(async move {
                let socket = TokioIo::new(tls.accept(socket).await.ok()?);
                http2::Builder::new(TokioExecutor::new()).serve_connection(socket, service).await.ok()
            })),
        }
    }
}

fn acceptor(cert: &str, key: &str) -> Result<TlsAcceptor> {
    let (cert, key) = (CertificateDer::from_pem_file(cert)?, PrivateKeyDer::from_pem_file(key)?);
    let builder = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
    let mut config = builder.with_single_cert(vec![cert], key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve_lines(upstream: &'static Upstream, socket: &str) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(async move {
            let (reader, mut writer) = socket.into_split();
            let mut lines = tokio::io::BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(mut answer) = upstream.answer(line.as_bytes()) {
                    answer.push(b'\n');
                    writer.write_all(&answer).await.ok()?;
                }
            }
            Some(())
        });
    }
}

async fn serve_websocket(upstream: &'static Upstream, listener: TcpListener) -> Result<()> {
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(async move {
            #[allow(clippy::result_large_err, reason = "it is the library's")]
            let agrees = |_: &Request<()>, mut response: Response<()>| {
                response.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("mcp"));
                Ok(response)
            };
            let mut socket = tokio_tungstenite::accept_hdr_async(socket, agrees).await.ok()?;
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else { continue };
                if let Some(answer) = upstream.answer(text.as_bytes()) {
                    socket.send(Message::text(String::from_utf8(answer).ok()?)).await.ok()?;
                }
            }
            Some(())
        });
    }
}

/// The streams that are open, by their numbers.
type Streams = Arc<Mutex<HashMap<u64, mpsc::UnboundedSender<Bytes>>>>;

async fn serve_sse(upstream: &'static Upstream, listener: TcpListener) -> Result<()> {
    let streams = Streams::default();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let streams = streams.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let streams = streams.clone();
            async move {
                let lock = || streams.lock().unwrap_or_else(PoisonError::into_inner);
                if request.method() == Method::GET {
                    let (sender, mut receiver) = mpsc::unbounded_channel::<Bytes>();
                    let number = lock().len() as u64;
                    let _there = sender.send(format!("event: endpoint\ndata: /message?{number}\n\n").into());
                    lock().insert(number, sender);
                    let events = futures_util::stream::poll_fn(move |cx| {
                        receiver.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
                    });
                    let response = Response::builder().header("content-type", "text/event-stream");
                    let body = BoxBody::new(StreamBody::new(events));
                    return Ok(response.body(body).expect("a constant response is well formed"));
                }
                let number = request.uri().query().and_then(|number| number.parse::<u64>().ok()).unwrap_or(u64::MAX);
                let body = request.into_body().collect().await?.to_bytes();
                if let (Some(answer), Some(stream)) = (upstream.answer(&body), lock().get(&number)) {
                    let _there = stream.send([b"event: message\ndata: ", &answer[..], b"\n\n"].concat().into());
                }
                Ok::<Reply, hyper::Error>(whole(202, ""))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

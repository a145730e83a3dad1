//! What calls of the benchmark go over: HTTP on a connection of its own, HTTP/2 on one that all share, a WebSocket, HTTP+SSE, lines.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// How a target is reached.
#[derive(Clone)]
pub(crate) enum Way {
    /// HTTP/1.1, each worker on a connection of its own.
    Http,
    /// The same over a socket of this machine.
    HttpAtSocket(PathBuf),
    /// HTTP/2 over TLS, all workers on one connection; with the certificate of who has signed the server's.
    Http2(PathBuf),
    /// WebSocket.
    WebSocket,
    /// HTTP+SSE.
    Sse,
    /// Lines over a socket of this machine.
    Lines(PathBuf),
}

/// A byte stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection for all workers.
pub(crate) type Shared = SendRequest<Full<Bytes>>;

/// One worker's.
pub(crate) enum Wire {
    Http(Box<dyn Stream>),
    Http2(Shared),
    WebSocket(Box<WebSocketStream<TcpStream>>),
    Sse { posts: TcpStream, events: TcpStream, came: Vec<u8> },
    Lines(BufReader<UnixStream>),
}

/// What all workers share, where they do.
pub(crate) async fn shared(way: &Way, address: &str) -> Result<Option<Shared>> {
    let Way::Http2(authority) = way else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let mut config = builder.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = connect(address).await?;
    let name = ServerName::try_from("127.0.0.1")?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(Some(send))
}

async fn connect(address: &str) -> Result<TcpStream> {
    let socket = TcpStream::connect(address).await.with_context(|| address.to_owned())?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

impl Wire {
    /// Connects, and gives the path that messages go to.
    pub(crate) async fn open(way: &Way, address: &str, path: &str, shared: Option<Shared>) -> Result<(Self, String)> {
        let wire = match way {
            Way::Http => Self::Http(Box::new(connect(address).await?)),
            Way::HttpAtSocket(socket) => Self::Http(Box::new(UnixStream::connect(socket).await?)),
            Way::Http2(_) => Self::Http2(shared.context("it is shared")?),
            Way::Lines(socket) => Self::Lines(BufReader::new(UnixStream::connect(socket).await?)),
            Way::WebSocket => {
                let mut request = format!("ws://{address}/ws").into_client_request()?;
                request.headers_mut().insert("sec-websocket-protocol", "mcp".parse()?);
                let (socket, _) = tokio_tungstenite::client_async(request, connect(address).await?).await?;
                Self::WebSocket(Box::new(socket))
            }
            Way::Sse => {
                let mut events = connect(address).await?;
                let head = format!("GET /sse HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n");
                events.write_all(head.as_bytes()).await?;
                let mut came = Vec::new();
                let endpoint = event(&mut events, &mut came).await?;
                let wire = Self::Sse { posts: connect(address).await?, events, came };
                return Ok((wire, String::from_utf8(endpoint)?));
            }
        };
        Ok((wire, path.to_owned()))
    }

    /// Sends one message, and reads its answer, where it has one; returns the head of a response.
    pub(crate) async fn exchange(&mut self, head: &str, body: &str, answer: &mut Vec<u8>) -> Result<String> {
        let is_asked = body.contains("\"id\":");
        answer.clear();
        match self {
            Self::Http(stream) => return http(stream, head, body, answer).await,
            Self::Http2(send) => return http2(send, head, body, answer).await,
            Self::Sse { posts, events, came } => {
                http(posts, head, body, answer).await?;
                answer.clear();
                while is_asked && !is_answer(answer) {
                    *answer = event(events, came).await?;
                }
            }
            Self::Lines(stream) => {
                stream.write_all(format!("{body}\n").as_bytes()).await?;
                while is_asked && !is_answer(answer) {
                    answer.clear();
                    ensure!(stream.read_until(b'\n', answer).await? > 0, "the connection was closed in mid-answer");
                }
            }
            Self::WebSocket(socket) => {
                socket.send(Message::text(body)).await?;
                while is_asked && !is_answer(answer) {
                    if let Message::Text(text) = socket.next().await.context("the WebSocket was closed")?? {
                        *answer = text.as_bytes().to_vec();
                    }
                }
            }
        }
        Ok(String::new())
    }
}

/// Whether it answers something: what the gateway tells besides, such as of lists that have changed, names a method.
fn is_answer(text: &[u8]) -> bool {
    !text.is_empty() && find(text, b"\"method\":").is_none()
}

/// The data of the next event.
async fn event(stream: &mut TcpStream, came: &mut Vec<u8>) -> Result<Vec<u8>> {
    const DATA: &[u8] = b"\ndata: ";
    let mut buffer = [0; 65536];
    loop {
        if let Some(at) = find(came, DATA)
            && let Some(end) = came[at + DATA.len()..].iter().position(|byte| *byte == b'\n')
        {
            let data = came[at + DATA.len()..][..end].trim_ascii_end().to_vec();
            came.drain(..at + DATA.len() + end);
            return Ok(data);
        }
        let read = stream.read(&mut buffer).await?;
        ensure!(read > 0, "the stream of events was closed");
        came.extend_from_slice(&buffer[..read]);
    }
}

async fn http2(send: &mut Shared, head: &str, body: &str, answer: &mut Vec<u8>) -> Result<String> {
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).context("a head begins with its path")?;
    let mut headers: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
    let host = headers.iter().position(|(name, _)| *name == "host").context("a head names its host")?;
    let (_, host) = headers.remove(host);
    let mut request = http::Request::post(format!("https://{host}{path}"));
    for (name, value) in headers.into_iter().filter(|(name, _)| *name != "content-length") {
        request = request.header(name, value);
    }
    let response = send.send_request(request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())))?).await?;
    let (parts, said) = response.into_parts();
    answer.extend_from_slice(&said.collect().await?.to_bytes());
    ensure!(parts.status.is_success(), "refused: {} {}", parts.status, String::from_utf8_lossy(answer));
    let text = parts.headers.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap_or_default()));
    Ok(text.collect())
}

async fn http(stream: &mut (impl Stream + ?Sized), head: &str, body: &str, answer: &mut Vec<u8>) -> Result<String> {
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await?;
    let mut buffer = [0; 65536];
    let head = loop {
        let read = stream.read(&mut buffer).await?;
        ensure!(read > 0, "the connection was closed in mid-answer");
        answer.extend_from_slice(&buffer[..read]);
        if let Some(at) = find(answer, b"\r\n\r\n") {
            break at + 4;
        }
    };
    let text = String::from_utf8(answer[..head].to_vec())?;
    if !text.starts_with("HTTP/1.1 2") {
        bail!("refused: {text}{}", String::from_utf8_lossy(&answer[head..]));
    }
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = head + length.unwrap_or(0);
    while answer.len() < length {
        let read = stream.read(&mut buffer).await?;
        ensure!(read > 0, "the connection was closed in mid-answer");
        answer.extend_from_slice(&buffer[..read]);
    }
    answer.drain(..head);
    Ok(text)
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

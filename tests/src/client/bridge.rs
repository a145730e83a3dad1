//! WebSocket and HTTP+SSE as a pair of pipes: each line of ours is one message, each message of the peer's one line.

use futures_util::{SinkExt, StreamExt};
use hyper::Method;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::client::http::{HttpWire, exchange};
use crate::client::stream::EventStream;
use crate::revision::Revision;
use crate::tape::Tape;

/// What a client reads from, and what it writes to.
pub(crate) type Pipes = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// As much as a pipe holds.
const HELD: usize = 1 << 20;

fn pipes() -> (Pipes, BufReader<ReadHalf<DuplexStream>>, WriteHalf<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(HELD);
    let (reader, writer) = tokio::io::split(ours);
    let (lines, out) = tokio::io::split(theirs);
    ((Box::new(reader), Box::new(writer)), BufReader::new(lines), out)
}

/// Opens a WebSocket of the subprotocol `mcp`.
pub async fn connect(url: &str) -> WebSocketStream<TcpStream> {
    connect_with(url, &[]).await
}

/// The same, with more headers.
pub async fn connect_with(url: &str, headers: &[(&'static str, &str)]) -> WebSocketStream<TcpStream> {
    let mut request = url.into_client_request().expect("a URL");
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("visible text"));
    }
    request.headers_mut().insert("sec-websocket-protocol", "mcp".parse().expect("visible text"));
    let address = request.uri().authority().expect("a host and port").to_string();
    let stream = TcpStream::connect(address).await.expect("somebody listens");
    let (socket, answer) = tokio_tungstenite::client_async(request, stream).await.expect("the upgrade is granted");
    let agreed = answer.headers().get("sec-websocket-protocol").map(|name| name.as_bytes());
    assert_eq!(agreed, Some(&b"mcp"[..]), "the subprotocol");
    socket
}

/// Over a WebSocket, until either side ends.
pub(crate) fn websocket(url: String, bearer: Option<&str>) -> Pipes {
    let (pipes, mut lines, mut out) = pipes();
    let bearer = bearer.map(str::to_owned);
    tokio::spawn(async move {
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", &bearer[..])).collect();
        let mut socket = connect_with(&url, &headers).await;
        let mut line = Vec::new();
        loop {
            tokio::select! {
                read = lines.read_until(b'\n', &mut line) => {
                    if read.unwrap_or(0) == 0 {
                        // The client has hung up; it may go on reading.
                        let _ = socket.close(None).await;
                    } else {
                        let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                        let _ = socket.send(Message::text(text)).await;
                        line.clear();
                    }
                }
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        let _ = out.write_all(format!("{text}\n").as_bytes()).await;
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return drop(out.shutdown().await),
                },
            }
        }
    });
    pipes
}

/// Over HTTP+SSE: what the stream says, and a POST for each line, one after the other.
pub(crate) fn sse(url: String, bearer: Option<&str>) -> Pipes {
    let (pipes, mut lines, mut out) = pipes();
    let bearer = bearer.map(str::to_owned);
    tokio::spawn(async move {
        let wire = HttpWire::new(&url, Revision::R2024_11_05);
        let authorization = || bearer.iter().map(|bearer| ("authorization", &bearer[..]));
        let accept = [("accept", "text/event-stream")].into_iter();
        let headers: Vec<_> =
            accept.chain(authorization()).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let posted: Vec<_> = [("content-type", "application/json")].into_iter().chain(authorization()).collect();
        let stream = EventStream::open(&wire, Method::GET, &headers, "", std::sync::Arc::new(Tape::default())).await;
        let named = |event: &Option<crate::sse::SseEvent>| {
            event.as_ref().filter(|event| event.name == "endpoint").and_then(|event| event.data.clone())
        };
        let endpoint = stream.events.wait("the stream names its endpoint", named).await;
        let target = url.replace("/sse", &endpoint);
        let mut seen = 0;
        let mut line = Vec::new();
        loop {
            tokio::select! {
                read = lines.read_until(b'\n', &mut line) => {
                    if read.unwrap_or(0) == 0 {
                        return drop(out.shutdown().await);
                    }
                    let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                    let answer = exchange(&target, "POST", &posted, &text).await;
                    if answer.status != 202 {
                        let said = String::from_utf8_lossy(&answer.body).replace('\n', " ");
                        let _ = out.write_all(format!("{said}\n").as_bytes()).await;
                    }
                    line.clear();
                }
                event = stream.events.nth(seen) => {
                    seen += 1;
                    let Some(event) = event else { return drop(out.shutdown().await) };
                    if let Some(data) = event.data.filter(|data| event.name != "endpoint" && !data.is_empty()) {
                        let _ = out.write_all(format!("{data}\n").as_bytes()).await;
                    }
                }
            }
        }
    });
    pipes
}

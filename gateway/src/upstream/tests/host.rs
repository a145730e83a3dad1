//! For tests: an HTTP upstream on loopback that answers with whatever text a test makes of each request.

use super::super::config::{Config, Remote, Transport};
use super::rig::config;
use crate::protocol::json;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// One request as the upstream saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
    /// What is written before the answer.
    early: Sender<String>,
}

impl Seen {
    /// The JSON-RPC method.
    pub(crate) fn method(&self) -> String {
        json::get(self.body.as_bytes(), "method").and_then(json::unquote).unwrap_or_default().into_owned()
    }

    /// Writes a part of the answer now.
    pub(crate) fn write(&self, text: impl Into<String>) {
        let _ = self.early.try_send(text.into());
    }

    /// The JSON-RPC id, raw.
    pub(crate) fn id(&self) -> String {
        String::from_utf8_lossy(json::get(self.body.as_bytes(), "id").unwrap_or_default()).into_owned()
    }

    /// A header, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// A result as the answer, in JSON.
    pub(crate) fn result(&self, result: &str) -> String {
        json(200, "", &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.id()))
    }

    /// An error as the answer, in JSON.
    pub(crate) fn error(&self, status: u16, code: i64) -> String {
        json(status, "", &format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"no"}}}}"#, self.id()))
    }

    /// An event that holds a result.
    pub(crate) fn event(&self, result: &str) -> String {
        format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n\n", self.id())
    }
}

/// A whole JSON response.
pub(crate) fn json(status: u16, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A response without a body.
pub(crate) fn empty(status: u16) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")
}

/// A stream of events; the connection is closed behind it.
pub(crate) fn events(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}")
}

type Answer = Pin<Box<dyn Future<Output = String> + Send>>;

/// The upstream, and all that it saw.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Host {
    /// Starts one; an answer that ends in nothing but `content-length` keeps the connection, an empty one closes it.
    #[allow(clippy::disallowed_methods, reason = "a test's own upstream")]
    pub(crate) async fn start(play: impl Fn(Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = Self { port: listener.local_addr().unwrap().port(), seen: Arc::default() };
        let (play, seen) = (Arc::new(play), host.seen.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (play, seen) = (play.clone(), seen.clone());
                tokio::spawn(async move { serve(stream, &*play, &seen).await });
            }
        });
        host
    }

    /// A configuration that reaches it.
    pub(crate) fn config(&self) -> Config {
        let url = format!("http://127.0.0.1:{}/mcp", self.port).parse().unwrap();
        Config { transport: Transport::Http(Remote::new(url, http::HeaderMap::new())), ..config() }
    }

    /// What it saw, as `VERB method` or `VERB`.
    pub(crate) fn story(&self) -> Vec<String> {
        self.all().iter().map(|seen| format!("{} {}", seen.verb, seen.method()).trim().to_owned()).collect()
    }

    /// How often it saw a line of its story.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.story().iter().filter(|seen| *seen == line).count()
    }

    /// All that it saw.
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until it has seen a line of its story.
    pub(crate) async fn saw(&self, line: &str) -> Seen {
        let look = async {
            loop {
                if let Some(at) = self.story().iter().position(|seen| seen == line) {
                    return self.all()[at].clone();
                }
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), look)
            .await
            .unwrap_or_else(|_| panic!("never saw {line}: {:?}", self.story()))
    }
}

async fn serve(stream: TcpStream, play: &(impl Fn(Seen) -> Answer + Send + Sync), seen: &Mutex<Vec<Seen>>) {
    let mut stream = BufReader::new(stream);
    while let Some((request, mut parts)) = request(&mut stream).await {
        seen.lock().unwrap().push(request.clone());
        let mut playing = play(request);
        let answer = loop {
            tokio::select! {
                biased;
                Some(part) = parts.recv() => stream.write_all(part.as_bytes()).await.unwrap_or_default(),
                answer = &mut playing => break answer,
            }
        };
        let keeps = answer.contains("content-length:");
        while let Ok(part) = parts.try_recv() {
            stream.write_all(part.as_bytes()).await.unwrap_or_default();
        }
        if stream.write_all(answer.as_bytes()).await.is_err() || !keeps {
            return;
        }
    }
}

async fn request(stream: &mut BufReader<TcpStream>) -> Option<(Seen, Receiver<String>)> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut words = line.split(' ').map(str::to_owned);
    let verb = words.next()?;
    let mut headers = HashMap::from([(":path".to_owned(), words.next()?)]);
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        assert!(headers.insert(name.to_lowercase(), value.to_owned()).is_none(), "{name} stands twice");
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let (early, parts) = channel(64);
    Some((Seen { verb, headers, body: String::from_utf8(body).unwrap(), early }, parts))
}

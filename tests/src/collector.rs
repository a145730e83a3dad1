//! A collector of traces: takes what is posted to it by OTLP over HTTP, and reads the spans out of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::tape::Tape;

/// A collector on loopback.
pub struct Collector {
    /// Where it listens, without a path.
    pub url: String,
    /// Each span that it took.
    pub spans: Arc<Tape<Span>>,
    /// Each request: its head, and its body as far as that is text.
    pub requests: Arc<Tape<(String, String)>>,
    status: Arc<AtomicU16>,
}

/// A span as it came; ids are hexadecimal.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// `service.name` of who made it.
    pub service: String,
    /// The trace.
    pub trace: String,
    /// Itself.
    pub id: String,
    /// Its parent; empty: it has none.
    pub parent: String,
    /// What vendors add.
    pub state: String,
    /// Its name.
    pub name: String,
    /// 2: server, 3: client.
    pub kind: u64,
    /// Nanoseconds since the epoch.
    pub time: (u64, u64),
    /// Texts and numbers, as text.
    pub attributes: BTreeMap<String, String>,
    /// The trace and the span of each link.
    pub links: Vec<(String, String)>,
    /// 2: an error.
    pub status: u64,
    /// Those of `traceparent`, and whether the parent is another process's.
    pub flags: u32,
}

impl Collector {
    /// One that takes everything.
    pub async fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (spans, requests, status) = (Arc::default(), Arc::default(), Arc::new(AtomicU16::new(200)));
        let collector = Collector { url, spans, requests, status };
        let (spans, requests, status) = (collector.spans.clone(), collector.requests.clone(), collector.status.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some((head, body)) = read(&mut stream).await else { continue };
                let status = status.load(Ordering::Relaxed);
                if status == 200 {
                    request(&body).into_iter().for_each(|span| spans.push(span));
                }
                requests.push((head, String::from_utf8_lossy(&body).into_owned()));
                let answer = format!("HTTP/1.1 {status} Answer\r\ncontent-length: 0\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        collector
    }

    /// Answers with this status from now on.
    pub fn answers(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Waits until it has so many spans of a trace, and gives them.
    pub async fn trace(&self, trace: &str, count: usize) -> Vec<Span> {
        let mut found = Vec::new();
        let pick = |span: &Span| {
            if span.trace == trace {
                found.push(span.clone());
            }
            (found.len() == count).then_some(())
        };
        self.spans.wait(&format!("{count} spans of trace {trace} come"), pick).await;
        found
    }
}

/// A request's head and body.
async fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut text = Vec::new();
    let end = loop {
        if let Some(at) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(text[..end].to_vec()).ok()?.to_ascii_lowercase();
    let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    while text.len() < end + length {
        if stream.read_buf(&mut text).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, text.split_off(end)))
}

/// The value of a field of a protocol buffer.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn bytes(&self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Number(number) => panic!("{number} is no message"),
        }
    }

    fn number(&self) -> u64 {
        match self {
            Value::Number(number) => *number,
            Value::Bytes(_) => panic!("a message is no number"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("a text is UTF-8")
    }

    fn hex(&self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// All fields of a message, in order; what is none panics.
fn fields(mut text: &[u8]) -> Vec<(u64, Value<'_>)> {
    fn varint(text: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = text.split_first().expect("a number has an end");
            *text = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !text.is_empty() {
        let tag = varint(&mut text);
        let mut take = |length: usize| {
            let (value, rest) = text.split_at(length);
            text = rest;
            value
        };
        let value = match tag & 7 {
            1 => Value::Number(u64::from_le_bytes(take(8).try_into().expect("eight bytes"))),
            5 => Value::Number(u32::from_le_bytes(take(4).try_into().expect("four bytes")).into()),
            0 => Value::Number(varint(&mut text)),
            2 => {
                let length = varint(&mut text);
                let (value, rest) = text.split_at(usize::try_from(length).expect("a length"));
                text = rest;
                Value::Bytes(value)
            }
            wire => panic!("{wire} is no wire type of today"),
        };
        found.push((tag >> 3, value));
    }
    found
}

fn messages(text: &[u8], field: u64) -> Vec<&[u8]> {
    fields(text).into_iter().filter(|(number, _)| *number == field).map(|(_, value)| value.bytes()).collect()
}

/// The spans of an `ExportTraceServiceRequest`.
fn request(body: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in messages(body, 1) {
        let mut attributes = BTreeMap::new();
        messages(of_resource, 1)
            .into_iter()
            .flat_map(|resource| messages(resource, 1))
            .for_each(|pair| attribute(pair, &mut attributes));
        let service = attributes.get("service.name").cloned().unwrap_or_default();
        for one in messages(of_resource, 2).into_iter().flat_map(|of_scope| messages(of_scope, 2)) {
            spans.push(Span { service: service.clone(), ..span(one) });
        }
    }
    spans
}

fn span(text: &[u8]) -> Span {
    let mut span = Span::default();
    for (field, value) in fields(text) {
        match field {
            1 => span.trace = value.hex(),
            2 => span.id = value.hex(),
            3 => span.state = value.text(),
            4 => span.parent = value.hex(),
            5 => span.name = value.text(),
            6 => span.kind = value.number(),
            7 => span.time.0 = value.number(),
            8 => span.time.1 = value.number(),
            9 => attribute(value.bytes(), &mut span.attributes),
            13 => {
                let link = fields(value.bytes());
                let id = |wanted: u64| link.iter().find(|(field, _)| *field == wanted).map(|(_, value)| value.hex());
                span.links.push((id(1).unwrap_or_default(), id(2).unwrap_or_default()));
            }
            15 => fields(value.bytes())
                .iter()
                .filter(|(field, _)| *field == 3)
                .for_each(|(_, code)| span.status = code.number()),
            16 => span.flags = u32::try_from(value.number()).expect("32 bits"),
            _ => {}
        }
    }
    span
}

fn attribute(pair: &[u8], attributes: &mut BTreeMap<String, String>) {
    let (mut name, mut content) = (String::new(), String::new());
    for (field, value) in fields(pair) {
        match field {
            1 => name = value.text(),
            2 => {
                for (kind, value) in fields(value.bytes()) {
                    content = if kind == 1 { value.text() } else { value.number().to_string() };
                }
            }
            _ => {}
        }
    }
    attributes.insert(name, content);
}

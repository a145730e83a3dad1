//! Upstreams that quote what they were sent: one over HTTP, and a child.

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trunkline_tests::canary::{Canary, FORMS, form, in_ascii};
use trunkline_tests::frame::quote;

/// A child that reads the line that a call names from a file, and says it in the manner that it is told.
pub(crate) const CHILD: &str = r#"
file=$1 manner=$2
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r line; do
    id=${line##*'"id":'}; id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"q","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"quote","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
        n=${line##*'"n":'}; n=${n%%[,\}]*}
        said="quoted: $(sed -n "${n}p" "$file")"
        case $manner in
        stderr) printf '%s\n' "$said" >&2; say '"error":{"code":-32000,"message":"see there"}' ;;
        stdout) printf '%s\n' "$said"; say '"error":{"code":-32000,"message":"see there"}' ;;
        failure) say "\"error\":{\"code\":-32000,\"message\":\"$said\",\"data\":{\"why\":\"$said\"}}" ;;
        exit) printf 'fatal error, %s\n' "$said" >&2; exit 7 ;;
        esac ;;
    *'"ping"'*) say '"result":{}' ;;
    esac
done
"#;

/// How an upstream over HTTP quotes what it is asked to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// In the body of this status.
    Status(u16),
    /// In this header of this status.
    Header(u16, &'static str),
    /// In a JSON-RPC error, in the body of this status.
    Error(u16),
    /// In a JSON-RPC error whose encoder keeps to ASCII letters and digits.
    Ascii,
    /// In notifications of progress and of the log, before an error.
    Notes,
    /// In a body that is no JSON.
    Garbage,
    /// In a result.
    Result,
    /// In a body that refuses whatever is asked, one after the other.
    Always,
}

pub(crate) struct Host {
    pub(crate) port: u16,
}

struct Quoting {
    manner: Manner,
    given: Vec<Canary>,
    asked: AtomicUsize,
}

impl Host {
    pub(crate) async fn start(manner: Manner, given: Vec<Canary>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let quoting = Arc::new(Quoting { manner, given, asked: AtomicUsize::new(0) });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Else the system puts the pieces together again, and waits for an acknowledgement before each two of them.
                stream.set_nodelay(true).expect("a socket takes options");
                let quoting = quoting.clone();
                tokio::spawn(async move { drop(quoting.serve(stream).await) });
            }
        });
        Self { port }
    }
}

impl Quoting {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut read = Vec::new();
        loop {
            let mut chunk = [0; 4096];
            let end = loop {
                if let Some(end) = length(&read) {
                    break end;
                }
                match stream.read(&mut chunk).await? {
                    0 => return Ok(()),
                    more => read.extend_from_slice(&chunk[..more]),
                }
            };
            let request: Vec<u8> = read.drain(..end).collect();
            let answer = self.answer(&String::from_utf8_lossy(&request));
            // In pieces, so that no read has a whole secret for sure.
            for piece in answer.as_bytes().chunks(23) {
                stream.write_all(piece).await?;
                stream.flush().await?;
            }
        }
    }

    fn answer(&self, request: &str) -> String {
        if let Manner::Always = self.manner {
            let number = self.asked.fetch_add(1, Ordering::Relaxed);
            let said = form(number % FORMS, &self.given[number % self.given.len()].text);
            return response(401, "", &format!("quoted: {said}"));
        }
        let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let frame: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        let result = |result: &str| {
            response(200, "", &format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", frame["id"]))
        };
        match frame["method"].as_str() {
            Some("initialize") => result(&format!(
                "{{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{{\"tools\":{{}},\"logging\":{{}}}},\
                 \"serverInfo\":{{\"name\":\"q\",\"version\":\"1\"}},\"instructions\":{}}}",
                quote(&format!("quoted: {}", self.given[0].text))
            )),
            Some("tools/list") => {
                let said: Vec<String> =
                    (0..FORMS).map(|number| form(number, &self.given[number % self.given.len()].text)).collect();
                let words = quote(&format!("quoted: {}", said.join(" , ")));
                let schema = format!("{{\"type\":\"object\",\"description\":{words}}}");
                result(&format!(
                    "{{\"tools\":[{{\"name\":\"quote\",\"description\":{words},\"inputSchema\":{schema}}}]}}"
                ))
            }
            Some("ping") => result("{}"),
            Some("tools/call") => {
                let argument = |name: &str| frame["params"]["arguments"][name].as_u64().unwrap_or_default() as usize;
                let quoted = form(argument("form"), &self.given[argument("number")].text);
                match self.manner {
                    Manner::Result => {
                        result(&format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}", quote(&quoted)))
                    }
                    manner => quoting(manner, &frame["id"], &format!("quoted: {quoted}")),
                }
            }
            Some(_) => response(202, "", ""),
            None => response(405, "", ""),
        }
    }
}

fn quoting(manner: Manner, id: &serde_json::Value, said: &str) -> String {
    match manner {
        Manner::Status(status) => response(status, "", said),
        Manner::Header(status, name) => response(status, &format!("{name}: {said}\r\n"), "no"),
        Manner::Error(status) => {
            let said = quote(said);
            let error = format!("{{\"code\":-32000,\"message\":{said},\"data\":{{\"why\":{said}}}}}");
            response(status, "", &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}"))
        }
        Manner::Ascii => {
            let said = in_ascii(said);
            let error = format!("{{\"code\":-32000,\"message\":\"{said}\",\"data\":[{{\"{said}\":\"{said}\"}}]}}");
            response(200, "", &format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}"))
        }
        Manner::Notes => {
            let said = quote(said);
            let frames = [
                format!(
                    "\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{id},\"progress\":1,\"message\":{said}}}"
                ),
                format!(
                    "\"method\":\"notifications/message\",\"params\":{{\"level\":\"error\",\"data\":{{\"said\":[{said}]}}}}"
                ),
                format!("\"id\":{id},\"error\":{{\"code\":-32000,\"message\":{said}}}"),
            ];
            let events: String =
                frames.iter().map(|frame| format!("data: {{\"jsonrpc\":\"2.0\",{frame}}}\n\n")).collect();
            response(200, "content-type: text/event-stream\r\n", &events)
        }
        Manner::Garbage | Manner::Result | Manner::Always => response(200, "", &format!("{{{said}")),
    }
}

fn response(status: u16, headers: &str, body: &str) -> String {
    let kind = if headers.starts_with("content-type") { "" } else { "content-type: application/json\r\n" };
    format!("HTTP/1.1 {status} So\r\n{kind}{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// How long a request is, once its head is there and as much of its body as that says.
fn length(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
    let body = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    (read.len() >= head + body).then_some(head + body)
}

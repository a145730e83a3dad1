//! The failure cases of RFC 6455: each is answered with a close frame that names it, and the connection ends.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{GREETING, LEGACY, gateway};
use trunkline_tests::client::Client;
use trunkline_tests::gateway::{Config, Gateway};
use trunkline_tests::within::within;

const MAX: usize = 64 << 10;

/// A frame with a mask.
pub(super) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            bytes.push(0x80 | 126);
            bytes.extend((length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    let mask = [0xde, 0xad, 0xbe, 0xef];
    bytes.extend(mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// A connection on which an upgrade was asked for, with these lines besides.
async fn asked(gateway: &Gateway, lines: &str) -> TcpStream {
    let address = gateway.url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    let request = format!(
        "GET /ws HTTP/1.1\r\nhost: {address}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{lines}\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("it reads");
    stream
}

/// A connection that has just become a WebSocket.
pub(super) async fn raw(gateway: &Gateway) -> TcpStream {
    let mut stream = asked(gateway, "").await;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within("the answer to the upgrade", stream.read_u8()).await.expect("it answers"));
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    stream
}

/// The next frame of the gateway: its first byte, and what it carries.
pub(super) async fn next(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    within("a frame comes", stream.read_exact(&mut head)).await.expect("the connection is open");
    assert_eq!(head[1] & 0x80, 0, "a server masks nothing");
    let length = match head[1] {
        127 => stream.read_u64().await.expect("its length") as usize,
        126 => usize::from(stream.read_u16().await.expect("its length")),
        length => usize::from(length),
    };
    let mut payload = vec![0; length];
    within("the rest of it", stream.read_exact(&mut payload)).await.expect("it is there");
    (head[0], payload)
}

/// The cases, and the code that each is closed with.
fn cases() -> Vec<(&'static str, Vec<u8>, u16)> {
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let mut unmasked = vec![0x81, ping.len() as u8];
    unmasked.extend(ping);
    let close = |code: u16| frame(0x88, &code.to_be_bytes());
    let long = vec![b' '; MAX + 1];
    let mut cases = vec![
        ("no mask", unmasked, 1002),
        ("a ping in pieces", frame(0x09, b""), 1002),
        ("a ping of 126 bytes", frame(0x89, &long[..126]), 1002),
        ("a continuation of nothing", frame(0x80, ping), 1002),
        ("a message within a message", [frame(0x01, b"{"), frame(0x81, b"}")].concat(), 1002),
        ("a length in too many bytes", vec![0x81, 0x80 | 126, 0, 1, 0, 0, 0, 0, b'7'], 1002),
        ("a close frame of one byte", frame(0x88, b"x"), 1002),
        ("a reason that is no text", frame(0x88, &[3, 232, 0xc3]), 1007),
        ("a text that is no text", frame(0x81, &[b'"', 0xff, b'"']), 1007),
        ("half a letter at the end", [frame(0x01, b"\""), frame(0x80, &[0xe2, 0x82])].concat(), 1007),
        ("a binary message", frame(0x82, ping), 1003),
        ("a long message", frame(0x81, &long), 1009),
        ("a long message in pieces", [frame(0x01, &long[..MAX]), frame(0x80, b" ")].concat(), 1009),
    ];
    cases.extend([0x40, 0x20, 0x10].map(|bit| ("a reserved bit", frame(0x81 | bit, ping), 1002)));
    cases.extend([3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map(|kind| ("an unknown opcode", frame(0x80 | kind, ping), 1002)));
    let internal = [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535];
    cases.extend(internal.map(|code| ("a code that must not be sent", close(code), 1002)));
    let sent = [1000, 1001, 1007, 1008, 1011, 1014, 3000, 4999];
    cases.extend(sent.map(|code| ("a code that may be sent", close(code), code)));
    cases
}

#[tokio::test]
async fn a_request_with_a_body_becomes_no_websocket() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    for announced in ["content-length: 5", "transfer-encoding: chunked"] {
        let mut stream = asked(&gateway, &format!("{announced}\r\n")).await;
        stream.write_all(b"hello").await.expect("it reads");
        let mut answer = Vec::new();
        let _ = within("the answer", stream.read_to_end(&mut answer)).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("has no body"), "{announced}: {answer}");
    }
    // One that announces that there is none is as good as any.
    let mut stream = asked(&gateway, "content-length: 0\r\n").await;
    let mut first = [0; 13];
    within("the answer", stream.read_exact(&mut first)).await.expect("it answers");
    assert_eq!(&first, b"HTTP/1.1 101 ");
}

#[tokio::test]
async fn what_breaks_the_protocol_is_closed_with_the_code_for_it() {
    let (_upstream, gateway) = gateway(Config::new().server("max_body = \"64KiB\"")).await;
    for (name, bytes, code) in cases() {
        let mut stream = raw(&gateway).await;
        stream.write_all(&frame(0x81, GREETING.as_bytes())).await.expect("it reads");
        assert_eq!(next(&mut stream).await.0, 0x81, "{name}");
        stream.write_all(&bytes).await.expect("it reads");
        let (first, payload) = next(&mut stream).await;
        let closed = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
        assert_eq!((first, closed), (0x88, Some(code)), "{name}");
        // Our side of the closing handshake, where that is to come; then there is nothing more.
        if bytes != frame(0x88, &code.to_be_bytes()) {
            let _ = stream.write_all(&frame(0x88, &code.to_be_bytes())).await;
        }
        let _ = stream.shutdown().await;
        let mut rest = Vec::new();
        within("the connection ends", stream.read_to_end(&mut rest)).await.expect("it is not reset");
        assert!(rest.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_close_frame_is_answered_though_more_comes_behind_it() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    let mut stream = raw(&gateway).await;
    let flood = [frame(0x88, &1000_u16.to_be_bytes()), vec![b'x'; 4 << 20]].concat();
    within("it reads on", stream.write_all(&flood)).await.expect("it is read to its end");
    stream.shutdown().await.expect("it is open");
    assert_eq!(next(&mut stream).await, (0x88, 1000_u16.to_be_bytes().to_vec()));
    let mut rest = Vec::new();
    within("the connection ends", stream.read_to_end(&mut rest)).await.expect("it is not reset");
    assert!(rest.is_empty());
}

#[tokio::test]
async fn a_message_that_does_not_go_on_is_closed_with_1008() {
    let (_upstream, gateway) = gateway(Config::new().server("header_read_timeout = \"1s\"")).await;
    let mut stream = raw(&gateway).await;
    stream.write_all(&frame(0x01, &GREETING.as_bytes()[..9])).await.expect("it reads");
    let (first, payload) = next(&mut stream).await;
    assert_eq!((first, payload.first_chunk()), (0x88, Some(&1008_u16.to_be_bytes())));
}

#[tokio::test]
async fn fragments_of_any_size_are_joined_with_pings_between_them() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    let mut stream = raw(&gateway).await;
    let last = GREETING.len() - 1;
    let mut bytes = Vec::new();
    for (at, byte) in GREETING.bytes().enumerate() {
        let first = if at == 0 { 1 } else { 0 } | if at == last { 0x80 } else { 0 };
        bytes.extend(frame(first, &[byte]));
        if at == 3 {
            bytes.extend(frame(0x89, b"between"));
            bytes.extend(frame(0, b""));
        }
    }
    for piece in bytes.chunks(11) {
        stream.write_all(piece).await.expect("it reads");
    }
    let (mut pongs, mut answers) = (Vec::new(), Vec::new());
    while answers.is_empty() || pongs.is_empty() {
        match next(&mut stream).await {
            (0x8a, payload) => pongs.push(payload),
            (0x81, payload) => answers.push(payload),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pongs, [b"between"]);
    assert!(String::from_utf8_lossy(&answers[0]).contains("\"protocolVersion\":\"2025-11-25\""));
    stream.write_all(&frame(0x88, b"")).await.expect("it reads");
    assert_eq!(next(&mut stream).await, (0x88, Vec::new()), "a close frame without a code is answered with one");
}

#[tokio::test]
async fn a_flood_of_frames_that_ask_for_nothing_is_closed_with_1008_and_counted_and_harms_nobody() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    let other = Client::connect(&gateway.reach(), LEGACY).await;
    let floods = [
        ("pings", Vec::new(), frame(0x89, b"")),
        ("pongs", Vec::new(), frame(0x8a, b"")),
        ("blank messages", Vec::new(), frame(0x81, b"  ")),
        ("empty pieces", frame(0x01, b"{"), frame(0x00, b"")),
    ];
    for (name, begin, one) in &floods {
        let (mut input, mut output) = raw(&gateway).await.into_split();
        // It goes on until nobody takes it any more.
        let flood = async {
            let many = one.repeat(1000);
            for piece in std::iter::once(&begin[..]).chain(std::iter::repeat_n(&many[..], 1000)) {
                if output.write_all(piece).await.is_err() {
                    return;
                }
            }
        };
        let said = async {
            let mut seen = Vec::new();
            let _ = input.read_to_end(&mut seen).await;
            seen
        };
        let calls = async {
            for _ in 0..20 {
                assert_eq!(other.call_once("up__echo", "{\"a\":1}").await.text(), "{\"a\":1}", "beside {name}");
            }
        };
        let ((), seen, ()) = within("the flood ends", async { tokio::join!(flood, said, calls) }).await;
        let says = String::from_utf8_lossy(&seen).into_owned();
        assert!(says.contains("too many frames that ask for nothing"), "{name}: {says:?}");
    }
    let counted = format!("trunkline_refused_total{{full=\"frames\"}} {}", floods.len());
    gateway.look_until("/metrics", "each is counted", |page| page.contains(&counted)).await;
}

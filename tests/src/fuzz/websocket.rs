//! WebSocket: the frames of clients and of servers.

use super::target::{Shape, Target};
use trunkline::protocol::framing::websocket::{Fault, Kind, Message, Messages, write_head};

pub(super) const TARGETS: &[Target] = &[Target {
    name: "websocket",
    body: websocket,
    words: &["\u{1}\u{2}{}", "\t\0", "~\0~", "{}", " ", "\u{7f}\0\0\0\0\0\u{1}\0\0"],
}];

/// The longest message.
const MAX: usize = 512;

/// What comes of some bytes in pieces of this size: all messages, and what ended the connection.
fn read(bytes: &[u8], piece: usize, is_client: bool) -> (Vec<Message>, Option<Fault>) {
    let mut messages = match is_client {
        true => Messages::new(MAX, Vec::new(), b""),
        false => Messages::of_server(MAX, Vec::new()),
    };
    let mut seen = Vec::new();
    for chunk in bytes.chunks(piece) {
        messages.reading().0.extend_from_slice(chunk);
        loop {
            match messages.next_message() {
                Ok(None) => break,
                Ok(Some(Message::Part)) => {}
                Ok(Some(close @ Message::Close(_))) => {
                    seen.push(close);
                    return (seen, None);
                }
                Ok(Some(message)) => seen.push(message),
                Err(fault) => return (seen, Some(fault)),
            }
        }
        // What goes on is within its limit, however it was announced.
        assert!(messages.begun().is_none_or(|(_, so_far)| so_far <= MAX));
    }
    (seen, None)
}

/// The first byte says whose frames these are, and in which pieces they come. Any pieces give the same messages and the same end; a
/// text is one, and is read again as it was.
fn websocket(input: &[u8]) -> Shape {
    let Some((first, bytes)) = input.split_first() else { return Shape::of(0) };
    let is_client = first & 1 == 0;
    let (seen, fault) = read(bytes, usize::from(first / 2) % 67 + 1, is_client);
    assert_eq!(
        (&seen, fault),
        (&read(bytes, MAX * 64, is_client).0, read(bytes, MAX * 64, is_client).1),
        "pieces differ"
    );
    for message in &seen {
        match message {
            Message::Text(text) => {
                assert!(!text.is_empty() && text.len() <= MAX && std::str::from_utf8(text).is_ok());
                let mut frame = Vec::new();
                write_head(Kind::Text, text.len(), &mut frame);
                frame.extend_from_slice(text);
                assert_eq!(read(&frame, 7, false), (vec![message.clone()], None));
            }
            Message::Ping(payload) => assert!(payload.len() <= 125),
            Message::Close(Some((code, reason))) => {
                assert!((1000..5000).contains(code) && std::str::from_utf8(reason).is_ok());
            }
            _ => {}
        }
    }
    let kinds: Vec<_> = seen.iter().take(4).map(std::mem::discriminant).collect();
    Shape::of((is_client, kinds, fault.map(|fault| fault.to_string())))
}

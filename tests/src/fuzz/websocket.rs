//! WebSocket: the frames of clients and of servers.

use super::target::{Shape, Target};
use trunkline::protocol::framing::websocket::{
    Fault, Kind, Message, Messages, READ_BYTES, mask, write_head, write_masked_head,
};

pub(super) const TARGETS: &[Target] = &[Target {
    name: "websocket",
    body: websocket,
    words: &["\u{1}\u{2}{}", "\t\0", "~\0~", "{}", " ", "\u{7f}\0\0\0\0\0\u{1}\0\0"],
}];

/// The longest message.
const MAX: usize = 512;
/// The longest of those that come in parts.
const LONG_MAX: usize = 4 * READ_BYTES;

/// What comes of some bytes in pieces of this size: all messages, and what ended the connection.
fn read(bytes: &[u8], piece: usize, is_client: bool, max: usize) -> (Vec<Message>, Option<Fault>) {
    let mut messages = match is_client {
        true => Messages::new(max, Vec::new(), b""),
        false => Messages::of_server(max, Vec::new()),
    };
    let mut seen = Vec::new();
    for chunk in bytes.chunks(piece) {
        messages.reading().0.extend_from_slice(chunk);
        loop {
            match messages.next_message() {
                Ok(None) => break,
                Ok(Some(Message::Part | Message::Blank(_))) => {}
                Ok(Some(close @ Message::Close(_))) => {
                    seen.push(close);
                    return (seen, None);
                }
                Ok(Some(message)) => seen.push(message),
                Err(fault) => return (seen, Some(fault)),
            }
        }
        // What goes on is within its limit, however it was announced.
        assert!(messages.begun().is_none_or(|(_, so_far)| so_far <= max));
    }
    (seen, None)
}

/// The first byte says whose frames these are, and in which pieces they come. Any pieces give the same messages and the same end; a
/// text is one, and is read again as it was.
fn websocket(input: &[u8]) -> Shape {
    let Some((first, bytes)) = input.split_first() else { return Shape::of(0) };
    let is_client = first & 1 == 0;
    let (seen, fault) = read(bytes, usize::from(first / 2) % 67 + 1, is_client, MAX);
    assert_eq!(
        (&seen, fault),
        (&read(bytes, MAX * 64, is_client, MAX).0, read(bytes, MAX * 64, is_client, MAX).1),
        "pieces differ"
    );
    for message in &seen {
        match message {
            Message::Text(text) => {
                assert!(!text.is_empty() && text.len() <= MAX && std::str::from_utf8(text).is_ok());
                let mut frame = Vec::new();
                write_head(Kind::Text, text.len(), &mut frame);
                frame.extend_from_slice(text);
                assert_eq!(read(&frame, 7, false, MAX), (vec![message.clone()], None));
            }
            Message::Ping(payload) => assert!(payload.len() <= 125),
            Message::Close(Some((code, reason))) => {
                assert!((1000..5000).contains(code) && std::str::from_utf8(reason).is_ok());
            }
            _ => {}
        }
    }
    // Not for each: it costs as much as many short ones.
    if first & 0x0c == 0 && !bytes.is_empty() {
        long(*first, bytes, is_client);
    }
    let kinds: Vec<_> = seen.iter().take(4).map(std::mem::discriminant).collect();
    Shape::of((is_client, kinds, fault.map(|fault| fault.to_string())))
}

/// A message that no one read holds, in one frame or in two: it comes in parts, and is read as it was.
fn long(first: u8, bytes: &[u8], is_client: bool) {
    let letters = bytes.iter().map(|byte| b'!' + byte % 94);
    let text: Vec<u8> = letters.cycle().take(2 * READ_BYTES + 2 + bytes.len() % READ_BYTES).collect();
    let (head, rest) = text.split_at(if first & 2 == 0 { 0 } else { READ_BYTES + 1 });
    let mut sent = Vec::new();
    for (part, kind, is_last) in [(head, Kind::Text, false), (rest, Kind::Continuation, true)] {
        if part.is_empty() {
            continue;
        }
        let (at, key) = (sent.len(), [first, 0x5a, !first, 7]);
        let kind = if head.is_empty() { Kind::Text } else { kind };
        match is_client {
            true => write_masked_head(kind, part.len(), key, &mut sent),
            false => write_head(kind, part.len(), &mut sent),
        }
        if !is_last {
            sent[at] &= 0x7f;
        }
        let mut part = part.to_vec();
        if is_client {
            mask(&mut part, key);
        }
        sent.extend_from_slice(&part);
    }
    let (read, fault) = read(&sent, 1 + usize::from(first) * 257, is_client, LONG_MAX);
    assert!(fault.is_none() && read == [Message::Text(text.into())], "a long message is not what was sent: {fault:?}");
}

//! Frames as clients write them, in whatever pieces they come.

use super::*;
use proptest::prelude::*;

const MAX: usize = 100_000;

/// A masked frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    write_head(Kind::Text, payload.len(), &mut head);
    (head[0], head[1]) = (first, head[1] | 0x80);
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    head.extend_from_slice(&mask);
    head.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    head
}

/// What comes of bytes that arrive in pieces of this size.
fn read(bytes: &[u8], size: usize) -> (Vec<Message>, Option<Fault>) {
    let mut messages = Messages::new(MAX, Vec::new(), b"");
    let mut seen = Vec::new();
    for piece in bytes.chunks(size) {
        messages.reading().0.extend_from_slice(piece);
        loop {
            match messages.next_message() {
                Ok(Some(Message::Part | Message::Blank(_))) => {}
                Ok(Some(message)) => seen.push(message),
                Ok(None) => break,
                Err(fault) => return (seen, Some(fault)),
            }
        }
    }
    (seen, None)
}

fn text(text: &str) -> Message {
    Message::Text(Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn what_breaks_the_protocol_is_told_apart_whatever_pieces_it_comes_in() {
    let long = vec![b'x'; MAX + 1];
    let unmasked = [&[0x81, 2][..], b"{}"].concat();
    let shortened = [&[0x81, 0x80 | 126, 0, 2, 0, 0, 0, 0][..], b"{}"].concat();
    let widened = [&[0x81, 0x80 | 127, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0][..], b"{}"].concat();
    let endless = [0x81, 0x80 | 127, 0xff, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0].to_vec();
    for (name, bytes, code) in [
        ("no mask", unmasked, 1002),
        ("length in two bytes", shortened, 1002),
        ("length in eight bytes", widened, 1002),
        ("negative length", endless, 1002),
        ("bit 1", frame(0xc1, b"{}"), 1002),
        ("bit 2", frame(0xa1, b"{}"), 1002),
        ("bit 3", frame(0x91, b"{}"), 1002),
        ("opcode 3", frame(0x83, b"{}"), 1002),
        ("opcode 7", frame(0x87, b"{}"), 1002),
        ("opcode 11", frame(0x8b, b"{}"), 1002),
        ("opcode 15", frame(0x8f, b"{}"), 1002),
        ("continuation of nothing", frame(0x80, b"{}"), 1002),
        ("text within text", [frame(0x01, b"{"), frame(0x81, b"}")].concat(), 1002),
        ("ping in pieces", frame(0x09, b""), 1002),
        ("close in pieces", frame(0x08, b""), 1002),
        ("long ping", frame(0x89, &long[..126]), 1002),
        ("close of one byte", frame(0x88, b"x"), 1002),
        ("close with 999", frame(0x88, &999_u16.to_be_bytes()), 1002),
        ("close with 1004", frame(0x88, &1004_u16.to_be_bytes()), 1002),
        ("close with 1005", frame(0x88, &1005_u16.to_be_bytes()), 1002),
        ("close with 1006", frame(0x88, &1006_u16.to_be_bytes()), 1002),
        ("close with 1015", frame(0x88, &1015_u16.to_be_bytes()), 1002),
        ("close with 2999", frame(0x88, &2999_u16.to_be_bytes()), 1002),
        ("close with 5000", frame(0x88, &5000_u16.to_be_bytes()), 1002),
        ("close with a reason that is no text", frame(0x88, &[3, 232, 0xff]), 1007),
        ("no text", frame(0x81, &[b'"', 0xc0, 0xaf, b'"']), 1007),
        ("half a letter", frame(0x81, &[b'"', 0xc3]), 1007),
        ("a surrogate", frame(0x81, &[0xed, 0xa0, 0x80]), 1007),
        ("binary", frame(0x82, b"{}"), 1003),
        ("binary in pieces", frame(0x02, b"{}"), 1003),
        ("too long", frame(0x81, &long), 1009),
        ("too long in pieces", [frame(0x01, &long[..MAX]), frame(0x80, b"x")].concat(), 1009),
    ] {
        for size in [1, 3, 4096, usize::MAX] {
            let (seen, fault) = read(&[frame(0x81, b"[]"), bytes.clone(), frame(0x81, b"{}")].concat(), size);
            assert_eq!((seen, fault.map(Fault::code)), (vec![text("[]")], Some(code)), "{name} by {size}");
        }
    }
}

#[test]
fn a_message_that_is_too_long_is_refused_by_its_head() {
    let head = &frame(0x81, &vec![b'x'; MAX + 1])[..10];
    assert_eq!(read(head, usize::MAX), (vec![], Some(Fault::TooLong)));
}

#[test]
fn fragments_are_joined_and_control_frames_stand_between_them() {
    let letter = "ä".as_bytes();
    let bytes = [
        frame(0x01, b"  \""),
        frame(0x89, b"there?"),
        frame(0x00, &letter[..1]),
        frame(0x8a, b""),
        frame(0x00, b""),
        frame(0x00, &letter[1..]),
        frame(0x80, b"\"\n"),
        frame(0x81, b" \r\n"),
        frame(0x88, &[3, 232, b'b', b'y', b'e']),
    ];
    let closed = Message::Close(Some((1000, Bytes::from_static(b"bye"))));
    let expected = [Message::Ping(Bytes::from_static(b"there?")), Message::Pong, text("\"ä\""), closed];
    for size in [1, 2, 7, usize::MAX] {
        assert_eq!(read(&bytes.concat(), size), (expected.to_vec(), None));
    }
    assert_eq!(read(&frame(0x88, b""), 1), (vec![Message::Close(None)], None));
}

/// A store without any room.
struct NoRoom;

impl Store for NoRoom {
    fn push(&mut self, _: &[u8]) -> bool {
        false
    }

    fn held(&self) -> usize {
        0
    }

    fn give(&mut self) -> Bytes {
        Bytes::new()
    }

    fn forget(&mut self) {}
}

#[test]
fn a_message_without_room_is_told_of_and_the_next_one_is_taken() {
    let mut messages = Messages::new(MAX, NoRoom, b"");
    let mut seen = Vec::new();
    let long = [b"{\"id\":7,".to_vec(), vec![b'x'; 3 * READ_BYTES], b"end}".to_vec()].concat();
    let bytes = [frame(0x01, &long[..9]), frame(0x80, &long[9..]), frame(0x81, b"{}")].concat();
    for piece in bytes.chunks(1000) {
        messages.reading().0.extend_from_slice(piece);
        while let Some(message) = messages.next_message().unwrap() {
            seen.push(message);
        }
        assert!(messages.buffer.capacity() <= 3 * READ_BYTES, "{}", messages.buffer.capacity());
    }
    let [Message::Part, Message::Untaken { why: Untaken::NoRoom, head, tail }, last] = &seen[..] else {
        panic!("{seen:?}")
    };
    assert!(head.starts_with(b"{\"id\":7,x") && tail.ends_with(b"xend}"), "{head:?} {tail:?}");
    assert_eq!(last, &text("{}"));
}

#[test]
fn frames_of_a_server_have_no_mask_and_each_is_told_of() {
    let mut bytes = [&[0x01, 1][..], b"{", &[0x00, 0], &[0x80, 1], b"}", &[0x81, 1], b" ", &[0x89, 2], b"hi"].concat();
    bytes.extend([0x88, 2, 0x03, 0xee]);
    let mut messages = Messages::of_server(MAX, Vec::new());
    messages.reading().0.extend_from_slice(&bytes);
    let mut next = || messages.next_message();
    let (blank, ping) = (Message::Blank, Message::Ping(Bytes::from_static(b"hi")));
    for expected in [Message::Part, blank(0), text("{}"), blank(1), ping] {
        assert_eq!(next(), Ok(Some(expected)));
    }
    assert_eq!(next(), Err(Fault::CloseCode(1006)));
    let mut messages = Messages::of_server(MAX, Vec::new());
    messages.reading().0.extend_from_slice(&frame(0x81, b"{}"));
    assert_eq!(messages.next_message(), Err(Fault::Protocol("a frame with a mask")));
}

#[test]
fn what_a_client_writes_is_read_back() {
    for length in [1, 125, 126, 70_000] {
        let (mut bytes, key) = (Vec::new(), [1, 2, 3, 4]);
        let mut payload = vec![b'y'; length];
        write_masked_head(Kind::Text, length, key, &mut bytes);
        mask(&mut payload, key);
        bytes.extend(payload);
        assert_eq!(read(&bytes, usize::MAX), (vec![text(&"y".repeat(length))], None));
    }
}

proptest! {
    #[test]
    fn any_pieces_and_fragments_give_the_same_messages(
        texts in prop::collection::vec("[a-zäöü]{1,300}", 1..8), cut in 1..400_usize, size in 1..200_usize,
    ) {
        let mut bytes = Vec::new();
        for text in &texts {
            let pieces: Vec<_> = text.as_bytes().chunks(cut).collect();
            for (at, piece) in pieces.iter().enumerate() {
                let (kind, last) = (u8::from(at == 0), u8::from(at + 1 == pieces.len()) << 7);
                bytes.extend(frame(kind | last, piece));
            }
        }
        let expected: Vec<_> = texts.iter().map(|one| text(one)).collect();
        prop_assert_eq!(read(&bytes, size), (expected, None));
    }
}

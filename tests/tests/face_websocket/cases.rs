//! The cases of the Autobahn test suite, made anew by their numbers, in place of its echo: a request whose id comes back byte for byte.

use std::ops::RangeInclusive;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::broken::{frame, next, raw};
use super::{GREETING, gateway};
use trunkline_tests::gateway::Config;
use trunkline_tests::within::within;

/// A text message that is whole.
const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
const CLOSE: u8 = 0x88;

/// What comes back.
#[derive(Clone, Debug)]
enum Back {
    /// The answer to the request with this id.
    Answer(Vec<u8>),
    /// The same, or nothing: its connection ends behind it (what the suite calls not strict).
    Maybe(Vec<u8>),
    /// A pong with this payload.
    Pong(Vec<u8>),
    /// A close frame with this code, or without one.
    Close(Option<u16>),
}

use Back::{Answer, Close, Maybe, Pong};

/// One case: its number in the suite, what is sent, in pieces of which size, and what comes back.
struct Case(&'static str, Vec<u8>, usize, Vec<Back>);

/// As large as it comes.
const WHOLE: usize = usize::MAX;

/// A request with this id, as long as it is to be.
fn request(id: &[u8], length: usize) -> Vec<u8> {
    let mut text = [b"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\"", id, b"\""].concat();
    text.resize(text.len().max(length.saturating_sub(1)), b' ');
    text.push(b'}');
    text
}

fn echo(id: &[u8]) -> Back {
    Answer(id.to_vec())
}

/// A message in frames of this many bytes, with these frames between the first two.
fn fragments(text: &[u8], size: usize, between: &[u8]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = text.chunks(size).collect();
    let mut bytes = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let (kind, last) = (u8::from(at == 0), u8::from(at + 1 == pieces.len()) << 7);
        bytes.extend(frame(kind | last, piece));
        if at == 0 {
            bytes.extend(between);
        }
    }
    bytes
}

/// 1: sizes. 9 and 10: large messages, in one frame and in many.
fn sizes() -> Vec<Case> {
    let mut cases = vec![Case("1.1.1", frame(TEXT, b""), WHOLE, vec![])];
    let sizes = [("1.1.2", 125), ("1.1.3", 126), ("1.1.4", 127), ("1.1.5", 128), ("1.1.6", 65_535), ("1.1.7", 65_536)];
    cases.extend(sizes.map(|(case, size)| Case(case, frame(TEXT, &request(b"1", size)), WHOLE, vec![echo(b"1")])));
    cases.push(Case("1.1.8", frame(TEXT, &request(b"1", 65_536)), 997, vec![echo(b"1")]));
    let large = request(b"9", 1 << 20);
    cases.push(Case("9.1.3", frame(TEXT, &large), WHOLE, vec![echo(b"9")]));
    let sizes = [("9.3.1", 64), ("9.3.2", 256), ("9.3.3", 1024), ("9.3.4", 4096), ("9.3.6", 65_536), ("10.1.1", 1300)];
    cases.extend(sizes.map(|(case, size)| Case(case, fragments(&large, size, b""), WHOLE, vec![echo(b"9")])));
    let sizes = [("9.5.1", 64), ("9.5.3", 256), ("9.5.6", 2048)];
    cases.extend(sizes.map(|(case, size)| Case(case, frame(TEXT, &large), size, vec![echo(b"9")])));
    cases
}

/// 2: pings and pongs. Of pings that come together the newest must be answered, and the others may.
fn pings() -> Vec<Case> {
    let odd = [0x00, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0x00, 0xff];
    let most = [0xfe; 125];
    vec![
        Case("2.1", frame(PING, b""), WHOLE, vec![Pong(vec![])]),
        Case("2.2", frame(PING, b"Hello, world!"), WHOLE, vec![Pong(b"Hello, world!".to_vec())]),
        Case("2.3", frame(PING, &odd), WHOLE, vec![Pong(odd.to_vec())]),
        Case("2.4", frame(PING, &most), WHOLE, vec![Pong(most.to_vec())]),
        Case("2.5", frame(PING, &[0xfe; 126]), WHOLE, vec![Close(Some(1002))]),
        Case("2.6", frame(PING, &most), 1, vec![Pong(most.to_vec())]),
        Case("2.7", frame(PONG, b""), WHOLE, vec![]),
        Case("2.8", frame(PONG, b"unsolicited"), WHOLE, vec![]),
        Case("2.9", [frame(PONG, b"unsolicited"), frame(PING, b"ping")].concat(), WHOLE, vec![Pong(b"ping".to_vec())]),
    ]
}

/// 3: reserved bits. 4: reserved opcodes.
fn reserved() -> Vec<Case> {
    let hello = request(b"3", 0);
    let good = frame(TEXT, &hello);
    let mut cases = vec![
        Case("3.1", frame(TEXT | 0x10, &hello), WHOLE, vec![Close(Some(1002))]),
        Case(
            "3.2",
            [good.clone(), frame(TEXT | 0x20, &hello)].concat(),
            WHOLE,
            vec![Maybe(b"3".to_vec()), Close(Some(1002))],
        ),
        Case(
            "3.3",
            [good.clone(), frame(TEXT | 0x30, &hello)].concat(),
            1,
            vec![Maybe(b"3".to_vec()), Close(Some(1002))],
        ),
        Case("3.5", frame(0x82 | 0x50, &[0; 8]), WHOLE, vec![Close(Some(1002))]),
        Case("3.6", frame(PING | 0x60, b"ping"), WHOLE, vec![Close(Some(1002))]),
        Case("3.7", frame(CLOSE | 0x70, &1000_u16.to_be_bytes()), WHOLE, vec![Close(Some(1002))]),
    ];
    for (case, kind) in [("4.1.1", 3), ("4.1.2", 4), ("4.1.3", 5), ("4.1.4", 6), ("4.1.5", 7)] {
        let bytes = [good.clone(), frame(0x80 | kind, b"x"), frame(PING, b"late")].concat();
        cases.push(Case(case, bytes, WHOLE, vec![Maybe(b"3".to_vec()), Close(Some(1002))]));
    }
    for (case, kind) in [("4.2.1", 11), ("4.2.2", 12), ("4.2.3", 13), ("4.2.4", 14), ("4.2.5", 15)] {
        let bytes = [good.clone(), frame(0x80 | kind, b"x"), frame(PING, b"late")].concat();
        cases.push(Case(case, bytes, 1, vec![Maybe(b"3".to_vec()), Close(Some(1002))]));
    }
    cases
}

/// 5: fragments.
fn fragmented() -> Vec<Case> {
    let text = request(b"5", 0);
    let (two, ping) = (text.len().div_ceil(2), frame(PING, b"between"));
    let between = vec![Pong(b"between".to_vec()), echo(b"5")];
    let broken = vec![Close(Some(1002))];
    let stray = |first: u8| [frame(first, b"non"), frame(TEXT, &text)].concat();
    vec![
        Case("5.1", [frame(0x09, b"a"), frame(0x80, b"b")].concat(), WHOLE, broken.clone()),
        Case("5.2", [frame(0x0a, b"a"), frame(0x80, b"b")].concat(), WHOLE, broken.clone()),
        Case("5.3", fragments(&text, two, b""), WHOLE, vec![echo(b"5")]),
        Case("5.4", fragments(&text, two, b""), 7, vec![echo(b"5")]),
        Case("5.5", fragments(&text, two, b""), 1, vec![echo(b"5")]),
        Case("5.6", fragments(&text, two, &ping), WHOLE, between.clone()),
        Case("5.7", fragments(&text, two, &ping), 7, between.clone()),
        Case("5.8", fragments(&text, two, &ping), 1, between.clone()),
        Case("5.9", stray(0x80), WHOLE, broken.clone()),
        Case("5.11", stray(0x80), 1, broken.clone()),
        Case("5.12", stray(0x00), WHOLE, broken.clone()),
        Case("5.14", stray(0x00), 1, broken.clone()),
        Case(
            "5.15",
            [fragments(&text, two, b""), frame(0x00, b"c"), frame(0x80, b"d")].concat(),
            WHOLE,
            vec![Maybe(b"5".to_vec()), Close(Some(1002))],
        ),
        Case("5.18", [frame(0x01, b"a"), frame(TEXT, b"b")].concat(), WHOLE, broken),
        Case("5.19", fragments(&text, 8, &ping), WHOLE, between.clone()),
        Case("5.20", fragments(&text, 8, &ping), 3, between),
    ]
}

/// Code points of which each UTF-8 length has its first and last, and those around the surrogates.
const POINTS: [RangeInclusive<u32>; 5] = [0x20..=0x21, 0x7f..=0x80, 0x7ff..=0x800, 0xd7ff..=0xd7ff, 0xe000..=0xe000];
const MORE_POINTS: [u32; 6] = [0xfffd, 0xffff, 0x10000, 0x10fffe, 0x10ffff, 0x1ffff];

/// 6.2, 6.5 to 6.9: what is text, in one frame and octet by octet.
fn texts() -> Vec<Case> {
    let points = POINTS.into_iter().flatten().chain(MORE_POINTS);
    let points: String = points.filter_map(char::from_u32).filter(|point| !matches!(point, '"' | '\\')).collect();
    let hello = "Hello-µ@ßöäüàá-UTF-8!!";
    let mut cases = vec![
        Case("6.1.2", [frame(0x01, b""), frame(0x00, b""), frame(0x80, b"")].concat(), WHOLE, vec![]),
        Case(
            "6.1.3",
            [frame(0x01, b""), frame(0x00, &request(b"6", 0)), frame(0x80, b"")].concat(),
            WHOLE,
            vec![echo(b"6")],
        ),
    ];
    for (case, id) in
        [("6.2", hello), ("6.5", "κόσμε"), ("6.6 to 6.9", &points), ("6.22", "\u{fdd0}\u{fffe}\u{10fffe}")]
    {
        let text = request(id.as_bytes(), 0);
        cases.push(Case(case, frame(TEXT, &text), WHOLE, vec![echo(id.as_bytes())]));
        cases.push(Case(case, fragments(&text, 1, b""), WHOLE, vec![echo(id.as_bytes())]));
        cases.push(Case(case, fragments(&text, 1, b""), 1, vec![echo(id.as_bytes())]));
    }
    cases
}

/// 6.3, 6.4, 6.10 to 6.21: what is none. The connection ends with the message (the suite calls that not strict: it may end before).
fn no_texts() -> Vec<Case> {
    let broken: [(&str, &[u8]); 21] = [
        ("6.3.1", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"),
        ("6.4.1", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xf4\x90\x80\x80edited"),
        ("6.10.1", b"\xf7\xbf\xbf\xbf"),
        ("6.10.2", b"\xfb\xbf\xbf\xbf\xbf"),
        ("6.10.3", b"\xfd\xbf\xbf\xbf\xbf\xbf"),
        ("6.11.5", b"\xf4\x90\x80\x80"),
        ("6.12.1", b"\x80"),
        ("6.12.2", b"\xbf"),
        ("6.12.8", b"\x80\xbf\x80\xbf\x80\xbf\x80"),
        ("6.13.1", b"\xc0 \xc1 \xc2 "),
        ("6.13.2", b"\xe0 \xe1 \xe2 "),
        ("6.14.1", b"\xc0"),
        ("6.14.2", b"\xe0\x80"),
        ("6.15.1", b"\xc0\xe0\x80\xf0\x80\x80"),
        ("6.16.1", b"\xfe"),
        ("6.16.2", b"\xff"),
        ("6.17.1", b"\xc0\xaf"),
        ("6.17.2", b"\xe0\x80\xaf"),
        ("6.18.2", b"\xe0\x9f\xbf"),
        ("6.20.1", b"\xed\xa0\x80"),
        ("6.21.8", b"\xed\xaf\xbf\xed\xbf\xbf"),
    ];
    let closed = || vec![Close(Some(1007))];
    let mut cases = Vec::new();
    for (case, bytes) in broken {
        cases.push(Case(case, frame(TEXT, &request(bytes, 0)), WHOLE, closed()));
        cases.push(Case(case, fragments(&request(bytes, 0), 1, b""), 3, closed()));
        let late = [frame(0x01, bytes), frame(0x80, b"x")].concat();
        cases.push(Case(case, late, WHOLE, closed()));
    }
    cases
}

/// 7: the end.
fn ends() -> Vec<Case> {
    let close = |payload: &[u8]| frame(CLOSE, payload);
    let with = |code: u16, reason: &[u8]| close(&[&code.to_be_bytes(), reason].concat());
    let text = frame(TEXT, &request(b"7", 0));
    let normal = vec![Close(Some(1000))];
    let late = |more: Vec<u8>| [with(1000, b""), more].concat();
    let mut cases = vec![
        Case("7.1.1", [text.clone(), with(1000, b"")].concat(), WHOLE, vec![Maybe(b"7".to_vec()), Close(Some(1000))]),
        Case("7.1.2", late(with(1000, b"")), WHOLE, normal.clone()),
        Case("7.1.3", late(frame(PING, b"late")), WHOLE, normal.clone()),
        Case("7.1.4", late(text.clone()), WHOLE, normal.clone()),
        Case("7.1.5", [frame(0x01, b"half"), with(1000, b""), frame(0x80, b"")].concat(), WHOLE, normal.clone()),
        Case(
            "7.1.6",
            [frame(TEXT, &request(b"7", 1 << 18)), with(1000, b"")].concat(),
            WHOLE,
            vec![Maybe(b"7".to_vec()), Close(Some(1000))],
        ),
        Case("7.3.1", close(b""), WHOLE, vec![Close(None)]),
        Case("7.3.2", close(b"a"), WHOLE, vec![Close(Some(1002))]),
        Case("7.3.4", with(1000, b"Hello World!"), WHOLE, normal.clone()),
        Case("7.3.5", with(1000, &[b'*'; 123]), WHOLE, normal),
        Case("7.3.6", with(1000, &[b'*'; 124]), WHOLE, vec![Close(Some(1002))]),
        Case("7.5.1", with(1000, b"\xce\xba\xe1\xbd\xb9\xed\xa0\x80"), WHOLE, vec![Close(Some(1007))]),
    ];
    let good = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];
    cases.extend(good.map(|code| Case("7.7", with(code, b""), WHOLE, vec![Close(Some(code))])));
    let bad = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535];
    cases.extend(bad.map(|code| Case("7.9 and 7.13", with(code, b""), WHOLE, vec![Close(Some(1002))])));
    cases
}

/// The next frame that is no notice.
async fn told(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    loop {
        let (first, payload) = next(stream).await;
        if !(first == TEXT && payload.windows(15).any(|part| part.starts_with(b"\"notifications/"))) {
            return (first, payload);
        }
    }
}

fn holds(payload: &[u8], id: &[u8]) -> bool {
    let wanted = [b"\"id\":\"", id, b"\""].concat();
    payload.windows(wanted.len()).any(|part| part == wanted)
}

/// Sends what a case sends, and sees what comes back; a connection that is not closed goes on behind it.
async fn check(stream: &mut TcpStream, Case(number, bytes, size, back): Case) {
    let step = size.min(bytes.len()).max(1);
    for piece in bytes.chunks(step) {
        // Whoever has been told why reads no more.
        if within("it reads", stream.write_all(piece)).await.is_err() {
            break;
        }
    }
    let (mut is_closed, mut came) = (false, None);
    for expected in back {
        let (first, payload) = match came.take() {
            Some(came) => came,
            None => told(stream).await,
        };
        match &expected {
            Maybe(id) if !(first == TEXT && holds(&payload, id)) => came = Some((first, payload)),
            Answer(id) | Maybe(id) => assert!(first == TEXT && holds(&payload, id), "{number}: {first:x} {payload:?}"),
            Pong(said) => assert_eq!((first, &payload), (PONG, said), "{number}"),
            Close(code) => {
                let closed = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                assert_eq!((first, closed), (CLOSE, *code), "{number}");
                is_closed = true;
            }
        }
    }
    if !is_closed {
        stream.write_all(&frame(TEXT, &request(b"goes on", 0))).await.expect("it reads");
        let (first, payload) = told(stream).await;
        assert!(first == TEXT && holds(&payload, b"goes on"), "{number}: {first:x} {payload:?}");
        return;
    }
    let _ = stream.shutdown().await;
    let mut rest = Vec::new();
    let _ = within("the connection ends", stream.read_to_end(&mut rest)).await;
    assert!(rest.is_empty(), "{number}: nothing follows a close frame: {rest:?}");
}

#[tokio::test]
async fn each_case_of_the_autobahn_suite_ends_as_the_protocol_has_it() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    let cases = [sizes(), pings(), reserved(), fragmented(), texts(), no_texts(), ends()];
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    assert!(cases.len() > 170, "{}", cases.len());
    for case in cases {
        let mut stream = raw(&gateway).await;
        stream.write_all(&frame(TEXT, GREETING.as_bytes())).await.expect("it reads");
        assert_eq!(next(&mut stream).await.0, TEXT, "{}", case.0);
        check(&mut stream, case).await;
    }
}

#[tokio::test]
async fn of_ten_pings_each_is_answered_and_of_many_the_newest() {
    let (_upstream, gateway) = gateway(Config::new()).await;
    for (count, size) in [(10_u16, WHOLE), (10, 1), (900, WHOLE)] {
        let mut stream = raw(&gateway).await;
        let pings: Vec<u8> = (0..count).flat_map(|number| frame(PING, &number.to_be_bytes())).collect();
        for piece in pings.chunks(size.min(pings.len())) {
            stream.write_all(piece).await.expect("it reads");
        }
        let mut seen = Vec::new();
        while seen.last() != Some(&(count - 1)) {
            let (first, payload) = told(&mut stream).await;
            assert_eq!((first, payload.len()), (PONG, 2), "after {seen:?}");
            seen.push(u16::from_be_bytes([payload[0], payload[1]]));
        }
        assert!(seen.is_sorted_by(|one, other| one < other), "2.10 and 2.11: {seen:?}");
        assert!(count > 10 || seen.len() == 10, "each of a few is answered: {seen:?}");
    }
}

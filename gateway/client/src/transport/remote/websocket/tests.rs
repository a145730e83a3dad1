//! A server's end of the connection, played byte by byte with the clock paused.

use super::*;
use crate::memory::budget::Budget;
use crate::protocol::frame::Method;
use crate::protocol::framing::websocket::write_head;
use crate::protocol::value::Object;
use crate::runtime::turns_beside;
use crate::transport::condition::Condition;
use crate::transport::exchange::Request;
use crate::transport::exchange::mailbox::Arrival;
use crate::transport::pipe::PipeExchange;
use crate::transport::recorder::Recorder;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep, timeout};

const MAX: usize = 8 << 20;
const NOTICE: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/x"}"#;

/// An upstream over a WebSocket.
struct Stage {
    recorder: Arc<Recorder>,
    pipe: Arc<Pipe>,
    tasks: Tasks,
}

impl Stage {
    fn new() -> Self {
        Self::within(&Budget::default())
    }

    /// Limits the memory for what the upstream sends.
    fn within(budget: &Budget) -> Self {
        let (recorder, tasks) = (Recorder::within(budget), Tasks::new());
        Self { pipe: Pipe::new(recorder.clone(), tasks.clone()), recorder, tasks }
    }

    /// Connects it; the other end holds so many bytes in either direction.
    fn connect(self, room: usize) -> (Self, DuplexStream) {
        let (near, far) = duplex(room);
        run(near, &self.pipe, MAX, &self.tasks);
        (self, far)
    }

    fn call(&self, params: &str) -> PipeExchange {
        let params = Object::parse(Bytes::copy_from_slice(params.as_bytes())).unwrap();
        self.pipe.exchange(&Request::new(&Method::ToolsCall, &params, None)).unwrap()
    }
}

/// A frame of a server.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_head(crate::protocol::framing::websocket::Kind::Text, payload.len(), &mut bytes);
    bytes[0] = first;
    bytes.extend_from_slice(payload);
    bytes
}

/// The frames that the gateway has sent: the first byte of each, and its payload.
fn frames(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut seen = Vec::new();
    while let [first, second, rest @ ..] = bytes {
        assert_ne!(second & 0x80, 0, "a client masks");
        let wide = [126, 127].iter().position(|wide| wide == &(second & 0x7f)).map_or(0, |at| [2, 8][at]);
        let length = match wide {
            0 => usize::from(second & 0x7f),
            _ => rest[..wide].iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
        };
        let (mask, rest) = rest[wide..].split_at(4);
        let payload = rest[..length].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        seen.push((*first, payload));
        bytes = &rest[length..];
    }
    seen
}

async fn bounded<T>(work: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(3600), work).await.expect("it comes")
}

/// All that is sent until the end, or until nothing comes for a while.
async fn so_far(far: &mut DuplexStream) -> Vec<(u8, Vec<u8>)> {
    let mut all = Vec::new();
    while let Ok(Ok(1..)) = timeout(Duration::from_millis(100), far.read_buf(&mut all)).await {}
    frames(&all)
}

async fn lost(exchange: &mut PipeExchange) -> String {
    match bounded(poll_fn(|cx| exchange.poll(cx))).await {
        Arrival::Lost(lost) => lost.text().full().into_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_pings_the_newest_is_answered_and_the_connection_goes_on() {
    let (stage, mut far) = Stage::new().connect(64);
    for number in 0..1000_u32 {
        bounded(far.write_all(&frame(0x89, &number.to_be_bytes()))).await.expect("it reads all of them");
    }
    sleep(Duration::from_secs(7)).await;
    let unread = stage.recorder.condition(Condition::Unread);
    assert!(unread.as_ref().is_some_and(|cause| cause.contains("input not read")), "{unread:?}");
    let pongs = so_far(&mut far).await;
    assert!(pongs.iter().all(|(first, _)| *first == 0x8a) && pongs.len() < 100, "{} pongs", pongs.len());
    assert_eq!(pongs.last().expect("one came").1, 999_u32.to_be_bytes(), "the newest is answered");
    assert_eq!((stage.recorder.condition(Condition::Unread), stage.pipe.is_closed()), (None, false));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_on_pinging_and_never_reads_is_given_up() {
    let (stage, mut far) = Stage::new().connect(256);
    let begun = Instant::now();
    let pinging = async {
        // Fewer a second than are too many in any case.
        while far.write_all(&frame(0x89, b"ping").repeat(8)).await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    bounded(pinging).await;
    let cause = stage.pipe.closed().await;
    assert_eq!(cause.code(), CauseCode::InputNotRead, "{cause:?}");
    assert!((30..60).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_message_counts_while_it_comes_and_is_dropped_where_there_is_no_memory() {
    let budget = Budget::new(4 << 20);
    let (stage, mut far) = Stage::within(&budget).connect(64 * 1024);
    let mut call = stage.call(r#"{"name":"t"}"#);
    sleep(Duration::from_millis(1)).await;
    let asked = so_far(&mut far).await;
    let id = crate::protocol::json::get(&asked[0].1, "id").map(|raw| String::from_utf8_lossy(raw).into_owned());
    let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"x\":\"", id.expect("it has one"));
    bounded(far.write_all(&frame(0x01, head.as_bytes()))).await.unwrap();
    for _ in 0..8 {
        bounded(far.write_all(&frame(0x00, &[b'x'; 128 * 1024]))).await.unwrap();
    }
    sleep(Duration::from_millis(1)).await;
    assert!(budget.used() >= 1 << 20, "{} bytes are counted", budget.used());
    for _ in 0..40 {
        bounded(far.write_all(&frame(0x00, &[b'x'; 128 * 1024]))).await.unwrap();
    }
    sleep(Duration::from_millis(1)).await;
    assert!(budget.used() < 1 << 20, "{} bytes are counted", budget.used());
    bounded(far.write_all(&frame(0x80, b"\"}}"))).await.unwrap();
    let said = lost(&mut call).await;
    assert!(said.contains("the response was dropped"), "{said}");
    assert!(!stage.pipe.is_closed(), "the next message is taken");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_any_frames_leaves_others_their_turns() {
    const FRAMES: usize = 20_000;
    for (name, begin, one, end) in [
        ("pings", Vec::new(), frame(0x89, b""), frame(0x81, NOTICE)),
        ("pongs", Vec::new(), frame(0x8a, b""), frame(0x81, NOTICE)),
        ("empty pieces", frame(0x01, &NOTICE[..1]), frame(0x00, b""), frame(0x80, &NOTICE[1..])),
        ("pieces", frame(0x01, b" "), frame(0x00, b" "), frame(0x80, NOTICE)),
        ("blank messages", Vec::new(), frame(0x81, b" "), frame(0x81, NOTICE)),
    ] {
        let stage = Stage::new();
        // As many as each message earns, so that the connection goes on.
        let group = [begin, one.repeat(WITH_A_MESSAGE as usize), end].concat();
        let bytes = group.repeat(FRAMES / WITH_A_MESSAGE as usize);
        let mut cause = None;
        let flood = async { cause = Some(read(&stage.pipe, &mut &bytes[..], MAX, &Controls::default()).await) };
        let turns = turns_beside(flood).await;
        assert!(turns >= FRAMES / 128, "{turns} turns beside {FRAMES} {name}");
        assert_eq!(cause.map(|cause| cause.code()), Some(CauseCode::ConnectionLost), "all of them are taken: {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_ask_for_nothing_are_taken_within_measure_and_end_the_connection_beyond_it() {
    let blank = |size: usize| frame(0x81, &vec![b' '; size]);
    for (name, begin, one, most) in [
        ("pings", Vec::new(), frame(0x89, b"x"), 1000),
        ("pongs", Vec::new(), frame(0x8a, b""), 1000),
        ("empty pieces", frame(0x01, b"{"), frame(0x00, b""), 1000),
        ("blank messages", Vec::new(), blank(1), 1000),
        ("long blank messages", Vec::new(), blank(4096), 200),
    ] {
        let (stage, mut far) = Stage::new().connect(64 * 1024);
        far.write_all(&[begin, one.repeat(most)].concat()).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        assert!(!stage.pipe.is_closed(), "{most} {name} are taken");
        // And so many a second: since the first millisecond none has been earned.
        far.write_all(&one.repeat(2)).await.unwrap();
        let cause = bounded(stage.pipe.closed()).await;
        assert_eq!(cause.code(), CauseCode::ResponseInvalid, "{name}");
        assert!(cause.full().contains("too many WebSocket frames"), "{cause:?}");
        let (first, payload) = so_far(&mut far).await.pop().expect("a close frame comes");
        assert_eq!((first, &payload[..2]), (0x88, &1008_u16.to_be_bytes()[..]), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn how_a_connection_ends_is_told_as_it_was() {
    let closed = |code: u16| CauseCode::WebSocketClosed(code);
    let mut cases = vec![
        (Vec::new(), CauseCode::ConnectionLost, "without a close frame", None),
        (frame(0x01, b"{"), CauseCode::ConnectionLost, "without a close frame", None),
        (frame(0x88, b""), CauseCode::ConnectionLost, "it closed the WebSocket", Some(vec![])),
        (frame(0x88, b"\x03\xf3why"), closed(1011), "1011 (internal error)", Some(vec![0x03, 0xf3])),
        (frame(0x82, b"{}"), CauseCode::ResponseInvalid, "a binary message", Some(vec![0x03, 0xeb])),
        (frame(0x81, &vec![b' '; MAX + 1]), CauseCode::ResponseInvalid, "`max_response`", Some(vec![0x03, 0xf1])),
        (frame(0x83, b""), CauseCode::ResponseInvalid, "an unknown opcode", Some(vec![0x03, 0xea])),
    ];
    for code in [0, 1005, 1006, 1015, 2999, 65535_u16] {
        let bytes = frame(0x88, &code.to_be_bytes());
        cases.push((bytes, closed(code), "which is not a valid close code", Some(vec![0x03, 0xea])));
    }
    for (bytes, code, says, answer) in cases {
        let (stage, mut far) = Stage::new().connect(64 * 1024);
        let _ = far.write_all(&bytes).await;
        if answer.is_none() {
            far.shutdown().await.unwrap();
        }
        let cause = bounded(stage.pipe.closed()).await;
        assert_eq!(cause.code(), code, "{cause:?}");
        assert!(cause.full().contains(says), "{cause:?}");
        if let Some(answer) = answer {
            let (first, payload) = so_far(&mut far).await.pop().expect("a close frame comes");
            assert_eq!((first, &payload[..payload.len().min(2)]), (0x88, &answer[..]), "{cause:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_does_not_read_is_shown_and_given_up_where_a_part_of_an_ended_call_is_stuck() {
    let budget = Budget::new(64 << 20);
    let (stage, _far) = Stage::within(&budget).connect(64 * 1024);
    let call = stage.call(&format!(r#"{{"name":"t","arguments":{{"text":"{}"}}}}"#, "x".repeat(600 * 1024)));
    sleep(Duration::from_millis(1)).await;
    assert!(budget.used() > 500 * 1024, "{} bytes are counted", budget.used());
    sleep(Duration::from_secs(3)).await;
    drop(call);
    sleep(Duration::from_secs(4)).await;
    let unread = stage.recorder.condition(Condition::Unread);
    assert!(unread.as_ref().is_some_and(|cause| cause.contains("input not read")), "{unread:?}");
    let cause = bounded(stage.pipe.closed()).await;
    assert_eq!(cause.code(), CauseCode::InputNotRead, "{cause:?}");
    assert!(budget.used() < 100 * 1024, "{} bytes are counted", budget.used());
}

/// Sends these frames, with so long before each.
async fn steadily(far: &mut DuplexStream, pause: Duration, frames: impl Iterator<Item = Vec<u8>>) {
    for bytes in frames {
        sleep(pause).await;
        if far.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_does_not_go_on_or_trickles_ends_the_connection_and_a_slow_steady_one_is_taken() {
    let second = Duration::from_secs(1);
    for (name, next) in [("nothing", None), ("a byte", Some(frame(0x00, b"x"))), ("pings", Some(frame(0x89, b"x")))] {
        let (stage, mut far) = Stage::new().connect(64 * 1024);
        far.write_all(&frame(0x01, &[b' '; 40_000])).await.unwrap();
        let begun = Instant::now();
        let frames = next.into_iter().cycle().take(300);
        let (cause, ()) = tokio::join!(bounded(stage.pipe.closed()), steadily(&mut far, second, frames));
        assert!(cause.full().contains("did not go on") && begun.elapsed().as_secs() >= 30, "{name}: {cause:?}");
        let frames = so_far(&mut far).await;
        assert_eq!(frames.last().map(|(first, payload)| (*first, &payload[..2])), Some((0x88, &[0x03, 0xf0][..])));
    }
    let (stage, mut far) = Stage::new().connect(64 * 1024);
    far.write_all(&frame(0x01, b"{")).await.unwrap();
    steadily(&mut far, 20 * second, std::iter::repeat_n(frame(0x00, &[b' '; 400_000]), 20)).await;
    assert!(!stage.pipe.is_closed(), "20 KB/s are fast enough");
    // Between messages there may be silence.
    far.write_all(&frame(0x80, b"}")).await.unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert!(!stage.pipe.is_closed());
}

#[tokio::test]
async fn a_close_frame_arrives_though_the_server_sends_on() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    let stage = Stage::new();
    run(near, &stage.pipe, MAX, &stage.tasks);
    let flood = [frame(0x82, b"{}"), vec![b'x'; 4 << 20]].concat();
    far.write_all(&flood).await.expect("it is read to its end");
    far.shutdown().await.unwrap();
    let mut seen = Vec::new();
    bounded(far.read_to_end(&mut seen)).await.expect("the connection is not reset");
    assert_eq!(
        frames(&seen).last().map(|(first, payload)| (*first, payload[..2].to_vec())),
        Some((0x88, vec![3, 0xeb]))
    );
}

/// Takes so many bytes at a time, and none in between.
struct Stingy {
    takes: usize,
    is_next: bool,
    taken: Vec<u8>,
}

impl AsyncWrite for Stingy {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_next = !self.is_next;
        if self.is_next {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = self.takes.min(bytes.len());
        self.taken.extend_from_slice(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn each_line_is_one_frame_with_pongs_between_them_whatever_is_taken_at_once() {
    for takes in [1, 2, 3, 7, 11, 1000, 16_000, usize::MAX] {
        let long = if takes < 1000 { 300 } else { 40_000 };
        let lines = ["{\"a\":1}".to_owned(), "7".to_owned(), "x".repeat(200), "y".repeat(long), "{}".to_owned()];
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let mut output = Stingy { takes, is_next: false, taken: Vec::new() };
        let controls = Controls::default();
        let mut frames_out = Frames::new(&mut output, controls.clone());
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let count = frames_out.write(rest).await.unwrap();
            rest = &rest[count..];
            controls.pinged(b"there?");
        }
        frames_out.flush().await.unwrap();
        drop(frames_out);
        let (pongs, texts): (Vec<_>, Vec<_>) = frames(&output.taken).into_iter().partition(|(first, _)| *first == 0x8a);
        let expected: Vec<_> = lines.iter().map(|line| (0x81, line.clone().into_bytes())).collect();
        assert_eq!(texts, expected, "{takes}");
        assert!((1..=lines.len()).contains(&pongs.len()) && pongs.iter().all(|(_, payload)| payload == b"there?"));
    }
}

//! Frames as they come, well or not: floods, bombs, heads without end.

use super::{Bench, until};
use crate::listen::listener::multiplexed::STREAMS_MAX;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// What a connection is ended with where the other side does too much.
const ENHANCE_YOUR_CALM: u32 = 11;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What a client begins with.
pub(super) fn opening() -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat()
}

/// The same for one that has room for 16 MiB, of each answer and of all.
pub(super) fn opening_with_room() -> Vec<u8> {
    let window = (1_u32 << 24).to_be_bytes();
    let settings = frame(SETTINGS, 0, 0, &[&[0, 4][..], &window].concat());
    [opening(), settings, frame(WINDOW_UPDATE, 0, 0, &window)].concat()
}

/// The head of a request: GET, https, an authority and a path in plain texts.
fn head(path: &str) -> Vec<u8> {
    let text = |name: u8, text: &str| [&[name, text.len() as u8], text.as_bytes()].concat();
    [vec![0x82, 0x87], text(0x01, "localhost"), text(0x04, path)].concat()
}

pub(super) fn request(stream: u32, path: &str, is_all: bool) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | if is_all { END_STREAM } else { 0 }, stream, &head(path))
}

/// Writes so many, and reads what comes: how many were taken, what the connection was ended with, and whether it was ended by then.
async fn flood(mut peer: DuplexStream, most: u32, mut next: impl FnMut(u32) -> Vec<u8>) -> (u32, Option<u32>, bool) {
    peer.write_all(&opening()).await.unwrap();
    let (mut read, mut write) = tokio::io::split(peer);
    let writes = async {
        for count in 0..most {
            if write.write_all(&next(count)).await.is_err() {
                return (count, true);
            }
        }
        (most, false)
    };
    let reads = async {
        let mut said = None;
        loop {
            let mut head = [0; 9];
            if read.read_exact(&mut head).await.is_err() {
                return said;
            }
            let mut payload = vec![0; usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])];
            if read.read_exact(&mut payload).await.is_err() {
                return said;
            }
            if head[3] == GOAWAY {
                said = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
            }
        }
    };
    let ((written, is_broken), said) = tokio::join!(writes, reads);
    (written, said, is_broken)
}

#[tokio::test(start_paused = true)]
async fn frames_that_ask_for_nothing_are_taken_within_measure_and_end_their_connection_beyond_it() {
    let ping = frame(PING, 0, 0, &[0; 8]);
    let increment = 1_u32.to_be_bytes();
    for (name, one) in [
        ("settings", frame(SETTINGS, 0, 0, &[])),
        ("pings", ping.clone()),
        ("windows", frame(WINDOW_UPDATE, 0, 0, &increment)),
        ("priorities", frame(PRIORITY, 0, 1, &[0; 5])),
        ("unknown", frame(0xbb, 0, 0, &[])),
    ] {
        let bench = Bench::new(100);
        let (other, _end) = bench.client(2).await;
        let (written, said, is_ended) = flood(bench.connect(1), 100_000, |_| one.clone()).await;
        // Beyond the bound, what was on its way when the connection ended.
        assert!(is_ended && (1000..20_000).contains(&written), "{name}: {written}");
        if !matches!(name, "priorities" | "unknown") {
            assert_eq!(said, Some(ENHANCE_YOUR_CALM), "{name}");
        }
        assert_eq!(bench.refusals.all().get("frames"), Some(&1), "{name}");
        assert_eq!(super::status(&other, "/").await, Ok(200), "{name}: others are served");
        assert!(until(|| bench.budget.used() < 64 << 10).await, "{name}: its memory is free");
    }
    // Many, and not too many a second.
    let bench = Bench::new(100);
    let mut peer = bench.connect(1);
    peer.write_all(&opening()).await.unwrap();
    let (mut read, mut write) = tokio::io::split(peer);
    let reads = async { while read.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {} };
    let writes = async {
        for count in 0..5000 {
            write.write_all(&ping).await.unwrap();
            if count % 50 == 0 {
                write.write_all(&request(2 * count + 1, "/", true)).await.unwrap();
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = writes => {}
        () = reads => panic!("it was closed"),
    }
    assert!(until(|| bench.begun.load(Ordering::SeqCst) == 100).await, "each request was served");
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_withdrawn_at_once_end_their_connection() {
    let bench = Bench::new(100);
    let (other, _end) = bench.client(2).await;
    let (written, said, is_ended) = flood(bench.connect(1), 100_000, |count| {
        let stream = 2 * count + 1;
        [request(stream, "/wait", true), frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
    })
    .await;
    assert!(is_ended && written < 5000, "{written}");
    assert!(said == Some(ENHANCE_YOUR_CALM), "{said:?}");
    assert!(bench.begun.load(Ordering::SeqCst) < 2000);
    assert_eq!(bench.refusals.all().get("frames"), Some(&1), "it is counted");
    bench.under_way(0).await;
    assert_eq!(super::status(&other, "/").await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_hear_that_it_is_to_leave_is_served_no_more() {
    let bench = Bench::new(100);
    let mut peer = bench.connect(1);
    // It never says that it has read the last word.
    peer.write_all(&[opening(), request(1, "/wait", true), request(3, "/denied", true)].concat()).await.unwrap();
    bench.under_way(1).await;
    sleep(Duration::from_secs(2)).await;
    for count in 0..10 {
        peer.write_all(&request(5 + 2 * count, "/", true)).await.unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(bench.begun.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_hear_of_a_shutdown_holds_it_up_only_while_something_is_asked() {
    let bench = Bench::new(100);
    let mut peer = bench.connect(1);
    peer.write_all(&[opening(), request(1, "/wait", true)].concat()).await.unwrap();
    bench.under_way(1).await;
    bench.level.end();
    sleep(Duration::from_secs(4)).await;
    assert_eq!(bench.open.load(Ordering::SeqCst), 1, "it is waited for");
    bench.gate.add_permits(1);
    tokio::time::timeout(Duration::from_secs(5), bench.level.ended()).await.expect("nothing is left");
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_than_are_allowed_are_under_way_at_once() {
    let bench = Bench::new(10_000);
    let mut peer = bench.connect(1);
    peer.write_all(&opening()).await.unwrap();
    for count in 0..STREAMS_MAX + 50 {
        peer.write_all(&request(2 * count + 1, "/wait", true)).await.unwrap();
    }
    bench.under_way(STREAMS_MAX as usize).await;
    sleep(Duration::from_secs(1)).await;
    bench.under_way(STREAMS_MAX as usize).await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_goes_on_for_ever_or_stands_still_ends_its_connection() {
    let bench = Bench::new(100);
    for one in [&b""[..], b"\x00\x01x\x01y"] {
        let (written, said, is_ended) = flood(bench.connect(1), 100_000, |count| match count {
            0 => frame(HEADERS, END_STREAM, 1, &head("/")),
            _ => frame(CONTINUATION, 0, 1, one),
        })
        .await;
        assert!(is_ended && written < 20_000, "{written}");
        assert!(said == Some(ENHANCE_YOUR_CALM), "{said:?}");
    }
    // Nothing more comes of it; a whole request before it earns it nothing.
    for before in [Vec::new(), request(1, "/", true)] {
        let mut peer = bench.connect(1);
        peer.write_all(&[opening(), before, frame(HEADERS, END_STREAM, 3, &head("/"))].concat()).await.unwrap();
        let begun = Instant::now();
        while peer.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {}
        assert!((10..12).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_head_that_unpacks_to_a_large_one_is_refused_before_it_is_kept() {
    let bench = Bench::new(100);
    let (other, _end) = bench.client(2).await;
    let mut peer = bench.connect(1);
    // A text of nearly all of the table is put into it, and named by one byte each time.
    let mut packed = head("/");
    packed.extend([0x40, 0x01, b'x', 0x7f, 0xa1, 0x1e]);
    packed.extend([b'y'; 4000]);
    packed.extend([0xbe; 8000]);
    peer.write_all(&[opening(), frame(HEADERS, END_HEADERS | END_STREAM, 1, &packed)].concat()).await.unwrap();
    assert_eq!(super::status(&other, "/").await, Ok(200));
    // What comes back: the kinds of the frames.
    let mut kinds = Vec::new();
    let mut said = [0; 9];
    while peer.read_exact(&mut said).await.is_ok() {
        kinds.push((said[3], u32::from_be_bytes(said[5..].try_into().unwrap())));
        let mut payload = vec![0; usize::from(said[1]) << 8 | usize::from(said[2])];
        peer.read_exact(&mut payload).await.unwrap();
        if said[3] == GOAWAY {
            kinds.push((payload[7], 0));
        }
        if said[3] == HEADERS {
            break;
        }
    }
    assert_eq!(
        kinds.last(),
        Some(&(ENHANCE_YOUR_CALM as u8, 0)),
        "its connection is ended, with this reason: {kinds:?}"
    );
    assert_eq!(bench.begun.load(Ordering::SeqCst), 1, "it was that of the other one");
    assert!(bench.budget.used() < 1 << 20);
}

#[tokio::test(start_paused = true)]
async fn empty_pieces_of_a_body_end_their_connection() {
    let bench = Bench::new(100);
    let (written, _, is_ended) = flood(bench.connect(1), 100_000, |count| match count {
        0 => request(1, "/wait", false),
        _ => frame(DATA, 0, 1, &[]),
    })
    .await;
    assert!(is_ended && written < 20_000, "{written}");
    bench.under_way(0).await;
}

/// Asks for a path, sends more behind that, and reads up to the end of the answer.
async fn asks(peer: &mut DuplexStream, stream: u32, more: &[u8]) {
    peer.write_all(&[request(stream, "/", true), more.to_vec()].concat()).await.unwrap();
    loop {
        let mut head = [0; 9];
        peer.read_exact(&mut head).await.expect("the connection goes on");
        let [high, middle, low, kind, flags, number @ ..] = head;
        let mut payload = vec![0; usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)];
        peer.read_exact(&mut payload).await.unwrap();
        if kind == DATA && flags & END_STREAM != 0 && u32::from_be_bytes(number) == stream {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_ask_for_nothing_are_earned_with_answers_and_none_are_saved_up() {
    let bench = Bench::new(100);
    let mut peer = bench.connect(1);
    peer.write_all(&opening()).await.unwrap();
    let window = frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes());
    // As many as come with an answer, beyond those that may come at once.
    for count in 0..1000 {
        asks(&mut peer, 2 * count + 1, &window.repeat(4)).await;
    }
    for count in 1000..2000 {
        asks(&mut peer, 2 * count + 1, &[]).await;
    }
    peer.write_all(&window.repeat(2000)).await.unwrap();
    let begun = Instant::now();
    while peer.read(&mut [0; 1024]).await.is_ok_and(|count| count > 0) {}
    assert!(begun.elapsed() < Duration::from_secs(1), "it is ended");
}

#[tokio::test(start_paused = true)]
async fn requests_that_break_the_protocol_end_their_connection() {
    let bench = Bench::new(100);
    let broken = [&head("/")[..], b"\x00\x0aconnection\x05close"].concat();
    let (written, said, is_ended) =
        flood(bench.connect(1), 100_000, |count| frame(HEADERS, END_HEADERS | END_STREAM, 2 * count + 1, &broken))
            .await;
    assert!(is_ended && written < 5000, "{written}");
    assert_eq!(said, Some(ENHANCE_YOUR_CALM));
    assert_eq!(bench.begun.load(Ordering::SeqCst), 0);
}

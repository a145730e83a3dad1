//! Streams of bytes: frames, batches, lines and server-sent events.

use super::target::{Shape, Target, WORDS};
use bytes::Bytes;
use serde_json::value::RawValue;
use trunkline::fuzzing::downstream;
use trunkline::protocol::frame::message;
use trunkline::protocol::frame::message::BATCH_MAX;
use trunkline::protocol::frame::message::Body;
use trunkline::protocol::frame::message::Frame;
use trunkline::protocol::framing::lines::Line;
use trunkline::protocol::framing::lines::Lines;
use trunkline::protocol::framing::sse;
use trunkline::protocol::framing::sse::Decoder;
use trunkline::protocol::json;

pub(super) const TARGETS: &[Target] = &[
    Target { name: "frames", body: frames, words: WORDS },
    Target { name: "batches", body: batches, words: WORDS },
    Target { name: "lines", body: lines, words: &["\n", "\r\n", "\u{feff}", "{}\n"] },
    Target {
        name: "events",
        body: events,
        words: &["data: ", "data:", "id: ", "event: ", "retry: ", "\n\n", "\r", ": x\n"],
    },
];

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(text).is_ok()
}

/// A frame that is taken is JSON, and what was read of it says the same when it is written again.
fn frames(input: &[u8]) -> Shape {
    let text = Bytes::copy_from_slice(input);
    match Frame::parse(&text) {
        Err(fault) => {
            // What is not JSON for us is none for others, and what is none for others is none for us.
            assert!(fault.is_json || !is_json(input), "refused as no JSON: {fault}");
            Shape::of_text(&fault.why)
        }
        Ok(frame) => {
            assert!(is_json(input), "taken and no JSON");
            again(&frame);
            match frame {
                Frame::Request { method, .. } => Shape::of((1, method.label())),
                Frame::Notification { method, .. } => Shape::of((2, method.label())),
                Frame::Response { id, body } => Shape::of((3, id.is_some(), std::mem::discriminant(&body))),
            }
        }
    }
}

fn again(frame: &Frame) {
    let mut out = Vec::new();
    match frame {
        Frame::Request { id, method, params } => {
            message::open_request(7, method, &mut out);
            params.write(&[], &mut out);
            message::close(&mut out);
            let Ok(Frame::Request { id: seen, method: named, params: read }) = Frame::parse(&out.into()) else {
                panic!("a request is none when it is written again")
            };
            assert_eq!((seen.number(), &named, read.raw()), (Some(7), method, params.raw()));
            let answer = message::result(id.raw(), b"{}");
            let Ok(Frame::Response { id: Some(echoed), .. }) = Frame::parse(&answer) else {
                panic!("an answer is none")
            };
            assert_eq!(echoed.raw(), id.raw());
        }
        Frame::Notification { method, params } => {
            let Ok(Frame::Notification { params: read, .. }) =
                Frame::parse(&message::notification(method, params.raw()))
            else {
                panic!("a notification is none when it is written again")
            };
            assert_eq!(read.raw(), params.raw());
        }
        Frame::Response { id: Some(id), body: Body::Error(error) } => {
            let written = message::error(Some(id.raw()), error);
            assert!(matches!(Frame::parse(&written), Ok(Frame::Response { body: Body::Error(_), .. })));
        }
        Frame::Response { .. } => {}
    }
    let line = message::one_line(format!("{frame:?}").into_bytes());
    assert!(memchr(&line).is_none());
}

fn memchr(line: &[u8]) -> Option<usize> {
    line.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
}

/// The parts of a batch are its elements, and whoever reads batches takes nothing that is no array.
fn batches(input: &[u8]) -> Shape {
    let text = Bytes::copy_from_slice(input);
    let parts = Frame::split(&text, BATCH_MAX);
    let (belongs, may_begin) = downstream::batch(&text);
    match parts {
        Err(fault) => {
            assert!(!belongs && !may_begin, "no array, and taken");
            Shape::of_text(&fault.why)
        }
        Ok(parts) => {
            let joined = [&b"["[..], &parts.join(&b','), b"]"].concat();
            assert!(json::document(&joined).is_ok());
            assert_eq!(Frame::split(&joined.into(), BATCH_MAX).expect("it is an array still"), parts);
            assert!(!may_begin || (1..=64).contains(&parts.len()));
            Shape::of((belongs, may_begin, parts.len().ilog2_or_0()))
        }
    }
}

trait Rough {
    fn ilog2_or_0(self) -> u32;
}

impl Rough for usize {
    fn ilog2_or_0(self) -> u32 {
        self.checked_ilog2().unwrap_or(0)
    }
}

/// The first byte says in which pieces the rest comes.
fn pieces(input: &[u8]) -> (impl Iterator<Item = &[u8]>, &[u8]) {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    (rest.chunks(usize::from(first % 67) + 1), rest)
}

/// Any chunk borders give the same lines.
fn lines(input: &[u8]) -> Shape {
    const MAX: usize = 48;
    let (chunks, whole) = pieces(input);
    let read = |chunks: &mut dyn Iterator<Item = &[u8]>| {
        let (mut lines, mut seen) = (Lines::new(MAX, Vec::new()), Vec::new());
        for chunk in chunks {
            lines.buffer().extend_from_slice(chunk);
            seen.extend(std::iter::from_fn(|| lines.next_line()));
        }
        seen.extend(lines.last());
        seen
    };
    // One that goes on is told of where it is known first that it is too long.
    let ended = |line: Line| match line {
        Line::Frame(text) => Some(Some(text)),
        Line::Untaken { tail, .. } => tail.map(|_| None),
    };
    let seen = read(&mut chunks.into_iter());
    for line in &seen {
        match line {
            Line::Frame(text) => assert!(text.len() <= MAX && !text.is_empty() && memchr_newline(text).is_none()),
            Line::Untaken { head, tail, .. } => {
                assert!(head.len() <= MAX && tail.as_ref().is_none_or(|tail| tail.len() <= MAX));
            }
        }
    }
    let seen: Vec<_> = seen.into_iter().filter_map(ended).collect();
    let at_once: Vec<_> = read(&mut std::iter::once(whole)).into_iter().filter_map(ended).collect();
    assert_eq!(seen, at_once, "borders of chunks make other lines");
    let long = seen.iter().filter(|line| line.is_none()).count();
    Shape::of((seen.len().min(9), long.min(3)))
}

fn memchr_newline(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| *byte == b'\n')
}

/// Any chunk borders give the same events, and what is encoded is decoded.
fn events(input: &[u8]) -> Shape {
    const MAX: usize = 64;
    let (chunks, whole) = pieces(input);
    let read = |chunks: &mut dyn Iterator<Item = &[u8]>| {
        let (mut decoder, mut seen) = (Decoder::new(MAX, Vec::new()), Vec::new());
        for chunk in chunks {
            decoder.push(chunk);
            seen.extend(std::iter::from_fn(|| decoder.next_event()));
        }
        seen
    };
    let seen = read(&mut chunks.into_iter());
    assert_eq!(seen, read(&mut std::iter::once(whole)), "borders of chunks make other events");
    for event in seen.iter().flatten() {
        assert!(event.data.len() <= MAX);
    }
    let frame: Vec<u8> = whole.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).take(MAX).collect();
    let (mut out, mut decoder) = (Vec::new(), Decoder::new(MAX, Vec::new()));
    sse::encode(Some("1-1"), &frame, &mut out);
    decoder.push(&out);
    let event = decoder.next_event().expect("it is whole").expect("it fits");
    assert_eq!((&event.data[..], event.id.as_deref()), (&frame[..], Some(&b"1-1"[..])));
    let (ids, retries) =
        (seen.iter().flatten().filter(|e| e.id.is_some()), seen.iter().flatten().filter(|e| e.retry.is_some()));
    Shape::of((seen.len().min(9), ids.count().min(2), retries.count().min(2), seen.iter().any(Result::is_err)))
}

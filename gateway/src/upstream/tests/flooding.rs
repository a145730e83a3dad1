//! HTTP upstreams that send without end what wants an answer, or what comes before one.

use super::super::*;
use super::host::{Host, Seen};
use super::http::{bounded, is, legacy, start, tool};
use crate::call::refusal::Reason;
use crate::call::reply::{Failure, Outcome};
use std::future::pending;
use std::time::Duration;

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// Whether a request is the answer to one of the upstream's.
fn is_answer(seen: &Seen) -> bool {
    seen.verb == "POST" && seen.method().is_empty()
}

/// An upstream that asks a thousand times on the stream of a call, and takes no answer.
async fn asked_without_end(question: &'static str) -> Host {
    Host::start(move |seen| {
        Box::pin(async move {
            if is_answer(&seen) {
                return pending().await;
            }
            if let Some(known) = legacy(&seen, "s1") {
                return known;
            }
            seen.write(STREAM);
            for batch in 0..10 {
                let events =
                    (0..100).map(|at| format!("data: {}\n\n", question.replace("$ID", &format!("{batch}-{at}"))));
                seen.write(events.collect::<String>());
            }
            seen.event(r#"{"content":[]}"#)
        })
    })
    .await
}

async fn answers_to(question: &'static str) -> usize {
    let host = asked_without_end(question).await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    let answer = bounded(upstream.call(tool()).outcome()).await.1;
    assert!(matches!(answer, Outcome::Complete(_)), "{answer:?}");
    bounded(async {
        while !host.all().iter().any(is_answer) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    // Whatever is sent beside calls goes out while one of them is answered.
    for _ in 0..3 {
        assert!(matches!(bounded(upstream.call(tool()).outcome()).await.1, Outcome::Complete(_)));
    }
    let failed = board.snapshot().remove(0).last_error.expect("it was said").cause;
    assert!(failed.full().contains("ping arrived before") || failed.full().contains("waits to be sent"), "{failed:?}");
    host.all().iter().filter(|seen| is_answer(seen)).count()
}

#[tokio::test]
async fn pings_without_end_are_answered_once_while_no_answer_is_taken() {
    assert_eq!(answers_to(r#"{"jsonrpc":"2.0","id":"$ID","method":"ping"}"#).await, 1);
}

#[tokio::test]
async fn requests_without_end_that_nobody_knows_are_refused_by_a_few_senders() {
    let sent = answers_to(r#"{"jsonrpc":"2.0","id":"$ID","method":"no/such"}"#).await;
    assert!(sent <= 16, "{sent} at a time");
}

#[tokio::test]
async fn interim_heads_without_end_end_the_connection_and_the_call_with_a_cause() {
    let host = Host::start(|seen| {
        Box::pin(async move {
            if let Some(known) = legacy(&seen, "s1") {
                return known;
            }
            if seen.body.contains("few") {
                seen.write("HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n".repeat(100));
                return seen.result(r#"{"content":[]}"#);
            }
            let heads = "HTTP/1.1 100 Continue\r\n\r\n".repeat(8000);
            (0..8).for_each(|_| seen.write(heads.clone()));
            pending().await
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    let few = Call { params: Object::parse(r#"{"name":"few"}"#.into()).unwrap(), ..tool() };
    let answer = bounded(upstream.call(few).outcome()).await.1;
    assert!(matches!(answer, Outcome::Complete(_)), "{answer:?}");
    let answer = bounded(upstream.call(tool()).outcome()).await.1;
    let Outcome::Error(Failure::Refused(refusal)) = answer else { panic!("{answer:?}") };
    assert_eq!(refusal.reason, Reason::OutcomeUnknown, "{refusal}");
    assert!(refusal.message.contains("interim (1xx) heads"), "{refusal}");
    let failed = board.snapshot().remove(0).last_error.expect("it was said").cause;
    assert!(failed.full().contains("interim (1xx) heads"), "{failed:?}");
}

/// A whole answer whose head has so many bytes, written in so many parts.
fn headed(seen: &Seen, bytes: usize, parts: usize) -> String {
    let answer = seen.result(r#"{"content":[]}"#);
    let length = answer.find("\r\n\r\n").expect("it has a head") + "\r\n\r\n".len();
    let pad = "x".repeat(bytes - length - "x: \r\n".len());
    let answer = answer.replacen("content-length", &format!("x: {pad}\r\ncontent-length"), 1);
    let mut rest = answer.as_str();
    for _ in 1..parts {
        let (part, behind) = rest.split_at(rest.len() / 2);
        seen.write(part);
        rest = behind;
    }
    rest.to_owned()
}

#[tokio::test]
async fn a_head_has_at_most_32_kib_and_one_byte_more_ends_its_own_call_alone() {
    const MOST: usize = 32 * 1024;
    let (release, released) = tokio::sync::watch::channel(false);
    let host = Host::start(move |seen| {
        let mut released = released.clone();
        Box::pin(async move {
            if let Some(known) = legacy(&seen, "s1") {
                return known;
            }
            if seen.body.contains("slow") {
                released.wait_for(|is_released| *is_released).await.unwrap();
            }
            let has = |word| seen.body.contains(word);
            if has("headers") {
                return seen.result("{}").replacen("content-length", &("x: y\r\n".repeat(100) + "content-length"), 1);
            }
            let bytes = match () {
                () if has("slow") => 1000,
                () if has("fits") => MOST,
                () if has("much") => 4 * MOST,
                () => MOST + 1,
            };
            headed(&seen, bytes, if has("parts") { 8 } else { 1 })
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    let called = |name: &str| {
        let params = Object::parse(format!(r#"{{"name":"{name}"}}"#).into()).unwrap();
        upstream.call(Call { params, ..tool() })
    };
    let slow = called("slow");
    let slow = async { bounded(slow.outcome()).await.1 };
    let others = async {
        for _ in 0..8 {
            for name in ["more", "more in parts", "much more", "more headers"] {
                let answer = bounded(called(name).outcome()).await.1;
                let Outcome::Error(Failure::Refused(refusal)) = answer else { panic!("{name}: {answer:?}") };
                assert_eq!(refusal.reason, Reason::BadAnswer, "{refusal}");
                let says = "the head of its response has more than 32 KiB or 100 headers";
                assert!(refusal.message.contains(says), "{refusal}");
                let failed = board.snapshot().remove(0).last_error.expect("it was said").cause;
                assert!(failed.full().contains(says), "{failed:?}");
            }
            for name in ["fits", "fits in parts"] {
                let answer = bounded(called(name).outcome()).await.1;
                assert!(matches!(answer, Outcome::Complete(_)), "{name}: {answer:?}");
            }
        }
        assert_eq!(board.snapshot()[0].state, State::Ready);
        release.send(true).unwrap();
    };
    let (slow, ()) = tokio::join!(slow, others);
    assert!(matches!(slow, Outcome::Complete(_)), "{slow:?}");
}

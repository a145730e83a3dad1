//! HTTP upstreams that lose sessions under way, lie about lengths, answer byte by byte, or cannot be reached.

use super::super::config::{Config, Remote, Transport};
use super::super::*;
use super::host::{Host, Seen, empty, json};
use super::http::{bounded, is, legacy, start, tool};
use crate::call::caller::Caller;
use crate::call::refusal::Reason;
use crate::call::reply::{Failure, Outcome};
use crate::protocol::revision::Revision;
use crate::upstream::owner::BRIDGED;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Barrier, Notify};
use tokio::time::timeout;

const PLAY: &str = "POST tools/call";

/// A call of the one session that there is: its client can be asked all there is to ask.
fn call_of(nonce: usize) -> Call {
    let call = tool();
    let capabilities = BRIDGED.to_json(Revision::V2025_11_25).into_bytes().into();
    let caller = Caller { capabilities, ..Caller::clone(&call.caller) };
    let params = format!(r#"{{"name":"t","arguments":{{"nonce":"n{nonce}n"}}}}"#);
    Call { caller: Arc::new(caller), params: Object::parse(params.into()).unwrap(), ..call }
}

fn nonce(seen: &Seen) -> usize {
    seen.body.split("\"nonce\":\"n").nth(1).and_then(|rest| rest.split("n\"").next()?.parse().ok()).expect("a nonce")
}

/// This one hears that the session is lost when others have gone on in the next one.
const LATE: usize = 62;
/// Only half of it is ever sent.
const HALF: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 500\r\n\r\n{";

#[tokio::test]
async fn a_session_lost_with_64_calls_under_way_is_opened_once_and_only_what_did_not_run_is_sent_again() {
    let (opened, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(64)));
    let ran: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (count, heard, again) = (opened.clone(), ran.clone(), Arc::new(Notify::new()));
    let host = Host::start(move |seen| {
        let (count, all, ran, again) = (count.clone(), all.clone(), heard.clone(), again.clone());
        Box::pin(async move {
            if seen.method() == "initialize" {
                count.fetch_add(1, Ordering::SeqCst);
            }
            let session = format!("s{}", count.load(Ordering::SeqCst));
            if let Some(answer) = legacy(&seen, &session) {
                return answer;
            }
            if seen.method() == "ping" {
                return if seen.header("mcp-session-id") == "s1" { empty(404) } else { seen.result("{}") };
            }
            let nonce = nonce(&seen);
            if seen.header("mcp-session-id") == "s1" {
                all.wait().await;
                if nonce == LATE {
                    again.notified().await;
                }
                if !nonce.is_multiple_of(4) {
                    return if nonce % 4 == 1 { json(400, "", "Bad Request: No valid session ID") } else { empty(404) };
                }
            }
            ran.lock().unwrap().push(nonce);
            if seen.header("mcp-session-id") == "s2" {
                again.notify_one();
            }
            if nonce.is_multiple_of(4) { HALF.to_owned() } else { seen.result(r#"{"content":[]}"#) }
        })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    let mut replies: Vec<_> = (0..64).map(|nonce| upstream.call(call_of(nonce))).collect();
    // Nothing is sent before it is polled: all of them have to be under way.
    let polled = replies.iter_mut().map(|reply| reply.next());
    let steps = bounded(all_of(polled.collect())).await;
    for (nonce, step) in steps.into_iter().enumerate() {
        match step {
            crate::call::reply::Step::Done(Outcome::Complete(_)) => assert_ne!(nonce % 4, 0),
            crate::call::reply::Step::Done(Outcome::Error(Failure::Refused(refusal))) => {
                assert_eq!((refusal.reason, nonce % 4), (Reason::OutcomeUnknown, 0), "{}", refusal.message);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(opened.load(Ordering::SeqCst), 2, "the one at the start, and one more for all");
    let ran = ran.lock().unwrap().clone();
    assert_eq!((ran.len(), ran.iter().collect::<HashSet<_>>().len()), (64, 64), "each ran once");
}

/// Polls all of them to their ends.
async fn all_of<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut open: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut ends: Vec<Option<F::Output>> = open.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, end) in open.iter_mut().zip(&mut ends) {
            if end.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(cx)
            {
                *end = Some(output);
            }
        }
        if ends.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    ends.into_iter().flatten().collect()
}

/// The first call is answered like this; the next one works, whatever came of that.
async fn spoiled(config: impl Fn(Config) -> Config, play: fn(&Seen) -> Option<String>) -> Outcome {
    let calls = Arc::new(AtomicUsize::new(0));
    let host = Host::start(move |seen| {
        let calls = calls.clone();
        Box::pin(async move {
            match legacy(&seen, "s1") {
                Some(answer) => answer,
                None if calls.fetch_add(1, Ordering::SeqCst) > 0 => seen.result(r#"{"content":["good"]}"#),
                None => match play(&seen) {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                },
            }
        })
    })
    .await;
    let (upstream, board, _tasks) = start(config(host.config()));
    is(&board, State::Ready).await;
    let first = bounded(upstream.call(call_of(1)).outcome()).await.1;
    let next = bounded(upstream.call(call_of(2)).outcome()).await.1;
    assert!(matches!(&next, Outcome::Complete(result) if result.raw().ends_with(b"[\"good\"]}")), "{next:?}");
    assert_eq!(host.count(PLAY), 2, "each was sent once");
    first
}

fn reason(outcome: Outcome) -> (Reason, String) {
    match outcome {
        Outcome::Error(Failure::Refused(refusal)) => (refusal.reason, refusal.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_length_that_lies_spoils_its_own_call_only() {
    let short = |seen: &Seen| {
        let whole = seen.result(r#"{"content":[]}"#);
        let body = whole.split("\r\n\r\n").nth(1).unwrap();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}", body.len() - 5);
        Some(format!("{head}\r\n\r\n{body}"))
    };
    assert_eq!(reason(spoiled(|config| config, short).await).0, Reason::BadAnswer);
    assert_eq!(reason(spoiled(|config| config, |_| Some(HALF.to_owned())).await).0, Reason::OutcomeUnknown);
    let behind = |_: &Seen| Some(json(202, "", "{\"left\":\"behind\"}"));
    let (reason, message) = reason(spoiled(|config| config, behind).await);
    assert!(reason == Reason::BadAnswer && message.contains("202"), "{message}");
}

#[tokio::test]
async fn an_odd_charset_is_taken_and_no_content_is_named() {
    let latin = |seen: &Seen| {
        Some(seen.result(r#"{"content":[]}"#).replace("application/json", "application/json; charset=latin1"))
    };
    assert!(matches!(spoiled(|config| config, latin).await, Outcome::Complete(_)));
    let nothing = |_: &Seen| Some("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n".to_owned());
    let (reason, message) = reason(spoiled(|config| config, nothing).await);
    assert!(reason == Reason::BadAnswer && message.contains("204"), "{message}");
}

#[tokio::test]
async fn slow_heads_and_slow_bodies_end_with_the_time_of_the_call() {
    let hurried = |config| Config { call_timeout: Some(Duration::from_millis(700)), ..config };
    assert_eq!(reason(spoiled(hurried, |_| None).await).0, Reason::Timeout);
    let trickle = |seen: &Seen| {
        seen.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{");
        None
    };
    assert_eq!(reason(spoiled(hurried, trickle).await).0, Reason::Timeout);
}

#[tokio::test]
async fn credentials_that_are_refused_are_not_tried_again_soon() {
    for status in [401, 403] {
        let host =
            Host::start(move |_| Box::pin(async move { json(status, "www-authenticate: Bearer\r\n", "no") })).await;
        let (upstream, board, _tasks) = start(host.config());
        is(&board, State::Failed).await;
        let health = board.snapshot().remove(0);
        let retry = health.retry_at.unwrap().saturating_duration_since(tokio::time::Instant::now());
        assert!(retry > Duration::from_secs(30), "{retry:?}");
        let (reason, message) = reason(bounded(upstream.call(tool()).outcome()).await.1);
        assert!(reason == Reason::Unavailable && message.contains(&status.to_string()), "{message}");
        assert_eq!(host.all().len(), 1, "asked once, whoever calls");
    }
}

async fn unreachable(url: String, cause: &str) {
    let config = super::rig::config();
    let transport = Transport::Http(Remote::new(url.parse().unwrap(), http::HeaderMap::new()));
    let (_upstream, board, _tasks) = start(Config { transport, ..config });
    is(&board, State::BackingOff).await;
    let said = board.snapshot()[0].cause.clone().unwrap();
    assert!(said.full().contains(cause), "{said:?}");
}

#[tokio::test]
async fn a_name_that_leads_nowhere_is_said() {
    unreachable("http://nowhere.invalid:9/mcp".to_owned(), "DNS lookup of nowhere.invalid failed").await;
}

#[tokio::test]
async fn an_address_that_swallows_all_is_given_up_soon() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody takes them, so that the system answers no further one.
    let (mut full, mut held) = (0, Vec::new());
    while full < 2 {
        match timeout(Duration::from_millis(250), TcpStream::connect(address)).await {
            Ok(stream) => held.push(stream.unwrap()),
            Err(_) => full += 1,
        }
    }
    unreachable(format!("http://{address}/mcp"), "no answer within 3 s").await;
}

#[tokio::test]
async fn calls_that_are_given_up_leave_room_for_others() {
    let host = Host::start(|seen| {
        Box::pin(async move { legacy(&seen, "s1").unwrap_or_else(|| seen.result(r#"{"content":[]}"#)) })
    })
    .await;
    let (upstream, board, _tasks) = start(host.config());
    is(&board, State::Ready).await;
    // More than there may be at once; nothing of them was sent.
    (0..5000).for_each(|nonce| drop(upstream.call(call_of(nonce))));
    let next = bounded(upstream.call(call_of(5000)).outcome()).await.1;
    assert!(matches!(next, Outcome::Complete(_)), "{next:?}");
    assert_eq!(host.count(PLAY), 1);
}

#[tokio::test]
async fn a_response_with_both_lengths_is_taken_for_none_and_its_connection_is_not_used_again() {
    // Whoever goes by the length finds a second response behind the first, as an answer to the next call.
    let outcome = spoiled(
        |config| config,
        |seen| {
            let body = seen.result(r#"{"content":["smuggled"]}"#).split_once("\r\n\r\n").unwrap().1.to_owned();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            Some(format!(
                "{head}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            ))
        },
    )
    .await;
    let (reason, said) = reason(outcome);
    assert!(
        reason == Reason::BadAnswer && said.contains("Content-Length beside Transfer-Encoding"),
        "{reason:?} {said}"
    );
}

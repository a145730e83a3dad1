//! Limits: each client has its own, and other ones hold from the next call on.

use super::*;
use crate::call::caller::{Caller, Can, Grants, Principal};
use crate::call::reply::{Failure, Outcome};
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use bytes::Bytes;
use tower::Layer;

/// Answers a prompt never, and all else at once with a hundred bytes.
struct Inner;

impl Handle for Inner {
    fn handle(&self, call: Call) -> Reply {
        let text = format!("{{\"x\":\"{}\"}}", "y".repeat(92));
        match call.method {
            Method::PromptsGet => Reply::deferred(std::future::pending()),
            _ => Reply::complete(Revision::V2025_11_25, Object::parse(text.into()).unwrap()),
        }
    }
}

fn call(principal: &str, method: Method) -> Call {
    let caller = Caller {
        principal: Principal::named(principal),
        address: None,
        grants: Grants::all(),
        revision: Revision::V2025_11_25,
        capabilities: Bytes::from_static(b"{}"),
        tenant: None,
        can: Can::default(),
    };
    Call::about(method, Object::empty(), Arc::new(caller))
}

fn limited(terms: config::Limits) -> impl AsyncFn(&str) -> Option<Duration> {
    let limited = Limits::new(&terms).layer(Inner);
    async move |principal: &str| match limited.handle(call(principal, Method::ToolsCall)).outcome().await.1 {
        Outcome::Error(Failure::Refused(Refusal { reason: Reason::Limited(wait), .. })) => Some(wait),
        Outcome::Complete(_) => None,
        other => panic!("{other:?}"),
    }
}

fn rate(count: u64) -> Option<Rate> {
    Some(Rate { count, per: Duration::from_secs(60) })
}

#[tokio::test(start_paused = true)]
async fn one_who_calls_too_often_is_told_when_to_come_again_and_nobody_else_is() {
    let asked = limited(config::Limits { calls: rate(3), ..config::Limits::default() });
    for _ in 0..3 {
        assert_eq!(asked("a").await, None);
    }
    assert_eq!(asked("a").await, Some(Duration::from_secs(20)));
    assert_eq!(asked("b").await, None);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!((asked("a").await, asked("a").await), (None, Some(Duration::from_secs(20))));
}

#[tokio::test(start_paused = true)]
async fn bytes_of_results_are_owed_and_waited_for() {
    let asked = limited(config::Limits { bytes: rate(150), ..config::Limits::default() });
    assert_eq!((asked("a").await, asked("a").await), (None, None), "one may be larger than what is left");
    assert!(asked("a").await.is_some() && asked("b").await.is_none());
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(asked("a").await, None);
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_are_counted_until_they_end_or_are_dropped() {
    let terms = config::Limits { max_concurrency: Some(2), ..config::Limits::default() };
    let limited = Limits::new(&terms).layer(Inner);
    let waits = |principal: &str| limited.handle(call(principal, Method::PromptsGet));
    let held = [waits("a"), waits("a")];
    let third = async || limited.handle(call("a", Method::ToolsCall)).outcome().await.1;
    let is_refused = |outcome: Outcome| matches!(outcome, Outcome::Error(_));
    assert!(is_refused(third().await));
    assert!(!is_refused(limited.handle(call("b", Method::ToolsCall)).outcome().await.1));
    assert!(!is_refused(limited.handle(call("a", Method::ToolsList)).outcome().await.1), "a list is no call");
    drop(held);
    assert!(!is_refused(third().await));
}

#[tokio::test(start_paused = true)]
async fn clients_that_have_rested_are_forgotten_and_no_limit_is_no_book() {
    assert!(!Limits::new(&config::Limits::default()).0.is_any.load(Ordering::Relaxed));
    let limits = Limits::new(&config::Limits { calls: rate(1), ..config::Limits::default() });
    let book = &limits.0;
    for number in 0..CLIENTS_MAX * 3 {
        tokio::time::advance(Duration::from_secs(61)).await;
        assert!(book.admit(&call(&number.to_string(), Method::ToolsCall)).is_ok());
    }
    assert!(book.clients.len() <= CLIENTS_MAX, "{}", book.clients.len());
}

#[tokio::test(start_paused = true)]
async fn a_call_for_which_nobody_waits_gives_its_place_to_another_after_a_while() {
    let terms = config::Limits { max_concurrency: Some(2), ..config::Limits::default() };
    let limits = Limits::new(&terms);
    let limited = limits.clone().layer(Inner);
    let waits = || limited.handle(call("a", Method::PromptsGet));
    let wait = async || match limited.handle(call("a", Method::ToolsCall)).outcome().await.1 {
        Outcome::Error(Failure::Refused(Refusal { reason: Reason::Limited(wait), .. })) => Some(wait),
        _ => None,
    };
    let (mut first, mut second) = (waits(), waits());
    assert_eq!(wait().await, Some(SOON), "somebody waits for both");
    let (left, other) = (Abandoned::new(true), Abandoned::new(true));
    first.abandon(&left);
    assert_eq!(wait().await, Some(Duration::from_secs(10)), "its client may come back");
    tokio::time::advance(Duration::from_secs(4)).await;
    second.abandon(&other);
    assert_eq!(wait().await, Some(Duration::from_secs(6)));
    assert!(other.back());
    tokio::time::advance(Duration::from_secs(6)).await;
    let third = waits();
    left.given().await;
    assert_eq!(wait().await, Some(SOON), "its place was given once");
    drop(first);
    assert_eq!(wait().await, Some(SOON), "it has none any more");
    drop(third);
    assert_eq!(wait().await, None);
    // What nobody can come back for gives its place at once.
    let mut fourth = waits();
    let left = Abandoned::new(false);
    fourth.abandon(&left);
    assert_eq!(wait().await, None);
    left.given().await;
    drop((second, fourth));
    let book = &limits.0;
    assert!(book.clients.iter().all(|client| client.open.load(Ordering::Relaxed) == 0));
}

#[test]
fn a_client_is_not_forgotten_between_its_look_up_and_its_count() {
    let limits = Limits::new(&config::Limits { max_concurrency: Some(2), ..config::Limits::default() });
    let book = &limits.0;
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                book.clients.retain(|_, client| !client.has_rested());
            }
        });
        let share = call("a", Method::ToolsCall).caller.share();
        let lost = (0..100_000).filter(|_| {
            // Kept from one round to the next until it is looked up.
            let before = book.open(&share);
            drop(before);
            let _open = book.open(&share);
            book.clients.get(&share).is_none()
        });
        let lost = lost.count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(lost, 0);
    });
}

#[tokio::test(start_paused = true)]
async fn other_limits_hold_from_the_next_call_on_and_calls_under_way_count() {
    let limits = Limits::new(&config::Limits { calls: rate(2), max_concurrency: Some(9), ..config::Limits::default() });
    let limited = limits.clone().layer(Inner);
    let asked = async |method: Method| match limited.handle(call("a", method)).outcome().await.1 {
        Outcome::Error(Failure::Refused(refusal)) => Some(refusal.message.to_string()),
        _ => None,
    };
    let waits = limited.handle(call("a", Method::PromptsGet));
    assert!(asked(Method::ToolsCall).await.is_none());
    assert!(asked(Method::ToolsCall).await.is_some_and(|why| why.contains("2 calls a minute")));
    // A rate that stays has not rested meanwhile.
    limits.set(&config::Limits { calls: rate(2), max_concurrency: Some(1), ..config::Limits::default() });
    assert!(asked(Method::ToolsCall).await.is_some_and(|why| why.contains("1 calls at once")));
    drop(waits);
    assert!(asked(Method::ToolsCall).await.is_some_and(|why| why.contains("2 calls a minute")));
    limits.set(&config::Limits { calls: rate(3), ..config::Limits::default() });
    let passed = [asked(Method::ToolsCall).await, asked(Method::ToolsCall).await, asked(Method::ToolsCall).await];
    assert_eq!(passed, [None, None, None], "another rate begins anew");
    assert!(asked(Method::ToolsCall).await.is_some_and(|why| why.contains("3 calls a minute")));
    limits.set(&config::Limits::default());
    assert!(asked(Method::ToolsCall).await.is_none(), "without a limit there is none");
    limits.set(&config::Limits { bytes: rate(1), ..config::Limits::default() });
    assert!(asked(Method::ToolsCall).await.is_none());
    assert!(asked(Method::ToolsCall).await.is_some_and(|why| why.contains("1 bytes a minute")));
}

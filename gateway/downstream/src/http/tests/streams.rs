//! The streams of sessions: calls that outlive their connections, notices, resumption.

use super::{Bench, call, code, piece, text};
use crate::call::ListenFilter;
use crate::call::reply::{Change, Event};
use http::StatusCode;
use std::time::Duration;

/// A call that has become a stream, with its head and the first event read.
async fn streaming(bench: &mut Bench, session: &str) -> (super::Body, crate::scripted::Hand) {
    let face = bench.client.clone();
    let frame = call("1", "x");
    let (response, hand) = tokio::join!(face.legacy(session, &frame), async {
        let hand = bench.hands.next().await;
        hand.progress(1);
        hand
    });
    (response.into_body(), hand)
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_cancels_nothing_and_is_read_on_once() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-11-25").await;
    let (mut body, hand) = streaming(&mut bench, &id).await;
    assert_eq!(piece(&mut body).await.unwrap(), "retry: 1000\nid: 1-0\ndata: \n\n");
    let progress = piece(&mut body).await.unwrap();
    assert!(progress.contains("id: 1-1\n") && progress.contains(r#""progressToken":7,"progress":1"#), "{progress}");
    drop(body);
    hand.progress(2);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!hand.is_cancelled());
    let mut resumed = bench.get(&id, Some("1-1")).await.into_body();
    assert!(piece(&mut resumed).await.unwrap().contains("id: 1-2\n"));
    hand.complete(r#"{"content":[]}"#);
    let last = piece(&mut resumed).await.unwrap();
    assert!(last.contains("id: 1-3\n") && last.contains(r#""id":1,"result""#), "{last}");
    assert_eq!(piece(&mut resumed).await, None);
    assert_eq!(text(bench.get(&id, Some("1-3")).await).await, "");
    assert!(text(bench.get(&id, Some("1-2")).await).await.contains(r#""id":1,"result""#));
}

#[tokio::test(start_paused = true)]
async fn the_place_of_a_call_for_which_nobody_comes_back_can_be_given_away_and_its_client_is_told() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-11-25").await;
    let (body, hand) = streaming(&mut bench, &id).await;
    let abandoned = || hand.abandoned.lock().unwrap().clone();
    let after = async |seconds: u64| tokio::time::sleep(Duration::from_secs(seconds)).await;
    after(60).await;
    assert!(abandoned().is_none(), "it is waited for");
    drop(body);
    after(1).await;
    let first = abandoned().unwrap();
    assert!(first.kept().is_some_and(|kept| kept > Duration::from_secs(8)) && first.give() == 0);
    // Who comes back in time has it again, and then is gone for good.
    let body = bench.get(&id, Some("1-1")).await.into_body();
    after(60).await;
    assert!(first.give() == 0 && !hand.is_cancelled());
    drop(body);
    after(11).await;
    let second = abandoned().unwrap();
    assert_eq!(second.give(), 1);
    after(1).await;
    assert!(hand.is_cancelled());
    let told = text(bench.get(&id, Some("1-1")).await).await;
    assert!(
        told.contains(r#""id":1,"error""#) && told.contains("another call of this client needed its place"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_is_refused() {
    let mut bench =
        Bench::with(crate::protocol::revision::Revision::V2025_11_25, |config| config.session.resume_buffer = 300);
    let (id, _listen) = bench.session("2025-11-25").await;
    let (body, hand) = streaming(&mut bench, &id).await;
    drop(body);
    for done in 2..9 {
        hand.progress(done);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for last in ["1-0", "1-99", "2-0", "x", "1-", "-1", "1-1-1", "99999999999999999999-1"] {
        assert_eq!(code(bench.get(&id, Some(last)).await).await, (404, -32000), "{last}");
    }
    assert_eq!(bench.get(&id, Some("1-7")).await.status(), StatusCode::OK);
    let (other, _listen) = bench.session("2025-11-25").await;
    assert_eq!(bench.get(&other, Some("1-7")).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_before_its_answer_goes_on() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-11-25").await;
    let face = bench.client.clone();
    let pending = tokio::time::timeout(Duration::from_secs(1), face.legacy(&id, &call("1", "x"))).await;
    assert!(pending.is_err());
    let hand = bench.hands.next().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!hand.is_cancelled());
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    bench.legacy(&id, cancel).await;
    hand.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn older_revisions_get_no_priming_event() {
    let mut bench = Bench::new();
    let (id, _listen) = bench.session("2025-06-18").await;
    let (mut body, _hand) = streaming(&mut bench, &id).await;
    assert!(piece(&mut body).await.unwrap().starts_with("event: message\nid: 1-1\n"));
    assert_eq!(piece(&mut body).await.unwrap(), ": keep-alive\n\n");
}

#[tokio::test(start_paused = true)]
async fn notices_wait_for_a_stream_and_go_to_the_newest_one() {
    let mut bench = Bench::new();
    let (id, listen) = bench.session("2025-06-18").await;
    listen.tell(Event::Change(Change::Acknowledged(ListenFilter::lists())));
    listen.tell(Event::Change(Change::Tools));
    let mut first = bench.get(&id, None).await.into_body();
    assert!(
        piece(&mut first)
            .await
            .unwrap()
            .ends_with("\"method\":\"notifications/tools/list_changed\",\"params\":{}}\n\n")
    );
    let mut second = bench.get(&id, None).await.into_body();
    assert_eq!(piece(&mut first).await, None);
    listen.tell(Event::Change(Change::Updated("a:b".into())));
    assert!(piece(&mut second).await.unwrap().contains(r#""params":{"uri":"a:b"}"#));
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(bench.legacy(&id, &call("1", "echo")).await.status(), StatusCode::OK);
    bench.tasks.end();
    while let Some(comment) = piece(&mut second).await {
        assert_eq!(comment, ": keep-alive\n\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_holds_up_its_own_call_alone() {
    let mut bench =
        Bench::with(crate::protocol::revision::Revision::V2025_11_25, |config| config.session.resume_buffer = 200);
    let (id, _listen) = bench.session("2025-06-18").await;
    let (mut body, hand) = streaming(&mut bench, &id).await;
    for done in 2..20 {
        hand.progress(done);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.legacy(&id, &call("1", "echo")).await.status(), StatusCode::OK);
    hand.complete(r#"{"content":[]}"#);
    let (mut pieces, mut last) = (0, String::new());
    while let Some(piece) = piece(&mut body).await {
        (pieces, last) = (pieces + 1, piece);
    }
    assert_eq!(pieces, 20);
    assert!(last.contains("\"result\""));
}

//! Silence and signs of life, with the clock paused.

use super::*;
use crate::health::row::State;
use crate::protocol::revision::Revision;
use crate::transport::http::StatusClass;
use crate::upstream::config::{Checks, Config};
use crate::upstream::tests::rig::{Rig, config};
use tokio::time::sleep;

const LEGACY: Revision = Revision::V2025_11_25;

/// An upstream that is there and watched.
fn watched(config: Config, revision: Revision) -> (Rig, Arc<Peer>) {
    let rig = Rig::new(config);
    let peer = rig.met(revision, "{}");
    rig.instance.status.came_up();
    rig.tasks.spawn_until_end(watch(rig.instance.clone(), peer.clone()));
    (rig, peer)
}

fn state(rig: &Rig) -> State {
    rig.board.snapshot()[0].state
}

/// Until what was written has been read.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_only_while_nothing_is_heard_and_any_answer_is_a_sign_of_life() {
    let (mut rig, _peer) = watched(config(), LEGACY);
    let begun = Instant::now();
    for _ in 0..10 {
        // Whatever it is.
        rig.far.write("not a frame").await;
        sleep(Duration::from_secs(29)).await;
    }
    rig.far.write("the last one").await;
    let (id, method, _) = rig.far.request().await;
    assert_eq!(method, Method::Ping);
    assert!((320..=350).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    rig.far.result(&id, "{}").await;
    for _ in 0..5 {
        let asked = Instant::now();
        let (id, _, _) = rig.far.request().await;
        assert_eq!(asked.elapsed().as_secs(), 30);
        rig.far.error(&id, -32601).await;
    }
    assert_eq!(state(&rig), State::Ready);
}

#[tokio::test(start_paused = true)]
async fn who_owes_three_answers_is_degraded_until_anything_is_heard() {
    let (mut rig, _peer) = watched(config(), LEGACY);
    let begun = Instant::now();
    for (time, method) in
        [(30, "ping"), (35, "cancelled"), (35, "ping"), (40, "cancelled"), (40, "ping"), (45, "cancelled")]
    {
        assert_eq!(state(&rig), State::Ready);
        let line = rig.far.line().await;
        assert!(line.contains(method), "{line}");
        assert_eq!(begun.elapsed().as_secs(), time);
    }
    settle().await;
    let health = rig.board.snapshot().remove(0);
    assert_eq!(health.state, State::Degraded);
    assert_eq!(
        health.cause.as_ref().map(Cause::full).as_deref(),
        Some("no answer to `ping` within 5 s, 3 times in a row")
    );
    assert!(rig.notices.lock().unwrap().is_empty(), "it is still there");
    // It is asked on, now and then; calls are taken.
    assert!(rig.far.line().await.contains("ping"));
    assert_eq!(begun.elapsed().as_secs(), 75);
    assert!(rig.instance.admission.gate.peer().is_some());
    rig.far.notify("notifications/progress", r#"{"progressToken":1,"progress":1}"#).await;
    settle().await;
    assert_eq!((state(&rig), rig.board.snapshot()[0].cause.clone()), (State::Ready, None));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_hangs_is_given_up_where_that_is_wanted() {
    let checks = Checks { unhealthy_after: 1, ..Checks::default() };
    let (rig, _peer) = watched(Config { health: checks, hang_restart: true, ..config() }, LEGACY);
    let begun = Instant::now();
    let why = rig.instance.admission.gate.retired().await;
    assert!(matches!(&why, Retired::Hung(cause) if cause.full() == "no answer to `ping` within 5 s"), "{why:?}");
    // Interval, time-out, and no more.
    assert_eq!(begun.elapsed().as_secs(), 35);
    assert!(rig.instance.admission.gate.peer().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stateless_upstream_is_asked_in_its_own_words() {
    let (mut rig, _peer) = watched(config(), Revision::V2026_07_28);
    let (_, method, params) = rig.far.request().await;
    assert_eq!(method, Method::Discover);
    assert!(params.raw().windows(10).any(|part| part == b"2026-07-28"));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_where_that_is_switched_off() {
    let checks = Checks { interval: None, ..Checks::default() };
    let (mut rig, _peer) = watched(Config { health: checks, ..config() }, LEGACY);
    sleep(Duration::from_secs(100_000)).await;
    assert!(rig.far.is_quiet().await);
}

#[test]
fn only_an_outage_and_missing_credentials_say_that_it_is_unwell() {
    let unwell: Vec<u16> = [200, 400, 401, 403, 404, 405, 406, 429, 500, 501, 503]
        .into_iter()
        .filter(|status| StatusClass::of(*status).is_unwell())
        .collect();
    assert_eq!(unwell, [401, 403, 500, 501, 503]);
}

//! What counts as a start and as a failure, over many starts; with the clock paused.

use super::*;
use crate::upstream::tests::rig::{Rig, config};

const HEALTHY: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(60);

/// An upstream that may be started three times within a minute, and is well after five seconds.
fn frail(policy: RestartPolicy) -> (Rig, Restarts) {
    let restart = Restart { policy, max_restarts: 3, healthy_after: HEALTHY, window: WINDOW, ..Restart::default() };
    let rig = Rig::new(Config { restart: restart.clone(), ..config() });
    (rig, Restarts::new(restart, true, Starts::default()))
}

fn unmet(kind: FaultKind) -> Exit {
    Exit::Unmet(Fault { text: "it ended".into(), kind })
}

/// It came up and was there for so long.
fn gone(up: Duration) -> Exit {
    Exit::Gone { cause: "it ended".into(), up, how: Gone::Crashed }
}

/// What follows in a word, and after what time, which passes.
async fn follows(rig: &Rig, restarts: &mut Restarts, end: Exit) -> (&'static str, Duration) {
    match restarts.after(&rig.instance.config, &rig.instance.status, end) {
        Decision::Now => ("at once", Duration::ZERO),
        Decision::After { delay, state, .. } => {
            tokio::time::sleep(delay).await;
            (state.as_str(), delay)
        }
        Decision::Rest { state, .. } => (state.as_str(), Duration::MAX),
    }
}

/// Restarts of this kind one after the other, each a start that counts.
async fn words(rig: &Rig, restarts: &mut Restarts, count: usize, end: impl Fn() -> Exit) -> Vec<&'static str> {
    let mut all = Vec::new();
    for _ in 0..count {
        restarts.started(Instant::now(), false);
        let end = end();
        if let Exit::Gone { up, .. } | Exit::Retired { up, .. } = &end {
            restarts.met();
            tokio::time::sleep(*up).await;
        }
        all.push(follows(rig, restarts, end).await.0);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn to_come_up_is_not_yet_to_be_well() {
    let (rig, mut restarts) = frail(RestartPolicy::Always);
    let brief = HEALTHY - Duration::from_secs(1);
    let begun = Instant::now();
    let seen = words(&rig, &mut restarts, 6, || gone(brief)).await;
    assert_eq!(seen, ["backing_off", "backing_off", "failed", "failed", "failed", "failed"]);
    assert!(begun.elapsed() >= WINDOW * 4, "then one a minute: {:?}", begun.elapsed());
    let well = || gone(HEALTHY);
    assert_eq!(words(&rig, &mut restarts, 2, well).await, ["backing_off", "backing_off"], "it was well meanwhile");
    // Well or not: so many starts within a minute are enough.
    assert_eq!(words(&rig, &mut restarts, 1, well).await, ["failed"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_without_a_question_for_the_era_is_free_once() {
    let (rig, mut restarts) = frail(RestartPolicy::Always);
    restarts.started(Instant::now(), false);
    assert!(!restarts.is_not_asked());
    assert_eq!(follows(&rig, &mut restarts, unmet(FaultKind::EndedWhenAsked)).await.0, "at once");
    assert!(restarts.is_not_asked());
    // It was not the question: it is asked again, and that it ends then is a failure like any other.
    let ends = [FaultKind::Passing, FaultKind::EndedWhenAsked, FaultKind::Passing];
    let mut seen = Vec::new();
    for end in ends {
        restarts.started(Instant::now(), false);
        seen.push((follows(&rig, &mut restarts, unmet(end)).await.0, restarts.is_not_asked()));
    }
    assert_eq!(seen, [("backing_off", false), ("backing_off", true), ("failed", false)]);
}

#[tokio::test(start_paused = true)]
async fn the_free_start_is_not_in_the_window_and_the_next_one_is() {
    let (rig, mut restarts) = frail(RestartPolicy::Always);
    let mut seen = Vec::new();
    for _ in 0..2 {
        restarts.started(Instant::now(), false);
        assert_eq!(follows(&rig, &mut restarts, unmet(FaultKind::EndedWhenAsked)).await.0, "at once");
        assert!(restarts.is_not_asked());
        restarts.met();
        assert!(!restarts.is_not_asked(), "it was met: what comes next is found out anew");
        seen.extend(words(&rig, &mut restarts, 1, || gone(HEALTHY)).await);
    }
    assert_eq!(seen, ["backing_off", "backing_off"]);
    assert_eq!(words(&rig, &mut restarts, 1, || gone(HEALTHY)).await, ["failed"]);
}

#[tokio::test(start_paused = true)]
async fn a_start_after_a_rest_is_no_attempt_to_mend_anything() {
    let (rig, mut restarts) = frail(RestartPolicy::Always);
    for _ in 0..10 {
        restarts.started(Instant::now(), true);
    }
    assert_eq!(words(&rig, &mut restarts, 2, || gone(HEALTHY)).await, ["backing_off", "backing_off"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_lost_is_opened_at_once_unless_it_was_just_opened() {
    let (rig, mut restarts) = frail(RestartPolicy::Always);
    let lost = |up| Exit::Retired { why: Retired::Session("404".into()), up };
    assert_eq!(follows(&rig, &mut restarts, lost(SESSION_MIN)).await.0, "at once");
    let (word, delay) = follows(&rig, &mut restarts, lost(SESSION_MIN - Duration::from_millis(1))).await;
    assert!(word == "backing_off" && !delay.is_zero(), "{word} {delay:?}");
}

#[tokio::test(start_paused = true)]
async fn what_asks_for_time_gets_it_and_what_cannot_be_mended_is_looked_at_once_a_window() {
    let (rig, mut restarts) = frail(RestartPolicy::Always);
    let least = Duration::from_secs(40);
    assert_eq!(follows(&rig, &mut restarts, unmet(FaultKind::NotBefore(least))).await, ("backing_off", least));
    assert_eq!(follows(&rig, &mut restarts, unmet(FaultKind::Hopeless)).await, ("failed", WINDOW));
}

#[tokio::test(start_paused = true)]
async fn the_policy_says_after_which_ends_it_is_started() {
    let ends = |is_clean| {
        let how = if is_clean { Gone::Clean } else { Gone::Crashed };
        Exit::Gone { cause: "it ended".into(), up: HEALTHY, how }
    };
    for (policy, clean, crash) in [
        (RestartPolicy::Always, "backing_off", "backing_off"),
        (RestartPolicy::OnFailure, "stopped", "backing_off"),
        (RestartPolicy::Never, "stopped", "failed"),
    ] {
        for (is_clean, expected) in [(true, clean), (false, crash)] {
            let (rig, mut restarts) = frail(policy);
            let (word, delay) = follows(&rig, &mut restarts, ends(is_clean)).await;
            assert_eq!((word, delay == Duration::MAX), (expected, expected != "backing_off"), "{policy:?} {is_clean}");
        }
    }
}

#[test]
fn who_is_not_started_again_is_shown_with_how_it_can_be() {
    let told = resting("a", &Cause::from("exited with status 1").foreign("; last line on stderr: no"));
    let then = "; not restarted (`restart` policy); run `trunkline start a`";
    assert_eq!(told.full(), format!("exited with status 1; last line on stderr: no{then}"));
    assert_eq!(told.public(), format!("exited with status 1{then}"));
}

#[tokio::test(start_paused = true)]
async fn the_code_of_a_close_frame_decides_how_soon_a_websocket_is_opened_anew() {
    let seconds = Duration::from_secs;
    for (code, state, least, most) in [
        (1000, "backing_off", Duration::ZERO, seconds(1)),
        (1011, "backing_off", Duration::ZERO, seconds(1)),
        (1012, "backing_off", seconds(5), seconds(6)),
        (1013, "backing_off", seconds(5), seconds(6)),
        (1008, "failed", WINDOW, WINDOW),
        (4401, "failed", WINDOW, WINDOW),
        (4403, "failed", WINDOW, WINDOW),
    ] {
        let cause = || Cause::new(CauseCode::WebSocketClosed(code), "closed");
        let up = Exit::Gone { cause: cause(), up: Duration::ZERO, how: Gone::HungUp };
        // The same where it is closed before it was met.
        let fault = Fault::from(&crate::transport::exchange::Lost::Unknown(cause()));
        for end in [up, Exit::Unmet(fault)] {
            let (rig, mut restarts) = frail(RestartPolicy::Always);
            let (word, delay) = follows(&rig, &mut restarts, end).await;
            assert_eq!(word, state, "{code}");
            assert!((least..=most).contains(&delay), "{code}: {delay:?}");
        }
    }
}

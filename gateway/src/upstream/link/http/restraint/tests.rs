//! Failures, answers, pauses and the one call that tries, with the time handed in.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn breaker() -> Restraint {
    Restraint::new(Some(Breaker { failures: 3, open_for: 10 * SECOND }))
}

fn why() -> Arc<str> {
    "HTTP 500".into()
}

#[test]
fn only_failures_in_a_row_open_it() {
    let (restraint, now) = (breaker(), Instant::now());
    for _ in 0..100 {
        assert_eq!(restraint.failed(now, &why()), None);
        assert_eq!(restraint.failed(now, &why()), None);
        assert_eq!(restraint.leave(now, true), Leave::Given);
        assert!(!restraint.answered());
        assert!(!restraint.is_marked.load(Ordering::Relaxed), "whoever comes now takes no lock");
    }
    restraint.failed(now, &why());
    restraint.failed(now, &why());
    let shown = restraint.failed(now, &why()).expect("the third in a row");
    assert_eq!(
        shown,
        "it failed 3 times in a row (the last time: HTTP 500); no call is sent to it for 10.0 s, then one call tries"
    );
}

#[test]
fn while_open_all_are_refused_with_the_time_then_one_tries() {
    let (restraint, now) = (breaker(), Instant::now());
    (0..3).for_each(|_| _ = restraint.failed(now, &why()));
    let until = now + 10 * SECOND;
    let text = "it failed 3 times in a row (the last time: HTTP 500); no call is sent to it for another 6.0 s";
    assert_eq!(restraint.leave(now + 4 * SECOND, true), Leave::Refused(until, text.to_owned()));
    assert_eq!(restraint.leave(now, false), Leave::Given, "meeting it goes on");
    // What was sent before and fails now does not make it longer.
    assert_eq!(restraint.failed(now + 5 * SECOND, &why()), None);
    assert_eq!(restraint.leave(until, true), Leave::Trial);
    assert!(matches!(restraint.leave(until, true), Leave::Refused(..)), "one at a time");
    // It ends without an outcome: another one tries.
    restraint.untried();
    assert_eq!(restraint.leave(until, true), Leave::Trial);
    assert!(restraint.failed(until, &why()).is_some(), "and is open again");
    assert!(matches!(restraint.leave(until + 9 * SECOND, true), Leave::Refused(..)));
    assert_eq!(restraint.leave(until + 10 * SECOND, true), Leave::Trial);
    assert!(restraint.answered(), "it is well again");
    assert_eq!(restraint.leave(until + 10 * SECOND, true), Leave::Given);
    assert_eq!(restraint.failed(until, &why()), None, "and counts from the start");
}

#[test]
fn a_pause_holds_for_all_and_the_longer_one_counts() {
    let (restraint, now) = (Restraint::new(None), Instant::now());
    assert_eq!(restraint.failed(now, &why()), None, "without a breaker nothing is counted");
    assert!(restraint.pause(now + 20 * SECOND));
    assert!(!restraint.pause(now + 10 * SECOND));
    for is_met in [true, false] {
        let refused = Leave::Refused(now + 20 * SECOND, "it asked to be left alone, for another 5.0 s".to_owned());
        assert_eq!(restraint.leave(now + 15 * SECOND, is_met), refused);
    }
    assert!(!restraint.resumed(now + 10 * SECOND), "the shorter one ends in vain");
    assert_eq!(restraint.leave(now + 20 * SECOND, true), Leave::Given);
    assert!(restraint.resumed(now + 20 * SECOND));
    assert_eq!(restraint.paused(), None);
}

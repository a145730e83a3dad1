//! Failures, answers, pauses and the one call that tries, with the time handed in.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn breaker() -> Breaker {
    Breaker::new(Some(BreakerConfig { failures: 3, open_for: 10 * SECOND }))
}

fn why() -> Cause {
    "HTTP 500".into()
}

#[test]
fn only_failures_in_a_row_open_it() {
    let (restraint, now) = (breaker(), Instant::now());
    for _ in 0..100 {
        assert_eq!(restraint.failed(now, &why()), None);
        assert_eq!(restraint.failed(now, &why()), None);
        assert_eq!(restraint.verdict(now, true), Verdict::Allow);
        assert!(!restraint.answered());
        assert!(!restraint.is_marked.load(Ordering::Relaxed), "whoever comes now takes no lock");
    }
    restraint.failed(now, &why());
    restraint.failed(now, &why());
    let shown = restraint.failed(now, &why()).expect("the third in a row");
    assert_eq!(
        shown.full(),
        "failed 3 times in a row (last: HTTP 500); circuit breaker open for 10.0 s, then one call tries"
    );
}

#[test]
fn while_open_all_are_refused_with_the_time_then_one_tries() {
    let (restraint, now) = (breaker(), Instant::now());
    (0..3).for_each(|_| _ = restraint.failed(now, &why()));
    let until = now + 10 * SECOND;
    let text = "failed 3 times in a row (last: HTTP 500); circuit breaker open, 6.0 s left";
    assert_eq!(restraint.verdict(now + 4 * SECOND, true), Verdict::Reject(until, text.into()));
    assert_eq!(restraint.verdict(now, false), Verdict::Allow, "meeting it goes on");
    // What was sent before and fails now does not make it longer.
    assert_eq!(restraint.failed(now + 5 * SECOND, &why()), None);
    assert_eq!(restraint.verdict(until, true), Verdict::Probe);
    assert!(matches!(restraint.verdict(until, true), Verdict::Reject(..)), "one at a time");
    // It ends without an outcome: another one tries.
    restraint.untried();
    assert_eq!(restraint.verdict(until, true), Verdict::Probe);
    assert!(restraint.failed(until, &why()).is_some(), "and is open again");
    assert!(matches!(restraint.verdict(until + 9 * SECOND, true), Verdict::Reject(..)));
    assert_eq!(restraint.verdict(until + 10 * SECOND, true), Verdict::Probe);
    assert!(restraint.answered(), "it is well again");
    assert_eq!(restraint.verdict(until + 10 * SECOND, true), Verdict::Allow);
    assert_eq!(restraint.failed(until, &why()), None, "and counts from the start");
}

#[test]
fn a_pause_holds_for_all_and_the_longer_one_counts() {
    let (restraint, now) = (Breaker::new(None), Instant::now());
    assert_eq!(restraint.failed(now, &why()), None, "without a breaker nothing is counted");
    assert!(restraint.pause(now + 20 * SECOND));
    assert!(!restraint.pause(now + 10 * SECOND));
    for is_met in [true, false] {
        let refused =
            Verdict::Reject(now + 20 * SECOND, "rate-limited by the upstream (Retry-After), 5.0 s left".into());
        assert_eq!(restraint.verdict(now + 15 * SECOND, is_met), refused);
    }
    assert!(!restraint.resumed(now + 10 * SECOND), "the shorter one ends in vain");
    assert_eq!(restraint.verdict(now + 20 * SECOND, true), Verdict::Allow);
    assert!(restraint.resumed(now + 20 * SECOND));
    assert_eq!(restraint.paused(), None);
}

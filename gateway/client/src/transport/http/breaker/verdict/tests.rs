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
    let (breaker, now) = (breaker(), Instant::now());
    for _ in 0..100 {
        assert_eq!(breaker.failed(now, &why()), None);
        assert_eq!(breaker.failed(now, &why()), None);
        assert_eq!(breaker.verdict(now, true), Verdict::Allow);
        assert!(!breaker.answered());
        assert!(!breaker.is_marked.load(Ordering::Relaxed), "whoever comes now takes no lock");
    }
    breaker.failed(now, &why());
    breaker.failed(now, &why());
    let shown = breaker.failed(now, &why()).expect("the third in a row");
    assert_eq!(
        shown.full(),
        "failed 3 times in a row (last: HTTP 500); circuit breaker open for 10.0 s, then one call tries"
    );
}

#[test]
fn while_open_all_are_refused_with_the_time_then_one_tries() {
    let (breaker, now) = (breaker(), Instant::now());
    (0..3).for_each(|_| _ = breaker.failed(now, &why()));
    let until = now + 10 * SECOND;
    let open = Cause::new(CauseCode::BreakerOpen, "failed 3 times in a row (last: ");
    let open = open.then(&why()).own("); circuit breaker open, 6.0 s left");
    assert_eq!(breaker.verdict(now + 4 * SECOND, true), Verdict::Reject(until, open));
    assert_eq!(breaker.verdict(now, false), Verdict::Allow, "meeting it goes on");
    // What was sent before and fails now does not make it longer.
    assert_eq!(breaker.failed(now + 5 * SECOND, &why()), None);
    assert_eq!(breaker.verdict(until, true), Verdict::Probe);
    assert!(matches!(breaker.verdict(until, true), Verdict::Reject(..)), "one at a time");
    // It ends without an outcome: another one tries.
    breaker.untried();
    assert_eq!(breaker.verdict(until, true), Verdict::Probe);
    assert!(breaker.failed(until, &why()).is_some(), "and is open again");
    assert!(matches!(breaker.verdict(until + 9 * SECOND, true), Verdict::Reject(..)));
    assert_eq!(breaker.verdict(until + 10 * SECOND, true), Verdict::Probe);
    assert!(breaker.answered(), "it is well again");
    assert_eq!(breaker.verdict(until + 10 * SECOND, true), Verdict::Allow);
    assert_eq!(breaker.failed(until, &why()), None, "and counts from the start");
}

#[test]
fn a_pause_holds_for_all_and_the_longer_one_counts() {
    let (breaker, now) = (Breaker::new(None), Instant::now());
    assert_eq!(breaker.failed(now, &why()), None, "without a breaker nothing is counted");
    assert!(breaker.pause(now + 20 * SECOND));
    assert!(!breaker.pause(now + 10 * SECOND));
    for is_met in [true, false] {
        let paused = Cause::new(CauseCode::RateLimited, "rate-limited by the upstream (Retry-After), 5.0 s left");
        let refused = Verdict::Reject(now + 20 * SECOND, paused);
        assert_eq!(breaker.verdict(now + 15 * SECOND, is_met), refused);
    }
    assert!(!breaker.resumed(now + 10 * SECOND), "the shorter one ends in vain");
    assert_eq!(breaker.verdict(now + 20 * SECOND, true), Verdict::Allow);
    assert!(breaker.resumed(now + 20 * SECOND));
    assert_eq!(breaker.paused(), None);
}

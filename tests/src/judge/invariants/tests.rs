//! Forged histories: a clean one, and for each invariant ones that break it and nothing else.

use super::*;
use crate::judge::history::{Kept, Over, Siege, Sight};

/// One thing that is forged.
type Change<T> = fn(&mut T);

const TERMS: Terms = Terms { slack: Duration::from_millis(100), spare: 2, grown_kib: Some(8192), lines: 20 };

fn made() -> Made {
    let nonce = "nonce-1-1".to_owned();
    let ends = vec![End::Result { id: "\"1\"".into(), nonce: Some(nonce.clone()) }];
    let (took, deadline) = (Duration::from_millis(5), Some(Duration::from_secs(1)));
    Made {
        upstream: "u1".into(),
        may_fail: false,
        given_up: false,
        id: "\"1\"".into(),
        nonce,
        took,
        deadline,
        ends,
        caller: 0,
        principal: "ann",
        ended: 1_000_000,
    }
}

fn clean() -> History {
    let census = Census {
        children: 11,
        files: 60,
        threads: 6,
        tasks: 90,
        sessions: 3,
        resident_kib: 20_000,
        ..Census::default()
    };
    let kept = Kept { upstream: "u1".into(), before: vec!["77".into()], after: vec!["77".into()] };
    let line = |at| (Duration::from_secs(at), "{\"level\":\"WARN\",\"upstream\":\"u2\"}".to_owned());
    History {
        made: vec![made()],
        complaints: Vec::new(),
        unwithdrawn: Vec::new(),
        ran: vec!["nonce-1-1".into(), "nonce-1-2".into()],
        ran_at: vec![("nonce-1-1".into(), 900_000), ("nonce-1-2".into(), 950_000)],
        over: vec![Over { nonce: "nonce-1-2".into(), at: 1_000_000, is_unsent: false }],
        peak: Some((90_000, 100_000)),
        canaries: vec!["canary-1".into()],
        pages: vec![("a page".into(), "{\"upstreams\":[]}".into())],
        sieges: Vec::new(),
        kept: vec![kept],
        stands: Some((census, census)),
        stdout: vec!["{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}".into()],
        // Twenty a minute, and then twenty more.
        stderr: (0..20).map(line).chain((60..80).map(line)).collect(),
        sights: vec![Sight {
            fault: "a crash".into(),
            page: Some(true),
            metric: Some(true),
            line: Some(true),
            clears: Some(true),
        }],
    }
}

/// The invariants that a history breaks.
fn broken(history: &History) -> Vec<Invariant> {
    let mut all: Vec<Invariant> = judge(history, &TERMS).into_iter().map(|breach| breach.of).collect();
    all.dedup();
    all
}

/// Whether the clean history with this change breaks this invariant and no other.
fn breaks(of: Invariant, what: &str, change: impl FnOnce(&mut History)) {
    let mut history = clean();
    change(&mut history);
    assert_eq!(broken(&history), [of], "{what}: {:?}", judge(&history, &TERMS));
}

#[test]
fn a_clean_history_breaks_nothing() {
    assert_eq!(judge(&clean(), &TERMS), []);
    let mut sick = clean();
    let error = End::Error { id: "\"1\"".into(), message: "upstream u1 was killed".into(), data: String::new() };
    sick.made.push(Made { may_fail: true, ends: vec![error], ..made() });
    assert_eq!(judge(&sick, &TERMS), [], "what is sick may fail, and says so");
    let mut left = clean();
    for ends in [vec![], vec![End::Closed]] {
        left.made.push(Made { given_up: true, ends, ..made() });
    }
    assert_eq!(judge(&left, &TERMS), [], "what was given up need have no outcome");
}

#[test]
fn correlation_can_break() {
    let cases: [(&str, Change<Made>); 9] = [
        ("lost", |made| made.ends.clear()),
        ("closed", |made| made.ends = vec![End::Closed]),
        ("doubled", |made| made.ends.push(made.ends[0].clone())),
        ("crossed", |made| made.nonce = "nonce-1-9".into()),
        ("the answer of nobody", |made| made.ends = vec![End::Result { id: "\"1\"".into(), nonce: None }]),
        ("another id", |made| made.id = "1".into()),
        ("another's, and given up", |made| (made.given_up, made.nonce) = (true, "nonce-1-9".into())),
        ("late", |made| made.took = Duration::from_millis(1101)),
        ("an error of nobody", |made| {
            made.may_fail = true;
            made.ends =
                vec![End::Error { id: "\"1\"".into(), message: "something went wrong".into(), data: String::new() }];
        }),
    ];
    for (what, change) in cases {
        breaks(Invariant::Correlation, what, |history| change(&mut history.made[0]));
    }
    breaks(Invariant::Correlation, "a second answer", |history| history.complaints.push("a second answer".into()));
}

#[test]
fn isolation_can_break() {
    let error = End::Error { id: "\"1\"".into(), message: "upstream u1 is busy".into(), data: String::new() };
    breaks(Invariant::Isolation, "an error", |history| history.made[0].ends = vec![error]);
    breaks(Invariant::Isolation, "another process", |history| history.kept[0].after.push("78".into()));
}

#[test]
fn resources_can_break() {
    let cases: [(&str, Change<Census>); 8] = [
        ("a child", |census| census.children += 1),
        ("a zombie", |census| census.zombies += 1),
        ("files", |census| census.files += 3),
        ("threads", |census| census.threads += 33),
        ("tasks", |census| census.tasks += 3),
        ("an entry", |census| census.pending += 1),
        ("a session", |census| census.sessions += 1),
        ("memory", |census| census.resident_kib += 8193),
    ];
    for (what, change) in cases {
        breaks(Invariant::Resources, what, |history| change(&mut history.stands.as_mut().expect("it is there").1));
        let (before, mut after) = clean().stands.expect("it is there");
        change(&mut after);
        assert_eq!(after.is_within(&before, 2), what == "memory", "{what}");
    }
    breaks(Invariant::Resources, "a call that goes on", |history| history.unwithdrawn.push("u1 goes on".into()));
}

#[test]
fn purity_can_break() {
    for line in ["Loading model…", "{\"id\":1,\"result\":{}}", "{\"jsonrpc\":\"2.0\",\"id\":1}", ""] {
        breaks(Invariant::Purity, line, |history| history.stdout.push(line.into()));
    }
}

#[test]
fn quiet_can_break() {
    let at = Duration::from_secs(19);
    let panic = "thread 'main' panicked at src/lib.rs:1:1".to_owned();
    breaks(Invariant::Quiet, "a panic", |history| history.stderr.push((at, panic)));
    let line = "{\"upstream\":\"u2\"}".to_owned();
    breaks(Invariant::Quiet, "21 lines a minute", |history| history.stderr.insert(20, (at, line)));
    let flood = (at, format!("{{\"message\":\"{CHATTER}\",\"upstream\":\"u3\"}}"));
    breaks(Invariant::Quiet, "a flood", |history| history.stderr.extend(vec![flood; 42]));
}

#[test]
fn of_who_was_told_of_often_the_next_line_may_be_left_out() {
    let line = |second: u64| (Duration::from_secs(second), "{\"upstream\":\"u2\"}".to_owned());
    let lines: Vec<_> = (0..12).map(line).collect();
    let at = |second: u64| is_used_up(&lines, "u2", Duration::from_secs(second));
    assert_eq!((at(12), at(59), at(60)), (true, true, false));
    assert!(
        !is_used_up(&lines, "u3", Duration::from_secs(12)) && !is_used_up(&lines[1..], "u2", Duration::from_secs(12))
    );
}

#[test]
fn at_most_once_can_break() {
    breaks(Invariant::AtMostOnce, "a second run", |history| history.ran.push("nonce-1-1".into()));
}

#[test]
fn visible_can_break() {
    let cases: [Change<Sight>; 4] = [
        |sight| sight.page = Some(false),
        |sight| sight.metric = Some(false),
        |sight| sight.line = Some(false),
        |sight| sight.clears = Some(false),
    ];
    for change in cases {
        breaks(Invariant::Visible, "unseen", |history| change(&mut history.sights[0]));
    }
}

#[test]
fn what_ended_can_run() {
    let over = |is_unsent| Over { nonce: "nonce-1-2".into(), at: 1_000_000, is_unsent };
    breaks(Invariant::Ended, "said not to have been sent", |history| history.over = vec![over(true)]);
    breaks(Invariant::Ended, "long after its end", |history| history.ran_at[1].1 = 27_000_000);
    let message = "`tools/call` of `u1__echo` was not sent to upstream `u1`: it did not read".to_owned();
    let unsent =
        Made { may_fail: true, ends: vec![End::Error { id: "\"1\"".into(), message, data: String::new() }], ..made() };
    breaks(Invariant::Ended, "in the same history", |history| history.made[0] = unsent);
    breaks(Invariant::Ended, "given up by its client", |history| {
        history.made[0] = Made { given_up: true, ends: vec![], ..made() };
        history.ran_at[0].1 = 27_000_000;
    });
}

#[test]
fn one_can_starve() {
    let starved = Made {
        caller: 1,
        given_up: false,
        ends: vec![End::Error { id: "\"1\"".into(), message: "u1 is busy".into(), data: String::new() }],
        ..made()
    };
    let judged = |hungry: usize, fed: usize| {
        let all = std::iter::repeat_n(starved.clone(), hungry).chain(std::iter::repeat_n(made(), fed));
        fair(&History { made: all.collect(), ..History::default() }).len()
    };
    assert_eq!((judged(5, 100), judged(5, 99), judged(4, 100)), (1, 0, 0));
}

#[test]
fn a_principal_can_starve_in_a_siege() {
    let siege =
        |new| Siege { of: "sessions".into(), held: 50, time: (900_000, 2_000_000), others: vec![("ann".into(), new)] };
    let well = Ok(Duration::from_millis(9));
    let judged = |siege: Siege, made: Vec<Made>| {
        let history = History { made, sieges: vec![siege], ..History::default() };
        fair(&history).len()
    };
    let fed = vec![made(); 4];
    assert_eq!(judged(siege(well.clone()), fed.clone()), 0);
    assert_eq!(judged(Siege { held: 0, ..siege(well.clone()) }, fed.clone()), 1, "nothing was held");
    assert_eq!(judged(siege(Err("503".into())), fed.clone()), 1, "a new client finds no room");
    assert_eq!(judged(siege(Ok(Duration::from_secs(13))), fed.clone()), 1, "a new client waits");
    assert_eq!(judged(siege(well.clone()), fed[1..].to_vec()), 1, "few answers");
    let other = vec![Made { principal: "bob", ..made() }; 9];
    assert_eq!(judged(siege(well.clone()), [&fed[1..], &other[..]].concat()), 1, "another one's count for nothing");
    let early = Made { took: Duration::from_millis(500), ..made() };
    assert_eq!(judged(siege(well.clone()), vec![early; 9]), 1, "nor do those from before");
    let slow = Made { took: Duration::from_secs(13), ended: 13_950_000, ..made() };
    let long = Siege { time: (900_000, 18_000_000), ..siege(well) };
    assert_eq!(judged(long, [vec![slow; 6], fed].concat()), 1, "most of its calls wait");
}

#[test]
fn a_siege_lasts_until_each_principal_has_ended_enough_calls_in_it() {
    let of = |principal: &'static str, count: usize| vec![Made { principal, ..made() }; count];
    let enough = |made: &[Made], since: u64| has_enough(made, &["ann", "bob"], since);
    assert!(!enough(&[of("ann", 8), of("bob", 7)].concat(), 900_000));
    let both = [of("ann", 8), of("bob", 8)].concat();
    assert!(enough(&both, 900_000) && !enough(&both, 2_000_000), "calls that began before count for nothing");
    let sick: Vec<Made> = both.into_iter().map(|made| Made { may_fail: true, ..made }).collect();
    assert!(!enough(&sick, 900_000), "calls of a sick upstream count for nothing");
}

#[test]
fn the_ceiling_can_be_passed() {
    breaks(Invariant::Ceiling, "more than is allowed", |history| history.peak = Some((100_001, 100_000)));
}

#[test]
fn a_canary_can_be_told() {
    let words = || "failed with Bearer canary-1".to_owned();
    breaks(Invariant::Secret, "in the log", |history| history.stderr[0].1 = words());
    breaks(Invariant::Secret, "on a page", |history| history.pages.push(("a page".into(), words())));
    breaks(Invariant::Secret, "in another form", |history| {
        history.pages.push(("a page".into(), crate::canary::base64(words().as_bytes())));
    });
    breaks(Invariant::Secret, "in data", |history| {
        let (message, data) = ("upstream u1 failed".into(), words());
        history.made[0] =
            Made { may_fail: true, ends: vec![End::Error { id: "\"1\"".into(), message, data }], ..made() };
    });
    breaks(Invariant::Secret, "to a client", |history| {
        let message = format!("upstream u1: {}", words());
        history.made[0] = Made {
            may_fail: true,
            ends: vec![End::Error { id: "\"1\"".into(), message, data: String::new() }],
            ..made()
        };
    });
}

//! Who has a session, who makes room, and which sessions of earlier runs are revived.

use super::*;
use crate::protocol::frame::message::Id;
use crate::protocol::revision::Revision;
use crate::runtime::Scratch;
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};

fn sessions(max: usize, budget: Budget) -> Sessions {
    let session = config::Session { max, ..config::Session::default() };
    Sessions::new(&config::Config { session, ..config::Config::default() }, Label(false), budget)
}

fn table(max: usize) -> Sessions {
    sessions(max, Budget::default())
}

fn open(table: &Sessions, who: &str) -> Result<Arc<Session>, Full> {
    let who = Who::of(Principal::named(who));
    let capabilities = Bytes::from_static(b"{}");
    table.create(who, Asks { revision: Revision::V2025_11_25, is_dialect: false, capabilities, client: "".into() })
}

fn used(table: &Sessions, who: &str) -> Arc<Session> {
    let session = open(table, who).unwrap();
    session.reach(Stage::Used);
    session
}

fn is_there(table: &Sessions, session: &Session) -> bool {
    table.table.contains_key(&session.short)
}

#[tokio::test(start_paused = true)]
async fn sessions_that_were_never_used_make_room_at_once_the_least_far_first() {
    let table = table(4);
    let (kept, initialized) = (used(&table, "a"), open(&table, "a").unwrap());
    let (begun, later) = (open(&table, "a").unwrap(), open(&table, "a").unwrap());
    initialized.reach(Stage::Initialized);
    let _streaming = later.attach();
    let fifth = used(&table, "a");
    assert!(!is_there(&table, &begun), "it had said nothing");
    assert!(is_there(&table, &initialized));
    let sixth = used(&table, "a");
    assert!(!is_there(&table, &initialized), "it had called nothing");
    assert!([&kept, &later, &fifth, &sixth].iter().all(|one| is_there(&table, one)));
    let full = open(&table, "a").err().unwrap();
    assert_eq!((full.own, full.all), (4, 4), "each is of use, and none idle for long");
    tokio::time::advance(Duration::from_secs(61)).await;
    fifth.touch();
    sixth.touch();
    used(&table, "a");
    assert!(!is_there(&table, &kept), "it was idle the longest");
}

#[tokio::test(start_paused = true)]
async fn what_sessions_keep_is_counted_and_ones_own_make_room() {
    let budget = Budget::new(4 << 20);
    let table = sessions(10_000, budget.clone());
    let declaring = |who: &str, stage| {
        let who = Who::of(Principal::named(who));
        let capabilities = Bytes::from(vec![b' '; 6 * 1024]);
        let asks = Asks { revision: Revision::V2025_11_25, is_dialect: false, capabilities, client: "".into() };
        table.create(who, asks).map(|session| session.reach(stage))
    };
    let flood: Vec<_> = (0..200).map(|_| declaring("loud", Stage::Begun)).collect();
    assert!(flood.iter().all(Result::is_ok), "those that were never used make room");
    assert_eq!((table.shares().all(), budget.used()), (64, 512 << 10), "an eighth of the memory");
    assert!(declaring("quiet", Stage::Used).is_ok());
    assert_eq!(table.shares().all(), 65);
    (0..64).for_each(|_| drop(declaring("loud", Stage::Used)));
    let full = declaring("loud", Stage::Used).err().unwrap();
    assert!(full.is_of_memory && full.own < 65);
    let ids: Vec<_> = table.table.iter().map(|one| one.short.clone()).collect();
    ids.iter().for_each(|id| table.remove(id));
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn many_clients_with_their_parts_do_not_shut_out_another_one() {
    let table = sessions(10_000, Budget::new(4 << 20));
    let declaring = |who: String| {
        let who = Who::of(Principal::named(&who));
        let capabilities = Bytes::from(vec![b' '; 6 * 1024]);
        let asks = Asks { revision: Revision::V2025_11_25, is_dialect: false, capabilities, client: "".into() };
        table.create(who, asks).map(|session| session.reach(Stage::Used))
    };
    // Each takes half of what is left: nothing is, after some.
    for flooder in 0..40 {
        while table.shares().of(&Share::Principal(Principal::named(&format!("loud{flooder}")))) < 64
            && declaring(format!("loud{flooder}")).is_ok()
        {}
    }
    let all = table.shares().all();
    assert!((126..=128).contains(&all), "all of the part: {all}");
    for session in 0..3 {
        assert!(declaring("quiet".to_owned()).is_ok(), "session {session}");
    }
    assert!(table.shares().all() <= 128);
}

#[tokio::test(start_paused = true)]
async fn one_shares_flood_takes_nothing_of_anothers() {
    let table = table(6);
    let quiet = used(&table, "quiet");
    tokio::time::advance(Duration::from_secs(600)).await;
    let flood: Vec<_> = (0..50).map(|_| open(&table, "loud").map(|one| one.reach(Stage::Used))).collect();
    assert!(is_there(&table, &quiet), "however long it is idle");
    assert_eq!(flood.iter().filter(|one| one.is_ok()).count(), 5, "used a moment ago, its own keep their places");
    let mut others: Vec<_> = (0..2).map(|_| used(&table, "other")).collect();
    assert_eq!(table.shares().of(&Share::Principal(Principal::named("loud"))), 3, "the loud one makes room");
    // Until it is no better off than who asks.
    others.push(used(&table, "quiet"));
    assert_eq!(table.shares().of(&Share::Principal(Principal::named("loud"))), 2);
    quiet.touch();
    assert!(open(&table, "quiet").is_err(), "it would have more than who makes room");
    assert!(others.iter().all(|one| is_there(&table, one)) && is_there(&table, &quiet));
}

#[tokio::test(start_paused = true)]
async fn streams_do_not_save_a_flood_and_calls_do() {
    let table = table(4);
    let flood: Vec<_> = (0..4).map(|_| used(&table, "loud")).collect();
    let _streams: Vec<_> = flood.iter().map(|one| one.attach()).collect();
    let at_work = flood[3].open.enter(&Id::from_raw(Bytes::from_static(b"1")).unwrap()).unwrap();
    used(&table, "b");
    assert!(!is_there(&table, &flood[2]) && is_there(&table, &flood[3]), "the newest without a call");
    assert!(flood[2].caller().tenant.as_ref().unwrap().has_ended());
    drop(at_work);
    assert_eq!(table.shares().all(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_session_of_another_run_is_revived_once_within_the_limits_and_not_after_its_end() {
    let key = config::SigningKey::new("k".repeat(32)).unwrap();
    let run = |max| {
        let session = config::Session { max, signing_keys: vec![key.clone()], ..config::Session::default() };
        let config = config::Config { session, ..config::Config::default() };
        Sessions::new(&config, Label(false), Budget::default())
    };
    let who = |name: &str| Who::of(Principal::named(name));
    let (before, after) = (run(10), run(2));
    let ids: Vec<_> = (0..3).map(|_| used(&before, "a").id.clone()).collect();
    assert!(before.revive(&ids[0], &who("a")).unwrap().is_none(), "it is there");
    let (first, is_first) = after.revive(&ids[0], &who("a")).unwrap().unwrap();
    let (again, is_again_first) = after.revive(&ids[0], &who("a")).unwrap().unwrap();
    assert!(is_first && !is_again_first && Arc::ptr_eq(&first, &again));
    assert!(after.find(&ids[0], &who("a").principal).is_some() && first.has_reached(Stage::Initialized));
    assert!(after.revive(&ids[1], &who("b")).unwrap().is_none() && after.find(&ids[0], &who("b").principal).is_none());
    let (second, _) = after.revive(&ids[1], &who("a")).unwrap().unwrap();
    [&first, &second].into_iter().for_each(|one| one.reach(Stage::Used));
    let full = after.revive(&ids[2], &who("a")).err().unwrap();
    assert_eq!((full.own, full.all), (2, 2));
    after.end(&first);
    assert!(after.revive(&ids[0], &who("a")).unwrap().is_none(), "it has ended");
    assert!(after.revive(&ids[2], &who("a")).unwrap().is_some());
    before.remove(sealed_id::short(&ids[0]));
    assert!(before.revive(&ids[0], &who("a")).unwrap().is_none());
}

#[test]
fn whoever_finds_a_revived_session_finds_with_it_what_its_client_wanted() {
    let state = Scratch::new();
    let run = || {
        let signing_keys = vec![config::SigningKey::new("k".repeat(32)).unwrap()];
        let session = config::Session { signing_keys, ..config::Session::default() };
        let config = config::Config { session, state_folder: Some(state.0.clone()), ..config::Config::default() };
        Sessions::new(&config, Label(false), Budget::default())
    };
    let (before, after) = (run(), run());
    let ids: Vec<_> = (0..200).map(|_| used(&before, "a").id.clone()).collect();
    let who = Who::of(Principal::named("a"));
    // A second request that comes at the same time as the first.
    let looks_for = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let found = |(at, id): (usize, &Arc<str>)| {
                looks_for.store(at + 1, Ordering::Release);
                loop {
                    if let Some(session) = after.find(id, &who.principal) {
                        return session.caller().tenant.as_ref().unwrap().wished_before();
                    }
                    std::hint::spin_loop();
                }
            };
            ids.iter().enumerate().map(found).collect::<Vec<_>>()
        });
        for (at, id) in ids.iter().enumerate() {
            while looks_for.load(Ordering::Acquire) <= at {
                std::thread::yield_now();
            }
            assert!(after.revive(id, &who).unwrap().is_some_and(|(_, is_first)| is_first));
        }
        let found = other.join().unwrap();
        let unknown = found.iter().filter(|one| **one != Some(false)).count();
        assert_eq!(unknown, 0, "they had asked for nothing, and that is known");
    });
}

//! Who has a session to itself, who makes room, and what becomes of one that cannot be opened.

use super::*;
use crate::upstream::tests::rig::config;

const IDLE: Duration = Duration::from_secs(60);

fn table(principals: usize) -> OwnSessions<()> {
    OwnSessions::new(&Config { max_sessions: 4, instance_idle: IDLE, principals, ..config() })
}

/// The session of a client; nothing where it is refused.
fn open(table: &OwnSessions<()>, number: u64, whose: &str) -> Option<Arc<OwnSession<()>>> {
    let (key, share) = (OwnKey::Session(number), Share::Principal(Principal::named(whose)));
    let count = || crate::memory::budget::Budget::default().stand(1);
    let make = |counted| {
        OwnSession::new((key.clone(), None), Declared::default(), share.clone(), (Arc::new(()), |()| false), counted)
    };
    table.open(&key, &share, (count, make)).ok().map(|(session, _)| session)
}

#[tokio::test(start_paused = true)]
async fn the_one_that_was_idle_longest_makes_room_and_none_that_was_not() {
    let table = table(1);
    let first = open(&table, 1, "").unwrap();
    tokio::time::advance(IDLE / 2).await;
    let others: Vec<_> = (2..=4).map(|number| open(&table, number, "").unwrap()).collect();
    assert!(open(&table, 5, "").is_none() && table.len() == 4);
    tokio::time::advance(IDLE / 2).await;
    let fifth = open(&table, 5, "").unwrap();
    assert!(first.evicted.is_cancelled() && !others.iter().any(|one| one.evicted.is_cancelled()));
    assert!(table.find(&OwnKey::Session(1)).is_none() && table.len() == 4);
    // It is in use for as long as it is found.
    tokio::time::advance(IDLE / 2).await;
    table.find(&OwnKey::Session(2)).unwrap();
    tokio::time::advance(IDLE / 4).await;
    open(&table, 1, "").unwrap();
    assert!(others[1].evicted.is_cancelled() != others[2].evicted.is_cancelled());
    assert!(!others[0].evicted.is_cancelled() && !fifth.evicted.is_cancelled());
    assert!(table.remove(&fifth) && !table.remove(&fifth) && table.len() == 3);
}

#[tokio::test(start_paused = true)]
async fn of_several_principals_none_takes_the_last_quarter() {
    let table = table(2);
    assert_eq!((1..=4).filter(|number| open(&table, *number, "ann").is_some()).count(), 3);
    assert!(open(&table, 5, "bob").is_some() && open(&table, 6, "bob").is_none());
    tokio::time::advance(IDLE).await;
    // Who has its part makes room itself.
    assert!(open(&table, 7, "ann").is_some());
    assert!(table.get(&OwnKey::Session(5)).is_some() && table.len() == 4);
}

#[tokio::test(start_paused = true)]
async fn principals_are_told_apart_from_when_there_are_several() {
    let table = table(1);
    table.refuse();
    table.tell_apart(true);
    assert!(!table.is_refused(), "what one bears, two do not share");
    assert_eq!((1..=4).filter(|number| open(&table, *number, "ann").is_some()).count(), 3);
    assert!(open(&table, 5, "bob").is_some());
    table.tell_apart(false);
    assert!(!table.has_parts());
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_again_and_again_or_takes_long_to_open_is_not_waited_for() {
    let table = table(1);
    let one = open(&table, 1, "").unwrap();
    for failures in 0..3 {
        assert!(!one.tries.are_hopeless(), "{failures}");
        one.tries.begin();
        one.tries.failed();
    }
    assert!(one.tries.are_hopeless());
    one.tries.succeeded();
    assert!(!one.tries.are_hopeless());
    one.tries.begin();
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(one.tries.are_hopeless(), "it is being opened for long");
    one.tries.succeeded();
    assert!(!one.tries.are_hopeless());
}

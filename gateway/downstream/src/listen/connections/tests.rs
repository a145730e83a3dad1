//! Who has how many connections, and who makes room for whom.

use super::*;

fn peer(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

fn flood(connections: &Arc<Connections>, last: u8) -> Vec<Arrival> {
    std::iter::from_fn(|| connections.enter(peer(last))).take(1000).collect()
}

#[test]
fn without_credentials_no_address_takes_all_and_a_proxy_is_no_address() {
    let trusted = vec![Network::parse("192.0.2.9").unwrap()];
    let connections = Connections::new(64, false, trusted);
    let one = flood(&connections, 1);
    let other = flood(&connections, 2);
    assert_eq!((one.len(), other.len()), (32, 16));
    assert!(one.iter().all(Arrival::is_admitted));
    assert_eq!(flood(&connections, 9).len(), 16, "as many as there are");
    drop((one, other));
    assert!(connections.lock().all == 0 && connections.lock().by.is_empty());
}

#[test]
fn a_credential_that_is_asked_for_later_makes_strangers_of_those_who_come_then() {
    let connections = Connections::new(64, false, Vec::new());
    let before = connections.enter(peer(1)).unwrap();
    connections.ask_credential(true);
    let after = flood(&connections, 2);
    assert!(before.is_admitted() && after.len() == 1000 && !after[999].is_admitted());
    connections.ask_credential(false);
    let last = connections.enter(peer(3)).unwrap();
    assert!(last.is_admitted() && !before.0.closed.is_cancelled());
    drop((before, after, last));
    let table = connections.lock();
    assert!(table.all == 0 && table.by.is_empty() && table.strangers == 0 && table.by_address.is_empty());
}

#[test]
fn listeners_beside_one_another_have_one_number_and_ask_for_their_own_credentials() {
    let open = Connections::new(64, false, Vec::new());
    let closed = open.beside(true);
    let one = flood(&open, 1);
    assert_eq!(one.len(), 32);
    let stranger = closed.enter(peer(1)).unwrap();
    assert!(!stranger.is_admitted() && !stranger.admit(&Share::of_address(peer(1))), "it has its part");
    assert!(stranger.admit(&Share::of_address(peer(2))));
    drop(one);
    assert_eq!(open.lock().all, 1);
    drop(stranger);
    assert!(closed.lock().all == 0 && closed.lock().by.is_empty());
}

#[test]
fn a_probe_is_taken_however_many_connections_lie_idle() {
    let probes = Connections::of_probes(4);
    let idle = flood(&probes, 1);
    assert_eq!(idle.iter().filter(|one| !one.0.closed.is_cancelled()).count(), 4);
    let probe = probes.enter(peer(2)).unwrap();
    assert!(flood(&probes, 1).len() == 1000 && !probe.0.closed.is_cancelled());
    drop((idle, probe));
    assert_eq!(probes.lock().all, 0);
}

#[test]
fn strangers_make_room_for_strangers_and_for_nobody_else() {
    let connections = Connections::new(64, true, Vec::new());
    let ann = Share::Principal(Principal::named("ann"));
    let mut known = Vec::new();
    while let Some(arrival) = connections.enter(peer(1)).filter(|arrival| arrival.admit(&ann)) {
        known.push(arrival);
    }
    assert_eq!(known.len(), 32);
    let strangers = flood(&connections, 2);
    assert_eq!(strangers.len(), 1000, "each makes room for the next");
    assert_eq!(strangers.iter().filter(|one| !one.0.closed.is_cancelled()).count(), 16);
    let late = connections.enter(peer(3)).unwrap();
    assert!(!late.0.closed.is_cancelled() && flood(&connections, 2).len() == 1000 && !late.0.closed.is_cancelled());
    assert!(known.iter().all(|one| !one.0.closed.is_cancelled()));
    assert!(late.admit(&Share::Principal(Principal::named("bob"))) && late.is_admitted());
    drop((known, strangers, late));
    let table = connections.lock();
    assert!(table.all == 0 && table.by.is_empty() && table.strangers == 0 && table.by_address.is_empty());
}

//! Who loses when the budget is spent.

use super::*;
use crate::memory::account::OwnerName;
use std::sync::atomic::AtomicBool;
use std::task::Wake;

const MIB: usize = 1 << 20;

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn held(budget: &Budget, bytes: usize) -> (Charge, Arc<Flag>) {
    let (charge, flag) = (budget.charge(Kind::Body, bytes).unwrap(), Arc::<Flag>::default());
    assert!(charge.poll_lost(&Context::from_waker(&Waker::from(flag.clone()))).is_pending());
    (charge, flag)
}

fn has_lost(charge: &Charge) -> bool {
    charge.account().unwrap().has_lost()
}

#[test]
fn the_largest_loses_first_and_the_others_live() {
    let budget = Budget::new(16 * MIB);
    let (large, is_woken) = held(&budget, 6 * MIB);
    let (small, is_small_woken) = held(&budget, 2 * MIB);
    let more = budget.charge(Kind::Line, 5 * MIB).unwrap();
    assert!(has_lost(&large) && is_woken.0.load(Ordering::SeqCst));
    assert!(!has_lost(&small) && !is_small_woken.0.load(Ordering::SeqCst));
    assert_eq!((budget.lost_by(Kind::Body), budget.lost_by(Kind::Line)), (1, 0));
    drop(large);
    assert_eq!((budget.used(), budget.used_by(Kind::Body), budget.used_by(Kind::Line)), (7 * MIB, 2 * MIB, 5 * MIB));
    drop((small, more));
    assert_eq!(budget.used(), 0);
    assert!(Kind::ALL.into_iter().all(|kind| budget.used_by(kind) == 0) && budget.0.is_empty());
}

#[test]
fn a_holder_knows_for_which_client_and_which_upstream_it_keeps_something() {
    let budget = Budget::new(16 * MIB).of_upstream(&"up".into());
    let of = |budget: &Budget| {
        let charge = budget.charge(Kind::Queue, MIB).unwrap();
        let account = charge.account().unwrap();
        (account.upstream().map(str::to_owned), account.client())
    };
    assert_eq!(of(&budget), (Some("up".into()), None));
    let alice = budget.owned_by(Owner::of(&1, OwnerName::Principal("token:alice".into())));
    assert_eq!(of(&alice), (Some("up".into()), Some("token:alice".into())));
    let address = budget.owned_by(Owner::of(&2, OwnerName::Address([192, 0, 2, 1].into())));
    assert_eq!(of(&address).1, Some("192.0.2.1".into()));
}

#[test]
fn the_client_that_holds_most_loses_first_and_of_it_what_waits_for_a_slow_peer() {
    let budget = Budget::new(64 * MIB);
    let [alice, bob] =
        ["alice", "bob"].map(|name| budget.owned_by(Owner::of(&name, OwnerName::Principal(name.into()))));
    let small: Vec<_> = (0..40).map(|_| held(&alice, MIB).0).collect();
    let whole = held(&alice, 4 * MIB).0;
    whole.keep();
    assert!(whole.poll_lost(&Context::from_waker(Waker::noop())).is_pending());
    let more = bob.charge(Kind::Body, 5 * MIB).unwrap();
    assert_eq!(small.iter().filter(|one| has_lost(one)).count(), 1, "one of many small ones of alice");
    let _large = bob.charge(Kind::Line, 9 * MIB).unwrap();
    assert!(!has_lost(&whole) && !has_lost(&more), "bodies that trickle go before one that is whole");
    drop(small);
    // What alice asks for is hers to make room for.
    let [first, second] = [20, 10].map(|mib| held(&alice, mib * MIB).0);
    let _third = alice.charge(Kind::Body, 8 * MIB).unwrap();
    assert!(has_lost(&first) && !has_lost(&second) && !has_lost(&more));
}

#[test]
fn connections_are_counted_whether_there_is_room_or_not() {
    let budget = Budget::new(16 * MIB);
    let (large, _) = held(&budget, 11 * MIB);
    let connections = [(); 2].map(|()| budget.count(Kind::Connection, MIB));
    assert!(has_lost(&large));
    assert_eq!((budget.used(), budget.used_by(Kind::Connection)), (13 * MIB, 2 * MIB));
    drop((connections, large));
    assert_eq!(budget.used(), 0);
}

#[test]
fn whoever_is_the_largest_itself_loses() {
    let budget = Budget::new(16 * MIB);
    let (others, _) = held(&budget, 5 * MIB);
    let mut growing = budget.charge(Kind::Line, 5 * MIB).unwrap();
    assert!(growing.grow(&budget, Kind::Line, 9 * MIB).is_err());
    assert!(!has_lost(&others));
    drop(growing);
    assert_eq!(budget.used(), 5 * MIB);
}

#[test]
fn the_limit_is_never_passed_also_while_those_that_lost_still_hold() {
    let budget = Budget::new(16 * MIB);
    let (slow, _) = held(&budget, 12 * MIB);
    let next = budget.charge(Kind::Body, 3 * MIB).unwrap();
    assert!(has_lost(&slow));
    assert!(budget.charge(Kind::Body, 3 * MIB).is_err());
    assert_eq!(budget.used(), 15 * MIB);
    drop(next);
}

#[test]
fn what_is_small_is_not_counted_by_itself_and_steps_are_given_back() {
    let budget = Budget::new(MIB);
    let mut charge = budget.charge(Kind::Reply, UNCOUNTED).unwrap();
    assert!(charge.is_empty() && budget.used() == 0);
    charge.grow(&budget, Kind::Reply, UNCOUNTED + 1).unwrap();
    assert_eq!(budget.used(), 2 * STEP);
    charge.grow(&budget, Kind::Reply, 3 * STEP - 1).unwrap();
    assert_eq!(budget.used(), 3 * STEP);
    charge.shrink(STEP + 1);
    assert_eq!(budget.used(), 2 * STEP);
    charge.shrink(0);
    assert!(charge.is_empty() && budget.used() == 0);
}

#[test]
fn what_is_being_handed_on_is_not_taken_away() {
    let budget = Budget::new(16 * MIB);
    let (kept, _) = held(&budget, 8 * MIB);
    kept.keep();
    assert!(budget.charge(Kind::Body, 6 * MIB).is_err());
    // What is on its way out may have what is left.
    let more = budget.charge(Kind::Answer, 6 * MIB).unwrap();
    assert!(!has_lost(&kept));
    drop(more);
    // Somebody waits while another has it.
    let hold = kept.hold().unwrap();
    assert!(hold.poll_lost(&Context::from_waker(Waker::noop())).is_pending());
    let _more = budget.charge(Kind::Body, 6 * MIB).unwrap();
    assert!(has_lost(&kept) && hold.poll_lost(&Context::from_waker(Waker::noop())).is_ready());
}

#[test]
fn small_holders_of_one_client_are_counted_together_and_the_one_with_most_is_refused() {
    let budget = Budget::new(64 * MIB);
    let [alice, bob] =
        ["alice", "bob"].map(|name| budget.owned_by(Owner::of(&name, OwnerName::Principal(name.into()))));
    let small = |budget: &Budget| budget.charge(Kind::Replay, UNCOUNTED);
    let few: Vec<_> = (0..4).map(|_| small(&bob).unwrap()).collect();
    assert_eq!(budget.used(), 0, "so much is free");
    let all: Vec<_> = std::iter::from_fn(|| small(&alice).ok()).take(10_000).collect();
    assert_eq!((all.len() * UNCOUNTED, budget.used()), (8 * MIB, 8 * MIB), "half of a quarter");
    assert_eq!(budget.used(), budget.used_by(Kind::Small));
    assert!(budget.lost_by(Kind::Small) > 0 && small(&bob).is_ok(), "others have room");
    // What becomes large is counted by itself, and what becomes small again is not.
    let mut one = small(&bob).unwrap();
    one.grow(&bob, Kind::Replay, MIB).unwrap();
    assert_eq!(budget.used_by(Kind::Replay), MIB);
    one.shrink(1);
    assert_eq!(budget.used_by(Kind::Replay), 0);
    // What is small counts with its client: bob has little, so he may have room.
    let large = held(&alice, 38 * MIB).0;
    assert!(bob.charge(Kind::Body, 8 * MIB).is_ok() && has_lost(&large));
    drop((few, all, one, large));
    assert_eq!((budget.used(), budget.used_by(Kind::Small)), (0, 0));
}

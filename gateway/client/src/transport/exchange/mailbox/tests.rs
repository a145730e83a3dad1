//! Events that wait: in order, bounded, the latest of what replaces itself.

use super::*;

fn progress(value: u32) -> Arrival {
    Arrival::Progress(Object::parse(format!("{{\"progress\":{value}}}").into()).unwrap())
}

#[test]
fn progress_moves_on_or_is_dropped() {
    let slot = Mailbox::new(true, None);
    let push = |event| slot.push(event, &Budget::default());
    assert_eq!([push(progress(1)), push(progress(1)), push(progress(2))], [Kept::Yes, Kept::No, Kept::Yes]);
    assert_eq!(Mailbox::new(false, None).push(progress(1), &Budget::default()), Kept::No);
}

#[test]
fn large_events_are_counted_until_they_are_read_and_dropped_where_there_is_no_memory() {
    let (slot, budget) = (Mailbox::new(false, Some(LogLevel::Debug)), Budget::new(1 << 20));
    let log = || {
        let params = Object::parse(format!("{{\"data\":\"{}\"}}", "x".repeat(300_000)).into()).unwrap();
        slot.push(Arrival::Log(LogLevel::Info, params), &budget)
    };
    assert_eq!([log(), log(), log(), log()], [Kept::Yes, Kept::Yes, Kept::Yes, Kept::No]);
    assert!(budget.used() >= 900_000);
    while slot.pop().is_some() {}
    assert_eq!((budget.used(), log()), (0, Kept::Yes));
}

#[test]
fn of_each_task_the_latest_is_kept() {
    let slot = Mailbox::new(false, None);
    let task = |id: &str, status: &str| {
        let params = Object::parse(format!(r#"{{"taskId":"{id}","status":"{status}"}}"#).into()).unwrap();
        slot.push(Arrival::Task(params), &Budget::default());
    };
    (0..200).for_each(|_| task("a", "working"));
    task("b", "working");
    task("a", "completed");
    let seen: Vec<_> = std::iter::from_fn(|| slot.pop()).collect();
    assert!(matches!(&seen[..], [Arrival::Task(b), Arrival::Task(a)]
        if b.raw() == r#"{"taskId":"b","status":"working"}"# && a.raw() == r#"{"taskId":"a","status":"completed"}"#));
}

#[test]
fn a_full_queue_keeps_the_latest_progress_and_the_end() {
    let slot = Mailbox::new(true, None);
    (0..500).for_each(|value| _ = slot.push(progress(value), &Budget::default()));
    assert!(slot.finish(Arrival::Response(Body::Neither)));
    assert!(!slot.finish(Arrival::Response(Body::Neither)));
    let seen: Vec<_> = std::iter::from_fn(|| slot.pop()).collect();
    assert_eq!(seen.len(), 8 + 1);
    assert!(matches!(&seen[7], Arrival::Progress(params) if params.raw() == "{\"progress\":499}"));
    assert!(matches!(seen[8], Arrival::Response(Body::Neither)));
}

#[test]
fn small_events_of_many_calls_are_counted_together() {
    let budget = Budget::new(64 << 20);
    let slots: Vec<_> = (0..1_000).map(|_| Mailbox::new(true, None)).collect();
    let params = Object::parse(format!("{{\"progress\":1,\"message\":\"{}\"}}", "x".repeat(4_000)).into()).unwrap();
    let kept = slots.iter().filter(|slot| slot.push(Arrival::Progress(params.clone()), &budget) == Kept::Yes).count();
    assert_eq!(kept, 1_000);
    assert!(budget.used_by(Kind::Small) > 3 << 20, "{}", budget.used());
    drop(slots);
    assert_eq!(budget.used(), 0);
}

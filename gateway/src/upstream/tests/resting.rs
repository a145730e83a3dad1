//! When an upstream that nobody needs is let go of, and what keeps it.

use super::*;
use crate::call::reply::Reply;
use crate::health::Order;
use crate::upstream::supervise::control::Woken;
use crate::upstream::supervise::{Told, control};

const LIMIT: Duration = Duration::from_secs(600);

/// An upstream that is ready, and may rest.
fn ready() -> Rig {
    let rig = Rig::new(Config { idle_stop: Some(LIMIT), ..config() });
    rig.met(LEGACY, r#"{"tools":{},"resources":{"subscribe":true}}"#);
    rig.instance.status.transition(State::Ready, None, None, None);
    rig
}

fn tool(rig: &Rig) -> Reply {
    rig.upstream().call(call(LEGACY, Method::ToolsCall, r#"{"name":"t"}"#))
}

/// Whether it is let go of within so long.
async fn rests_within(rig: &Rig, time: Duration) -> bool {
    matches!(tokio::time::timeout(time, control::interrupted(&rig.instance)).await, Ok(Told::Idle))
}

#[tokio::test(start_paused = true)]
async fn what_nobody_needs_is_let_go_of_and_the_next_call_wakes_it() {
    let rig = ready();
    assert!(!rests_within(&rig, LIMIT - Duration::from_secs(1)).await);
    assert!(rests_within(&rig, Duration::from_millis(1_100)).await);
    control::idle(&rig.instance.admission, &rig.instance.status);
    assert_eq!(rig.upstream().state(), State::Idle);
    let soon = Duration::from_secs(1);
    assert!(tokio::time::timeout(soon, rig.instance.admission.demand.awaited()).await.is_err(), "nobody waits");
    let waits = tool(&rig);
    rig.instance.admission.demand.awaited().await;
    drop(waits);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_keeps_it_however_long_it_takes() {
    let mut rig = ready();
    let mut reply = tool(&rig);
    let (id, _, _) = rig.far.request().await;
    assert!(!rests_within(&rig, LIMIT * 20).await);
    rig.far.result(&id, "{}").await;
    outcome(&mut reply).await;
    assert!(!rests_within(&rig, LIMIT - Duration::from_secs(1)).await, "its time begins anew");
    assert!(rests_within(&rig, LIMIT).await);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_keeps_it_and_one_to_nothing_does_not() {
    let rig = ready();
    let listen = |uris: &str| {
        let params = format!(r#"{{"notifications":{{"resourceSubscriptions":{uris}}}}}"#);
        rig.upstream().call(call(LEGACY, Method::Listen, &params))
    };
    let (ear, _lists) = (listen(r#"["a:1"]"#), listen("[]"));
    assert!(!rests_within(&rig, LIMIT * 3).await);
    drop(ear);
    assert!(rests_within(&rig, LIMIT * 2).await);
    let _ear = listen(r#"["a:1"]"#);
    rig.instance.admission.demand.awaited().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ready_is_not_let_go_of() {
    let rig = ready();
    rig.instance.status.transition(State::Starting, None, None, None);
    assert!(!rests_within(&rig, LIMIT * 3).await);
    let never = Rig::new(config());
    never.met(LEGACY, "{}");
    never.instance.status.transition(State::Ready, None, None, None);
    assert!(!rests_within(&never, LIMIT * 100).await, "by default nothing rests");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stopped_refuses_at_once_and_says_what_to_do() {
    let rig = ready();
    let mut order = rig.board.order("a", Order::Stop).unwrap();
    let Told::Order(ordered) = control::interrupted(&rig.instance).await else { panic!() };
    let (_, refused) = tool(&rig).outcome().await;
    let Outcome::Error(Failure::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert!(!refusal.is_retriable() && refusal.message.contains("trunkline start a"), "{}", refusal.message);
    assert!(order.try_recv().is_err(), "its child still runs");
    control::off(&rig.instance.admission, &rig.instance.status, &control::by_order(&rig.instance.name));
    ordered.done();
    order.await.unwrap();
    let rest = control::Rest::Ordered;
    let (order, tasks) = (rig.board.order("a", Order::Start).unwrap(), Tasks::new());
    assert!(matches!(control::woken(&rig.instance, rest, &tasks).await, Woken::Start));
    order.await.unwrap();
    assert_eq!((rig.upstream().state(), rig.instance.admission.demand.is_off()), (State::Starting, false));
    tasks.end();
    assert!(matches!(control::woken(&rig.instance, rest, &tasks).await, Woken::End));
}

#[tokio::test(start_paused = true)]
async fn what_was_stopped_by_hand_is_not_started_by_who_needs_it() {
    let (rig, tasks) = (ready(), Tasks::new());
    let starts = async |mut rest| {
        let until = tokio::time::Instant::now() + Duration::from_secs(3600);
        while let Ok(woken) = tokio::time::timeout_at(until, control::woken(&rig.instance, rest, &tasks)).await {
            match woken {
                Woken::Stop => rest = control::Rest::Ordered,
                woken => return matches!(woken, Woken::Start),
            }
        }
        false
    };
    rig.instance.admission.demand.wake();
    assert!(!starts(control::Rest::Ordered).await, "it is started by hand");
    // Whoever rests until it is needed, and is told to stop then, does no longer.
    rig.instance.admission.demand.awaited().await;
    let order = rig.board.order("a", Order::Stop).unwrap();
    let stops = async {
        order.await.unwrap();
        rig.instance.admission.demand.wake();
    };
    assert!(!tokio::join!(starts(control::Rest::Needed), stops).0);
    assert_eq!((rig.upstream().state(), rig.instance.admission.demand.is_off()), (State::Stopped, true));
}

#[tokio::test(start_paused = true)]
async fn whoever_waited_for_the_start_keeps_it_no_longer_than_anyone() {
    let rig = ready();
    // Several calls had it started, and were served when it was there.
    (0..3).for_each(|_| rig.instance.admission.demand.wake());
    assert!(rests_within(&rig, LIMIT * 2).await);
    control::idle(&rig.instance.admission, &rig.instance.status);
    let (long, tasks) = (Duration::from_secs(3600), Tasks::new());
    let again = control::woken(&rig.instance, control::Rest::Needed, &tasks);
    assert!(tokio::time::timeout(long, again).await.is_err(), "nobody needs it now");
}

#[tokio::test(start_paused = true)]
async fn who_orders_it_to_start_has_it_for_its_whole_time() {
    let rig = ready();
    let almost = LIMIT - Duration::from_secs(1);
    tokio::time::sleep(almost).await;
    control::begin(&rig.instance.admission, &rig.instance.status);
    rig.met(LEGACY, r#"{"tools":{}}"#);
    rig.instance.status.transition(State::Ready, None, None, None);
    assert!(!rests_within(&rig, almost).await, "it was ordered to begin anew");
    let ordered = async {
        rig.board.order("a", Order::Start).expect("it is there").await.expect("it is done");
        tokio::time::sleep(almost).await;
    };
    tokio::select! {
        told = control::interrupted(&rig.instance) => panic!("it was ordered to run: {told:?}"),
        () = ordered => {}
    }
    assert!(rests_within(&rig, LIMIT).await);
}

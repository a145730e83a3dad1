//! A restart that was ordered, or that another login asks for, lets running calls end first, for a bounded time, unless it is to be at once.

use super::control::{Told, by_order};
use crate::health::row::State;
use crate::health::{Cause, CauseCode, Order, Ordered};
use crate::metrics;
use crate::upstream::instance::Instance;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// So long running calls have. New ones wait for the next life meanwhile, and are refused after as long.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// The end of a call wakes nobody: so often it is looked whether one still runs.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until no call runs, where that is what was ordered, or until `gone` resolves: then none can end any more. The gate is closed.
/// What is ordered meanwhile is added, and may end the wait.
pub(super) async fn until_calls_end(instance: &Instance, told: Told, gone: impl Future<Output = ()>) -> Told {
    let mut told = match told {
        Told::Order(ordered) if ordered.order != Order::Restart => return Told::Order(ordered),
        Told::Order(_) | Told::LoggedIn => told,
        told => return told,
    };
    let (admission, begun) = (&instance.admission, Instant::now());
    let mut gone = pin!(gone);
    if admission.in_flight() > 0 {
        shown(instance, &told, admission.in_flight());
    }
    while admission.in_flight() > 0 && begun.elapsed() < GRACE {
        tokio::select! {
            biased;
            () = &mut gone => break,
            next = instance.status.handle.ordered() => match next.order {
                // It will.
                Order::Start => next.done(),
                Order::Restart => told = with(told, next),
                Order::RestartNow => return with(told, next),
                Order::Stop => {
                    instance.admission.demand.turn_off(true);
                    instance.admission.gate.shut_for_good(&by_order(&instance.name));
                    return with(told, next);
                }
            },
            () = sleep(LOOK_EVERY) => {}
        }
    }
    told
}

/// The same for an instance of one principal, whose calls end with it: those that come meanwhile have another one.
pub(crate) async fn calls_end(instance: &Instance) {
    let begun = Instant::now();
    while instance.admission.in_flight() > 0 && begun.elapsed() < GRACE {
        sleep(LOOK_EVERY).await;
    }
}

/// What was ordered, with what is ordered beside it.
fn with(told: Told, next: Ordered) -> Told {
    match told {
        Told::Order(ordered) => Told::Order(ordered.and(next)),
        _ => Told::Order(next),
    }
}

fn shown(instance: &Instance, told: &Told, running: usize) {
    let (upstream, number) = (&*instance.name, instance.status.number);
    let (code, begins) = match told {
        Told::LoggedIn => (CauseCode::LoginChanged, "another login was made"),
        _ => (CauseCode::RestartedByOrder, "restarting"),
    };
    let cause = Cause::new(code, format!("{begins}; {running} running calls have 5 s to end"))
        .advise(&format!("cut them with `trunkline restart {upstream} --now`"));
    instance.status.transition(State::Stopping, Some(&cause), None, Some(GRACE));
    tracing::info!(target: metrics::UPSTREAM_STATE, upstream, instance = number, running, at_most = ?GRACE, "restart waits for running calls");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::tests::rig::{Rig, config};
    use std::future::pending;

    /// What becomes of a restart with a call that never ends; and how long it waited, by the clock.
    async fn restarted(first: Order, then: Option<Order>, gone: impl Future<Output = ()>) -> (Order, Duration) {
        let rig = Rig::new(config());
        let name = rig.instance.name.clone();
        rig.instance.admission.traffic.began();
        let begun = Instant::now();
        let _first = rig.board.order(&name, first).unwrap();
        let told = Told::Order(rig.instance.status.handle.ordered().await);
        let _then = then.map(|then| rig.board.order(&name, then).unwrap());
        let Told::Order(ordered) = until_calls_end(&rig.instance, told, gone).await else { panic!() };
        (ordered.order, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_of_the_other_era_is_waited_for_too() {
        let rig = Rig::new(config());
        let name = rig.instance.name.clone();
        let handle = rig.instance.status.handle.instance(&"modern".into(), 0);
        handle.traffic().began();
        rig.instance.admission.second.store(Some(handle.traffic()));
        let begun = Instant::now();
        let _order = rig.board.order(&name, Order::Restart).unwrap();
        let told = Told::Order(rig.instance.status.handle.ordered().await);
        until_calls_end(&rig.instance, told, pending()).await;
        assert_eq!(begun.elapsed(), GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_does_not_end_is_waited_for_and_no_longer() {
        assert_eq!(restarted(Order::Restart, None, pending()).await, (Order::Restart, GRACE));
        // A start changes nothing, since it will start.
        assert_eq!(restarted(Order::Restart, Some(Order::Start), pending()).await, (Order::Restart, GRACE));
        let none = Duration::ZERO;
        assert_eq!(restarted(Order::RestartNow, None, pending()).await, (Order::RestartNow, none));
        assert_eq!(restarted(Order::Restart, Some(Order::RestartNow), pending()).await, (Order::RestartNow, none));
        assert_eq!(restarted(Order::Restart, Some(Order::Stop), pending()).await, (Order::Stop, none));
        assert_eq!(restarted(Order::Restart, None, async {}).await, (Order::Restart, none), "it cannot end any more");
    }
}

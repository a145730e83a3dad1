//! When an upstream does not run, though nothing is wrong with it: until it is first needed, when it was not for long, and when
//! a person says so.

use super::config::Start;
use super::standing::Standing;
use crate::lifecycle::{Order, Ordered, State, Tasks};
use std::sync::Arc;

/// Why a life ends that could go on.
#[derive(Debug)]
pub(crate) enum Told {
    /// Nobody needed it for long.
    Idle,
    /// Somebody ordered it; never to start.
    Order(Ordered),
}

impl Told {
    /// Why what is open is ended, in words.
    pub(crate) fn cause(&self, standing: &Standing) -> String {
        match self {
            Self::Idle => "it was not needed for long, and rests".to_owned(),
            Self::Order(ordered) if ordered.order == Order::Stop => by_order(standing),
            Self::Order(_) => "it was started again by hand".to_owned(),
        }
    }
}

/// What an upstream that does not run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// To be needed, or ordered to start.
    Needed,
    /// To be ordered to start.
    Ordered,
}

/// How it begins; `None`: it runs. An instance beside the primary one is made when it is needed.
pub(crate) fn at_start(standing: &Standing) -> Option<Rest> {
    match standing.config.start {
        _ if standing.beside.is_some() => None,
        Start::Eager => None,
        Start::Lazy => {
            idle(standing);
            Some(Rest::Needed)
        }
        Start::Manual => {
            off(standing, &by_hand(standing));
            Some(Rest::Ordered)
        }
    }
}

/// Waits until it is to run; false when its level ends before.
pub(crate) async fn until_needed(standing: &Standing, mut rest: Rest, tasks: &Tasks) -> bool {
    loop {
        tokio::select! {
            biased;
            () = tasks.ending() => return false,
            ordered = standing.seat.ordered() => match ordered.order {
                Order::Start | Order::Restart => {
                    begin(standing);
                    ordered.done();
                    return true;
                }
                Order::Stop => {
                    off(standing, &by_order(standing));
                    rest = Rest::Ordered;
                    ordered.done();
                }
            },
            () = standing.need.awaited(), if rest == Rest::Needed => {
                begin(standing);
                return true;
            }
        }
    }
}

/// Resolves when a life that goes well is to end; from then on the gate is closed, or shut.
pub(crate) async fn interrupted(standing: &Arc<Standing>) -> Told {
    loop {
        tokio::select! {
            ordered = standing.seat.ordered() => match ordered.order {
                Order::Start => {
                    standing.need.touch();
                    ordered.done();
                }
                Order::Stop => {
                    standing.need.turn_off(true);
                    standing.gate.shut(&by_order(standing).as_str().into());
                    return Told::Order(ordered);
                }
                Order::Restart => {
                    standing.gate.close();
                    return Told::Order(ordered);
                }
            },
            () = standing.need.unused() => {
                if standing.beside.is_none() && may_rest(standing) {
                    return Told::Idle;
                }
                standing.need.touch();
            }
        }
    }
}

/// Closes the gate, unless somebody needs the upstream after all.
fn may_rest(standing: &Arc<Standing>) -> bool {
    let is_up = standing.seat.health().state.is_up();
    let Some(peer) = standing.gate.peer().filter(|_| is_up) else { return false };
    standing.need.is_there();
    if standing.need.is_held() {
        return false;
    }
    standing.gate.close();
    if standing.need.is_held() || !standing.wants.wanted().is_empty() {
        // What came meanwhile goes on as if nothing had been.
        standing.gate.expect(&peer);
        standing.open_gate(&peer);
        return false;
    }
    true
}

/// What follows when nothing of a life is left that could have gone on; `None`: another one.
pub(crate) fn after(standing: &Standing, told: Told) -> Option<Rest> {
    match told {
        Told::Idle => {
            idle(standing);
            Some(Rest::Needed)
        }
        Told::Order(ordered) if ordered.order == Order::Stop => {
            off(standing, &by_order(standing));
            ordered.done();
            Some(Rest::Ordered)
        }
        Told::Order(ordered) => {
            begin(standing);
            ordered.done();
            None
        }
    }
}

/// It rests until it is needed: calls wait, and wake it.
pub(crate) fn idle(standing: &Standing) {
    standing.moved(State::Idle, None, None, None);
}

/// It stays where it is until it is ordered to start: calls are refused with the cause.
pub(crate) fn off(standing: &Standing, cause: &str) {
    standing.need.turn_off(true);
    standing.gate.shut(&cause.into());
    standing.moved(State::Stopped, Some(cause), None, None);
}

/// It begins to run: calls wait for it.
pub(crate) fn begin(standing: &Standing) {
    standing.need.turn_off(false);
    // Who orders it wants to use it.
    standing.need.touch();
    standing.gate.close();
    standing.seat.update(|health| health.cause = None);
    standing.moved(State::Starting, None, None, None);
}

/// Why it was not started yet, and what to do.
fn by_hand(standing: &Standing) -> String {
    match standing.holding.is_of_many() {
        true => format!("it is started by hand, with `trunkline start {}`", standing.name),
        // There is no admin address to order it by.
        false => {
            "it is started by hand (`start = \"manual\"`), which only a gateway under `trunkline serve` can be told \
                  to do; use that, or set `start = \"lazy\"`"
                .to_owned()
        }
    }
}

/// Why it was stopped, and what to do.
pub(crate) fn by_order(standing: &Standing) -> String {
    format!("it was stopped by hand; start it with `trunkline start {}`", standing.name)
}

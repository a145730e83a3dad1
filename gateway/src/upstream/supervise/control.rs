//! When an upstream does not run, though nothing is wrong with it: until it is first needed, when it was not for long, and when
//! a person says so.

use crate::health::row::State;
use crate::health::{Cause, CauseCode, Order, Ordered};
use crate::runtime::Tasks;
use crate::transport::stdio::start_limit::StartTicket;
use crate::upstream::calls::sessions::open_gate;
use crate::upstream::config::Start;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::Admission;
use crate::upstream::instance::inventory::Inventory;
use crate::upstream::status::Status;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Why a life ends that could go on.
#[derive(Debug)]
pub(crate) enum Told {
    /// Nobody needed it for long.
    Idle,
    /// Somebody ordered it; never to start.
    Order(Ordered),
    /// A person has logged out.
    LoggedOut,
    /// A person has logged in, and may be another one.
    LoggedIn,
}

impl Told {
    /// Why what is open is ended, in words.
    pub(crate) fn cause(&self, instance: &Instance) -> Cause {
        let upstream = &instance.name;
        match self {
            Self::Idle => Cause::new(CauseCode::Idle, "idle; starts on the next request"),
            Self::LoggedOut => logged_out(instance),
            Self::LoggedIn => Cause::new(
                CauseCode::LoginChanged,
                "another login was made, which has a session of its own; running calls had 5 s to end",
            ),
            Self::Order(ordered) if ordered.order == Order::Stop => by_order(upstream),
            Self::Order(ordered) if ordered.order == Order::Restart => {
                Cause::new(CauseCode::RestartedByOrder, "restarted on request; running calls had 5 s to end")
            }
            Self::Order(_) => Cause::new(CauseCode::RestartedByOrder, "restarted on request"),
        }
    }
}

fn logged_out(instance: &Instance) -> Cause {
    let login = instance.tokens.as_ref().and_then(|tokens| tokens.login_command());
    let run = format!("run `{}`", login.unwrap_or_else(|| format!("trunkline login {}", instance.name)));
    Cause::new(CauseCode::LoginRequired, "needs login: somebody has logged out").advise(&run)
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
pub(crate) fn at_start(instance: &Instance) -> Option<Rest> {
    match instance.config.start {
        _ if instance.primary.is_some() => None,
        // Stopped before it was configured as it is now.
        _ if instance.admission.demand.is_off() => Some(Rest::Ordered),
        Start::Eager => None,
        Start::Lazy => {
            idle(&instance.admission, &instance.status);
            Some(Rest::Needed)
        }
        Start::Manual => {
            off(&instance.admission, &instance.status, &by_hand(&instance.name));
            Some(Rest::Ordered)
        }
    }
}

/// A place among those who start children; `None` where there is none to start.
pub(crate) fn ticket(instance: &Instance) -> Option<StartTicket> {
    instance.config.is_child().then(|| instance.children.ticket(instance.owner.share.clone()))
}

/// What becomes of an upstream that does not run.
#[derive(Debug)]
pub(crate) enum Woken {
    /// It is to run.
    Start,
    /// It is to run, and what runs of it in another era is to end first.
    Restart(Ordered),
    /// It is to stay where it is until it is ordered to start.
    Stop,
    /// Its level ends.
    End,
}

/// Waits until it is to run, or to rest otherwise.
pub(crate) async fn woken(instance: &Instance, rest: Rest, tasks: &Tasks) -> Woken {
    tokio::select! {
        biased;
        () = tasks.ending() => Woken::End,
        ordered = instance.status.handle.ordered() => {
            let woken = match ordered.order {
                Order::Restart | Order::RestartNow => return Woken::Restart(ordered),
                Order::Start => {
                    begin(&instance.admission, &instance.status);
                    Woken::Start
                }
                Order::Stop => {
                    off(&instance.admission, &instance.status, &by_order(&instance.name));
                    Woken::Stop
                }
            };
            ordered.done();
            woken
        }
        () = instance.admission.demand.awaited(), if rest == Rest::Needed => {
            begin(&instance.admission, &instance.status);
            Woken::Start
        }
    }
}

/// Resolves when the next attempt is due: after a pause, or when a person has logged in who had to.
pub(crate) async fn paused(instance: &Instance, delay: Duration) {
    tokio::select! {
        () = sleep(delay) => {}
        () = login_came(instance) => {}
    }
}

async fn login_went(instance: &Instance) {
    match &instance.tokens {
        Some(tokens) => tokens.login_went().await,
        None => std::future::pending().await,
    }
}

async fn login_became_another(instance: &Instance) {
    match &instance.tokens {
        Some(tokens) => tokens.login_became_another().await,
        None => std::future::pending().await,
    }
}

async fn login_came(instance: &Instance) {
    match &instance.tokens {
        Some(tokens) => tokens.login_came().await,
        None => std::future::pending().await,
    }
}

/// Resolves when a life that goes well is to end; from then on the gate is closed, or shut.
pub(crate) async fn interrupted(instance: &Arc<Instance>) -> Told {
    loop {
        tokio::select! {
            ordered = instance.status.handle.ordered() => match ordered.order {
                Order::Start => {
                    instance.admission.demand.touch();
                    ordered.done();
                }
                Order::Stop => {
                    instance.admission.demand.turn_off(true);
                    instance.admission.gate.shut_for_good(&by_order(&instance.name));
                    return Told::Order(ordered);
                }
                Order::Restart | Order::RestartNow => {
                    instance.admission.gate.close();
                    return Told::Order(ordered);
                }
            },
            () = login_went(instance) => {
                instance.admission.gate.close();
                return Told::LoggedOut;
            }
            // Calls wait for the next session, in which they go on with the next login.
            () = login_became_another(instance) => {
                instance.admission.gate.close();
                return Told::LoggedIn;
            }
            () = instance.admission.demand.unused() => {
                if instance.is_of_upstream() && may_rest(instance) {
                    return Told::Idle;
                }
                instance.admission.demand.touch();
            }
        }
    }
}

/// Closes the gate, unless somebody needs the upstream after all.
fn may_rest(instance: &Arc<Instance>) -> bool {
    let is_up = instance.status.handle.health().state.is_up();
    let Some(peer) = instance.admission.gate.peer().filter(|_| is_up) else { return false };
    instance.admission.demand.is_there();
    if instance.admission.demand.is_held() {
        return false;
    }
    instance.admission.gate.close();
    if instance.admission.demand.is_held() || !instance.wanted.subscriptions.is_empty() {
        // What came meanwhile goes on as if nothing had been.
        instance.admission.gate.expect(&peer);
        open_gate(instance, &peer);
        return false;
    }
    true
}

/// What follows when nothing of a life is left that could have gone on; `None`: another one.
pub(crate) fn after(instance: &Instance, told: Told) -> Option<Rest> {
    match told {
        Told::Idle => {
            idle(&instance.admission, &instance.status);
            Some(Rest::Needed)
        }
        Told::Order(ordered) if ordered.order == Order::Stop => {
            off(&instance.admission, &instance.status, &by_order(&instance.name));
            ordered.done();
            Some(Rest::Ordered)
        }
        Told::LoggedOut | Told::LoggedIn => {
            begin(&instance.admission, &instance.status);
            None
        }
        Told::Order(ordered) => {
            begin(&instance.admission, &instance.status);
            ordered.done();
            None
        }
    }
}

/// It rests until it is needed: calls wait, and wake it.
pub(crate) fn idle(admission: &Admission, status: &Status) {
    admission.gate.close();
    status.transition(State::Idle, None, None, None);
}

/// It rests for good, since each principal has an instance of its own.
pub(crate) fn apart(instance: &Instance) -> Rest {
    let cause = Cause::new(CauseCode::Idle, "each principal logs in for itself, and has a connection of its own");
    instance.admission.gate.shut_for_good(&cause);
    instance.status.transition(State::Idle, Some(&cause), None, None);
    Rest::Ordered
}

/// A principal that has yet to log in for itself is offered that, where nothing else is known to be offered to it. One that has logged out
/// is offered no more what it was before.
pub(crate) fn offers_login(instance: &Instance, cause: &Cause) {
    let Instance { name, config, offering, .. } = instance;
    let is_known = || offering.inventory.borrow().is_some();
    let is_logged_out = || instance.tokens.as_ref().is_some_and(|tokens| tokens.is_logged_out());
    let is_needed = config.has_personal_logins() && cause.codes().contains(&CauseCode::LoginRequired);
    if is_needed && (!is_known() || is_logged_out()) {
        offering.inventory.send_replace(Some(Inventory::to_log_in(name).into()));
    }
}

/// It stays where it is until it is ordered to start: calls are refused with the cause.
pub(crate) fn off(admission: &Admission, status: &Status, cause: &Cause) {
    admission.demand.turn_off(true);
    admission.gate.shut_for_good(cause);
    status.transition(State::Stopped, Some(cause), None, None);
}

/// It begins to run: calls wait for it.
pub(crate) fn begin(admission: &Admission, status: &Status) {
    admission.demand.turn_off(false);
    // Who orders it wants to use it.
    admission.demand.touch();
    admission.gate.close();
    status.handle.update(|health| health.cause = None);
    status.transition(State::Starting, None, None, None);
    // What failed before is of an earlier life.
    status.handle.update(|health| health.has_failed = false);
}

/// Why it was not started yet, and what to do.
fn by_hand(upstream: &str) -> Cause {
    Cause::new(CauseCode::StartsByOrder, format!("starts only with `trunkline start {upstream}`"))
}

/// Why it was stopped, and what to do.
pub(crate) fn by_order(upstream: &str) -> Cause {
    Cause::new(CauseCode::StoppedByOrder, "stopped on request")
        .advise(&format!("start it with `trunkline start {upstream}`"))
}

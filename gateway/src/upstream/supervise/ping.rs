//! Asks an upstream of which nothing is heard whether it is there, and acts on its silence. Calls know nothing of it.

use crate::health::{Cause, CauseCode};
use crate::peer::Peer;
use crate::peer::fault::Trouble;
use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use crate::runtime::timer::late::{passes, within};
use crate::transport::exchange::Lost;
use crate::transport::liveness::Liveness;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::gate::Retired;
use crate::upstream::status::Condition;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// What became of a question.
#[derive(Debug)]
enum Answer {
    /// It is there, whatever it said.
    Alive,
    /// It is not well, and why.
    Unwell(Cause),
    /// It could not be asked just now, which says nothing.
    Unasked,
    /// The link or the session is gone, which its supervisor is told.
    Gone(Lost),
}

/// Watches a peer for as long as it lives. Only silence is asked into: whatever comes from it is a sign of life.
pub(crate) async fn watch(instance: Arc<Instance>, peer: Arc<Peer>) {
    // Whatever ailed it before was another life's.
    instance.status.set_condition(Condition::Silent, None);
    let Some(interval) = instance.config.health.interval else { return };
    let pulse = peer.link.pulse();
    let mut unwell = 0;
    loop {
        if unwell < instance.config.health.unhealthy_after {
            // Once it was silent it is asked again at once: its next answer has been due for long.
            if unwell == 0 && !is_silent(pulse, interval).await {
                continue;
            }
        } else if within(interval, pulse.heard()).await.is_ok() {
            instance.status.set_condition(Condition::Silent, None);
            unwell = 0;
            continue;
        }
        let begun = Instant::now();
        match ask(&peer, instance.config.health.timeout).await {
            Answer::Alive => {
                instance.status.set_condition(Condition::Silent, None);
                unwell = 0;
            }
            // It is asked again when it is next due.
            Answer::Unasked if unwell < instance.config.health.unhealthy_after => unwell = 0,
            Answer::Unasked => pulse.listen(),
            Answer::Gone(lost) => return instance.admission.retire_if_gone(&peer, &lost),
            Answer::Unwell(why) => {
                // An answer that says no at once is not asked for faster than one that does not come.
                sleep_until(begun + instance.config.health.timeout).await;
                unwell = (unwell + 1).min(instance.config.health.unhealthy_after);
                if unwell == instance.config.health.unhealthy_after && has_had_enough(&instance, &peer, &why) {
                    return;
                }
                pulse.listen();
            }
        }
    }
}

/// Whether nothing was heard for a while.
async fn is_silent(pulse: &Liveness, interval: Duration) -> bool {
    pulse.listen();
    passes(interval).await;
    !pulse.was_heard()
}

/// It was unwell too often: it is shown as that, and where that is wanted given up; whether it was.
fn has_had_enough(instance: &Instance, peer: &Arc<Peer>, why: &Cause) -> bool {
    let checks = &instance.config.health;
    let cause = match checks.unhealthy_after {
        1 => why.clone(),
        times => why.clone().own(&format!(", {times} times in a row")),
    };
    instance.status.set_condition(Condition::Silent, Some(&cause));
    let is_hung = instance.config.hang_restart && peer.link.is_pipe();
    if is_hung {
        instance.admission.gate.retire(peer, Retired::Hung(cause));
    }
    is_hung
}

/// Asks once: in words that every upstream of its era knows, and that change nothing.
async fn ask(peer: &Peer, limit: Duration) -> Answer {
    let method = if peer.revision().is_modern() { Method::Discover } else { Method::Ping };
    let pulse = peer.link.pulse();
    pulse.listen();
    let nothing = Object::empty();
    let asked = async {
        tokio::select! {
            biased;
            answer = peer.ask(&method, &nothing, limit) => Some(answer),
            // It says something else: it is there.
            () = pulse.heard(), if peer.link.is_pipe() => None,
        }
    };
    let Some(answer) = asked.await else { return Answer::Alive };
    let what = method.as_str();
    match answer {
        Ok(_) | Err(Trouble::Refused(_) | Trouble::Odd(_) | Trouble::Lost(Lost::Odd(_))) => Answer::Alive,
        Err(Trouble::Late(_)) => {
            let said = format!("no answer to `{what}` within {} s", limit.as_secs_f32());
            Answer::Unwell(Cause::new(CauseCode::TimedOut, said))
        }
        Err(Trouble::Lost(lost)) => match &lost {
            Lost::Unsent(_) | Lost::Session(_) => Answer::Gone(lost),
            back if back.leads_back() => Answer::Gone(lost),
            // It does not read its input.
            Lost::Busy(why) if peer.link.is_pipe() => Answer::Unwell(why.clone()),
            Lost::Busy(_) | Lost::Barred(..) => Answer::Unasked,
            Lost::Status(refusal) if !refusal.class().is_unwell() => Answer::Alive,
            lost => {
                let asked = format!("health check (`{what}`): ");
                Answer::Unwell(Cause::default().own(&asked).then(lost.text()))
            }
        },
    }
}

#[cfg(test)]
mod tests;

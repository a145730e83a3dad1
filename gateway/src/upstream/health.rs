//! Asks an upstream of which nothing is heard whether it is there, and acts on its silence. Calls know nothing of it.

use super::ails::Ail;
use super::fault::Trouble;
use super::gate::Retired;
use super::link::{Lost, Pulse};
use super::peer::Peer;
use super::standing::Standing;
use crate::protocol::{Method, Object};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// What became of a question.
#[derive(Debug)]
enum Answer {
    /// It is there, whatever it said.
    Alive,
    /// It is not well, and why.
    Unwell(String),
    /// It could not be asked just now, which says nothing.
    Unasked,
    /// The link or the session is gone, which its supervisor is told.
    Gone(Lost),
}

/// Watches a peer for as long as it lives. Only silence is asked into: whatever comes from it is a sign of life.
pub(crate) async fn watch(standing: Arc<Standing>, peer: Arc<Peer>) {
    // Whatever ailed it before was another life's.
    standing.ails(Ail::Silent, None);
    let Some(interval) = standing.config.health.interval else { return };
    let pulse = peer.link.pulse();
    let mut unwell = 0;
    loop {
        if unwell < standing.config.health.unhealthy_after {
            // Once it was silent it is asked again at once: its next answer has been due for long.
            if unwell == 0 && !is_silent(pulse, interval).await {
                continue;
            }
        } else if timeout(interval, pulse.heard()).await.is_ok() {
            standing.ails(Ail::Silent, None);
            unwell = 0;
            continue;
        }
        let begun = Instant::now();
        match ask(&standing, &peer).await {
            Answer::Alive => {
                standing.ails(Ail::Silent, None);
                unwell = 0;
            }
            // It is asked again when it is next due.
            Answer::Unasked if unwell < standing.config.health.unhealthy_after => unwell = 0,
            Answer::Unasked => pulse.listen(),
            Answer::Gone(lost) => return standing.noticed(&peer, &lost),
            Answer::Unwell(why) => {
                // An answer that says no at once is not asked for faster than one that does not come.
                sleep_until(begun + standing.config.health.timeout).await;
                unwell = (unwell + 1).min(standing.config.health.unhealthy_after);
                if unwell == standing.config.health.unhealthy_after && has_had_enough(&standing, &peer, &why) {
                    return;
                }
                pulse.listen();
            }
        }
    }
}

/// Whether nothing was heard for a while.
async fn is_silent(pulse: &Pulse, interval: Duration) -> bool {
    pulse.listen();
    sleep(interval).await;
    !pulse.was_heard()
}

/// It was unwell too often: it is shown as that, and where that is wanted given up; whether it was.
fn has_had_enough(standing: &Standing, peer: &Arc<Peer>, why: &str) -> bool {
    let checks = &standing.config.health;
    let cause = match checks.unhealthy_after {
        1 => why.to_owned(),
        times => format!("{why}, {times} times in a row"),
    };
    standing.ails(Ail::Silent, Some(&cause));
    let is_hung = standing.config.hang_restart && peer.link.is_pipe();
    if is_hung {
        standing.gate.retire(peer, Retired::Hung(cause.into()));
    }
    is_hung
}

/// Asks once: in words that every upstream of its era knows, and that change nothing.
async fn ask(standing: &Standing, peer: &Peer) -> Answer {
    let method = if peer.revision().is_modern() { Method::Discover } else { Method::Ping };
    let limit = standing.config.health.timeout;
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
        Err(Trouble::Late(_)) => Answer::Unwell(format!("it did not answer `{what}` within {} s", limit.as_secs_f32())),
        Err(Trouble::Lost(lost)) => match &lost {
            Lost::Unsent(_) | Lost::Session(_) => Answer::Gone(lost),
            back if back.leads_back() => Answer::Gone(lost),
            // It does not read what it is sent.
            Lost::Busy(why) if peer.link.is_pipe() => Answer::Unwell(why.to_string()),
            Lost::Busy(_) | Lost::Barred(..) => Answer::Unasked,
            Lost::Status(refusal) if !is_unwell(refusal.status) => Answer::Alive,
            lost => Answer::Unwell(format!("it was asked by `{what}` whether it is there: {}", lost.text())),
        },
    }
}

/// Whether a status says more than that there is no such method.
fn is_unwell(status: u16) -> bool {
    matches!(status, 401 | 403 | 407 | 408 | 500..)
}

#[cfg(test)]
mod tests;

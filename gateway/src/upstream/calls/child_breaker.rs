//! The breaker of a child: while calls end it, or it answers none in time, again and again, it is sent none; then one call tries.

use super::failure::{CallFailure, fail};
use crate::call::Call;
use crate::call::refusal::Refusal;
use crate::health::{Cause, CauseCode};
use crate::peer::Peer;
use crate::transport::events::LinkEvents;
use crate::transport::exchange::Lost;
use crate::transport::http::Breaker;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::gate::Sending;
use crate::upstream::status::Condition;
use std::sync::Arc;
use tokio::time::Instant;

/// The call that tries whether a child is well again. Where it ends without an outcome, another one may.
pub(crate) struct Probe(Option<Arc<Breaker>>);

impl Drop for Probe {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|breaker| breaker.untried());
    }
}

/// A call that goes out or waits, and whether it tries if a child is well again.
pub(crate) type Admitted = (Sending, Option<Probe>);

/// Whether a call may go to a child now, and whether it is the one that tries.
pub(crate) fn begin(instance: &Instance, call: &Call) -> Result<Option<Probe>, Refusal> {
    if !instance.breaker.is_marked() || !instance.config.is_child() {
        return Ok(None);
    }
    match instance.breaker.admits(true) {
        Ok(tries) => Ok(tries.then(|| Probe(Some(instance.breaker.clone())))),
        Err(held) => Err(fail(&instance.config, &instance.status, call, CallFailure::Lost(&held))),
    }
}

/// It has answered, whatever it said.
pub(crate) fn answered(instance: &Instance, probe: &mut Option<Probe>) {
    if !instance.breaker.is_marked() || !instance.config.is_child() {
        return;
    }
    settle(probe);
    let _shown_next = instance.breaker.shows();
    if instance.breaker.answered() {
        instance.set_condition(Condition::Failing, None);
    }
}

/// A call that was sent to it is lost. The end of one child is one failure, however many calls it ends, and none where it was ordered.
pub(crate) fn lost(instance: &Instance, peer: &Arc<Peer>, lost: &Lost, probe: &mut Option<Probe>) {
    let Lost::Unknown(why) = lost else { return };
    let is_its_own_end = matches!(
        why.code(),
        CauseCode::Exited(_) | CauseCode::Killed(_) | CauseCode::PipeClosed | CauseCode::Hung | CauseCode::InputNotRead
    );
    if is_its_own_end && instance.config.is_child() && instance.counted.is_first_end_of(peer) {
        failed(instance, why, probe);
    }
}

/// The time of a call that was sent then is over. All that were under way meanwhile are one failure, and any answer ends the row: who
/// makes calls that never end holds nobody back.
pub(crate) fn silent(instance: &Instance, sent: Instant, probe: &mut Option<Probe>) {
    if instance.config.is_child() && instance.counted.is_another_silence(sent) {
        failed(instance, &Cause::new(CauseCode::TimedOut, "a call was not answered in time"), probe);
    }
}

fn failed(instance: &Instance, why: &Cause, probe: &mut Option<Probe>) {
    settle(probe);
    let _shown_next = instance.breaker.shows();
    if let Some(told) = instance.breaker.failed(Instant::now(), why) {
        instance.set_condition(Condition::Failing, Some(&told));
    }
}

/// The outcome of a call that tried is known.
fn settle(probe: &mut Option<Probe>) {
    probe.take().into_iter().for_each(|mut probe| probe.0 = None);
}

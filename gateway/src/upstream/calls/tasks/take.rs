//! How an instance takes a call: plain, as a task that is driven for its caller, or as something to listen to.

use super::driver::TaskDriver;
use super::listen::TaskListening;
use crate::call::refusal::{Reason, Refusal};
use crate::call::reply::{Reply, Source, Step};
use crate::call::{Call, ListenFilter};
use crate::protocol::frame::Method;
use crate::protocol::revision::Revision;
use crate::protocol::value::Key;
use crate::upstream::calls::admit::{admit, judge};
use crate::upstream::calls::plain::tried;
use crate::upstream::calls::{CallSource, ListenSource};
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::gate::Sending;
use crate::upstream::instance::inventory::Offering;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Takes a call that wants an answer. Nothing waits here.
pub(crate) fn take(instance: &Arc<Instance>, call: Call) -> Reply {
    // Counted before the gate is looked at: whoever closes the gate of an idle upstream sees the call.
    let listens = matches!(call.method, Method::Listen);
    let held = if listens { None } else { instance.admission.demand.hold(&call) };
    let too_many = || instance.rates.as_ref()?.refuse(&instance.name, &call);
    let reply = match judge(&instance.config.tools, &call).or_else(too_many) {
        Some(refusal) => Reply::refuse(call.revision(), refusal),
        None if listens => listen(instance, call),
        None if must_drive(&instance.offering, &call) => Reply::live(TaskDriver::start(instance, &call)),
        None => match tried(instance, &call) {
            Ok(sending) => {
                Reply::live(CallOrTask { call: CallSource::new(instance, call, sending, true), driver: None })
            }
            Err(refusal) => Reply::refuse(call.revision(), refusal),
        },
    };
    match held {
        Some(held) => reply.attach(Box::new(held)),
        None => reply,
    }
}

/// Sends a `tasks/cancel` whose answer nobody waits for.
pub(crate) fn withdraw(instance: &Arc<Instance>, cancel: &Call) {
    if let Ok(Sending::Sent(sent)) = admit(instance, cancel) {
        sent.detach();
    }
}

/// Whether a tool runs as a task only, and its caller did not ask for one.
fn must_drive(offering: &Offering, call: &Call) -> bool {
    let asks = || call.revision() == Revision::V2025_11_25 && call.params.get(Key::Task).is_some();
    offering.is_task_only(call) && !asks()
}

fn listen(instance: &Arc<Instance>, call: Call) -> Reply {
    match ListenFilter::parse(&call.params) {
        Some(filter) if !filter.tasks.is_empty() => Reply::live(TaskListening::new(instance, call, filter.tasks)),
        Some(filter) => Reply::live(ListenSource::new(instance, filter, &call.caller)),
        None => Reply::refuse(
            call.revision(),
            Refusal::new(Reason::InvalidParams, "`notifications` must say what to listen for"),
        ),
    }
}

/// A plain call, driven as a task once its upstream has refused to run it otherwise.
struct CallOrTask {
    call: CallSource,
    driver: Option<Pin<Box<TaskDriver>>>,
}

impl Source for CallOrTask {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        if let Some(driver) = &mut this.driver {
            return driver.as_mut().poll_step(cx);
        }
        let step = Pin::new(&mut this.call).poll_step(cx);
        if step.is_ready() || !this.call.wants_task() {
            return step;
        }
        let driver = this.call.hand_over(TaskDriver::declared);
        this.driver.insert(Box::pin(driver)).as_mut().poll_step(cx)
    }

    fn revision(&self) -> Revision {
        self.call.revision()
    }

    fn upstream_time(&self) -> Duration {
        self.call.upstream_time()
    }

    fn queue_time(&self) -> Duration {
        self.call.queue_time()
    }
}

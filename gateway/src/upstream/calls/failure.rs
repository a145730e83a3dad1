//! How a call fails by the doing of its upstream: counted, kept as the last error, logged now and then, and told to its caller.

use super::messages;
use super::messages::Passed;
use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::health::{Cause, CauseCode};
use crate::transport::exchange::{Lost, Withheld};
use crate::upstream::config::Config;
use crate::upstream::instance::admission::Demand;
use crate::upstream::status::Status;

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum CallFailure<'a> {
    /// Nothing was sent, or no answer came. Its link has reported what it saw, and the supervisor what has ended.
    Lost(&'a Lost),
    /// The answer breaks the protocol.
    BadAnswer(Cause),
    /// The answer came in pieces, and not all of them.
    Incomplete(Cause),
    /// It was sent, and its time is over.
    Timeout(Passed),
    /// Its time is over, and nothing of it left, for this reason.
    NotTaken(Passed, Withheld),
    /// Its time is over, and too many calls were before it.
    Waited(Passed),
    /// Its upstream did not come up in time.
    NotUp,
    /// A session of its own was not opened in time.
    NoSession,
    /// The upstream cancelled the task that was made of it.
    TaskCancelled,
}

/// Ends a call that its upstream failed. Every such end passes here, so that none shows nowhere.
pub(crate) fn fail(config: &Config, status: &Status, call: &Call, failure: CallFailure<'_>) -> Refusal {
    report(config, status, call, &failure);
    let upstream = &config.name;
    match failure {
        CallFailure::Lost(lost) => messages::lost(upstream, call, lost),
        CallFailure::BadAnswer(why) => messages::bad_answer(upstream, call, &why),
        CallFailure::Incomplete(why) => messages::lost(upstream, call, &Lost::Unknown(why)),
        CallFailure::Timeout(limit) => messages::timeout(upstream, call, limit),
        CallFailure::NotTaken(limit, why) => messages::not_taken(upstream, call, limit, why),
        CallFailure::Waited(limit) => messages::waited(upstream, call, limit),
        CallFailure::NotUp => unavailable(config, status, call),
        CallFailure::NoSession => {
            let why = "a session for clients that can be asked what this one can was not opened in time; try again";
            messages::unavailable(upstream, call, &Cause::new(CauseCode::TimedOut, why), None)
        }
        CallFailure::TaskCancelled => {
            let what = messages::what(call);
            let why = format!("upstream `{upstream}` cancelled {what}; parts of it may have run");
            Refusal::of_upstream(Reason::OutcomeUnknown, upstream, why)
        }
    }
}

/// Refuses a call, since the upstream will not be there soon.
pub(crate) fn unavailable(config: &Config, status: &Status, call: &Call) -> Refusal {
    messages::unavailable(&config.name, call, &status.cause(config.stop_limit()), status.retry_in())
}

/// Refuses a call that found the gate shut.
pub(crate) fn shut_out(status: &Status, demand: &Demand, call: &Call, shut: &Lost) -> Refusal {
    match shut {
        Lost::Stopped(_) => messages::lost(&status.name, call, shut),
        _ => {
            // Where the upstream is idle until a call needs it, this call does.
            demand.wake();
            messages::unavailable(&status.name, call, shut.text(), status.retry_in())
        }
    }
}

/// Refuses a call whose turn does not come.
pub(crate) fn turned_away((config, status, demand): (&Config, &Status, &Demand), call: &Call, lost: &Lost) -> Refusal {
    match lost {
        // A call that came now would be told when the next attempt is due.
        Lost::Unsent(_) | Lost::Stopped(_) => shut_out(status, demand, call, lost),
        lost => fail(config, status, call, CallFailure::Lost(lost)),
    }
}

/// Counts a failure by its kind and shows it to the operator. The name of a tool is in it, the arguments are not.
fn report(config: &Config, status: &Status, call: &Call, failure: &CallFailure<'_>) {
    let what = messages::what(call);
    let within = |limit: &Passed| match limit.key {
        "" => format!("within {} s", limit.time.as_secs_f32()),
        key => format!("within {} s (`{key}`)", limit.time.as_secs_f32()),
    };
    match failure {
        CallFailure::BadAnswer(why) => status.violated("bad_answer", &format_args!("{what}: {}", why.full())),
        CallFailure::Timeout(limit) => {
            status.failed("timeout", CauseCode::TimedOut, &format_args!("no answer to {what} {}", within(limit)))
        }
        CallFailure::NotTaken(limit, Withheld::Tokenless) => {
            let why = format_args!("{what} waited for an access token and was not sent {}", within(limit));
            status.failed("token", CauseCode::TokenUnavailable, &why);
        }
        CallFailure::NotTaken(limit, _) => {
            status.failed("unread", CauseCode::InputNotRead, &format_args!("{what} was not taken {}", within(limit)))
        }
        CallFailure::Waited(limit) => {
            let most = config.max_concurrency.unwrap_or_default();
            let why = format_args!("{what} waited behind {most} others and was not sent {}", within(limit));
            status.failed("busy", CauseCode::QueueFull, &why);
        }
        CallFailure::Incomplete(why) => status.failed("broken", why.code(), &format_args!("{what}: {}", why.full())),
        CallFailure::NotUp => status.is_awaited_in_vain(&status.cause(config.stop_limit())),
        CallFailure::NoSession => {
            status.failed("session", CauseCode::TimedOut, &format_args!("no session was opened in time for {what}"));
        }
        CallFailure::TaskCancelled => {
            status.failed("task_cancelled", CauseCode::TaskCancelled, &format_args!("the task of {what}"));
        }
        CallFailure::Lost(Lost::Busy(why)) => {
            status.failed("busy", why.code(), &format_args!("{what}: {}", why.full()));
        }
        CallFailure::Lost(Lost::Dropped(why)) => {
            status.failed("memory", why.code(), &format_args!("{what}: {}", why.full()));
        }
        CallFailure::Lost(_) => {}
    }
}

//! What a caller is told when an upstream fails: what happened, to which upstream, what to do next.

use crate::call::Call;
use crate::call::refusal::{Reason, Refusal};
use crate::health::{Cause, CauseCode};
use crate::protocol::json;
use crate::protocol::value::Key;
use crate::transport::exchange::{Lost, Withheld};
use crate::upstream::config::Sharing;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// What is said of a call that was sent and has no answer.
const IS_UNKNOWN: &str = "it may or may not have run: check before retrying";

/// A limit that was passed, and where it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) time: Duration,
    /// Empty where it is not for the configuration to set.
    pub(crate) key: &'static str,
    /// Whether it is that of the very tool.
    pub(crate) is_of_tool: bool,
}

/// A call in words: the method, and the name or URI in it, as its caller knows that.
pub(crate) fn what(call: &Call) -> String {
    let method = call.method.as_str();
    match name(call) {
        Some(name) => {
            format!("`{method}` of `{}`", crate::secrets::printable(&name.chars().take(200).collect::<String>()))
        }
        None => format!("`{method}`"),
    }
}

/// What a call asks for by name or URI, in its caller's words.
pub(crate) fn name(call: &Call) -> Option<Cow<'_, str>> {
    let public = call.public.as_deref().map(Cow::Borrowed);
    public.or_else(|| call.target_name()).or_else(|| call.params.text(Key::Uri))
}

/// A refusal on behalf of an upstream, in the words of `say` around a cause. What an upstream or a child has said itself may hold
/// what another client sent, or a secret: it stays with those who run the gateway, and it is said where they find it.
pub(crate) fn because(reason: Reason, upstream: &Arc<str>, cause: &Cause, say: impl Fn(&str) -> String) -> Refusal {
    let reason = match reason {
        Reason::OutcomeUnknown => reason,
        _ if cause.codes().contains(&CauseCode::ClientTokenRefused) => Reason::Unauthenticated,
        _ if cause.codes().contains(&CauseCode::LoginRequired) => Reason::Login,
        _ if cause.codes().contains(&CauseCode::ScopeRequired) => Reason::Scope,
        reason => reason,
    };
    // Where each principal logs in for itself, what to run says whose login it is.
    let advice = if matches!(reason, Reason::Login | Reason::Scope) { cause.advice() } else { "" };
    if cause.is_public() {
        return Refusal::of_upstream(reason, upstream, say(&cause.full())).advised(advice);
    }
    let short = format!("{} (details: `trunkline status {upstream}` and the log of the gateway)", cause.own_words());
    let refusal = Refusal::of_upstream(reason, upstream, say(&cause.advised(short.into())));
    refusal.for_operator(say(&cause.full())).advised(advice)
}

/// A call that has no answer.
pub(crate) fn lost(upstream: &Arc<str>, call: &Call, lost: &Lost) -> Refusal {
    let what = what(call);
    let unsent = |cause: &str| format!("{what} was not sent to upstream `{upstream}`: {cause}");
    match lost {
        Lost::Unsent(cause) => because(Reason::Unavailable, upstream, cause, again(cause, "; try again", &unsent)),
        Lost::Stopped(cause) => because(Reason::Stopped, upstream, cause, unsent),
        Lost::Busy(cause) => because(Reason::Busy, upstream, cause, again(cause, "; try again later", &unsent)),
        Lost::Barred(_, cause) => {
            because(Reason::Unavailable, upstream, cause, |cause| unsent(cause) + "; try again then")
        }
        Lost::Unknown(cause) => because(Reason::OutcomeUnknown, upstream, cause, |cause| {
            format!("upstream `{upstream}` did not answer {what}: {cause}; {IS_UNKNOWN}")
        }),
        Lost::Session(cause) => because(Reason::Unavailable, upstream, cause, |cause| {
            format!("{what} was not taken by upstream `{upstream}`: {cause}; try again")
        }),
        Lost::Odd(cause) => because(Reason::BadAnswer, upstream, cause, |cause| {
            format!("upstream `{upstream}` sent an invalid answer to {what}: {cause}")
        }),
        Lost::Dropped(cause) => because(Reason::OutcomeUnknown, upstream, cause, |cause| {
            format!("upstream `{upstream}` answered {what}, and {cause}; it may have run: check before retrying")
        }),
        Lost::Stray(cause) => Refusal::new(Reason::InvalidParams, format!("{what} was not sent: {}", cause.public())),
        Lost::Status(refusal) => {
            // Who was busy or failed inside may have run it; who refused has not.
            let class = refusal.class();
            let (reason, then) = match class.proves_nothing() {
                true => (Reason::OutcomeUnknown, format!("; {IS_UNKNOWN}")),
                false => (Reason::BadAnswer, String::new()),
            };
            let has_failed = class.is_failure() && refusal.retry_after.is_none();
            because(reason, upstream, &refusal.text, |cause| match has_failed {
                true => format!("upstream `{upstream}` failed at {what}: {cause}{then}"),
                false => format!("upstream `{upstream}` refused {what}: {cause}{}{then}", pause(refusal.retry_after)),
            })
        }
    }
}

/// What is said around a cause, and that the call can be made again, where the advice does not say so already.
fn again<'a>(cause: &Cause, then: &'a str, say: &'a impl Fn(&str) -> String) -> impl Fn(&str) -> String + 'a {
    let then = if cause.advice().contains("try again") { "" } else { then };
    move |cause| say(cause) + then
}

/// What an upstream asked for that has too much to do.
fn pause(retry_after: Option<Duration>) -> String {
    let told = retry_after
        .map(|pause| format!("; rate-limited by the upstream (Retry-After {} s)", pause.as_secs_f32().ceil()));
    told.unwrap_or_default()
}

/// A call for an upstream that will not be there soon, and when it is tried again, where that is known.
pub(crate) fn unavailable(upstream: &Arc<str>, call: &Call, cause: &Cause, retry_in: Option<Duration>) -> Refusal {
    let what = what(call);
    let next = retry_in.map(|left| format!("; next try in {} s", left.as_secs_f32().ceil()));
    let next = next.unwrap_or_default();
    if cause.code() == CauseCode::Starting {
        let cause = cause.clone().advise_instead("");
        return because(Reason::Unavailable, upstream, &cause, |cause| {
            format!("`{upstream}` is {cause}; {what} was not sent. Try again")
        });
    }
    because(Reason::Unavailable, upstream, cause, |cause| {
        format!("{what} was not sent: upstream `{upstream}` is not available: {cause}{next}")
    })
}

/// A call that has waited too long for others to end.
pub(crate) fn waited(upstream: &Arc<str>, call: &Call, limit: Passed) -> Refusal {
    Refusal::of_upstream(
        Reason::Busy,
        upstream,
        format!(
            "{} was not sent: upstream `{upstream}` had `max_concurrency` calls in progress for {} s (`{}`); try again later, or raise one \
             of these keys",
            what(call),
            limit.time.as_secs_f32(),
            limit.key
        ),
    )
}

/// A call that would need one instance too many.
pub(crate) fn crowded(upstream: &Arc<str>, call: &Call, (open, most): (usize, usize), sharing: Sharing) -> Refusal {
    let what = what(call);
    let taken = match most {
        1 => "its one instance is taken".to_owned(),
        most if open < most => format!("this client has its share of the {most} instances"),
        most => format!("all its {most} instances are taken"),
    };
    let why = match sharing {
        Sharing::PerSession => format!("{taken}; end a session, try again later, or raise `max_instances`"),
        _ => format!("{taken}; try again later (an instance ends after `instance_idle`), or raise `max_instances`"),
    };
    Refusal::of_upstream(Reason::Busy, upstream, format!("{what} was not sent to upstream `{upstream}`: {why}"))
}

/// A call that took too long.
pub(crate) fn timeout(upstream: &Arc<str>, call: &Call, limit: Passed) -> Refusal {
    let (seconds, key) = (limit.time.as_secs_f32(), limit.key);
    let name = call.target_name().filter(|_| limit.is_of_tool);
    let table = name.map(|name| format!(".tools.override.{}", json::quote(&name))).unwrap_or_default();
    Refusal::of_upstream(
        Reason::Timeout,
        upstream,
        format!(
            "upstream `{upstream}` did not answer {} within {seconds} s (`{key}` under [upstreams.{upstream}{table}]); the call was \
             cancelled and may have run",
            what(call)
        ),
    )
}

/// A call whose time was over before anything of it could be sent.
pub(crate) fn not_taken(upstream: &Arc<str>, call: &Call, limit: Passed, why: Withheld) -> Refusal {
    let (seconds, key) = (limit.time.as_secs_f32(), limit.key);
    let why = match why {
        Withheld::Unread => "input not read",
        Withheld::Unconnected => "no free connection",
        Withheld::Tokenless => "no access token",
    };
    Refusal::of_upstream(
        Reason::Unavailable,
        upstream,
        format!(
            "{} was not sent to upstream `{upstream}`: {why} within {seconds} s (`{key}`); the call did not run: try again later",
            what(call)
        ),
    )
}

/// An answer that the protocol does not allow.
pub(crate) fn bad_answer(upstream: &Arc<str>, call: &Call, why: &Cause) -> Refusal {
    let what = what(call);
    because(Reason::BadAnswer, upstream, why, |why| {
        format!("upstream `{upstream}` sent an invalid answer to {what}: {why}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::Method;
    use crate::protocol::revision::Revision;
    use crate::transport::http::HttpStatusError;
    use crate::upstream::tests::rig::call as made;

    #[test]
    fn it_is_said_once_that_a_call_can_be_made_again() {
        let call = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"t"}"#);
        let advised = Cause::new(CauseCode::QueueFull, "busy").advise("try again later, or raise `max_sessions`");
        for cause in [advised.clone(), Cause::new(CauseCode::QueueFull, "busy"), advised.foreign("a path")] {
            for loss in [Lost::Busy(cause.clone()), Lost::Unsent(cause)] {
                let text = lost(&"a".into(), &call, &loss).message;
                assert_eq!(text.matches("try again").count(), 1, "{text}");
            }
        }
    }

    #[test]
    fn what_to_run_for_a_login_is_what_the_cause_says_of_it() {
        let call = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"t"}"#);
        let run = "run `trunkline login a --as token:b`";
        let cause = |code| Cause::new(code, "needs login").advise(run);
        for (code, reason, advice) in [
            (CauseCode::LoginRequired, Reason::Login, Some(run)),
            (CauseCode::ScopeRequired, Reason::Scope, Some(run)),
            (CauseCode::QueueFull, Reason::Unavailable, None),
        ] {
            for cause in [cause(code), cause(code).foreign("a path")] {
                let refusal = lost(&"a".into(), &call, &Lost::Unsent(cause));
                assert_eq!((refusal.reason, refusal.advice.as_deref()), (reason.clone(), advice));
            }
        }
    }

    #[test]
    fn an_answer_that_the_gateway_dropped_is_not_the_upstreams_fault() {
        let call = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"t"}"#);
        let dropped = Lost::Dropped("the response was dropped: there is no memory".into());
        let refusal = lost(&"a".into(), &call, &dropped);
        assert_eq!(refusal.reason, Reason::OutcomeUnknown);
        assert!(refusal.message.contains("answered") && !refusal.message.contains("protocol"), "{refusal}");
    }

    #[test]
    fn a_call_is_named_as_its_caller_knows_it() {
        let own = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"x"}"#);
        let renamed = Call { public: Some("a__x".into()), ..own.clone() };
        let refusal = lost(&"a".into(), &renamed, &Lost::Unknown("it died".into()));
        assert!(refusal.message.contains("did not answer `tools/call` of `a__x`: it died"), "{}", refusal.message);
        assert_eq!(what(&own), "`tools/call` of `x`");
        let read = made(Revision::V2025_11_25, Method::ResourcesRead, r#"{"uri":"m:1"}"#);
        assert_eq!(what(&Call { public: Some("a+m:1".into()), ..read }), "`resources/read` of `a+m:1`");
    }

    #[test]
    fn who_calls_is_told_the_exit_and_not_what_the_child_said() {
        let call = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"x"}"#);
        let cause = Cause::from("exited with status 1").foreign("; last line on stderr: alice's secret");
        let all = [
            lost(&"a".into(), &call, &Lost::Unknown(cause.clone())).message,
            lost(&"a".into(), &call, &Lost::Unsent(cause.clone())).message,
            unavailable(&"a".into(), &call, &cause, None).message,
            unavailable(&"a".into(), &call, &cause, Some(Duration::from_millis(11_200))).message,
        ];
        let refusal = lost(&"a".into(), &call, &Lost::Unknown(cause));
        assert!(refusal.in_full().message.contains("last line on stderr: alice's secret; it may or may not have run"));
        assert!(all[3].ends_with("; next try in 12 s"), "{}", all[3]);
        for told in all {
            assert!(told.contains("exited with status 1 (details: `trunkline status a`"), "{told}");
            assert!(!told.contains("secret"), "{told}");
        }
    }

    #[test]
    fn a_status_of_a_failure_says_that_the_outcome_is_unknown_and_a_refusal_what_to_do() {
        let call = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"x"}"#);
        let told = |status, pause: Option<u64>| {
            let retry_after = pause.map(Duration::from_secs);
            let refusal = HttpStatusError::new(status, Cause::from(&*format!("HTTP {status}")), retry_after);
            lost(&"a".into(), &call, &Lost::Status(refusal))
        };
        for status in [500, 502, 503, 504] {
            let failed = told(status, None);
            assert!(failed.message.contains("failed at `tools/call` of `x`"), "{failed}");
            assert!(failed.message.contains("it may or may not have run"), "{failed}");
            assert_eq!(failed.reason, Reason::OutcomeUnknown);
        }
        for (status, pause) in [(503, Some(1)), (429, None), (401, None), (405, None), (413, None)] {
            assert!(told(status, pause).message.contains("refused `tools/call` of `x`"), "{status}");
        }
        assert!(told(401, None).message.contains("set its credentials in `auth`"));
    }
}

//! What a caller is told when an upstream fails: what happened, to which upstream, what to do next.

use super::asking::Kind;
use super::config::Sharing;
use super::link::{Lost, advice, without};
use crate::call::{Call, Reason, Refusal};
use crate::protocol::json;
use crate::protocol::object::Key;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// What is said of a call that was sent and has no answer.
const IS_UNKNOWN: &str = "whether it ran is not known, so look before trying again";

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
            format!("`{method}` of `{}`", super::link::printable(&name.chars().take(200).collect::<String>()))
        }
        None => format!("`{method}`"),
    }
}

/// What a call asks for by name or URI, in its caller's words.
pub(crate) fn name(call: &Call) -> Option<Cow<'_, str>> {
    let public = call.public.as_deref().map(Cow::Borrowed);
    public.or_else(|| call.params.text(Key::Name)).or_else(|| call.params.text(Key::Uri))
}

/// A cause as clients are told it. What a child has said itself may hold what another client sent: it stays with those who run
/// the gateway, and it is said where they find it.
pub(crate) fn in_short(upstream: &str, cause: &str) -> String {
    match without(cause) {
        short if short.len() == cause.len() => cause.to_owned(),
        short => format!(
            "{short} (the gateway's log has its own last words; so has `trunkline status {upstream}` where `trunkline serve` runs)"
        ),
    }
}

/// A call that has no answer.
pub(crate) fn lost(upstream: &Arc<str>, call: &Call, lost: &Lost) -> Refusal {
    let what = what(call);
    let short = |cause: &str| in_short(upstream, cause);
    let (reason, message) = match lost {
        Lost::Unsent(cause) => {
            let cause = short(cause);
            (Reason::Unavailable, format!("{what} was not sent to upstream `{upstream}`: {cause}; try again"))
        }
        Lost::Busy(cause) => {
            (Reason::Busy, format!("{what} was not sent to upstream `{upstream}`: {cause}; try again later"))
        }
        Lost::Barred(_, cause) => {
            (Reason::Unavailable, format!("{what} was not sent to upstream `{upstream}`: {cause}; try again then"))
        }
        Lost::Unknown(cause) => (
            Reason::OutcomeUnknown,
            format!("upstream `{upstream}` ended {what} without an answer: {}; {IS_UNKNOWN}", short(cause)),
        ),
        Lost::Session(cause) => {
            (Reason::Unavailable, format!("{what} was not taken by upstream `{upstream}`: {cause}; try again"))
        }
        Lost::Odd(cause) => {
            (Reason::BadAnswer, format!("upstream `{upstream}` answered {what} against the protocol: {cause}"))
        }
        Lost::Stray(cause) => return Refusal::new(Reason::InvalidParams, format!("{what} was not sent: {cause}")),
        Lost::Status(refusal) => {
            // Who was busy or failed inside may have run it; who refused has not.
            let reason = match refusal.status {
                429 | 500.. => Reason::OutcomeUnknown,
                _ => Reason::BadAnswer,
            };
            let message = match refusal.status {
                500.. if refusal.retry_after.is_none() => {
                    format!("upstream `{upstream}` failed at {what}: {}; {IS_UNKNOWN}", refusal.text)
                }
                status => format!("upstream `{upstream}` refused {what}: {}{}", refusal.text, advice(status)),
            };
            (reason, message)
        }
    };
    Refusal::of_upstream(reason, upstream, message)
}

/// A call for an upstream that will not be there soon, and when it is tried again, where that is known.
pub(crate) fn unavailable(upstream: &Arc<str>, call: &Call, cause: &str, retry_in: Option<Duration>) -> Refusal {
    let (what, cause) = (what(call), in_short(upstream, cause));
    let next = retry_in.map(|left| format!("; it is tried again in {} s", left.as_secs_f32().ceil()));
    Refusal::of_upstream(
        Reason::Unavailable,
        upstream,
        format!("{what} was not sent: upstream `{upstream}` is not available: {cause}{}", next.unwrap_or_default()),
    )
}

/// A call that has waited too long for others to end.
pub(crate) fn waited(upstream: &Arc<str>, call: &Call, limit: Passed) -> Refusal {
    Refusal::of_upstream(
        Reason::Busy,
        upstream,
        format!(
            "{} was not sent: upstream `{upstream}` was busy with as many calls as `max_concurrency` allows for {} s, the limit that \
             `{}` sets; try again later, or raise one of them",
            what(call),
            limit.time.as_secs_f32(),
            limit.key
        ),
    )
}

/// A call that would need one instance too many.
pub(crate) fn crowded(upstream: &Arc<str>, call: &Call, most: usize, sharing: Sharing) -> Refusal {
    let what = what(call);
    let taken =
        if most == 1 { "its one instance is taken".to_owned() } else { format!("all its {most} instances are taken") };
    let why = match sharing {
        Sharing::PerSession => format!("{taken}; end a session, try again later, or raise `max_instances`"),
        _ => format!("{taken}; try again later (an instance ends after `instance_idle`), or raise `max_instances`"),
    };
    Refusal::of_upstream(Reason::Busy, upstream, format!("{what} was not sent to upstream `{upstream}`: {why}"))
}

/// A question that is nobody's: why it was refused, and what helps.
pub(crate) fn not_owned(upstream: &str, kind: Kind, can_share_less: bool) -> String {
    let who = if can_share_less { "several clients or none" } else { "several calls or none" };
    let have = if can_share_less { "have calls open" } else { "are open" };
    let why = format!("a question of the upstream was refused: nothing says whose it is, since {who} {have} there");
    match kind {
        // Upstreams ask for roots right after the handshake, when nobody's call is open whatever `sharing` says.
        Kind::Roots => {
            format!("{why}; `roots = [\"file:///…\"]` under [upstreams.{upstream}] answers it in place of the clients")
        }
        _ if can_share_less => format!(
            "{why}; `sharing = \"per-session\"` under [upstreams.{upstream}] gives each client an instance of its own"
        ),
        _ => why,
    }
}

/// A call that took too long.
pub(crate) fn timeout(upstream: &Arc<str>, call: &Call, limit: Passed) -> Refusal {
    let (seconds, key) = (limit.time.as_secs_f32(), limit.key);
    let name = call.params.text(Key::Name).filter(|_| limit.is_of_tool);
    let table = name.map(|name| format!(".tools.override.{}", json::quote(&name))).unwrap_or_default();
    Refusal::of_upstream(
        Reason::Timeout,
        upstream,
        format!(
            "upstream `{upstream}` did not answer {} within {seconds} s, as `{key}` under [upstreams.{upstream}{table}] has it; it was \
             told to stop, and may have run it",
            what(call)
        ),
    )
}

/// An answer that the protocol does not allow.
pub(crate) fn bad_answer(upstream: &Arc<str>, call: &Call, why: &str) -> Refusal {
    Refusal::of_upstream(
        Reason::BadAnswer,
        upstream,
        format!("upstream `{upstream}` answered {} against the protocol: {why}", what(call)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::link::HttpRefusal;
    use super::super::tests::rig::call as made;
    use super::*;
    use crate::protocol::{Method, Revision};

    #[test]
    fn a_call_is_named_as_its_caller_knows_it() {
        let own = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"x"}"#);
        let renamed = Call { public: Some("a__x".into()), ..own.clone() };
        let refusal = lost(&"a".into(), &renamed, &Lost::Unknown("it died".into()));
        assert!(refusal.message.contains("ended `tools/call` of `a__x` without"), "{}", refusal.message);
        assert_eq!(what(&own), "`tools/call` of `x`");
        let read = made(Revision::V2025_11_25, Method::ResourcesRead, r#"{"uri":"m:1"}"#);
        assert_eq!(what(&Call { public: Some("a+m:1".into()), ..read }), "`resources/read` of `a+m:1`");
    }

    #[test]
    fn who_calls_is_told_the_exit_and_not_what_the_child_said() {
        let call = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"x"}"#);
        let cause = "it exited with status 1; its last line on stderr: alice's secret";
        let all = [
            lost(&"a".into(), &call, &Lost::Unknown(cause.into())).message,
            lost(&"a".into(), &call, &Lost::Unsent(cause.into())).message,
            unavailable(&"a".into(), &call, cause, None).message,
            unavailable(&"a".into(), &call, cause, Some(Duration::from_millis(11_200))).message,
        ];
        assert!(all[3].ends_with("; it is tried again in 12 s"), "{}", all[3]);
        for told in all {
            assert!(told.contains("it exited with status 1 (the gateway's log has"), "{told}");
            assert!(!told.contains("secret"), "{told}");
        }
    }

    #[test]
    fn a_status_of_a_failure_says_that_the_outcome_is_unknown_and_a_refusal_what_to_do() {
        let call = made(Revision::V2025_11_25, Method::ToolsCall, r#"{"name":"x"}"#);
        let told = |status, pause: Option<u64>| {
            let retry_after = pause.map(Duration::from_secs);
            let refusal = HttpRefusal { status, text: format!("HTTP {status}").into(), retry_after };
            lost(&"a".into(), &call, &Lost::Status(refusal))
        };
        for status in [500, 502, 503, 504] {
            let failed = told(status, None);
            assert!(failed.message.contains("failed at `tools/call` of `x`"), "{failed}");
            assert!(failed.message.contains("whether it ran is not known"), "{failed}");
            assert_eq!(failed.reason, Reason::OutcomeUnknown);
        }
        for (status, pause) in [(503, Some(1)), (429, None), (401, None), (405, None), (413, None)] {
            assert!(told(status, pause).message.contains("refused `tools/call` of `x`"), "{status}");
        }
        assert!(told(401, None).message.contains("set `headers`"));
    }

    #[test]
    fn a_question_that_is_nobodys_is_said_with_what_helps() {
        let roots = [true, false].map(|can_share_less| not_owned("es", Kind::Roots, can_share_less));
        for said in roots {
            assert!(said.contains("`roots = [\"file:///…\"]` under [upstreams.es]"), "{said}");
            assert!(!said.contains("sharing"), "{said}");
        }
        let (shared, own) = (not_owned("es", Kind::Elicitation, true), not_owned("es", Kind::Elicitation, false));
        assert!(shared.contains("`sharing = \"per-session\"` under [upstreams.es]"), "{shared}");
        assert!(!own.contains("sharing") && !own.contains("roots"), "{own}");
    }
}

//! What a caller is told when an upstream fails: what happened, to which upstream, what to do next.

use super::asking::Kind;
use super::config::Sharing;
use super::link::Lost;
use crate::call::{Call, Reason, Refusal};
use crate::protocol::object::Key;
use std::sync::Arc;
use std::time::Duration;

/// A call in words: the method, and the name or URI in it.
pub(crate) fn what(call: &Call) -> String {
    let method = call.method.as_str();
    match call.params.text(Key::Name).or_else(|| call.params.text(Key::Uri)) {
        Some(name) => {
            format!("`{method}` of `{}`", super::link::printable(&name.chars().take(200).collect::<String>()))
        }
        None => format!("`{method}`"),
    }
}

/// A call that has no answer.
pub(crate) fn lost(upstream: &Arc<str>, call: &Call, lost: &Lost) -> Refusal {
    let what = what(call);
    let (reason, message) = match lost {
        Lost::Unsent(cause) => {
            (Reason::Unavailable, format!("{what} was not sent to upstream `{upstream}`: {cause}; try again"))
        }
        Lost::Busy(cause) => {
            (Reason::Busy, format!("{what} was not sent to upstream `{upstream}`: {cause}; try again later"))
        }
        Lost::Unknown(cause) => (
            Reason::OutcomeUnknown,
            format!(
                "upstream `{upstream}` ended {what} without an answer: {cause}; whether it ran is not known, so look before trying again"
            ),
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
            (reason, format!("upstream `{upstream}` refused {what}: {}", refusal.text))
        }
    };
    Refusal::of_upstream(reason, upstream, message)
}

/// A call for an upstream that will not be there soon.
pub(crate) fn unavailable(upstream: &Arc<str>, call: &Call, cause: &str) -> Refusal {
    Refusal::of_upstream(
        Reason::Unavailable,
        upstream,
        format!("{} was not sent: upstream `{upstream}` is not available: {cause}", what(call)),
    )
}

/// A call that found too many before it.
pub(crate) fn full(upstream: &Arc<str>, call: &Call) -> Refusal {
    Refusal::of_upstream(
        Reason::Busy,
        upstream,
        format!("{} was not sent: too many calls wait for upstream `{upstream}` to start", what(call)),
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
pub(crate) fn timeout(upstream: &Arc<str>, call: &Call, limit: Duration) -> Refusal {
    let seconds = limit.as_secs_f32();
    Refusal::of_upstream(
        Reason::Timeout,
        upstream,
        format!(
            "upstream `{upstream}` did not answer {} within {seconds} s; it was told to stop, and may have run it",
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
    use super::*;

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

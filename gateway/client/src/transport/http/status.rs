//! What an HTTP status that says no means: decided here alone, for calls, meetings, health and the breaker.

use crate::health::{Cause, CauseCode};
use http::StatusCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// An HTTP status that says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpStatusError {
    /// The status code.
    pub(crate) status: u16,
    /// What happened, for a person.
    pub text: Cause,
    /// How long the upstream asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// What a status that says no means, whatever stands in the response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// The same request is to be sent elsewhere; it did not run.
    Moved,
    /// Credentials are missing, or not taken; the request did not run.
    Unauthorized,
    /// The credentials are taken, and do not allow this.
    Forbidden,
    /// Nothing there takes such requests.
    NotThere,
    /// The upstream has too much to do.
    Busy,
    /// The request came back to a gateway that it had passed.
    Loop,
    /// The upstream failed inside.
    Fault,
    /// The upstream can do no such thing, and that will not pass.
    Unsupported,
    /// The upstream refuses this very request.
    Refused,
}

impl HttpStatusError {
    /// A status that says no, in this text; a pause that the upstream asks for.
    pub fn new(status: u16, text: Cause, retry_after: Option<Duration>) -> Self {
        Self {
            status,
            text: Cause::new(CauseCode::HttpStatus(status), "").then(&text).advise(advice(status)),
            retry_after,
        }
    }

    /// The same without what the status asks for: the text says that itself.
    pub(crate) fn bare(status: u16, text: Cause) -> Self {
        Self { status, text: Cause::new(CauseCode::HttpStatus(status), "").then(&text), retry_after: None }
    }

    /// What the status means.
    pub fn class(&self) -> StatusClass {
        StatusClass::of(self.status)
    }
}

/// Whether a status says that the same request is to be sent elsewhere, with its method and body, and so did not run.
pub(super) fn is_sent_on(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

impl StatusClass {
    /// What the status of a response means; `None` where it is a success.
    pub(crate) fn of_response(status: StatusCode) -> Option<Self> {
        (!status.is_success()).then(|| Self::of(status.as_u16()))
    }

    /// What a status means that is no success.
    pub const fn of(status: u16) -> Self {
        match status {
            300..=399 => Self::Moved,
            401 | 407 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 | 405 | 410 => Self::NotThere,
            408 | 429 => Self::Busy,
            501 | 505 => Self::Unsupported,
            508 => Self::Loop,
            500.. => Self::Fault,
            _ => Self::Refused,
        }
    }

    /// Whether the upstream has failed.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Fault | Self::Loop | Self::Unsupported)
    }

    /// Whether it speaks of the upstream's state alone: it proves nothing, and the request may have run all the same.
    pub fn proves_nothing(self) -> bool {
        self == Self::Busy || self.is_failure()
    }

    /// Whether the same request may be taken a little later.
    pub(crate) fn may_pass(self) -> bool {
        matches!(self, Self::Busy | Self::Fault)
    }

    /// Whether it shows that the upstream serves nobody, or not us.
    pub fn is_unwell(self) -> bool {
        self.is_about_credentials() || self.is_failure()
    }

    /// Whether it speaks of our credentials.
    pub(crate) fn is_about_credentials(self) -> bool {
        matches!(self, Self::Unauthorized | Self::Forbidden)
    }

    /// Whether it speaks of credentials or of another place: an error in the body is no answer to a call, but words about our
    /// request, which are for the operator.
    pub(crate) fn is_about_us(self) -> bool {
        self == Self::Moved || self.is_about_credentials()
    }

    /// Whether it says nothing of who the upstream is.
    pub(crate) fn says_nothing(self) -> bool {
        self.proves_nothing() || self.is_about_credentials()
    }
}

/// What a status that says no asks for; nothing where it will pass, or says nothing of the configuration.
fn advice(status: u16) -> &'static str {
    match status {
        301 | 302 | 303 | 307 | 308 => "set `url` to the new location",
        401 => "set its credentials in `auth`, or in `headers`",
        403 => "check the credentials in `auth` or `headers`, and their permissions",
        404 | 410 => "check the path of its `url`",
        405 => "check the path of its `url`: it accepts no POST there, and has no stream of HTTP+SSE there either",
        407 => "a proxy on the way requires credentials",
        426 => "where that is a WebSocket, begin `url` with ws:// or wss://, and have a proxy before it pass `Upgrade`",
        _ => "",
    }
}

/// One thing may be forbidden to a caller that is welcome otherwise: so many refusals without a yes between are more than that.
const FORBIDDEN_MIN: u32 = 2;

/// How often the upstream refused the credentials that it is called with, in a row.
#[derive(Debug, Default)]
pub(super) struct AuthStatus(AtomicU32);

impl AuthStatus {
    /// Whether it has refused the last request.
    pub(super) fn is_refusing(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// It has taken a request; whether it had refused one before.
    pub(super) fn taken(&self) -> bool {
        self.is_refusing() && self.0.swap(0, Ordering::Relaxed) > 0
    }

    /// It has refused a request; whether it is to be shown that it takes none with these credentials.
    pub(super) fn refused(&self, class: StatusClass) -> bool {
        let enough = match class {
            StatusClass::Unauthorized => 1,
            StatusClass::Forbidden => FORBIDDEN_MIN,
            _ => return false,
        };
        self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_one_class_and_only_those_of_the_upstreams_state_prove_nothing() {
        use StatusClass::{Busy, Fault, Forbidden, Loop, Moved, NotThere, Refused, Unauthorized, Unsupported};
        for (class, all) in [
            (Moved, &[301, 302, 307, 308][..]),
            (Unauthorized, &[401, 407]),
            (Forbidden, &[403]),
            (NotThere, &[404, 405, 410]),
            (Unsupported, &[501, 505]),
            (Busy, &[408, 429]),
            (Loop, &[508]),
            (Fault, &[500, 502, 503, 504, 599]),
            (Refused, &[400, 406, 413, 415, 422]),
        ] {
            for status in all {
                assert_eq!(StatusClass::of(*status), class, "{status}");
            }
            assert_eq!(class.proves_nothing(), matches!(class, Busy | Loop | Fault | Unsupported));
            assert_eq!(class.is_about_us(), matches!(class, Moved | Unauthorized | Forbidden), "{class:?}");
        }
    }

    #[test]
    fn a_status_that_the_configuration_can_mend_says_how() {
        for (status, word) in
            [(302, "`url`"), (401, "`headers`"), (403, "`headers`"), (404, "`url`"), (405, "HTTP+SSE"), (426, "ws://")]
        {
            assert!(advice(status).contains(word), "{status}");
        }
        assert_eq!([429, 500, 503].map(advice), [""; 3]);
    }
}

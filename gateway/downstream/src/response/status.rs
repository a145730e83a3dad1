//! Which HTTP status says what: the one place where refusals and error codes become one.

use crate::call::refusal::Reason;
use crate::protocol::frame::rpc_error;
use crate::protocol::revision::Revision;
use http::StatusCode;

/// The status of a request that did not become a call.
pub(crate) fn of_refusal(reason: &Reason) -> StatusCode {
    match reason {
        Reason::UnknownMethod | Reason::Session => StatusCode::NOT_FOUND,
        Reason::Busy | Reason::Unavailable | Reason::Stopped | Reason::Login | Reason::Held => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Reason::Unauthenticated => StatusCode::UNAUTHORIZED,
        Reason::Limited(_) => StatusCode::TOO_MANY_REQUESTS,
        Reason::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// The status of a refused call, and the seconds until it may be made again, for the reasons that clients of every revision read from
/// the status; a proxy between knows nothing else.
pub(crate) fn of_refused_call(reason: &Reason) -> Option<(StatusCode, Option<u64>)> {
    let retry_after = match reason {
        Reason::Limited(after) => Some(after.as_secs_f64().ceil().max(1.0) as u64),
        Reason::Unauthenticated => None,
        _ => return None,
    };
    Some((of_refusal(reason), retry_after))
}

/// The status of a call's answer. Legacy clients read the body alone; modern ones are told some codes by status too.
pub(crate) fn of_answer(code: Option<i64>, revision: Revision) -> StatusCode {
    if !revision.is_modern() {
        return StatusCode::OK;
    }
    match code {
        Some(rpc_error::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(rpc_error::HEADER_MISMATCH | rpc_error::MISSING_CAPABILITY | rpc_error::UNSUPPORTED_REVISION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

//! Which HTTP status says what: the one place where refusals and error codes become one.

use crate::call::Reason;
use crate::protocol::{Revision, error};
use http::StatusCode;

/// The status of a request that did not become a call.
pub(super) fn of_refusal(reason: &Reason) -> StatusCode {
    match reason {
        Reason::UnknownMethod | Reason::Session => StatusCode::NOT_FOUND,
        Reason::Busy | Reason::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Reason::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// The status of a call's answer. Legacy clients read the body alone; modern ones are told some codes by status too.
pub(super) fn of_answer(code: Option<i64>, revision: Revision) -> StatusCode {
    if !revision.is_modern() {
        return StatusCode::OK;
    }
    match code {
        Some(error::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(error::HEADER_MISMATCH | error::MISSING_CAPABILITY | error::UNSUPPORTED_REVISION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

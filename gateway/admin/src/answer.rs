//! An answer of the pages, masked.

use crate::runtime::aside;
use crate::secrets::mask::{self, Kept};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

pub(super) const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const JSON: &str = "application/json";

pub(super) fn answer(status: StatusCode, kind: &'static str, body: String) -> Response {
    // What is shown of others bears no secret already; this is for what nobody thought of.
    let body = match kind {
        JSON => aside(mask::cost(body.len()), || mask::masked_json(body.as_bytes(), Kept::Names))
            .map_or(body.into_bytes(), Vec::from),
        _ => aside(mask::cost(body.len()), || mask::masked(&body).into_owned()).into_bytes(),
    };
    (status, [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-store")], body).into_response()
}

/// JSON as it is: not masked.
pub(super) fn bare(body: String) -> Response {
    (StatusCode::OK, [(CONTENT_TYPE, JSON), (CACHE_CONTROL, "no-store")], body).into_response()
}

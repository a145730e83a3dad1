//! What the browser shows that comes back: nothing in it is run or loaded.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:3em auto;padding:0 1em;color:#222;background:#fff}\
code{background:#eee;padding:0 .2em}";

/// Nothing but the style above.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let digest = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!("default-src 'none'; style-src 'sha256-{digest}'; frame-ancestors 'none'");
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"))
});

/// What has come of a request.
#[derive(Clone, Copy)]
pub(super) enum Came {
    /// It is none that a browser is sent here with.
    Elsewhere,
    /// It belongs to another login.
    Odd,
    /// It has come before.
    Again,
    /// It brings what the login goes on with.
    Code,
    /// It says that there will be none.
    Denied,
}

/// Says so, of a login at an upstream.
pub(super) fn page(came: Came, upstream: &str) -> Response<Full<Bytes>> {
    let (status, title, said) = match came {
        Came::Elsewhere => {
            (StatusCode::NOT_FOUND, "Nothing is here", "A login comes back to another address.".to_owned())
        }
        Came::Odd => (
            StatusCode::BAD_REQUEST,
            "Another login",
            format!(
                "This is not the login at <code>{upstream}</code> that the terminal waits for, and nothing was done. Follow the link \
                 that stands in the terminal now."
            ),
        ),
        Came::Again => (
            StatusCode::BAD_REQUEST,
            "Completed already",
            format!("The login at <code>{upstream}</code> has come back before: the terminal says what came of it."),
        ),
        Came::Code => (
            StatusCode::OK,
            "Back to the terminal",
            format!("The login at <code>{upstream}</code> goes on in the terminal. You can close this page."),
        ),
        Came::Denied => (
            StatusCode::OK,
            "Not logged in",
            format!(
                "The login at <code>{upstream}</code> was not completed; the terminal says why. You can close this page."
            ),
        ),
    };
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title} - Trunkline</title><style>{STYLE}</style>\n<main><h1>{title}</h1>\n<p>{said}</p></main>\n"
    );
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (CONNECTION, "close"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

//! The page at `/ui`: its files, which hold nothing secret, and the way in.

use super::access::visits::{Visits, is_of_own_origin};
use super::answer::{JSON, TEXT, answer};
use super::history::History;
use super::pages::Shown;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use std::net::SocketAddr;

const PAGE: (&str, &str) = ("text/html; charset=utf-8", include_str!("page.html"));
const STYLE: (&str, &str) = ("text/css; charset=utf-8", include_str!("page.css"));
const SCRIPT: (&str, &str) = ("text/javascript; charset=utf-8", include_str!("page.js"));
const ICON: (&str, &str) = ("image/svg+xml", include_str!("icon.svg"));

/// What the page may do: run its own script, and talk to where it came from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// More is no link and no token.
const KEY_BYTES_MAX: usize = 16 * 1024;

/// What the page of one gateway remembers.
pub struct Page {
    /// Who is let in.
    pub visits: Visits,
    /// What it draws charts of.
    pub history: History,
}

impl Page {
    /// The page at this address; `None` where there is none.
    pub fn at(address: Option<SocketAddr>) -> Self {
        Self { visits: Visits::at(address), history: History::default() }
    }
}

/// The page and the way in, for whoever asks.
pub(super) fn router(shown: Shown) -> Router {
    Router::new()
        .route("/ui", get(|| async { file(PAGE) }))
        .route("/ui/page.css", get(|| async { file(STYLE) }))
        .route("/ui/page.js", get(|| async { file(SCRIPT) }))
        .route("/ui/icon.svg", get(|| async { file(ICON) }))
        .route("/ui/enter", post(enter))
        .route("/ui/leave", post(leave))
        .with_state(shown)
}

fn file((kind, text): (&'static str, &'static str)) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("content-security-policy"), POLICY),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    (headers, text).into_response()
}

/// What opens a visit.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Key {
    Link(String),
    Token(String),
}

/// Opens a visit for a link or the token.
async fn enter(State(shown): State<Shown>, headers: HeaderMap, body: Bytes) -> Response {
    if !is_of_own_origin(&headers) || body.len() > KEY_BYTES_MAX {
        return answer(StatusCode::FORBIDDEN, TEXT, "only the page at /ui opens a visit\n".to_owned());
    }
    let visits = shown.access.visits();
    let opened = match serde_json::from_slice(&body) {
        Ok(Key::Link(code)) => visits.follow(&code),
        Ok(Key::Token(_)) if !shown.access.has_token() => {
            let why = "no `[admin] token` is configured: run `trunkline ui` on the machine of the gateway\n";
            return answer(StatusCode::FORBIDDEN, TEXT, why.to_owned());
        }
        Ok(Key::Token(token)) => shown.access.is_token(&token).then(|| visits.open()).flatten(),
        Err(_) => return answer(StatusCode::BAD_REQUEST, TEXT, "neither a link nor a token\n".to_owned()),
    };
    let Some(opened) = opened else {
        return answer(
            StatusCode::UNAUTHORIZED,
            TEXT,
            "unknown: a link is good for a minute and for one visit\n".to_owned(),
        );
    };
    tracing::info!("visit of the admin page opened");
    let body = serde_json::json!({ "proof": opened.proof }).to_string();
    with_cookie(&shown, &opened.cookie, "", body)
}

/// Ends the visit.
async fn leave(State(shown): State<Shown>, headers: HeaderMap) -> Response {
    if !is_of_own_origin(&headers) {
        return answer(StatusCode::FORBIDDEN, TEXT, "only the page at /ui ends its visit\n".to_owned());
    }
    shown.access.visits().leave(&headers);
    with_cookie(&shown, "", "; Max-Age=0", "{}".to_owned())
}

/// An answer that sets the cookie. It is not masked: it is the one place where its secrets belong.
fn with_cookie(shown: &Shown, value: &str, age: &str, body: String) -> Response {
    let name = shown.access.visits().cookie_name();
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{age}");
    let mut response = ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, "no-store")], body).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

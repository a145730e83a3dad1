//! Who is told details and may give orders.

// Who is let in at the page: one-time links, and the visits that a link or the token opens.
pub(super) mod visits;

use super::answer::{TEXT, answer};
use super::orders;
use crate::telemetry::config::AdminToken;
use axum::http::header::{AUTHORIZATION, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use sha2::{Digest, Sha256};
use visits::Visits;

/// Who is told details, and may give orders.
#[derive(Clone)]
pub enum Access {
    /// Whoever gets here: it was looked at who that is.
    All(Visits),
    /// Who bears this token, and who visits the page; without a token only the latter.
    Token(Option<AdminToken>, Visits),
}

impl Access {
    /// Who gives orders there, for the audit.
    pub(super) fn word(&self, headers: &HeaderMap) -> &'static str {
        match self {
            Self::All(_) => "control socket",
            Self::Token(_, visits) if visits.admits(headers) => "admin page",
            Self::Token(..) => "admin token",
        }
    }

    /// The visits of the page.
    pub(super) fn visits(&self) -> &Visits {
        match self {
            Self::All(visits) | Self::Token(_, visits) => visits,
        }
    }

    /// Whether a token opens visits.
    pub(super) fn has_token(&self) -> bool {
        matches!(self, Self::Token(Some(_), _))
    }

    /// Whether this is the token.
    pub(super) fn is_token(&self, given: &str) -> bool {
        match self {
            Self::Token(Some(token), _) => is_same(given.as_bytes(), token.as_str().as_bytes()),
            _ => false,
        }
    }

    /// What is answered to who has none.
    pub(super) fn refusal(&self, headers: &HeaderMap) -> Option<Response> {
        let Self::Token(token, visits) = self else { return None };
        if visits.admits(headers) {
            return None;
        }
        let Some(token) = token else {
            let why = "this page requires the token of `[admin] token`, and none is configured; on this machine use `trunkline ui`, `ls`, \
                       `status`, `start`, `stop` or `restart`, which need no token\n";
            return Some(answer(StatusCode::FORBIDDEN, TEXT, why.to_owned()));
        };
        if bears(headers, token) {
            return None;
        }
        let mut refused = answer(
            StatusCode::UNAUTHORIZED,
            TEXT,
            "this page requires `Authorization: Bearer <token>` with the token of `[admin] token`\n".to_owned(),
        );
        refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Some(refused)
    }

    /// What is answered to who may not let others in. A visit may not: it would outlive itself.
    pub(super) fn link_refusal(&self, headers: &HeaderMap) -> Option<Response> {
        if let Some(refused) = self.order_refusal(headers) {
            return Some(refused);
        }
        let may_link = match self {
            Self::All(_) => true,
            Self::Token(token, _) => token.as_ref().is_some_and(|token| bears(headers, token)),
        };
        let why = "a visit makes no further links; run `trunkline ui`, or ask with the token of `[admin] token`\n";
        (!may_link).then(|| answer(StatusCode::FORBIDDEN, TEXT, why.to_owned()))
    }

    /// What is answered to who may not give orders: no page in a browser may, but our own.
    pub(super) fn order_refusal(&self, headers: &HeaderMap) -> Option<Response> {
        if let Some(refused) = self.refusal(headers) {
            return Some(refused);
        }
        let is_visit = matches!(self, Self::Token(_, visits) if visits.admits(headers));
        if is_visit && !headers.contains_key(ORIGIN) {
            let why = "an order of the page comes with its `Origin`; other programs need the token\n";
            return Some(answer(StatusCode::FORBIDDEN, TEXT, why.to_owned()));
        }
        let is_own_page = is_visit && visits::is_of_own_origin(headers);
        let refused = orders::may_order(headers, is_own_page).err();
        refused.map(|(status, why)| answer(status, TEXT, why.to_owned()))
    }
}

/// Whether a request bears this token.
fn bears(headers: &HeaderMap, token: &AdminToken) -> bool {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    match (given.next(), given.next()) {
        (Some(value), None) => bearer(value.as_bytes()).is_some_and(|given| is_same(given, token.as_str().as_bytes())),
        _ => false,
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Compared by digests, so that the time says nothing of how much was right.
fn is_same(given: &[u8], known: &[u8]) -> bool {
    Sha256::digest(given) == Sha256::digest(known)
}

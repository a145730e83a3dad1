//! Why a request is not let in, and what its client is told.

use crate::oauth::{Issuers, Refused};
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer");
const BAD_TOKEN: HeaderValue = HeaderValue::from_static("Bearer error=\"invalid_token\"");
const EXPIRED: HeaderValue =
    HeaderValue::from_static("Bearer error=\"invalid_token\", error_description=\"the token has expired\"");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// When it is worth a try again whether a token can be verified.
const SOON: HeaderValue = HeaderValue::from_static("5");

/// Why a request is not let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It bears no token.
    Missing,
    /// It bears another one than those that are known.
    Unknown,
    /// It bears one that was good once.
    Expired,
    /// It bears one that is none of an authorization server which would open this.
    Refused(Refused),
}

impl Why {
    /// Under which word it is counted.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Expired | Self::Refused(Refused::Expired) => "expired",
            Self::Refused(Refused::Scope) => "scope",
            Self::Refused(Refused::Unverified) => "unverified",
            Self::Unknown | Self::Refused(Refused::Malformed | Refused::Invalid(_)) => "unknown",
        }
    }

    /// What a person who looks at the log is told beside that.
    pub(super) fn said(&self) -> Option<&'static str> {
        match self {
            Self::Refused(Refused::Invalid(why)) => Some(why),
            _ => None,
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Refused(Refused::Malformed) => StatusCode::BAD_REQUEST,
            Self::Refused(Refused::Scope) => StatusCode::FORBIDDEN,
            Self::Refused(Refused::Unverified) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    fn text(&self, is_of_issuers: bool) -> &'static str {
        match self {
            Self::Refused(Refused::Malformed) => "send one header `Authorization: Bearer <token>`",
            Self::Refused(Refused::Invalid(why)) => why,
            Self::Refused(Refused::Scope) => {
                "this token has not all scopes that the gateway needs: log in again for those"
            }
            Self::Refused(Refused::Unverified) => {
                "whether this token is good cannot be told now: its authorization server does not answer; try again later"
            }
            Self::Refused(Refused::Expired) => "this access token has expired: get a new one",
            Self::Expired => "this token has expired: ask for a new one (`trunkline token new`)",
            _ if is_of_issuers => {
                "this gateway requires an access token: log in at an authorization server that its metadata names"
            }
            Self::Unknown => "this token is not one of those under [[auth.tokens]]",
            Self::Missing => {
                "this gateway requires a token: send `Authorization: Bearer <token>` with one of those under [[auth.tokens]]"
            }
        }
    }

    fn challenge(&self, issuers: Option<&Issuers>, path: &str) -> Option<HeaderValue> {
        match (issuers, self) {
            (Some(issuers), Self::Refused(why)) => issuers.challenge(Some(why), path),
            (Some(issuers), Self::Expired) => issuers.challenge(Some(&Refused::Expired), path),
            (Some(issuers), _) => issuers.challenge(None, path),
            (None, Self::Unknown) => Some(BAD_TOKEN),
            (None, Self::Expired) => Some(EXPIRED),
            (None, _) => Some(CHALLENGE),
        }
    }

    /// The answer to a request for this path; `issuers` are those whose tokens would do.
    pub(super) fn answer(&self, issuers: Option<&Issuers>, path: &str) -> Response<Bytes> {
        // None of the texts has a quotation mark or a backslash.
        let text = self.text(issuers.is_some());
        let body = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32600,"message":"{text}"}}}}"#);
        let mut response = json(body.into());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        match self {
            Self::Refused(Refused::Unverified) => _ = headers.insert(header::RETRY_AFTER, SOON),
            _ => headers.extend(self.challenge(issuers, path).map(|challenge| (header::WWW_AUTHENTICATE, challenge))),
        }
        response
    }
}

/// A document for anybody.
pub(super) fn json(body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

//! Requests to the token endpoint of an authorization server, and its responses (RFC 6749): bounded, and read leniently.

use super::times;
use super::token::Unissued;
use crate::config::Remote;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::transport::http::once::{self, ANSWER_MAX};
use crate::transport::http::pause;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use form_urlencoded::{Serializer, byte_serialize};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use serde_json::{Map, Value};
use std::time::Duration;

/// The most bytes of a response.
pub(super) const BODY_MAX: usize = 64 * 1024;

/// A token response (RFC 6749, 5.1; RFC 8693, 2.2.1). Its tokens are secrets, so it has no `Debug` outside tests.
#[cfg_attr(test, derive(Debug, PartialEq, Eq))]
pub(super) struct TokenResponse {
    pub(super) access_token: String,
    token_type: String,
    pub(super) refresh_token: Option<String>,
    pub(super) expires_in: Option<Duration>,
    /// Space-separated.
    pub(super) scope: Option<String>,
    pub(super) id_token: Option<String>,
    pub(super) issued_token_type: Option<Value>,
}

/// An error response (RFC 6749, 5.2).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ErrorResponse {
    pub(super) error: String,
    pub(super) description: Option<String>,
}

/// A request that yields no token.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The endpoint cannot be reached, or its response is not about tokens.
    Unanswered(Unissued),
    /// The server refuses.
    Refused(ErrorResponse),
    /// The response is neither a token nor an error of OAuth.
    Unreadable,
}

impl From<Cause> for RequestError {
    fn from(why: Cause) -> Self {
        Self::Unanswered(why.into())
    }
}

/// The cause of a missing token that nobody has refused.
pub(super) fn unavailable(said: impl Into<String>) -> Cause {
    Cause::new(CauseCode::TokenUnavailable, said)
}

/// The proof of a client's identity (RFC 6749, 2.3.1): form fields, or a header.
pub(super) fn proof<'a>(
    id: &'a str,
    secret: Option<&'a str>,
    is_in_body: bool,
) -> (Vec<(&'static str, &'a str)>, Option<HeaderValue>) {
    match secret {
        Some(secret) if !is_in_body => (Vec::new(), basic(id, secret)),
        secret => {
            let secret = secret.map(|secret| ("client_secret", secret));
            ([("client_id", id)].into_iter().chain(secret).collect(), None)
        }
    }
}

/// The `Authorization` header of a client with a secret.
pub(super) fn basic(id: &str, secret: &str) -> Option<HeaderValue> {
    let coded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", coded(id), coded(secret)));
    let mut header = HeaderValue::from_str(&format!("Basic {pair}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// A request that posts a form and accepts JSON.
pub(super) fn form(
    place: &Remote,
    fields: &[(&str, &str)],
    authorization: Option<HeaderValue>,
) -> Result<Request<Vec<u8>>, Cause> {
    let body = Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = Request::builder().method(Method::POST).uri(place.url.clone()).header(ACCEPT, "application/json");
    let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body.into_bytes());
    let mut request = request.map_err(|_| unavailable("it cannot be asked"))?;
    request.headers_mut().extend(authorization.map(|value| (AUTHORIZATION, value)));
    Ok(request)
}

/// Asks for a token, for at most [`ANSWER_MAX`]. `advice` says what to do if another kind of server responds.
pub(super) async fn token(
    endpoint: &Remote,
    fields: &[(&str, &str)],
    authorization: Option<HeaderValue>,
    tasks: &Tasks,
    advice: &str,
) -> Result<TokenResponse, RequestError> {
    let response = within(ANSWER_MAX, Box::pin(post(endpoint, fields, authorization, tasks, advice))).await;
    let late = |_| unavailable(format!("the token end point gave none within {} s", ANSWER_MAX.as_secs()));
    TokenResponse::read(&response.map_err(late)??)
}

/// Posts a form to an endpoint of an authorization server. A redirect is not followed: the request is for this endpoint alone.
pub(super) async fn post(
    endpoint: &Remote,
    fields: &[(&str, &str)],
    authorization: Option<HeaderValue>,
    tasks: &Tasks,
    advice: &str,
) -> Result<Map<String, Value>, RequestError> {
    let unasked = |why: Cause| unavailable("the token end point cannot be asked: ").then(&why);
    let request = form(endpoint, fields, authorization)?;
    let response = once::send(endpoint, request, tasks).await.map_err(unasked)?;
    let (head, body) = response.into_parts();
    let is_of_tokens = matches!(
        head.status,
        StatusCode::OK
            | StatusCode::CREATED
            | StatusCode::BAD_REQUEST
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
    );
    if !is_of_tokens {
        let status = Cause::new(CauseCode::HttpStatus(head.status.as_u16()), format!("HTTP {}", head.status.as_u16()));
        let is_busy = head.status.is_server_error() || head.status == StatusCode::TOO_MANY_REQUESTS;
        let advice = if is_busy { "" } else { advice };
        let why = unavailable("the token end point answers with ").then(&status).advise(advice);
        return Err(RequestError::Unanswered(Unissued { why, pause: pause(&head.headers) }));
    }
    let Some(body) = once::body(body, BODY_MAX).await else {
        let said = format!("the answer of the token end point breaks, or has more than {} KiB", BODY_MAX / 1024);
        return Err(unavailable(said).into());
    };
    read(head.status, &body)
}

/// Reads a response. Some servers report an error with status 200.
fn read(status: StatusCode, body: &[u8]) -> Result<Map<String, Value>, RequestError> {
    let members: Map<String, Value> = serde_json::from_slice(body).map_err(|_| RequestError::Unreadable)?;
    let is_set = |name: &str| members.get(name).is_some_and(|value| !value.is_null());
    if status.is_success() && (is_set("access_token") || !is_set("error")) {
        return Ok(members);
    }
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let error = text("error").ok_or(RequestError::Unreadable)?;
    Err(RequestError::Refused(ErrorResponse { error, description: text("error_description") }))
}

impl TokenResponse {
    /// Reads the members of a response. Some servers write numbers as strings, omit `token_type`, or give optional members a form of their
    /// own.
    fn read(members: &Map<String, Value>) -> Result<Self, RequestError> {
        let member = |name: &str| members.get(name).filter(|value| !value.is_null());
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let access_token = member("access_token").and_then(text).ok_or(RequestError::Unreadable)?;
        let token_type = match member("token_type") {
            Some(kind) => text(kind).ok_or(RequestError::Unreadable)?,
            None => "Bearer".to_owned(),
        };
        let refresh_token = member("refresh_token").and_then(text).filter(|token| !token.is_empty());
        let lasts = match times::lasts(members) {
            // The refresh token may still be valid.
            Err(_) if refresh_token.is_some() => None,
            lasts => lasts.map_err(|why| unavailable(format!("the token end point gives {why}")))?,
        };
        // Whole seconds; less than one counts as one, and zero states no lifetime.
        let expires_in = lasts.map(|lasts| Duration::from_secs(lasts.as_secs().max(u64::from(!lasts.is_zero()))));
        let scope = match member("scope") {
            Some(Value::String(scope)) => Some(scope.clone()),
            Some(Value::Array(scopes)) => Some(scopes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
            _ => None,
        };
        let id_token = member("id_token").and_then(text);
        let issued_token_type = member("issued_token_type").cloned();
        Ok(Self { access_token, token_type, refresh_token, expires_in, scope, id_token, issued_token_type })
    }

    /// Fails if the token is not a bearer token.
    pub(super) fn require_bearer(&self) -> Result<(), Cause> {
        match self.token_type.eq_ignore_ascii_case("bearer") {
            true => Ok(()),
            false => {
                let said = "the token end point gives tokens of another type than Bearer";
                Err(Cause::new(CauseCode::TokenRefused, said))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(access: &str) -> TokenResponse {
        TokenResponse {
            access_token: access.to_owned(),
            token_type: "Bearer".to_owned(),
            refresh_token: None,
            expires_in: None,
            scope: None,
            id_token: None,
            issued_token_type: None,
        }
    }

    #[test]
    fn token_responses_in_forms_of_their_own_are_read() {
        let (refresh_token, seconds) = (Some("r".to_owned()), |number| Some(Duration::from_secs(number)));
        let scope = Some("x y".to_owned());
        for (body, expected) in [
            (
                r#"{"access_token":"a","refresh_token":"r","scope":["x","y",1],"expires_in":"7.9","id_token":{}}"#,
                TokenResponse {
                    refresh_token: refresh_token.clone(),
                    scope: scope.clone(),
                    expires_in: seconds(7),
                    ..response("a")
                },
            ),
            (
                r#"{"access_token":"a","refresh_token":3,"scope":"x y","token_type":"bearer","expires_in":0}"#,
                TokenResponse { scope, token_type: "bearer".to_owned(), expires_in: seconds(0), ..response("a") },
            ),
            (r#"{"access_token":"a","expires_in":0.25}"#, TokenResponse { expires_in: seconds(1), ..response("a") }),
            (
                r#"{"access_token":"a","refresh_token":"r","expires_in":"never"}"#,
                TokenResponse { refresh_token, ..response("a") },
            ),
            (r#"{"access_token":"a","refresh_token":"","token_type":null}"#, response("a")),
        ] {
            let members = read(StatusCode::OK, body.as_bytes()).unwrap();
            assert_eq!(TokenResponse::read(&members).unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn error_responses_are_read_whatever_their_status() {
        for status in [StatusCode::OK, StatusCode::BAD_REQUEST] {
            for (body, description) in [
                (r#"{"error":"invalid_grant"}"#, None),
                (r#"{"error":"invalid_grant","error_description":"gone","error_uri":1}"#, Some("gone".to_owned())),
                (r#"{"error":"invalid_grant","error_description":{}}"#, None),
            ] {
                let error = "invalid_grant".to_owned();
                let Err(RequestError::Refused(refused)) = read(status, body.as_bytes()) else { panic!("{body}") };
                assert_eq!(refused, ErrorResponse { error, description }, "{body}");
            }
        }
        for (status, body) in [
            (StatusCode::BAD_REQUEST, "{}"),
            (StatusCode::BAD_REQUEST, ""),
            (StatusCode::BAD_REQUEST, r#"{"error":1}"#),
            (StatusCode::BAD_REQUEST, r#"{"access_token":"a"}"#),
            (StatusCode::OK, "[]"),
        ] {
            assert!(matches!(read(status, body.as_bytes()), Err(RequestError::Unreadable)), "{body}");
        }
    }

    #[test]
    fn client_proves_itself_by_header_or_form() {
        let header = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode("me+%2B:a%3Ab"))).unwrap();
        assert_eq!(proof("me +", Some("a:b"), false), (Vec::new(), Some(header)));
        let both = vec![("client_id", "me +"), ("client_secret", "a:b")];
        assert_eq!(proof("me +", Some("a:b"), true), (both, None));
        assert_eq!(proof("me +", None, false), (vec![("client_id", "me +")], None));
    }
}

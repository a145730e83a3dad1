//! What the token end point of an authorization server answers, whatever it is asked by: bounded, and brought into the form of RFC 6749.

use super::times;
use super::token::Unissued;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::upstream::config::Remote;
use crate::upstream::transport::http::{once, pause};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use oauth2::{HttpRequest, HttpResponse};
use serde_json::{Map, Value, json};
use std::pin::Pin;

/// The most bytes of its answer.
pub(super) const BODY_MAX: usize = 64 * 1024;

/// Why the end point gave no answer that speaks of tokens.
#[derive(Debug, thiserror::Error)]
#[error("no answer of a token end point")]
pub(super) struct Unanswered(pub(super) Unissued);

/// A request under way.
pub(super) type Posting = Pin<Box<dyn Future<Output = Result<HttpResponse, Unanswered>> + Send>>;

/// Why there is no token, where nobody has refused one.
pub(super) fn unavailable(said: impl Into<String>) -> Cause {
    Cause::new(CauseCode::TokenUnavailable, said)
}

/// Posts a request. Nothing is followed: what the end point is shown is for nobody else. `advice` is what to do where another one answers.
pub(super) async fn post(
    endpoint: &Remote,
    request: HttpRequest,
    tasks: &Tasks,
    advice: &str,
) -> Result<HttpResponse, Unanswered> {
    let unasked = |why: Cause| unanswered(unavailable("the token end point cannot be asked: ").then(&why));
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
        return Err(Unanswered(Unissued { why, pause: pause(&head.headers) }));
    }
    let Some(body) = once::body(body, BODY_MAX).await else {
        let said = format!("the answer of the token end point breaks, or has more than {} KiB", BODY_MAX / 1024);
        return Err(unanswered(unavailable(said)));
    };
    if !head.status.is_success() {
        return Ok(http::Response::from_parts(head, body));
    }
    let (status, body) = plain(&body).map_err(unanswered)?;
    let mut response = http::Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn unanswered(why: Cause) -> Unanswered {
    Unanswered(why.into())
}

/// An answer that says yes, as RFC 6749 has it (5.1). Servers are known to write numbers as texts, to leave out the type of the token, to
/// have further members in forms of their own, and to say no so, too; what has no token and no error in it is as it is.
fn plain(body: &[u8]) -> Result<(StatusCode, Vec<u8>), Cause> {
    let members = serde_json::from_slice::<Map<String, Value>>(body).unwrap_or_default();
    let said = |name: &str| members.get(name).filter(|value| !value.is_null());
    let Some(token) = said("access_token") else {
        let status = if said("error").is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        return Ok((status, body.to_vec()));
    };
    let refresh = said("refresh_token").filter(|value| value.as_str().is_some_and(|token| !token.is_empty()));
    let lasts = match times::lasts(&members) {
        // The refresh token may be the only one that is still good.
        Err(_) if refresh.is_some() => None,
        lasts => lasts.map_err(|why| unavailable(format!("the token end point gives {why}")))?,
    };
    let kind = said("token_type").cloned().unwrap_or_else(|| "Bearer".into());
    let mut answer = json!({ "access_token": token, "token_type": kind });
    if let Some(refresh) = refresh {
        answer["refresh_token"] = refresh.clone();
    }
    if let Some(id) = said("id_token").filter(|id| id.is_string()) {
        answer["id_token"] = id.clone();
    }
    match said("scope") {
        Some(Value::String(scope)) => answer["scope"] = scope.as_str().into(),
        Some(Value::Array(scopes)) => {
            answer["scope"] = scopes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ").into()
        }
        _ => {}
    }
    if let Some(kind) = said("issued_token_type") {
        answer["issued_token_type"] = kind.clone();
    }
    if let Some(lasts) = lasts {
        // Nought says nothing.
        let least = u64::from(!lasts.is_zero());
        answer["expires_in"] = lasts.as_secs().max(least).into();
    }
    Ok((StatusCode::OK, answer.to_string().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_write_in_forms_of_their_own_is_brought_into_that_of_the_rfc() {
        for (body, status, expected) in [
            (
                r#"{"access_token":"a","refresh_token":"r","scope":["x","y",1],"expires_in":"7.9","id_token":{}}"#,
                200,
                json!({ "access_token": "a", "refresh_token": "r", "scope": "x y", "token_type": "Bearer", "expires_in": 7 }),
            ),
            (
                r#"{"access_token":"a","refresh_token":3,"scope":"x y","token_type":"bearer","expires_in":0}"#,
                200,
                json!({ "access_token": "a", "scope": "x y", "token_type": "bearer", "expires_in": 0 }),
            ),
            (
                r#"{"access_token":"a","refresh_token":"r","expires_in":"never"}"#,
                200,
                json!({ "access_token": "a", "refresh_token": "r", "token_type": "Bearer" }),
            ),
            (r#"{"access_token":"a","refresh_token":""}"#, 200, json!({ "access_token": "a", "token_type": "Bearer" })),
            (r#"{"error":"invalid_grant"}"#, 400, json!({ "error": "invalid_grant" })),
        ] {
            let (found, text) = plain(body.as_bytes()).unwrap();
            assert_eq!((found.as_u16(), serde_json::from_slice::<Value>(&text).unwrap()), (status, expected), "{body}");
        }
    }
}

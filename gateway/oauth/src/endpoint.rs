//! A token from the token end point of an authorization server, for a client of its own (RFC 6749, 4.4), or for another token (RFC 8693).

use super::token::{Issued, Unissued};
use super::token_request::{ErrorResponse, RequestError, TokenResponse, proof, token, unavailable};
use crate::config::ClientCredentials;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::secrets::{mask, printable};

/// What is to be looked at where another one answers than a token end point.
const ADVICE: &str = "check `token_url` under `auth`";
/// What is to be looked at where tokens of clients are not exchanged.
const EXCHANGE_ADVICE: &str =
    "let this client exchange access tokens of the issuers of `[auth]` at the authorization server (RFC 8693)";
/// The advice for an error that no other advice fits.
const KEYS_ADVICE: &str = "check the keys under `auth`, `params` among them";
/// The grant types of a client's own token (RFC 6749, 4.4.2) and of an exchange (RFC 8693, 2.1).
const CLIENT_CREDENTIALS: &str = "client_credentials";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const SUBJECT_TYPE: &str = "subject_token_type";
const WANTED_TYPE: &str = "requested_token_type";
const ACCESS: &str = "urn:ietf:params:oauth:token-type:access_token";
/// What says of a token only how it is written: an access token may be.
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";
/// So much of its words is told.
const SAID_CHARS: usize = 200;

/// Asks for a token.
pub(super) async fn ask(client: &ClientCredentials, tasks: Tasks) -> Result<Issued, Unissued> {
    asked(client, None, tasks).await
}

/// Asks for a token in exchange for another one.
pub(super) async fn exchange(client: &ClientCredentials, subject: &str, tasks: Tasks) -> Result<Issued, Unissued> {
    asked(client, Some(subject), tasks).await
}

async fn asked(client: &ClientCredentials, subject: Option<&str>, tasks: Tasks) -> Result<Issued, Unissued> {
    let grant = if subject.is_some() { TOKEN_EXCHANGE } else { CLIENT_CREDENTIALS };
    let (proven, header) = proof(&client.id, client.secret.as_deref(), client.is_in_body);
    let scopes = client.scopes.join(" ");
    let mut fields = vec![("grant_type", grant)];
    fields.extend((!scopes.is_empty()).then_some(("scope", &*scopes)));
    fields.extend(proven);
    fields.extend(client.resource.as_ref().map(|resource| ("resource", resource.as_str())));
    fields.extend(client.params.iter().map(|(name, value)| (&**name, &**value)));
    if let Some(subject) = subject {
        fields.extend([("subject_token", subject), (SUBJECT_TYPE, ACCESS), (WANTED_TYPE, ACCESS)]);
    }
    let response = token(&client.endpoint, &fields, header, &tasks, ADVICE).await;
    let response = response.map_err(|why| refused(why, subject.is_some()))?;
    response.require_bearer()?;
    if let Some(subject) = subject {
        is_exchanged(subject, &response)?;
    }
    Ok(Issued { token: response.access_token, lasts: response.expires_in })
}

/// Whether a token is another one than that which was to be exchanged, and an access token (RFC 8693, 2.2.1).
fn is_exchanged(subject: &str, response: &TokenResponse) -> Result<(), Cause> {
    let why = if response.access_token.contains(subject) {
        "the token end point gives back the client's own token"
    } else if response.issued_token_type.as_ref().is_some_and(|kind| *kind != ACCESS && *kind != JWT) {
        "the token end point gives a token in exchange that is no access token"
    } else {
        return Ok(());
    };
    let advice = "have the authorization server give an access token of the upstream in exchange (RFC 8693)";
    Err(Cause::new(CauseCode::TokenRefused, why).advise(advice))
}

/// Why there is no token. What the answer holds beside its error may be a secret, and is not told.
fn refused(why: RequestError, exchanges: bool) -> Unissued {
    let ErrorResponse { error, description } = match why {
        RequestError::Refused(refused) => refused,
        RequestError::Unanswered(unissued) => return unissued,
        RequestError::Unreadable => {
            return unavailable("what the token end point answers is neither a token nor an error of OAuth")
                .advise(ADVICE)
                .into();
        }
    };
    let (advice, is_standard) = match &*error {
        "invalid_client" => ("check `client_id`, `client_secret` and `client_auth` under `auth`", true),
        "invalid_scope" => ("check `scopes` under `auth`", true),
        "invalid_grant" | "invalid_request" | "unauthorized_client" | "unsupported_grant_type" if exchanges => {
            (EXCHANGE_ADVICE, true)
        }
        "invalid_grant" | "unauthorized_client" | "unsupported_grant_type" => {
            ("let this client use the grant `client_credentials` at the authorization server", true)
        }
        "invalid_request" => (KEYS_ADVICE, true),
        "invalid_token" if exchanges => (EXCHANGE_ADVICE, false),
        "invalid_target" => ("check `resource` under `auth`; an empty text leaves it out", false),
        _ => (KEYS_ADVICE, false),
    };
    // RFC 8693, 2.2.2, has `invalid_request` for a subject token that is not taken; most servers answer with one of the others.
    let is_about_subject = matches!(&*error, "invalid_grant" | "invalid_request" | "invalid_token");
    let code = if exchanges && is_about_subject { CauseCode::ClientTokenRefused } else { CauseCode::TokenRefused };
    let cause = Cause::new(code, "the token end point refuses it");
    let cause = match is_standard {
        true => cause.own(&format!(" ({error})")),
        false => cause.foreign(&format!(" ({})", in_short(&error))),
    };
    let more = description.map(|text| format!(": {}", in_short(&text))).unwrap_or_default();
    cause.foreign(&more).advise(advice).into()
}

/// A foreign text as the operator is shown it.
pub(super) fn in_short(text: &str) -> String {
    printable(&mask::masked(text).chars().take(SAID_CHARS).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::token_request::BODY_MAX;
    use super::*;
    use crate::config::Remote;
    use http::HeaderMap;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// What comes of this answer; the second listener is a decoy, and takes no connection.
    async fn said(answer: &str) -> Result<Issued, String> {
        said_of(answer, None).await
    }

    /// The same, where it is asked for in exchange.
    async fn said_of(answer: &str, subject: Option<&str>) -> Result<Issued, String> {
        let (server, decoy) =
            (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let at = |listener: &TcpListener| format!("http://{}/token", listener.local_addr().unwrap());
        let answer = answer.replace("$DECOY", &at(&decoy));
        let client = ClientCredentials {
            endpoint: Remote::new(at(&server).parse().unwrap(), HeaderMap::new()),
            id: "me".to_owned(),
            secret: Some("canary-secret".to_owned()),
            is_in_body: true,
            scopes: Vec::new(),
            resource: None,
            params: Vec::new(),
        };
        let tasks = Tasks::new();
        let serving = async {
            let (mut stream, _) = server.accept().await.unwrap();
            let mut asked = Vec::new();
            while !String::from_utf8_lossy(&asked).contains("client_secret=canary-secret") {
                assert!(stream.read_buf(&mut asked).await.unwrap() > 0);
            }
            // Who has enough of it closes the connection.
            let _ = stream.write_all(answer.as_bytes()).await;
        };
        let (issued, ()) = tokio::join!(asked(&client, subject, tasks.clone()), serving);
        assert!(tokio::time::timeout(Duration::ZERO, decoy.accept()).await.is_err(), "nothing is followed");
        let pause = |pause: Duration| format!(", not before {} s", pause.as_secs());
        let why = issued
            .map_err(|unissued| unissued.why.full().into_owned() + &unissued.pause.map(pause).unwrap_or_default());
        assert!(!why.as_ref().is_err_and(|why| why.contains("canary")), "{why:?}");
        why
    }

    fn json(status: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
    }

    #[tokio::test]
    async fn a_token_is_taken_and_every_other_answer_is_said_with_what_to_do_and_bounded() {
        let good = json("200 OK", r#"{"access_token":"t","token_type":"bearer","expires_in":7}"#);
        assert_eq!(said(&good).await, Ok(Issued { token: "t".to_owned(), lasts: Some(Duration::from_secs(7)) }));
        // Not as RFC 6749 has it, and clear all the same.
        let plain = |status: &str, body: &str| json(status, body).replace("application/json", "text/plain");
        for answer in [
            json("201 Created", r#"{"access_token":"t","token_type":"BEARER","expires_in":"7"}"#),
            json("200 OK", r#"{"access_token":"t","expires_in":7.9,"scope":["a"]}"#),
            json("200 OK", r#"{"access_token":"t","token_type":null,"expires_on":1,"expires_in":7}"#),
            plain("200 OK", r#"{"access_token":"t","token_type":"bearer","expires_in":7,"refresh_token":3}"#),
        ] {
            let issued = Issued { token: "t".to_owned(), lasts: Some(Duration::from_secs(7)) };
            assert_eq!(said(&answer).await, Ok(issued), "{answer}");
        }
        let busy = |after: &str| format!("HTTP/1.1 429 Slow\r\nretry-after: {after}\r\ncontent-length: 0\r\n\r\n");
        let bomb = "{".repeat(BODY_MAX + 1);
        for (answer, words) in [
            (json("400 Bad", r#"{"error":"invalid_scope"}"#), "refuses it (invalid_scope); check `scopes`"),
            (
                json("401 No", r#"{"error":"invalid_client","error_description":"who?"}"#),
                "(invalid_client): who?; check `client_id`",
            ),
            (json("400 Bad", r#"{"error":"invalid_target"}"#), "(invalid_target); check `resource`"),
            (json("400 Bad", r#"{"error":"unauthorized_client"}"#), "let this client use the grant"),
            (json("400 Bad", "canary"), "neither a token nor an error of OAuth; check `token_url`"),
            (json("200 OK", r#"{"canary":1}"#), "neither a token nor an error of OAuth"),
            (json("200 OK", r#"{"access_token":"canary","token_type":"mac"}"#), "tokens of another type than Bearer"),
            (json("200 OK", &bomb), "has more than 64 KiB"),
            (json("200 OK", r#"{"error":"invalid_scope"}"#), "refuses it (invalid_scope); check `scopes`"),
            (json("200 OK", r#"{"access_token":"canary","expires_in":-1}"#), "gives a token that has ended"),
            (json("200 OK", r#"{"access_token":"canary","expires_in":"?"}"#), "is no number of seconds"),
            (json("200 OK", r#"{"access_token":{"canary":1}}"#), "neither a token nor an error of OAuth"),
            (json("503 Busy", ""), "answers with HTTP 503"),
            (busy("17"), "answers with HTTP 429, not before 17 s"),
            (busy("86400"), "answers with HTTP 429, not before 60 s"),
            (
                "HTTP/1.1 302 Found\r\nlocation: $DECOY\r\ncontent-length: 0\r\n\r\n".to_owned(),
                "HTTP 302; check `token_url`",
            ),
            (
                "HTTP/1.1 307 Found\r\nlocation: $DECOY\r\ncontent-length: 0\r\n\r\n".to_owned(),
                "HTTP 307; check `token_url`",
            ),
            ("no HTTP at all\r\n\r\n".to_owned(), "the token end point cannot be asked"),
        ] {
            let why = said(&answer).await.unwrap_err();
            assert!(why.contains(words), "{answer:.80}: {why}");
        }
    }

    #[tokio::test]
    async fn in_exchange_only_another_token_is_taken_that_is_an_access_token() {
        let of_kind = |token: &str, kind: &str| {
            json("200 OK", &format!("{{\"access_token\":\"{token}\",\"token_type\":\"Bearer\"{kind}}}"))
        };
        let named = |kind: &str| format!(",\"issued_token_type\":\"urn:ietf:params:oauth:token-type:{kind}\"");
        for kind in [String::new(), ",\"issued_token_type\":null".to_owned(), named("access_token"), named("jwt")] {
            let issued = said_of(&of_kind("t", &kind), Some("canary-subject")).await;
            assert_eq!(issued.map(|issued| issued.token), Ok("t".to_owned()), "{kind}");
        }
        let kinds = ["refresh_token", "id_token", "saml2"].map(named);
        for kind in kinds.into_iter().chain([",\"issued_token_type\":1".to_owned()]) {
            let why = said_of(&of_kind("canary", &kind), Some("canary-subject")).await.unwrap_err();
            assert!(why.contains("in exchange that is no access token; have the authorization"), "{kind}: {why}");
        }
        for token in ["canary-subject", "Bearer-canary-subject"] {
            let why = said_of(&of_kind(token, &named("access_token")), Some("canary-subject")).await.unwrap_err();
            assert!(why.contains("gives back the client's own token"), "{why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_point_that_does_not_answer_is_waited_for_ten_seconds() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/token", server.local_addr().unwrap()).parse().unwrap();
        let client = ClientCredentials {
            endpoint: Remote::new(url, HeaderMap::new()),
            id: "me".to_owned(),
            secret: None,
            is_in_body: false,
            scopes: Vec::new(),
            resource: None,
            params: Vec::new(),
        };
        let why = ask(&client, Tasks::new()).await.unwrap_err();
        assert_eq!(why.why.full(), "the token end point gave none within 10 s");
    }
}

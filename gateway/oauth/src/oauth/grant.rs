//! What an authorization server gives for a code or a refresh token.

use super::pkce::ProofKey;
use super::record::{account, scopes_among};
use super::way::{quoted, to};
use crate::config::{Login, Registered};
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::secrets::Secrets;
use crate::token::Unissued;
use crate::token_request::{ErrorResponse, RequestError, TokenResponse, proof, token, unavailable};
use crate::transport::http::Token;
use http::HeaderValue;
use std::time::Duration;

/// The longest token that is taken: no upstream reads a longer header, and both are kept in one file.
const TOKEN_MAX: usize = 16 * 1024;

/// The token end point, and who asks there for whom.
pub(super) struct Endpoint<'a> {
    pub(super) login: &'a Login,
    pub(super) url: &'a str,
    pub(super) client: &'a Registered,
    /// Whether the gateway has registered itself as this client: one that is configured can be put right there.
    pub(super) is_registered: bool,
    pub(super) audience: &'a str,
    pub(super) tasks: &'a Tasks,
}

/// What was given.
pub(super) struct Given {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) lasts: Option<Duration>,
    pub(super) scopes: Option<Vec<String>>,
    /// Whose account it is, where that is said.
    pub(super) account: Option<String>,
}

/// Why nothing was given.
pub(super) enum Refused {
    /// The code or the refresh token is good no more, or nobody knows the client.
    Over(Cause),
    /// It may be given another time.
    Now(Unissued),
}

impl Refused {
    /// Why there is no token.
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::Over(why) | Self::Now(Unissued { why, .. }) => Cause::new(why.code(), "no access token: ").then(&why),
        }
    }
}

impl Endpoint<'_> {
    /// Exchanges the code that the browser has brought back to this address.
    pub(super) async fn for_code(&self, code: &str, key: &ProofKey, redirect: &str) -> Result<Given, Refused> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", key.verifier()),
            ("redirect_uri", redirect),
        ];
        let response = self.ask(&fields).await?;
        self.given(response.map_err(|why| self.refused(why, code))?)
    }

    /// Exchanges a refresh token.
    pub(super) async fn for_refresh(&self, shown: &str) -> Result<Given, Refused> {
        let response = self.ask(&[("grant_type", "refresh_token"), ("refresh_token", shown)]).await?;
        self.given(response.map_err(|why| self.refused(why, shown))?)
    }

    /// Asks for a token with these fields, the proof of the client's identity, and the resource. The outer error says that the URL of the
    /// endpoint must not be used; another attempt would not help.
    pub(super) async fn ask(&self, fields: &[(&str, &str)]) -> Result<Result<TokenResponse, RequestError>, Refused> {
        let place = to(self.login, "the token end point", self.url).map_err(now)?;
        let (proven, header) = self.proof();
        let fields = [fields, &proven, &self.resource()].concat();
        Ok(token(&place, &fields, header, self.tasks, "").await)
    }

    /// The proof of the client's identity.
    pub(super) fn proof(&self) -> (Vec<(&'static str, &str)>, Option<HeaderValue>) {
        proof(&self.client.id, self.client.secret.as_deref(), self.client.is_in_body)
    }

    /// The resource that the token is for (RFC 8707), as form fields.
    pub(super) fn resource(&self) -> Vec<(&'static str, &str)> {
        Some(self.audience)
            .filter(|audience| !audience.is_empty())
            .map(|audience| ("resource", audience))
            .into_iter()
            .collect()
    }

    /// Takes a response whose tokens can be kept and shown.
    pub(super) fn given(&self, response: TokenResponse) -> Result<Given, Refused> {
        response.require_bearer().map_err(now)?;
        let TokenResponse { access_token: access, refresh_token: refresh, .. } = response;
        if refresh.iter().chain([&access]).any(|token| token.len() > TOKEN_MAX) {
            let said = format!("the token end point gives a token of more than {} KiB", TOKEN_MAX / 1024);
            return Err(now(Cause::new(CauseCode::TokenRefused, said)));
        }
        // A token that cannot be a header never replaces one that can.
        Token::new(&access, None, false).map_err(now)?;
        Ok(Given {
            account: account(&access, response.id_token.as_deref()),
            access,
            refresh,
            lasts: response.expires_in.filter(|lasts| !lasts.is_zero()),
            scopes: response.scope.map(|scope| scopes_among(scope.split(' '))),
        })
    }

    /// Words of the server. They may quote what it was shown, whether that looks like a token or not.
    fn said(&self, text: &str, shown: Option<&str>) -> String {
        let own = Secrets::of(self.client.secret.iter().cloned().chain(shown.map(str::to_owned)));
        quoted(&own.masked(text))
    }

    /// What a refusal of what was shown means. What the answer holds beside its error may be a secret, and is not told.
    fn refused(&self, why: RequestError, shown: &str) -> Refused {
        let response = match why {
            RequestError::Refused(response) => response,
            RequestError::Unanswered(unissued) => return Refused::Now(unissued),
            RequestError::Unreadable => return now(unreadable()),
        };
        let cause = self.refusal("the token end point", &response, Some(shown));
        match &*response.error {
            "invalid_grant" => Refused::Over(cause),
            // A client that registered itself and is unknown now registers again with the next login.
            "invalid_client" if self.is_registered => Refused::Over(cause),
            _ => now(cause),
        }
    }

    /// The cause of a refusal, in the words of the server. They may quote what it was shown.
    pub(super) fn refusal(&self, what: &str, response: &ErrorResponse, shown: Option<&str>) -> Cause {
        let said = |text: &str| self.said(text, shown);
        let more = response.description.as_ref().map(|text| format!(":{}", said(text))).unwrap_or_default();
        let cause = Cause::new(CauseCode::TokenRefused, format!("{what} refuses it:"));
        cause.foreign(&said(&response.error)).foreign(&more)
    }
}

/// The cause of a response that cannot be read.
pub(super) fn unreadable() -> Cause {
    unavailable("what the token end point answers is neither a token nor an error of OAuth")
}

pub(super) fn now(why: Cause) -> Refused {
    Refused::Now(why.into())
}

#[cfg(test)]
mod tests {
    use super::super::way::tests::login;
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_token_that_is_too_long_to_be_shown_or_kept_is_not_taken_and_what_was_shown_is_not_quoted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (login, url, tasks) = (login("a", port), format!("http://127.0.0.1:{port}/token"), Tasks::new());
        let client = Registered { id: "me".to_owned(), secret: None, is_in_body: false };
        let endpoint =
            Endpoint { login: &login, url: &url, client: &client, is_registered: true, audience: "", tasks: &tasks };
        let asked = async |status: &str, body: String| {
            let answering = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                _ = stream.read(&mut [0; 4096]).await.unwrap();
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}");
                stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes()).await.unwrap();
            };
            match tokio::join!(endpoint.for_refresh("a-short-one"), answering).0 {
                Ok(given) => Ok(given.access.len()),
                Err(Refused::Over(why) | Refused::Now(Unissued { why, .. })) => Err(why.full().into_owned()),
            }
        };
        let given = |access: usize, refresh: usize| {
            let [access, refresh] = [access, refresh].map(|length| "x".repeat(length));
            format!(r#"{{"access_token":"{access}","refresh_token":"{refresh}","token_type":"Bearer"}}"#)
        };
        let long = Err("the token end point gives a token of more than 16 KiB".to_owned());
        assert_eq!(asked("200 OK", given(TOKEN_MAX, TOKEN_MAX)).await, Ok(TOKEN_MAX));
        assert_eq!(asked("200 OK", given(TOKEN_MAX + 1, 1)).await, long);
        assert_eq!(asked("200 OK", given(1, TOKEN_MAX + 1)).await, long);
        let error = r#"{"error":"invalid_grant","error_description":"nobody knows a-short-one"}"#;
        let why = asked("400 Bad Request", error.to_owned()).await.unwrap_err();
        assert_eq!(why, "the token end point refuses it: `invalid_grant`: `nobody knows [secret]`");
        tasks.end();
    }
}

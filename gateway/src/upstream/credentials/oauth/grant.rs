//! What an authorization server gives for a code or a refresh token.

use super::record::{account, scopes_among};
use super::way::{quoted, to};
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::secrets::Secrets;
use crate::upstream::config::{Login, Registered};
use crate::upstream::credentials::granted::{Posting, Unanswered, post, unavailable};
use crate::upstream::credentials::token::Unissued;
use crate::upstream::transport::http::{Token, once};
use oauth2::basic::{
    BasicErrorResponse, BasicErrorResponseType, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
    BasicTokenType,
};
use oauth2::{
    AuthType, AuthorizationCode, Client, ClientId, ClientSecret, ExtraTokenFields, HttpRequest, PkceCodeVerifier,
    RedirectUrl, RefreshToken, RequestTokenError, StandardRevocableToken, StandardTokenResponse, TokenResponse,
    TokenUrl,
};
use serde::{Deserialize, Serialize};
use std::pin::Pin;
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

/// What an answer has beside tokens.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Beside {
    id_token: Option<String>,
}

impl ExtraTokenFields for Beside {}

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

type Answer = StandardTokenResponse<Beside, BasicTokenType>;
type Answered = Result<Answer, RequestTokenError<Unanswered, BasicErrorResponse>>;
/// A question under way.
type Asking<'a> = Pin<Box<dyn Future<Output = Answered> + Send + 'a>>;

impl Endpoint<'_> {
    /// What is given for a code that the browser has brought back to this address.
    pub(super) async fn for_code(
        &self,
        code: &str,
        proof: PkceCodeVerifier,
        redirect: &RedirectUrl,
    ) -> Result<Given, Refused> {
        let (client, post) = (self.client().map_err(now)?.set_redirect_uri(redirect.clone()), self.post()?);
        let request = client.exchange_code(AuthorizationCode::new(code.to_owned())).set_pkce_verifier(proof);
        let request = match self.audience {
            "" => request,
            audience => request.add_extra_param("resource", audience),
        };
        self.answered(Box::pin(request.request_async(&post)), code).await
    }

    /// What is given for a refresh token.
    pub(super) async fn for_refresh(&self, shown: &str) -> Result<Given, Refused> {
        let (client, post) = (self.client().map_err(now)?, self.post()?);
        let refresh = RefreshToken::new(shown.to_owned());
        let request = match self.audience {
            "" => client.exchange_refresh_token(&refresh),
            audience => client.exchange_refresh_token(&refresh).add_extra_param("resource", audience),
        };
        self.answered(Box::pin(request.request_async(&post)), shown).await
    }

    /// The client, as what asks there.
    pub(super) fn client(&self) -> Result<Asked, Cause> {
        let url = TokenUrl::new(self.url.to_owned()).map_err(|_| unavailable("the token end point is no URL"))?;
        let kind = if self.client.is_in_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        let client = Client::new(ClientId::new(self.client.id.clone())).set_token_uri(url).set_auth_type(kind);
        Ok(match &self.client.secret {
            Some(secret) => client.set_client_secret(ClientSecret::new(secret.clone())),
            None => client,
        })
    }

    /// What posts there.
    pub(super) fn post(&self) -> Result<impl Fn(HttpRequest) -> Posting + Sync + use<>, Refused> {
        let way = (to(self.login, "the token end point", self.url).map_err(now)?, self.tasks.clone());
        Ok(move |request| -> Posting {
            let (place, tasks) = way.clone();
            Box::pin(async move { post(&place, request, &tasks, "").await })
        })
    }

    async fn answered(&self, asking: Asking<'_>, shown: &str) -> Result<Given, Refused> {
        let late = || now(unavailable("the token end point gave none within 10 s"));
        let answer =
            within(once::ANSWER_MAX, asking).await.map_err(|_| late())?.map_err(|why| self.refused(&why, shown))?;
        self.given(&answer)
    }

    /// What stands in an answer, where it can be kept and shown.
    pub(super) fn given(&self, answer: &Answer) -> Result<Given, Refused> {
        if *answer.token_type() != BasicTokenType::Bearer {
            let said = "the token end point gives tokens of another type than Bearer";
            return Err(now(Cause::new(CauseCode::TokenRefused, said)));
        }
        let (access, refresh) = (answer.access_token().secret(), answer.refresh_token().map(RefreshToken::secret));
        if refresh.into_iter().chain([access]).any(|token| token.len() > TOKEN_MAX) {
            let said = format!("the token end point gives a token of more than {} KiB", TOKEN_MAX / 1024);
            return Err(now(Cause::new(CauseCode::TokenRefused, said)));
        }
        let access = access.clone();
        // What nobody can be shown is not kept in place of what can.
        Token::new(&access, None, false).map_err(now)?;
        let account = account(&access, answer.extra_fields().id_token.as_deref());
        Ok(Given {
            account,
            access,
            refresh: refresh.cloned(),
            lasts: answer.expires_in().filter(|lasts| !lasts.is_zero()),
            scopes: answer.scopes().map(|scopes| scopes_among(scopes.iter().map(|scope| &***scope))),
        })
    }

    /// Words of the server. They may quote what it was shown, whether that looks like a token or not.
    pub(super) fn said(&self, text: &str, shown: Option<&str>) -> String {
        let own = Secrets::of(self.client.secret.iter().cloned().chain(shown.map(str::to_owned)));
        quoted(&own.masked(text))
    }

    /// What a refusal of what was shown means. What the answer holds beside its error may be a secret, and is not told.
    fn refused(&self, why: &RequestTokenError<Unanswered, BasicErrorResponse>, shown: &str) -> Refused {
        use BasicErrorResponseType::{InvalidClient, InvalidGrant};
        let answer = match why {
            RequestTokenError::ServerResponse(answer) => answer,
            RequestTokenError::Request(Unanswered(unissued)) => return Refused::Now(unissued.clone()),
            RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
                return now(unavailable("what the token end point answers is neither a token nor an error of OAuth"));
            }
        };
        let said = |text: &str| self.said(text, Some(shown));
        let more = answer.error_description().map(|text| format!(":{}", said(text))).unwrap_or_default();
        let cause = Cause::new(CauseCode::TokenRefused, "the token end point refuses it:");
        let cause = cause.foreign(&said(answer.error().as_ref())).foreign(&more);
        match answer.error() {
            InvalidGrant => Refused::Over(cause),
            // Who registered itself and is known no more registers anew with the next login.
            InvalidClient if self.is_registered => Refused::Over(cause),
            _ => now(cause),
        }
    }
}

/// A client that knows where tokens are given.
pub(super) type Asked = Client<
    BasicErrorResponse,
    Answer,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    oauth2::EndpointNotSet,
    oauth2::EndpointSet,
>;

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

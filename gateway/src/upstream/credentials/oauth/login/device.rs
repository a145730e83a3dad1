//! A login on another device (RFC 8628): a person enters a code at a page, while the gateway asks whether that has been done.

use crate::health::{Cause, CauseCode};
use crate::runtime::timer::late::within;
use crate::upstream::credentials::granted::{Posting, Unanswered, post, unavailable};
use crate::upstream::credentials::oauth::grant::{Endpoint, Given, Refused, now};
use crate::upstream::credentials::oauth::way::to;
use crate::upstream::transport::http::once;
use oauth2::basic::BasicErrorResponse;
use oauth2::{
    DeviceAuthorizationUrl, DeviceCodeErrorResponse, DeviceCodeErrorResponseType, RequestTokenError, Scope,
    StandardDeviceAuthorizationResponse,
};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The longest code that a person is asked to enter.
const CODE_CHARS: usize = 64;
/// Nobody is asked more often than that, whatever they say.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// How long a person may take, and where nothing is asked beyond what the server gives.
const PERSON_MAX: Duration = Duration::from_secs(10 * 60);

/// A login that waits for a person.
pub(super) struct DeviceLogin {
    given: StandardDeviceAuthorizationResponse,
}

impl DeviceLogin {
    /// The page where the code is to be entered.
    pub(super) fn page(&self) -> &str {
        self.given.verification_uri().as_str()
    }

    /// The code.
    pub(super) fn code(&self) -> &str {
        self.given.user_code().secret()
    }

    fn lasts(&self) -> Duration {
        self.given.expires_in().min(PERSON_MAX)
    }
}

impl DeviceLogin {
    /// Begins one at the end point for that.
    pub(super) async fn begin(endpoint: &Endpoint<'_>, at: &str, scopes: &[String]) -> Result<Self, Cause> {
        const WHAT: &str = "the end point for logins on other devices";
        let (place, tasks) = (to(endpoint.login, WHAT, at)?, endpoint.tasks.clone());
        let url = DeviceAuthorizationUrl::new(at.to_owned()).map_err(|_| unavailable(format!("{WHAT} is no URL")))?;
        let client = endpoint.client()?.set_device_authorization_url(url);
        let mut request = client.exchange_device_code();
        if !endpoint.audience.is_empty() {
            request = request.add_extra_param("resource", endpoint.audience);
        }
        request = request.add_scopes(scopes.iter().map(|scope| Scope::new(scope.clone())));
        let post = move |request| -> Posting {
            let (place, tasks) = (place.clone(), tasks.clone());
            Box::pin(async move { post(&place, request, &tasks, "").await })
        };
        let late = |_| unavailable(format!("{WHAT} gave no code within 10 s"));
        let given: StandardDeviceAuthorizationResponse = within(once::ANSWER_MAX, request.request_async(&post))
            .await
            .map_err(late)?
            .map_err(|why: RequestTokenError<Unanswered, BasicErrorResponse>| refused(endpoint, WHAT, &why))?;
        let login = Self { given };
        to(endpoint.login, "the page for the code", login.page())?;
        let is_sound = |char: char| char.is_ascii_graphic() || char == ' ';
        if login.code().is_empty() || login.code().len() > CODE_CHARS || !login.code().chars().all(is_sound) {
            return Err(unavailable(format!("{WHAT} gives a code that nobody can enter")));
        }
        Ok(login)
    }

    /// Asks until a person has entered the code, or it is good no more.
    pub(super) async fn given(&self, endpoint: &Endpoint<'_>) -> Result<Given, Refused> {
        let (client, post) = (endpoint.client().map_err(now)?, endpoint.post()?);
        let mut request = client.exchange_device_access_token(&self.given);
        if !endpoint.audience.is_empty() {
            request = request.add_extra_param("resource", endpoint.audience);
        }
        // A server that names no pause is not asked without one.
        let pause = |time: Duration| sleep(time.max(PAUSE_MIN));
        let asking = request.request_async(&post, pause, None);
        let over = || {
            let said = format!("nobody entered the code within {} s", self.lasts().as_secs());
            Refused::Over(Cause::new(CauseCode::TokenUnavailable, said))
        };
        // One that is being asked is not waited for beyond that.
        let answer = timeout(self.lasts(), asking).await.map_err(|_| over())?;
        let answer = answer.map_err(|why| match &why {
            RequestTokenError::ServerResponse(answer) => match answer.error() {
                DeviceCodeErrorResponseType::ExpiredToken => over(),
                DeviceCodeErrorResponseType::AccessDenied => {
                    Refused::Over(Cause::new(CauseCode::TokenRefused, "the login was refused at the page"))
                }
                other => Refused::Over(self.told(endpoint, other.as_ref(), answer)),
            },
            _ => now(unavailable("what the token end point answers is neither a token nor an error of OAuth")),
        })?;
        endpoint.given(&answer)
    }

    /// What a refusal says, in its own words.
    fn told(&self, endpoint: &Endpoint<'_>, error: &str, answer: &DeviceCodeErrorResponse) -> Cause {
        let said = |text: &str| endpoint.said(text, Some(self.given.device_code().secret()));
        let more = answer.error_description().map(|text| format!(":{}", said(text))).unwrap_or_default();
        Cause::new(CauseCode::TokenRefused, "the token end point refuses it:").foreign(&said(error)).foreign(&more)
    }
}

fn refused(endpoint: &Endpoint<'_>, what: &str, why: &RequestTokenError<Unanswered, BasicErrorResponse>) -> Cause {
    let said = |text: &str| endpoint.said(text, None);
    match why {
        RequestTokenError::ServerResponse(answer) => {
            let more = answer.error_description().map(|text| format!(":{}", said(text))).unwrap_or_default();
            let cause = Cause::new(CauseCode::TokenRefused, format!("{what} refuses it:"));
            cause.foreign(&said(answer.error().as_ref())).foreign(&more)
        }
        RequestTokenError::Request(Unanswered(unissued)) => unissued.why.clone(),
        RequestTokenError::Parse(..) | RequestTokenError::Other(_) => {
            unavailable(format!("what {what} answers is neither a code nor an error of OAuth"))
        }
    }
}

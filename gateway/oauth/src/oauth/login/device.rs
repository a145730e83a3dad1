//! A login on another device (RFC 8628): a person enters a code at a page, while the gateway asks whether that has been done.

use crate::health::{Cause, CauseCode};
use crate::oauth::grant::{Endpoint, Given, Refused, now, unreadable};
use crate::oauth::way::to;
use crate::runtime::timer::late::within;
use crate::token_request::{ErrorResponse, RequestError, post, unavailable};
use crate::transport::http::once;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The grant type of a device code (RFC 8628, 3.4).
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The interval between requests if the server names none (RFC 8628, 3.2), its growth at `slow_down` (3.5), and the longest interval while the
/// server cannot be reached.
const INTERVAL: Duration = Duration::from_secs(5);
const SLOWER: Duration = Duration::from_secs(5);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// The longest code that a person is asked to enter.
const CODE_CHARS: usize = 64;
/// Nobody is asked more often than that, whatever they say.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// How long a person may take, and where nothing is asked beyond what the server gives.
const PERSON_MAX: Duration = Duration::from_secs(10 * 60);

/// A login that waits for a person.
#[derive(Deserialize)]
pub(super) struct DeviceLogin {
    device_code: String,
    user_code: String,
    #[serde(alias = "verification_url")] // servers that are older than RFC 8628
    verification_uri: String,
    expires_in: u64,
    interval: Option<u64>,
}

impl DeviceLogin {
    /// The page where the code is to be entered.
    pub(super) fn page(&self) -> &str {
        &self.verification_uri
    }

    /// The code.
    pub(super) fn code(&self) -> &str {
        &self.user_code
    }

    fn lasts(&self) -> Duration {
        Duration::from_secs(self.expires_in).min(PERSON_MAX)
    }
}

impl DeviceLogin {
    /// Begins one at the end point for that.
    pub(super) async fn begin(endpoint: &Endpoint<'_>, at: &str, scopes: &[String]) -> Result<Self, Cause> {
        const WHAT: &str = "the end point for logins on other devices";
        let place = to(endpoint.login, WHAT, at)?;
        let (proven, header) = endpoint.proof();
        let scope = scopes.join(" ");
        let scope = (!scope.is_empty()).then_some(("scope", &*scope));
        let fields: Vec<_> = proven.into_iter().chain(scope).chain(endpoint.resource()).collect();
        let late = |_| unavailable(format!("{WHAT} gave no code within 10 s"));
        let asking = Box::pin(post(&place, &fields, header, endpoint.tasks, ""));
        let response = within(once::ANSWER_MAX, asking).await.map_err(late)?;
        let response = response.and_then(|members| {
            serde_json::from_value::<Self>(Value::Object(members)).map_err(|_| RequestError::Unreadable)
        });
        let login = response.map_err(|why| match why {
            RequestError::Refused(response) => endpoint.refusal(WHAT, &response, None),
            RequestError::Unanswered(unissued) => unissued.why,
            RequestError::Unreadable => {
                unavailable(format!("what {WHAT} answers is neither a code nor an error of OAuth"))
            }
        })?;
        to(endpoint.login, "the page for the code", login.page())?;
        let is_sound = |char: char| char.is_ascii_graphic() || char == ' ';
        if login.code().is_empty() || login.code().len() > CODE_CHARS || !login.code().chars().all(is_sound) {
            return Err(unavailable(format!("{WHAT} gives a code that nobody can enter")));
        }
        Ok(login)
    }

    /// Asks until a person has entered the code, or the code has expired.
    pub(super) async fn given(&self, endpoint: &Endpoint<'_>) -> Result<Given, Refused> {
        // Expiry also ends a request under way.
        timeout(self.lasts(), self.poll(endpoint)).await.unwrap_or_else(|_| Err(self.expired()))
    }

    async fn poll(&self, endpoint: &Endpoint<'_>) -> Result<Given, Refused> {
        let fields = [("grant_type", DEVICE_CODE), ("device_code", &*self.device_code)];
        let mut interval = self.interval.map_or(INTERVAL, Duration::from_secs);
        loop {
            let ErrorResponse { error, description } = match endpoint.ask(&fields).await? {
                Ok(response) => return endpoint.given(response),
                Err(RequestError::Refused(response)) => response,
                Err(RequestError::Unreadable) => return Err(now(unreadable())),
                Err(RequestError::Unanswered(_)) => {
                    interval = interval.max(interval.saturating_mul(2).min(BACKOFF_MAX));
                    sleep(interval.max(PAUSE_MIN)).await;
                    continue;
                }
            };
            match &*error {
                "authorization_pending" => {}
                "slow_down" => interval = interval.saturating_add(SLOWER),
                "expired_token" => return Err(self.expired()),
                "access_denied" => {
                    let said = "the login was refused at the page";
                    return Err(Refused::Over(Cause::new(CauseCode::TokenRefused, said)));
                }
                _ => {
                    let response = ErrorResponse { error, description };
                    let shown = Some(&*self.device_code);
                    return Err(Refused::Over(endpoint.refusal("the token end point", &response, shown)));
                }
            }
            // A server that names an interval of zero is not asked without a pause.
            sleep(interval.max(PAUSE_MIN)).await;
        }
    }

    fn expired(&self) -> Refused {
        let said = format!("nobody entered the code within {} s", self.lasts().as_secs());
        Refused::Over(Cause::new(CauseCode::TokenUnavailable, said))
    }
}

//! Where a token comes from.

use super::exchange::Exchange;
use super::oauth::StoredLogin;
use super::token::{Issued, Unissued};
use super::{command, endpoint};
use crate::config::{ClientCredentials, Credentials, TokenCommand};
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::transport::http::Token;
use crate::transport::http::once::ANSWER_MAX;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// So long after the end of its level an answer is waited for that is asked for already: as long as one may take, and to keep what it gives.
const LAST_ANSWER: Duration = ANSWER_MAX.saturating_add(Duration::from_secs(1));

/// Where the token of one upstream comes from.
pub(super) enum Source {
    /// From a command.
    Command(TokenCommand),
    /// From an authorization server that knows the gateway as a client.
    Client(Box<ClientCredentials>),
    /// From there, for the access token of one client.
    Exchange(Box<Exchange>),
    /// From the login of a person.
    Login(Box<StoredLogin>),
}

impl From<Credentials> for Source {
    fn from(from: Credentials) -> Self {
        match from {
            Credentials::Command(command) => Self::Command(command),
            // Those that exchange tokens of clients have others for the gateway's own requests.
            Credentials::Client(client) | Credentials::Exchange(client) => Self::Client(client),
            Credentials::Login(login) => Self::Login(Box::new(StoredLogin::new(*login))),
        }
    }
}

/// Fetches a token, another one than that which was refused. It ends soon after the level does, and leaves nothing behind.
pub(super) async fn fetch(from: &Source, refused: Option<Arc<Token>>, tasks: Tasks) -> Result<Issued, Unissued> {
    let level = tasks.clone();
    let ending = Box::pin(async move { level.ending().await });
    let issued = match from {
        Source::Command(from) => command::run(from, ending).await.map_err(Unissued::from),
        Source::Exchange(exchange) => tokio::select! {
            issued = exchange.ask(tasks) => issued,
            () = ending => Err(stopping()),
        },
        Source::Client(client) => tokio::select! {
            issued = endpoint::ask(client, tasks) => issued,
            () = ending => Err(stopping()),
        },
        Source::Login(kept) => {
            let is_refused = |token: &str| refused.as_ref().is_some_and(|refused| refused.is(token));
            // What was asked for is kept though the level ends: a refresh token may be good once.
            let later = async {
                ending.await;
                sleep(LAST_ANSWER).await;
            };
            tokio::select! {
                issued = kept.token(&is_refused, &tasks) => issued,
                () = later => Err(stopping()),
            }
        }
    };
    let told = |why: Cause| match why.code() {
        CauseCode::LoginRequired | CauseCode::LoginChanged | CauseCode::HttpStatus(_) => why,
        code => Cause::new(code, "no access token: ").then(&why),
    };
    issued.map_err(|Unissued { why, pause }| Unissued { why: told(why), pause })
}

fn stopping() -> Unissued {
    Cause::new(CauseCode::Stopping, "upstream stopping").into()
}

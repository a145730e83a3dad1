//! Where a token comes from.

use super::token::{Issued, Unissued};
use super::{command, endpoint};
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::upstream::config::Credentials;

/// Fetches a token. It ends soon after the level does, and leaves nothing behind.
pub(super) async fn fetch(from: &Credentials, tasks: Tasks) -> Result<Issued, Unissued> {
    let level = tasks.clone();
    let ending = Box::pin(async move { level.ending().await });
    let issued = match from {
        Credentials::Command(from) => command::run(from, ending).await.map_err(Unissued::from),
        Credentials::Client(client) => tokio::select! {
            issued = endpoint::ask(client, tasks) => issued,
            () = ending => Err(Cause::new(CauseCode::Stopping, "upstream stopping").into()),
        },
    };
    let told = |why: Cause| Cause::new(why.code(), "no access token: ").then(&why);
    issued.map_err(|Unissued { why, pause }| Unissued { why: told(why), pause })
}

//! A token for one principal, for which the access token of its client is exchanged (RFC 8693): that itself is shown to no upstream.

use super::endpoint;
use super::token::{Issued, Unissued};
use crate::call::caller::Principal;
use crate::call::caller::credential::subject;
use crate::call::caller::credential::subject::Wanted;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use crate::upstream::config::ClientCredentials;
use std::sync::{Mutex, PoisonError};

/// Exchanges the access tokens of one principal that allow the same.
pub(super) struct Exchange {
    client: ClientCredentials,
    whose: Principal,
    /// The digest of the one that was the last when one was exchanged; nought where there was none.
    last: Mutex<Option<[u8; 32]>>,
    /// It may be quoted by who refuses it.
    secrets: mask::Learned,
    _wanted: Wanted,
}

impl Exchange {
    pub(super) fn new(client: &ClientCredentials, whose: &Principal) -> Self {
        let (last, secrets) = (Mutex::default(), mask::Learned::new());
        Self { client: client.clone(), whose: whose.clone(), last, secrets, _wanted: Wanted::new() }
    }

    /// Whether the client has shown another token than the one that was exchanged last.
    pub(super) fn has_changed(&self) -> bool {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some() && subject::of(&self.whose).is_some_and(|now| Some(now.digest()) != last)
    }

    /// Resolves when that is so.
    pub(super) async fn changed(&self) {
        let mut changes = subject::changes();
        while !self.has_changed() {
            // Who tells of them lives as long as the process.
            let _told = changes.changed().await;
        }
    }

    /// Exchanges the token that the client has shown last; where that is refused, one that allows the same and still counts.
    pub(super) async fn ask(&self, tasks: Tasks) -> Result<Issued, Unissued> {
        let shown = subject::all_of(&self.whose);
        let last = shown.first().map_or([0; 32], |last| last.digest());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        let said = "this client has shown no access token that could be exchanged for one";
        let mut found = Err(Unissued::from(Cause::new(CauseCode::TokenUnavailable, said)));
        for one in shown {
            private::off_the_workers(|| self.secrets.note(one.secret()));
            found = endpoint::exchange(&self.client, one.secret(), tasks.clone()).await;
            if !found.as_ref().is_err_and(|unissued| unissued.why.code() == CauseCode::TokenRefused) {
                break;
            }
        }
        found
    }
}

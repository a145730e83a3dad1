//! A token for one principal, for which the access token of its client is exchanged (RFC 8693): that itself is shown to no upstream.

use super::endpoint;
use super::token::{Issued, Unissued};
use crate::call::caller::Principal;
use crate::call::caller::credential::subject;
use crate::call::caller::credential::subject::Wanted;
use crate::config::ClientCredentials;
use crate::health::{Cause, CauseCode};
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many tokens are refused in a row before the next one waits out the pause like one that was refused before.
const REFUSED_MAX: usize = 16;

/// Exchanges the access tokens of one principal that allow the same.
pub(super) struct Exchange {
    client: ClientCredentials,
    whose: Principal,
    last: Mutex<Last>,
    /// It may be quoted by who refuses it.
    secrets: mask::Learned,
    _wanted: Wanted,
}

/// What is known of the last exchange.
#[derive(Default)]
enum Last {
    /// There was none.
    #[default]
    None,
    /// It is under way, was answered, or could not be asked for: the digest of the token that was the last one then.
    Of([u8; 32]),
    /// The end point cannot give tokens, whatever it is shown.
    Unavailable,
    /// All that there was is refused: the digests of what was refused since one was taken. A client that shows several by turns does not have
    /// each of them tried again and again.
    Refused(Vec<[u8; 32]>),
}

impl Last {
    /// Whether this token is another one than those that it was about.
    fn is_passed_by(&self, now: [u8; 32]) -> bool {
        match self {
            Self::None | Self::Unavailable => false,
            Self::Of(last) => *last != now,
            Self::Refused(these) => these.len() < REFUSED_MAX && !these.contains(&now),
        }
    }
}

impl Exchange {
    pub(super) fn new(client: &ClientCredentials, whose: &Principal) -> Self {
        let (last, secrets) = (Mutex::default(), mask::Learned::new());
        Self { client: client.clone(), whose: whose.clone(), last, secrets, _wanted: Wanted::new() }
    }

    /// Whether the client has shown another token than the one that was exchanged last, and that is worth a try.
    pub(super) fn has_changed(&self) -> bool {
        let now = subject::of(&self.whose);
        now.is_some_and(|now| self.last().is_passed_by(now.digest()))
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
        let before = shown.first().map(|last| mem::replace(&mut *self.last(), Last::Of(last.digest())));
        let mut refused = match before {
            Some(Last::Refused(these)) => these,
            _ => Vec::new(),
        };
        let mut found = Err(Unissued::from(self.nothing_to_exchange()));
        let has_any = !shown.is_empty();
        for one in shown {
            private::off_the_workers(|| self.secrets.note(one.secret()));
            found = endpoint::exchange(&self.client, one.secret(), tasks.clone()).await;
            if !found.as_ref().is_err_and(|unissued| is_refusal(&unissued.why)) {
                break;
            }
            if refused.len() < REFUSED_MAX && !refused.contains(&one.digest()) {
                refused.push(one.digest());
            }
        }
        match &found {
            Ok(_) => {}
            Err(unissued) if has_any && !is_refusal(&unissued.why) => {
                *self.last() = Last::Unavailable;
            }
            Err(_) => *self.last() = Last::Refused(refused),
        }
        found
    }

    /// The refusal where no token can be exchanged. A client with an access token has shown one, which has expired by now.
    fn nothing_to_exchange(&self) -> Cause {
        match self.whose.allows() {
            Some(_) => {
                let said = "the access token of this client has expired and is not exchanged any more";
                Cause::new(CauseCode::ClientTokenRefused, said).advise("get a new access token")
            }
            None => {
                let said = "this client has shown no access token that could be exchanged for one";
                Cause::new(CauseCode::TokenUnavailable, said)
            }
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the authorization server has refused a token, so that another one is worth a try.
fn is_refusal(why: &Cause) -> bool {
    matches!(why.code(), CauseCode::TokenRefused | CauseCode::ClientTokenRefused)
}

//! The token that was shown last on a connection, and what it was good for: most clients show the same one with each request, and its
//! digest costs more than all the rest of letting them in.

use crate::call::caller::credential::Credential;
use arc_swap::ArcSwapOption;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

/// The key of the marks, which nobody knows: without it a token of another one's mark can only be guessed, a request for each try.
static KEY: LazyLock<RandomState> = LazyLock::new(Default::default);

/// What a token is told apart by on one connection. The token itself is not kept.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark(u64);

impl Mark {
    fn of(token: &[u8]) -> Self {
        Self(KEY.hash_one(token))
    }
}

/// Clones are of the same connection.
#[derive(Clone, Default)]
pub(super) struct LastToken(Arc<ArcSwapOption<Shown>>);

/// What was found of a token.
struct Shown {
    mark: Mark,
    /// By how many configurations before.
    configurations: u64,
    credential: Credential,
    /// When it is to be looked at anew.
    until: Option<SystemTime>,
}

impl LastToken {
    /// What the token is good for, where it is the one of the last request and nothing has changed since.
    pub(super) fn again(&self, token: &[u8], configurations: u64) -> Option<Credential> {
        let last = self.0.load();
        let shown = last.as_ref()?;
        let is_same = shown.configurations == configurations && shown.mark == Mark::of(token);
        let is_good = is_same
            && !shown.credential.revocation.is_revoked()
            && shown.until.is_none_or(|until| until > SystemTime::now());
        is_good.then(|| shown.credential.clone())
    }

    /// From now on this is the last one.
    pub(super) fn keep(&self, token: &[u8], configurations: u64, credential: &Credential, until: Option<SystemTime>) {
        let shown = Shown { mark: Mark::of(token), configurations, credential: credential.clone(), until };
        self.0.store(Some(Arc::new(shown)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::caller::credential::Revocation;
    use crate::call::caller::{Grants, Principal};
    use std::time::Duration;

    #[test]
    fn a_token_is_the_last_one_only_while_it_counts_and_by_the_same_configuration() {
        let (last, revocation) = (LastToken::default(), Revocation::possible());
        let principal = Principal::named("ann");
        let credential = Credential { principal, grants: Grants::all(), revocation };
        assert!(last.again(b"one", 1).is_none());
        last.keep(b"one", 1, &credential, None);
        let again = last.clone().again(b"one", 1).unwrap();
        assert!(again.revocation.is(&credential.revocation) && again.principal == credential.principal);
        for (token, configurations) in [(&b"two"[..], 1), (b"on", 1), (b"one ", 1), (b"", 1), (b"one", 2)] {
            assert!(last.again(token, configurations).is_none());
        }
        let now = SystemTime::now();
        last.keep(b"one", 1, &credential, Some(now + Duration::from_secs(600)));
        assert!(last.again(b"one", 1).is_some());
        last.keep(b"one", 1, &credential, Some(now));
        assert!(last.again(b"one", 1).is_none(), "it is to be looked at anew");
        last.keep(b"one", 1, &credential, None);
        credential.revocation.revoke();
        assert!(last.again(b"one", 1).is_none(), "it counts no more");
    }
}

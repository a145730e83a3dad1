//! The token that was shown last on a connection, and what it was good for: most clients show the same one with each request, and its
//! digest costs more than all the rest of letting them in.

use super::same::is_same;
use crate::call::caller::credential::Credential;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::time::SystemTime;

/// A longer token is not kept, so that a connection stays small: its digest is made for each request.
const KEPT_MAX: usize = 2048;

/// Clones are of the same connection.
#[derive(Clone, Default)]
pub(super) struct LastToken(Arc<ArcSwapOption<Shown>>);

/// What was found of a token.
struct Shown {
    /// The token itself, as long as the connection is there and shows no other: to compare it costs less than any mark of it.
    token: Box<[u8]>,
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
        let is_good = shown.configurations == configurations
            && is_same(&shown.token, token)
            && !shown.credential.revocation.is_revoked()
            && shown.until.is_none_or(|until| until > SystemTime::now());
        is_good.then(|| shown.credential.clone())
    }

    /// From now on this is the last one.
    pub(super) fn keep(&self, token: &[u8], configurations: u64, credential: &Credential, until: Option<SystemTime>) {
        let shown = || Shown { token: token.into(), configurations, credential: credential.clone(), until };
        self.0.store((token.len() <= KEPT_MAX).then(|| Arc::new(shown())));
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
        let credential = Credential { principal, grants: Grants::all(), revocation, expires: None };
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
        last.keep(&[b'x'; KEPT_MAX + 1], 1, &credential, None);
        assert!(last.again(&[b'x'; KEPT_MAX + 1], 1).is_none() && last.again(b"one", 1).is_none());
        last.keep(b"one", 1, &credential, None);
        credential.revocation.revoke();
        assert!(last.again(b"one", 1).is_none(), "it counts no more");
    }
}

//! What a request is let in with: whose it is, what it opens, and whether it still counts.

// The access tokens that clients have shown, for upstreams for which they are exchanged.
pub mod subject;

use crate::caller::{Grants, Principal};
use arc_swap::ArcSwapOption;
use http::Request;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// How often it is looked at least whether something is over by the clock of the machine, which may be set meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What a request is let in with, as the layer finds it that asks for it.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Whose it is.
    pub principal: Principal,
    /// What it opens.
    pub grants: Grants,
    /// Whether it still counts.
    pub revocation: Revocation,
    /// The expiry that its access token names, without the leeway for clock skew: nobody else is shown the token from then on.
    pub expires: Option<SystemTime>,
}

/// A request that is let in. What it is let in with stands beside it: among its extensions it would cost a map of them each time.
pub struct LetIn<B> {
    /// The request itself, which bears its credential no more.
    pub request: Request<B>,
    /// What it is let in with; `None` where nothing is asked for.
    pub credential: Option<Credential>,
}

impl<B> From<Request<B>> for LetIn<B> {
    fn from(request: Request<B>) -> Self {
        Self { request, credential: None }
    }
}

impl Credential {
    /// It was found by this token, which upstreams may have exchanged for one of theirs.
    pub fn note_token(&self, token: &[u8], digest: [u8; 32]) {
        let revocation = self.revocation.clone();
        subject::note(&self.principal, (token, digest), self.expires, move || !revocation.is_revoked());
    }
}

/// Whether what a request was let in with still counts. Clones are the same: whoever holds one from before the request was read learns of
/// a revocation that came meanwhile.
#[derive(Clone, Default)]
pub struct Revocation(Option<Arc<State>>);

struct State {
    /// Read for each request, without a lock.
    is_revoked: AtomicBool,
    told: CancellationToken,
    /// When it is over by itself.
    until: Option<SystemTime>,
    /// It counts no longer than this.
    above: Option<Arc<State>>,
    /// What a session counts by that is opened with it; by this, where there is nothing else.
    session: Revocation,
}

impl Revocation {
    /// Of what is never revoked.
    pub fn never() -> Self {
        Self(None)
    }

    /// Of what counts until it is revoked.
    pub fn possible() -> Self {
        Self(Some(State::fresh()))
    }

    /// Of what counts as long as this does.
    pub fn below(&self) -> Self {
        Self(Some(State::below(self, None, Self::never())))
    }

    /// Of what counts up to a moment, and no longer than this. A session that is opened with it counts as long as `session`: whoever
    /// shows the next token of the same kind goes on with it.
    pub fn until(&self, moment: SystemTime, session: &Self) -> Self {
        Self(Some(State::below(&self.below(), Some(moment), session.clone())))
    }

    /// The same, without its time: what was begun while it counted may be brought to its end, unless somebody takes it back.
    #[must_use]
    pub fn without_its_time(&self) -> Self {
        match &self.0 {
            Some(state) if state.until.is_some() => Self(state.above.clone()),
            _ => self.clone(),
        }
    }

    /// What a session counts by that is opened with it.
    #[must_use]
    pub fn of_session(&self) -> Self {
        match &self.0 {
            Some(state) if state.session.0.is_some() => state.session.clone(),
            _ => self.clone(),
        }
    }

    /// From now on it counts no more.
    pub fn revoke(&self) {
        if let Some(state) = &self.without_its_time().0 {
            state.is_revoked.store(true, Ordering::SeqCst);
            state.told.cancel();
        }
    }

    /// Whether it counts no more.
    pub fn is_revoked(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.is_withdrawn() || state.is_over())
    }

    /// Whether somebody took it back. What is only over by its time was good for what it was shown for.
    pub fn is_withdrawn(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.is_withdrawn())
    }

    /// When it is over by itself.
    pub fn ends(&self) -> Option<SystemTime> {
        self.0.as_ref().and_then(|state| state.until)
    }

    /// Whether both are of one credential.
    pub fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Resolves once it counts no more; `None` where that never comes.
    pub fn revoked(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let state = self.0.clone()?;
        Some(async move {
            let Some(until) = state.until else { return state.told.cancelled().await };
            while let Ok(left) = until.duration_since(SystemTime::now()) {
                // A timer has no finer grain.
                let pause = left.clamp(Duration::from_millis(1), LOOK_EVERY);
                if tokio::time::timeout(pause, state.told.cancelled()).await.is_ok() {
                    return;
                }
            }
        })
    }
}

impl State {
    fn fresh() -> Arc<Self> {
        Self::below(&Revocation::never(), None, Revocation::never())
    }

    fn below(above: &Revocation, until: Option<SystemTime>, session: Revocation) -> Arc<Self> {
        let above = above.0.clone();
        let told = above.as_ref().map_or_else(CancellationToken::new, |above| above.told.child_token());
        Arc::new(Self { is_revoked: AtomicBool::new(false), told, until, above, session })
    }

    fn is_withdrawn(&self) -> bool {
        self.is_revoked.load(Ordering::SeqCst) || self.above.as_ref().is_some_and(|above| above.is_withdrawn())
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until <= SystemTime::now())
    }
}

impl fmt::Debug for Revocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Revocation").field(&self.is_revoked()).finish()
    }
}

/// What those are let in with who show no credential, while none is asked for. Clones are the same.
#[derive(Clone)]
pub struct OpenAccess(Arc<ArcSwapOption<State>>);

impl OpenAccess {
    /// The access of a door where a credential may come to be asked for.
    pub fn new() -> Self {
        Self(Arc::new(ArcSwapOption::new(Some(State::fresh()))))
    }

    /// The access of now.
    pub fn now(&self) -> Revocation {
        Revocation(self.0.load_full())
    }

    /// A credential is asked for from now on, or is not: those without one are let in no more, or are again.
    pub fn set(&self, is_open: bool) {
        let now = self.now();
        match is_open {
            false => now.revoke(),
            true if now.is_revoked() => self.0.store(Some(State::fresh())),
            true => {}
        }
    }
}

impl Default for OpenAccess {
    fn default() -> Self {
        Self(Arc::new(ArcSwapOption::new(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_revocation_reaches_each_clone_and_nothing_that_came_later() {
        let one = Revocation::possible();
        let (clone, other) = (one.clone(), Revocation::possible());
        assert!(clone.is(&one) && !other.is(&one) && !one.is_revoked());
        one.revoke();
        clone.revoked().expect("it can be").await;
        assert!(clone.is_revoked() && !other.is_revoked());
        let never = Revocation::never();
        never.revoke();
        assert!(!never.is_revoked() && never.revoked().is_none() && never.is(&Revocation::never()));
    }

    #[tokio::test]
    async fn what_is_over_by_its_time_or_by_what_it_hangs_on_counts_no_more_and_its_session_goes_on() {
        let (key, session) = (Revocation::possible(), Revocation::possible());
        let far = SystemTime::now() + Duration::from_secs(3600);
        let good = key.until(far, &session);
        assert!(!good.is_revoked() && good.of_session().is(&session) && key.of_session().is(&key));
        let over = key.until(SystemTime::now(), &session);
        over.revoked().expect("it can be").await;
        assert!(over.is_revoked() && !over.is_withdrawn(), "nobody took it back");
        let (other, begun) = (key.until(far, &session), over.without_its_time());
        other.revoke();
        assert!(other.is_withdrawn() && other.without_its_time().is_revoked() && !key.is_revoked());
        assert!(!begun.is_revoked());
        key.revoke();
        assert!(begun.is_revoked());
        good.revoked().expect("it can be").await;
        assert!(good.is_revoked() && good.is_withdrawn() && !session.is_revoked());
    }

    #[test]
    fn who_was_let_in_while_none_was_asked_for_is_not_let_in_by_the_next_time() {
        let open = OpenAccess::new();
        let first = open.now();
        open.set(true);
        assert!(open.now().is(&first), "nothing has changed");
        open.set(false);
        assert!(first.is_revoked() && open.now().is_revoked());
        open.set(true);
        assert!(first.is_revoked() && !open.now().is_revoked());
    }
}

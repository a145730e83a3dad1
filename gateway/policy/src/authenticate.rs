//! Who calls: a bearer token compared in constant time, or judged, before anything of the request is read.

// Why a request is not let in, and what its client is told.
mod refusal;
// What a request bears.
mod borne;
// The token that was shown last on a connection, and what it was good for.
mod last_token;
// Two secrets that are compared.
mod same;

use super::config::{Auth, Token};
use super::oauth::{Issuers, Judging, Look, Refused};
use super::rights::{Changed, RightsBook};
use crate::call::caller::credential::subject;
use crate::call::caller::credential::{Credential, LetIn, OpenAccess, Revocation};
use crate::call::caller::{Grants, Peer, Principal};
use crate::metrics::edges;
use crate::runtime::complaints::{Complaints, left_unsaid};
use ::metrics::Counter;
use arc_swap::ArcSwap;
use borne::{bearer, taken};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use last_token::LastToken;
use refusal::Why;
use same::is_same;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tower::ServiceExt;

/// How often it is looked at least whether a token has expired.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Lets only requests through that bear a known token; without tokens everyone is the anonymous principal.
#[derive(Clone)]
pub struct AuthenticateLayer(Arc<Door>);

/// Who may come in, and who came.
struct Door {
    /// Whether a token is asked for. While that changes it is.
    asks_token: AtomicBool,
    known: ArcSwap<Vec<Known>>,
    /// What those are let in with who show no token, while there is none.
    open: OpenAccess,
    /// What they may see, and those who show certificates.
    rights: RightsBook,
    /// Authorization servers, and whether their tokens are taken here.
    issuers: Option<Issuers>,
    takes_issuers: AtomicBool,
    accepted: Counter,
    /// How many there were before the one in force.
    configurations: AtomicU64,
    /// Grows with each configuration.
    changes: watch::Sender<()>,
    /// Which refusals were logged last.
    complaints: Complaints,
}

/// A token that is known by its digest alone.
struct Known {
    digest: [u8; 32],
    credential: Credential,
    expires: Option<SystemTime>,
}

impl Known {
    fn is_over(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    fn principal(&self) -> &Principal {
        &self.credential.principal
    }

    fn is(&self, other: &Self) -> bool {
        self.digest == other.digest && self.principal() == other.principal()
    }
}

impl AuthenticateLayer {
    /// Knows the tokens of a configuration.
    pub fn new(auth: &Auth, issuers: Option<Issuers>) -> Self {
        let rights = RightsBook::new(auth);
        let open = OpenAccess::new();
        open.set(!auth.asks_token());
        Self(Arc::new(Door {
            asks_token: AtomicBool::new(auth.asks_token()),
            known: ArcSwap::from_pointee(known(auth, &rights, &[])),
            open,
            rights,
            issuers,
            takes_issuers: AtomicBool::new(!auth.issuers.is_empty()),
            accepted: edges::auth("accepted"),
            configurations: AtomicU64::new(0),
            changes: watch::Sender::new(()),
            complaints: Complaints::default(),
        }))
    }

    /// What those are let in with who show no token.
    pub fn open(&self) -> &OpenAccess {
        &self.0.open
    }

    /// Waits until tokens expire that were good at a moment, and revokes them: those whose they are, and the moment up to which that is
    /// known.
    pub async fn expired(&self, since: SystemTime) -> (Vec<Principal>, SystemTime) {
        let mut changes = self.0.changes.subscribe();
        loop {
            let (known, now) = (self.0.known.load_full(), SystemTime::now());
            let over = known.iter().filter(|known| known.is_over(now) && !known.is_over(since));
            let over = over.inspect(|known| known.credential.revocation.revoke());
            let gone: Vec<_> = over.map(|known| known.principal().clone()).collect();
            if !gone.is_empty() {
                return (gone, now);
            }
            let next = known.iter().filter_map(|known| known.expires?.duration_since(now).ok()).min();
            tokio::select! {
                // Who changes it lives as long as this does.
                _ = changes.changed() => {}
                // The clock of the machine may be set meanwhile.
                () = tokio::time::sleep(next.unwrap_or(LOOK_EVERY).min(LOOK_EVERY)) => {}
            }
        }
    }

    /// What one may see.
    pub fn grants_of(&self, principal: &Principal) -> Grants {
        self.0.rights.of(principal)
    }

    /// From now on it knows these, on connections that are open too; what is known no more is revoked. Those of whom a token is known no
    /// more, and those who may see something else.
    pub fn set(&self, auth: &Auth) -> (Vec<Principal>, Vec<Changed>) {
        let changed = self.0.rights.set(auth);
        let before = self.0.known.load_full();
        let now = Arc::new(known(auth, &self.0.rights, &before));
        let moment = SystemTime::now();
        let is_known = |old: &Known| now.iter().any(|new| new.is(old) && !new.is_over(moment));
        let gone = before.iter().filter(|old| !is_known(old));
        let gone = gone.inspect(|old| old.credential.revocation.revoke()).map(|old| old.principal().clone());
        let were_all = self.is_open() && auth.asks_token();
        let gone = gone.chain(were_all.then(Principal::anonymous)).collect();
        self.0.asks_token.fetch_or(auth.asks_token(), Ordering::SeqCst);
        // Revoked first: once what is new counts, nothing old does. Who is judged by what was known before finds it revoked.
        self.0.open.set(!auth.asks_token());
        self.0.takes_issuers.store(!auth.issuers.is_empty(), Ordering::SeqCst);
        self.0.known.store(now);
        // Last: what is judged by what was known before is not taken for judged by this.
        self.0.configurations.fetch_add(1, Ordering::SeqCst);
        self.0.asks_token.store(auth.asks_token(), Ordering::SeqCst);
        self.0.changes.send_replace(());
        (gone, changed)
    }

    /// Whether there is no token, so that anybody may call.
    pub fn is_open(&self) -> bool {
        !self.0.asks_token.load(Ordering::SeqCst)
    }
}

/// The tokens of a configuration. One that was known before, and not revoked since, is the same.
fn known(auth: &Auth, rights: &RightsBook, before: &[Known]) -> Vec<Known> {
    let known = |token: &Token| {
        let principal = Principal::of_token(&token.name);
        let grants = rights.of(&principal);
        let credential = Credential { principal, grants, revocation: Revocation::possible(), expires: None };
        let mut known = Known { digest: token.digest, credential, expires: token.expires };
        let same = before.iter().find(|old| old.is(&known) && !old.credential.revocation.is_revoked());
        if let Some(same) = same {
            known.credential.revocation = same.credential.revocation.clone();
        }
        known
    };
    auth.tokens.iter().map(known).collect()
}

impl<S> tower::Layer<S> for AuthenticateLayer {
    type Service = Authenticate<S>;

    fn layer(&self, inner: S) -> Authenticate<S> {
        Authenticate {
            inner,
            door: self.0.clone(),
            last: LastToken::default(),
            peer: None,
            whence: None,
            user: None,
            is_other: false,
        }
    }
}

/// The address of a client, by the headers of its request.
type Whence = Arc<dyn Fn(&HeaderMap) -> Option<IpAddr> + Send + Sync>;

/// See [`AuthenticateLayer`].
#[derive(Clone)]
pub struct Authenticate<S> {
    inner: S,
    door: Arc<Door>,
    last: LastToken,
    /// The other end of the connection, for the log.
    peer: Option<Peer>,
    /// Where its requests come from, which may be beyond a proxy.
    whence: Option<Whence>,
    /// Who calls where no token is asked for, if the system says so.
    user: Option<Principal>,
    /// Whether that is somebody else than whoever runs the gateway, and so comes by a token alone.
    is_other: bool,
}

impl<S> Authenticate<S> {
    /// The same, for the requests of one connection. `whence` tells the address of a client by the headers of its request.
    #[must_use]
    pub fn of(self, peer: Peer, whence: impl Fn(&HeaderMap) -> Option<IpAddr> + Send + Sync + 'static) -> Self {
        let (user, is_other) = match peer {
            Peer::Address(_) => (None, false),
            Peer::User(number) => {
                (Some(Principal::of_user(number)), number != 0 && number != rustix::process::geteuid().as_raw())
            }
        };
        let whence: Option<Whence> = Some(Arc::new(whence));
        Self { last: LastToken::default(), peer: Some(peer), whence, user, is_other, ..self }
    }
}

impl Door {
    /// The authorization servers whose tokens are taken here.
    fn issuers(&self) -> Option<&Issuers> {
        self.issuers.as_ref().filter(|_| self.takes_issuers.load(Ordering::SeqCst))
    }

    /// Counts that a request is not let in, and logs it: of each kind one line now and then, however many there are.
    fn refuse<R: From<Bytes>>(&self, why: &Why, peer: Option<Peer>, path: &str) -> Response<R> {
        let kind = why.outcome();
        edges::auth(kind).increment(1);
        if let Some(more) = self.complaints.take(kind) {
            let (peer, more, why) = (peer.map(tracing::field::display), left_unsaid(more), why.said());
            tracing::warn!(peer, token = kind, why, more, "authentication failed");
        }
        why.answer(self.issuers(), path).map(R::from)
    }

    /// The token that a request from there bears, and whose it is. It is taken out of the request: nobody behind this layer has a use for
    /// it, and so nobody can pass it on.
    fn judge(&self, headers: &mut HeaderMap, last: &LastToken, whence: impl Fn(&HeaderMap) -> Option<Peer>) -> Verdict {
        // Which tokens are kept for upstreams that exchange them is part of that.
        let configurations = self.configurations.load(Ordering::SeqCst).wrapping_add(subject::generation() << 32);
        let asks_token = self.asks_token.load(Ordering::SeqCst);
        let (borne, is_alone) = taken(headers, asks_token);
        if !asks_token {
            return Verdict::Open;
        }
        if !is_alone && self.issuers().is_some() {
            return Verdict::Bad(Why::Refused(Refused::Malformed));
        }
        let token = borne.as_ref().filter(|_| is_alone).and_then(|value| bearer(value.as_bytes()));
        let Some(token) = token else { return Verdict::Bad(Why::Missing) };
        if let Some(credential) = last.again(token, configurations) {
            return Verdict::Good(credential);
        }
        let good = |credential: Credential, until| {
            last.keep(token, configurations, &credential, until);
            Verdict::Good(credential)
        };
        let (known, issuers) = (self.known.load(), self.issuers());
        let digest: [u8; 32] = Sha256::digest(token).into();
        // Every token is compared, and to its end: how long it takes says nothing.
        let mut found = None;
        for candidate in &**known {
            if is_same(&candidate.digest, &digest) {
                found = Some(candidate);
            }
        }
        match (found, issuers) {
            (Some(known), _) if known.expires.is_some() && known.is_over(SystemTime::now()) => {
                Verdict::Bad(Why::Expired)
            }
            (Some(known), _) => good(known.credential.clone(), known.expires),
            (None, None) => Verdict::Bad(Why::Unknown),
            (None, Some(issuers)) => match issuers.look(token, digest, whence(headers)) {
                Look::Good(credential, until) => good(credential, until),
                Look::Bad(why) => Verdict::Bad(Why::Refused(why)),
                Look::Judging(judging) => Verdict::Judging(judging),
            },
        }
    }
}

/// What a request is let in with, or is not.
enum Verdict {
    /// No token is asked for.
    Open,
    Good(Credential),
    Bad(Why),
    /// It is waited for.
    Judging(Judging),
}

impl<S, B, R> tower::Service<Request<B>> for Authenticate<S>
where
    S: tower::Service<LetIn<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Unpin + Send,
    B: Send + 'static,
    R: From<Bytes> + Unpin + Send,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Authenticated<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(document) = self.door.issuers().and_then(|issuers| issuers.metadata(request.uri().path())) {
            return Authenticated::Refused(Some(refusal::json(document.into()).map(R::from)));
        }
        let whence = |headers: &HeaderMap| match (self.peer?, &self.whence) {
            (Peer::Address(_), Some(whence)) => whence(headers).map(Peer::Address),
            (peer, _) => Some(peer),
        };
        let verdict = match self.door.judge(request.headers_mut(), &self.last, whence) {
            // Let in while a token was asked for, and still there now that none is.
            Verdict::Open if self.is_other => Verdict::Bad(Why::Missing),
            verdict => verdict,
        };
        let credential = match verdict {
            Verdict::Open => self.user.as_ref().map(|user| {
                let (principal, grants, revocation) = (user.clone(), Grants::all(), self.door.open.now());
                Credential { principal, grants, revocation, expires: None }
            }),
            Verdict::Good(credential) => {
                self.door.accepted.increment(1);
                Some(credential)
            }
            Verdict::Bad(why) => {
                return Authenticated::Refused(Some(self.door.refuse(&why, self.peer, request.uri().path())));
            }
            Verdict::Judging(judging) => {
                let (inner, door, peer, uri) =
                    (self.inner.clone(), self.door.clone(), self.peer, request.uri().clone());
                return Authenticated::Judging(Box::pin(async move {
                    match judging.await {
                        Ok(credential) => {
                            door.accepted.increment(1);
                            inner.oneshot(LetIn { request, credential: Some(credential) }).await
                        }
                        Err(why) => Ok(door.refuse(&Why::Refused(why), peer, uri.path())),
                    }
                }));
            }
        };
        Authenticated::Inner(self.inner.call(LetIn { request, credential }))
    }
}

/// The answer of [`Authenticate`].
pub enum Authenticated<F: Future, R> {
    /// The request was let through.
    Inner(F),
    /// It was not.
    Refused(Option<Response<R>>),
    /// What it bears has to be judged elsewhere first.
    Judging(Pin<Box<dyn Future<Output = F::Output> + Send>>),
}

impl<F, R, E> Future for Authenticated<F, R>
where
    F: Future<Output = Result<Response<R>, E>> + Unpin,
    R: Unpin,
{
    type Output = Result<Response<R>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Inner(inner) => Pin::new(inner).poll(cx),
            Self::Refused(answer) => Poll::Ready(Ok(answer.take().expect("a future is not polled after its end"))),
            Self::Judging(judging) => judging.as_mut().poll(cx),
        }
    }
}

/// The answer to a request without any credential.
pub(super) fn refused<F: Future, R: From<Bytes>>() -> Authenticated<F, R> {
    Authenticated::Refused(Some(Why::Missing.answer(None, "").map(R::from)))
}

#[cfg(test)]
mod tests;

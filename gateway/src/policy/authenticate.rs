//! Who calls: a bearer token compared in constant time, before anything of the request is read.

use super::config::{Auth, Token};
use super::rights::{Changed, RightsBook};
use crate::call::caller::{Grants, Principal};
use crate::metrics::edges;
use crate::runtime::complaints::{Complaints, left_unsaid};
use ::metrics::Counter;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer");
const BAD_TOKEN: HeaderValue = HeaderValue::from_static("Bearer error=\"invalid_token\"");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Lets only requests through that bear a known token; without tokens everyone is the anonymous principal.
#[derive(Clone)]
pub struct AuthenticateLayer(Arc<Door>);

/// Who may come in, and who came.
struct Door {
    known: ArcSwap<Vec<Known>>,
    /// What they may see, and those who show certificates.
    rights: RightsBook,
    accepted: Counter,
    missing: Counter,
    unknown: Counter,
    /// Which refusals were logged last.
    complaints: Complaints,
}

/// A token that is known by its digest alone.
struct Known {
    digest: [u8; 32],
    principal: Principal,
    grants: Grants,
}

impl AuthenticateLayer {
    /// Knows the tokens of a configuration.
    pub fn new(auth: &Auth) -> Self {
        let rights = RightsBook::new(auth);
        Self(Arc::new(Door {
            known: ArcSwap::from_pointee(known(auth, &rights)),
            rights,
            accepted: edges::auth("accepted"),
            missing: edges::auth("missing"),
            unknown: edges::auth("unknown"),
            complaints: Complaints::default(),
        }))
    }

    /// What one may see.
    pub fn grants_of(&self, principal: &Principal) -> Grants {
        self.0.rights.of(principal)
    }

    /// From now on it knows these, on connections that are open too; those of whom a token is known no more, and those who may see
    /// something else.
    pub fn set(&self, auth: &Auth) -> (Vec<Principal>, Vec<Changed>) {
        let changed = self.0.rights.set(auth);
        let now = Arc::new(known(auth, &self.0.rights));
        let before = self.0.known.swap(now.clone());
        let is_known = |old: &&Known| now.iter().any(|new| new.digest == old.digest && new.principal == old.principal);
        let gone = before.iter().filter(|old| !is_known(old)).map(|old| old.principal.clone());
        let were_all = before.is_empty() && !now.is_empty();
        (gone.chain(were_all.then(Principal::anonymous)).collect(), changed)
    }

    /// Whether there is no token, so that anybody may call.
    pub fn is_open(&self) -> bool {
        self.0.known.load().is_empty()
    }

    /// All who may call; without tokens that is whoever does.
    pub fn principals(&self) -> Vec<Principal> {
        let known = self.0.known.load();
        let all = known.iter().map(|known| known.principal.clone());
        all.chain(known.is_empty().then(Principal::anonymous)).collect()
    }
}

fn known(auth: &Auth, rights: &RightsBook) -> Vec<Known> {
    let known = |token: &Token| {
        let principal = Principal::of_token(&token.name);
        Known { digest: token.digest, grants: rights.of(&principal), principal }
    };
    auth.tokens.iter().map(known).collect()
}

impl<S> tower::Layer<S> for AuthenticateLayer {
    type Service = Authenticate<S>;

    fn layer(&self, inner: S) -> Authenticate<S> {
        Authenticate { inner, door: self.0.clone(), peer: None }
    }
}

/// See [`AuthenticateLayer`].
#[derive(Clone)]
pub struct Authenticate<S> {
    inner: S,
    door: Arc<Door>,
    /// The other end of the connection, for the log.
    peer: Option<IpAddr>,
}

impl<S> Authenticate<S> {
    /// The same, for the requests of one connection.
    #[must_use]
    pub fn of(self, peer: IpAddr) -> Self {
        Self { peer: Some(peer), ..self }
    }
}

impl Door {
    /// Counts what became of a request, and logs a refusal: of each kind one line now and then, however many there are.
    fn count(&self, verdict: &Result<Option<(Principal, Grants)>, HeaderValue>, peer: Option<IpAddr>) {
        let (counter, kind) = match verdict {
            Ok(None) => return,
            Ok(Some(_)) => return self.accepted.increment(1),
            Err(challenge) if *challenge == BAD_TOKEN => (&self.unknown, "unknown"),
            Err(_) => (&self.missing, "missing"),
        };
        counter.increment(1);
        if let Some(more) = self.complaints.take(kind) {
            let (peer, more) = (peer.map(tracing::field::display), left_unsaid(more));
            tracing::warn!(peer, token = kind, more, "authentication failed");
        }
    }
}

impl<S, B, R> tower::Service<Request<B>> for Authenticate<S>
where
    S: tower::Service<Request<B>, Response = Response<R>>,
    S::Future: Unpin,
    R: From<Bytes> + Unpin,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Authenticated<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let verdict = judge(&self.door.known.load(), request.headers());
        self.door.count(&verdict, self.peer);
        // Nobody behind this layer has a use for it, and so nobody can pass it on. Few headers are walked faster than one is looked up.
        if request.headers().keys().any(|name| *name == header::AUTHORIZATION) {
            request.headers_mut().remove(header::AUTHORIZATION);
        }
        match verdict {
            Ok(None) => {}
            Ok(Some((principal, grants))) => {
                request.extensions_mut().insert(principal);
                request.extensions_mut().insert(grants);
            }
            Err(challenge) => return Authenticated::Refused(Some(refusal(challenge).map(R::from))),
        }
        Authenticated::Inner(self.inner.call(request))
    }
}

/// The answer of [`Authenticate`].
pub enum Authenticated<F, R> {
    /// The request was let through.
    Inner(F),
    /// It was not.
    Refused(Option<Response<R>>),
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
        }
    }
}

/// Whose token a request bears, and what its bearer may see; the challenge, where it bears none or not a known one.
fn judge(known: &[Known], headers: &HeaderMap) -> Result<Option<(Principal, Grants)>, HeaderValue> {
    if known.is_empty() {
        return Ok(None);
    }
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return Err(CHALLENGE) };
    let Some(token) = bearer(value.as_bytes()) else { return Err(CHALLENGE) };
    let digest: [u8; 32] = Sha256::digest(token).into();
    // Every token is compared, and to its end: how long it takes says nothing.
    let mut found = None;
    for candidate in known {
        if is_same(&candidate.digest, &digest) {
            found = Some(candidate);
        }
    }
    found.map(|known| Some((known.principal.clone(), known.grants.clone()))).ok_or(BAD_TOKEN)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

fn is_same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// The answer to a request without any credential.
pub(super) fn refused<F, R: From<Bytes>>() -> Authenticated<F, R> {
    Authenticated::Refused(Some(refusal(CHALLENGE).map(R::from)))
}

fn refusal(challenge: HeaderValue) -> Response<Bytes> {
    const MISSING: &[u8] = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"this gateway requires a token: send `Authorization: Bearer <token>` with one of those under [[auth.tokens]]"}}"#;
    const UNKNOWN: &[u8] = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"this token is not one of those under [[auth.tokens]]"}}"#;
    let mut response = Response::new(Bytes::from_static(if challenge == BAD_TOKEN { UNKNOWN } else { MISSING }));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    headers.insert(header::CONTENT_TYPE, JSON);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use tower::{Layer, ServiceExt, service_fn};

    /// The principal's name as the layer behind sees it, or the refusal.
    async fn ask(tokens: &[&str], authorization: &[&str]) -> (u16, String) {
        let token =
            |name: &&str| Token { name: (*name).into(), digest: Sha256::digest(name.as_bytes()).into(), roles: None };
        let auth = Auth { tokens: tokens.iter().map(token).collect(), ..Auth::default() };
        let inner = service_fn(|request: Request<()>| {
            assert!(!request.headers().contains_key(header::AUTHORIZATION));
            let principal = request.extensions().get::<Principal>().map(|p| p.name().to_owned());
            std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::from(
                principal.unwrap_or_else(|| "nobody".into()),
            ))))
        });
        let mut request = Request::get("/");
        for value in authorization {
            request = request.header(header::AUTHORIZATION, *value);
        }
        let response = AuthenticateLayer::new(&auth).layer(inner).oneshot(request.body(()).unwrap()).await.unwrap();
        assert_eq!(response.status() == 401, response.headers().contains_key(header::WWW_AUTHENTICATE));
        (response.status().as_u16(), String::from_utf8(response.into_body().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn only_bearers_of_a_known_token_pass_and_it_goes_no_further() {
        assert_eq!(ask(&["a", "b"], &["Bearer b"]).await, (200, "token:b".into()));
        assert_eq!(ask(&["a", "b"], &["bearer  a "]).await, (200, "token:a".into()));
        for bad in [&[][..], &["Bearer c"], &["Bearer "], &["Basic a"], &["Bearera"], &["Bearer a", "Bearer a"], &["a"]]
        {
            let (status, why) = ask(&["a", "b"], bad).await;
            // A wrong token is told apart from none.
            let is_unknown = matches!(bad, ["Bearer c"]);
            let words = if is_unknown { "is not one of those under [[auth.tokens]]" } else { "requires a token" };
            assert!(status == 401 && why.contains(words), "{bad:?}: {why}");
        }
        assert_eq!(ask(&[], &["Bearer x"]).await, (200, "nobody".into()));
    }

    #[tokio::test]
    async fn other_tokens_hold_at_once_and_whoever_lost_one_is_named() {
        let auth = |tokens: &[(&str, &str)]| {
            let token = |(name, text): &(&str, &str)| Token {
                name: (*name).into(),
                digest: Sha256::digest(text).into(),
                roles: None,
            };
            Auth { tokens: tokens.iter().map(token).collect(), ..Auth::default() }
        };
        let layer = AuthenticateLayer::new(&auth(&[]));
        let service = layer
            .layer(service_fn(|_: Request<()>| std::future::ready(Ok::<_, Infallible>(Response::new(Bytes::new())))));
        let asked = async |text: &str| {
            let request = Request::get("/").header(header::AUTHORIZATION, format!("Bearer {text}")).body(()).unwrap();
            service.clone().oneshot(request).await.unwrap().status().as_u16()
        };
        let names = |gone: Vec<Principal>| gone.iter().map(|one| one.name().to_owned()).collect::<Vec<_>>();
        assert_eq!(
            (asked("x").await, names(layer.set(&auth(&[("a", "1"), ("b", "2")])).0)),
            (200, vec![String::new()])
        );
        assert_eq!((asked("x").await, asked("1").await), (401, 200));
        assert_eq!(names(layer.set(&auth(&[("a", "3"), ("b", "2"), ("c", "4")])).0), ["token:a"]);
        assert_eq!([asked("1").await, asked("2").await, asked("3").await, asked("4").await], [401, 200, 200, 200]);
        assert_eq!(names(layer.set(&auth(&[("a", "3")])).0), ["token:b", "token:c"]);
        assert!(layer.set(&auth(&[("a", "3")])).0.is_empty());
    }
}

//! Who calls: a bearer token compared in constant time, before anything of the request is read.

use super::config::Auth;
use crate::call::caller::{Grants, Principal};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use sha2::{Digest, Sha256};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer");
const BAD_TOKEN: HeaderValue = HeaderValue::from_static("Bearer error=\"invalid_token\"");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Lets only requests through that bear a known token; without tokens everyone is the anonymous principal.
#[derive(Clone)]
pub struct AuthenticateLayer(Arc<[Known]>);

/// A token that is known by its digest alone.
struct Known {
    digest: [u8; 32],
    principal: Principal,
}

impl AuthenticateLayer {
    /// Knows the tokens of a configuration.
    pub fn new(auth: &Auth) -> Self {
        let known =
            auth.tokens.iter().map(|token| Known { digest: token.digest, principal: Principal::of_token(&token.name) });
        Self(known.collect())
    }
}

impl<S> tower::Layer<S> for AuthenticateLayer {
    type Service = Authenticate<S>;

    fn layer(&self, inner: S) -> Authenticate<S> {
        Authenticate { inner, known: self.0.clone() }
    }
}

/// See [`AuthenticateLayer`].
#[derive(Clone)]
pub struct Authenticate<S> {
    inner: S,
    known: Arc<[Known]>,
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
        let verdict = judge(&self.known, request.headers());
        // Nobody behind this layer has a use for it, and so nobody can pass it on.
        request.headers_mut().remove(header::AUTHORIZATION);
        match verdict {
            Ok(None) => {}
            Ok(Some(principal)) => {
                request.extensions_mut().insert(principal);
                request.extensions_mut().insert(Grants::all());
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

/// Whose token a request bears; the challenge, where it bears none or not a known one.
fn judge(known: &[Known], headers: &HeaderMap) -> Result<Option<Principal>, HeaderValue> {
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
            found = Some(candidate.principal.clone());
        }
    }
    found.map(Some).ok_or(BAD_TOKEN)
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

fn refusal(challenge: HeaderValue) -> Response<Bytes> {
    const WHY: &[u8] = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"this gateway asks for a token: send `Authorization: Bearer <token>` with one of those configured under `[auth]`"}}"#;
    let mut response = Response::new(Bytes::from_static(WHY));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    headers.insert(header::CONTENT_TYPE, JSON);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::config::Token;
    use std::convert::Infallible;
    use tower::{Layer, ServiceExt, service_fn};

    /// The principal's name as the layer behind sees it, or the refusal.
    async fn ask(tokens: &[&str], authorization: &[&str]) -> (u16, String) {
        let token = |name: &&str| Token { name: (*name).into(), digest: Sha256::digest(name.as_bytes()).into() };
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
            assert_eq!(ask(&["a", "b"], bad).await.0, 401, "{bad:?}");
        }
        assert_eq!(ask(&[], &["Bearer x"]).await, (200, "nobody".into()));
    }
}

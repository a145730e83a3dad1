//! Who calls over TLS: the subject of a client's certificate, else the bearer of a token.

use super::authenticate::{AuthenticateLayer, Authenticated, refused};
use crate::call::caller::credential::{Credential, LetIn};
use bytes::Bytes;
use futures_util::future::Either;
use http::{Request, Response, header};
use std::task::{Context, Poll};

/// The requests of one connection. What `S` answers is asked for by whom the certificate names, or by way of `A`.
#[derive(Clone)]
pub struct Certified<A, S> {
    credential: Option<Credential>,
    /// Where certificates are known: without one and without tokens nobody comes in.
    asks: Option<AuthenticateLayer>,
    otherwise: A,
    inner: S,
}

impl<A, S> Certified<A, S> {
    /// For a connection on which a certificate was shown that is this, if any.
    pub fn new(credential: Option<Credential>, asks: Option<AuthenticateLayer>, otherwise: A, inner: S) -> Self {
        Self { credential, asks, otherwise, inner }
    }
}

impl<A, S, B, R, F> tower::Service<Request<B>> for Certified<A, S>
where
    A: tower::Service<Request<B>, Response = Response<R>, Error = S::Error, Future = Authenticated<F, R>>,
    S: tower::Service<LetIn<B>, Response = Response<R>>,
    F: Future,
    Authenticated<F, R>: Future<Output = Result<Response<R>, S::Error>>,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Either<Authenticated<F, R>, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match &self.credential {
            Some(credential) => {
                request.headers_mut().remove(header::AUTHORIZATION);
                Either::Right(self.inner.call(LetIn { request, credential: Some(credential.clone()) }))
            }
            None if self.asks.as_ref().is_some_and(AuthenticateLayer::is_open) => Either::Left(refused()),
            None => Either::Left(self.otherwise.call(request)),
        }
    }
}

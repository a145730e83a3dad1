//! Serves the pages before anybody is asked for a token: a browser has none.

use super::pages::{Connect, PATH};
use bytes::Bytes;
use http::{Method, Request, Response};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Answers browsers at the pages of the gateway, and lets everything else through.
#[derive(Clone)]
pub struct ConnectLayer(pub Connect);

impl<S> tower::Layer<S> for ConnectLayer {
    type Service = Visiting<S>;

    fn layer(&self, inner: S) -> Visiting<S> {
        Visiting { inner, connect: self.0.clone() }
    }
}

/// See [`ConnectLayer`].
#[derive(Clone)]
pub struct Visiting<S> {
    inner: S,
    connect: Connect,
}

/// The answer of [`Visiting`].
pub enum Visited<F, R> {
    /// The request was let through.
    Inner(F),
    /// It is a browser's.
    Page(Pin<Box<dyn Future<Output = Response<R>> + Send>>),
}

impl<F, R, E> Future for Visited<F, R>
where
    F: Future<Output = Result<Response<R>, E>> + Unpin,
{
    type Output = Result<Response<R>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Inner(inner) => Pin::new(inner).poll(cx),
            Self::Page(page) => page.as_mut().poll(cx).map(Ok),
        }
    }
}

impl<S, B, R> tower::Service<Request<B>> for Visiting<S>
where
    S: tower::Service<Request<B>, Response = Response<R>>,
    S::Future: Unpin,
    R: From<Bytes> + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Visited<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_page = request.method() == Method::GET && self.connect.is_reached();
        let Some(path) = request.uri().path().strip_prefix(PATH).filter(|_| is_page) else {
            return Visited::Inner(self.inner.call(request));
        };
        let query = request.uri().query().unwrap_or_default().to_owned();
        let answer = self.connect.clone().answer(path.to_owned(), query, request.headers().clone());
        Visited::Page(Box::pin(async move { answer.await.map(R::from) }))
    }
}

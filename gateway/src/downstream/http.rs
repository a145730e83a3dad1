//! Streamable HTTP: one endpoint for both eras.

mod body;
mod decide;
mod endpoint;
mod feeds;
mod heads;
mod legacy;
mod modern;
mod ops;
mod post;
mod read;
mod respond;
mod stream;
#[cfg(test)]
mod tests;
mod work;

pub use body::Body;

use super::config::Config;
use crate::call::Handler;
use crate::lifecycle::{Tasks, chain};
use bytes::Bytes;
use endpoint::Endpoint;
use http::{Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What a gateway is told that leads back here.
const LOOP: &str = "a gateway would be an upstream of its own, maybe by way of others; take the upstream that closes the circle out of \
                    one gateway's configuration and restart that gateway: the others find it out within a minute";

/// The endpoint, as a `tower::Service`; clones are the same endpoint.
#[derive(Clone)]
pub struct Face(Arc<Endpoint>);

impl Face {
    /// An endpoint over a handler. Its sessions and what goes on without a connection live in `tasks`.
    pub fn new(handler: Handler, config: Config, tasks: Tasks) -> Self {
        let endpoint = Arc::new(Endpoint::new(handler, config, tasks));
        let swept = endpoint.clone();
        endpoint.edge.tasks.spawn_until_end(async move {
            loop {
                tokio::time::sleep(swept.sessions.sweep_interval()).await;
                swept.sessions.sweep();
            }
        });
        let closed = endpoint.clone();
        endpoint.edge.tasks.spawn(async move {
            closed.edge.tasks.ending().await;
            // First of all: nobody can come back for them.
            closed.edge.parked.close();
        });
        Self(endpoint)
    }
}

impl<B> tower::Service<Request<B>> for Face
where
    B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = self.0.clone();
        Box::pin(async move { Ok(serve(endpoint, request).await) })
    }
}

async fn serve<B>(endpoint: Arc<Endpoint>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
{
    if request.uri().path() != endpoint.config.path {
        let why = format!("there is nothing here; the MCP endpoint is at {}", endpoint.config.path);
        return respond::misused(StatusCode::NOT_FOUND, &why);
    }
    let (head, body) = request.into_parts();
    if !head.headers.get_all(chain::HEADER).iter().all(chain::admits) {
        return respond::misused(StatusCode::LOOP_DETECTED, LOOP);
    }
    let who = endpoint.who(&head.extensions);
    match head.method {
        Method::POST => post::post(&endpoint, who, &head.headers, body).await,
        Method::GET => ops::get(&endpoint, &who, &head.headers),
        Method::DELETE => ops::delete(&endpoint, &who, &head.headers),
        _ => respond::misused(StatusCode::METHOD_NOT_ALLOWED, "this endpoint takes POST, GET and DELETE"),
    }
}

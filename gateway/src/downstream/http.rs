//! Streamable HTTP: one endpoint for both eras.

mod body;
mod feeds;
mod legacy;
mod modern;
mod ops;
mod post;
mod read;
mod respond;
mod stream;
#[cfg(test)]
mod tests;

pub use body::Body;

use super::config::Config;
use super::edge::Edge;
use super::peer::Who;
use super::sessions::Sessions;
use crate::call::{Grants, Handler, Principal};
use crate::lifecycle::Tasks;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The endpoint, as a `tower::Service`; clones are the same endpoint.
#[derive(Clone)]
pub struct Face(Arc<Endpoint>);

/// What every request to the endpoint shares.
struct Endpoint {
    edge: Arc<Edge>,
    config: Config,
    sessions: Sessions,
    anonymous: Who,
}

impl Face {
    /// An endpoint over a handler. Its sessions and what goes on without a connection live in `tasks`.
    pub fn new(handler: Handler, config: Config, tasks: Tasks) -> Self {
        let edge = Arc::new(Edge::new(handler, &config.name, config.shutdown_grace, tasks));
        let sessions = Sessions::new(config.session.clone());
        let endpoint = Arc::new(Endpoint { edge, config, sessions, anonymous: Who::anonymous() });
        let swept = endpoint.clone();
        endpoint.edge.tasks.spawn_until_end(async move {
            loop {
                tokio::time::sleep(swept.sessions.sweep_interval()).await;
                swept.sessions.sweep();
            }
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
        Box::pin(async move { Ok(endpoint.serve(request).await) })
    }
}

impl Endpoint {
    async fn serve<B>(self: Arc<Self>, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
    {
        if request.uri().path() != self.config.path {
            let why = format!("there is nothing here; the MCP endpoint is at {}", self.config.path);
            return respond::misused(StatusCode::NOT_FOUND, &why);
        }
        let (head, body) = request.into_parts();
        let who = self.who(&head);
        match head.method {
            Method::POST => post::post(&self, who, &head.headers, body).await,
            Method::GET => ops::get(&self, &who, &head.headers),
            Method::DELETE => ops::delete(&self, &who, &head.headers),
            _ => respond::misused(StatusCode::METHOD_NOT_ALLOWED, "this endpoint takes POST, GET and DELETE"),
        }
    }

    /// Whose request it is, as the layers before found out; without them there is nobody to tell apart.
    fn who(&self, head: &http::request::Parts) -> Who {
        match head.extensions.get::<Principal>() {
            Some(principal) => {
                let grants = head.extensions.get::<Grants>().cloned().unwrap_or_else(Grants::all);
                Who { principal: principal.clone(), grants }
            }
            None => self.anonymous.clone(),
        }
    }
}

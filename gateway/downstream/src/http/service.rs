//! The endpoint as a `tower::Service`.

use super::answering::Answering;
use super::endpoint::Endpoint;
use super::stream::Body;
use crate::call::Handler;
use crate::call::caller::credential::{LetIn, OpenAccess};
use crate::config::{Config, Faces};
use crate::edge::LastCaller;
use crate::listen::Arrival;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::runtime::Tasks;
use crate::runtime::timer::late::passes;
use bytes::Bytes;
use http::{HeaderValue, Response};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A session, for whoever looks.
#[derive(Debug)]
pub struct ShownSession {
    /// Tells it from others; its id is secret.
    pub mark: String,
    /// Who opened it; empty without tokens.
    pub principal: String,
    /// The address of its client, where it is known.
    pub address: Option<IpAddr>,
    /// What it speaks.
    pub revision: &'static str,
    /// How long nothing has come of it; `None` while it is at work or has a stream.
    pub idle: Option<Duration>,
}

/// The endpoint, as a `tower::Service`; clones are the same endpoint.
#[derive(Clone)]
pub struct McpService {
    endpoint: Arc<Endpoint>,
    /// What is served of it.
    faces: Faces,
    /// What those are let in with who show nothing.
    open: OpenAccess,
    /// The connection whose requests it answers, where that is known.
    arrival: Option<Arrival>,
    /// Who made the last call on it.
    last: Arc<LastCaller>,
}

impl McpService {
    /// An endpoint over a handler. Its sessions and what goes on without a connection live in the first level; what still runs when the
    /// second one is told to end is answered as cut off.
    pub fn new(handler: Handler, config: Config, levels: (Tasks, Tasks), room: (&Budget, &Refusals)) -> Self {
        let faces = config.faces();
        let endpoint = Arc::new(Endpoint::new(handler, config, levels, room));
        let swept = endpoint.clone();
        endpoint.edge.tasks.spawn_until_end(async move {
            loop {
                passes(swept.sessions.sweep_interval()).await;
                swept.sessions.sweep();
            }
        });
        endpoint.edge.tasks.spawn(endpoint.sessions.wishes.clone().keep(endpoint.edge.tasks.clone()));
        let closed = endpoint.clone();
        endpoint.edge.tasks.spawn(async move {
            closed.edge.tasks.ending().await;
            // First of all: nobody can come back for them.
            closed.edge.parked.close();
        });
        Self { endpoint, faces, open: OpenAccess::default(), arrival: None, last: Arc::default() }
    }

    /// Makes the challenge with this for a token that is refused after its request was let in.
    pub fn challenge_with(&self, make: impl Fn() -> Option<HeaderValue> + Send + Sync + 'static) {
        let _is_first = self.endpoint.challenge.set(Box::new(make));
    }

    /// Ends the sessions that were opened with what is revoked by now; streams end by themselves.
    pub fn end_revoked(&self) {
        self.endpoint.sessions.end_revoked();
    }

    /// The sessions of handshake clients, at most so many, for whoever looks.
    pub fn sessions(&self, most: usize) -> Vec<ShownSession> {
        let sessions = self.endpoint.sessions.some(most);
        let shown = sessions.iter().map(|session| ShownSession {
            mark: session.caller().tenant.as_ref().map(|tenant| tenant.mark()).unwrap_or_default(),
            principal: session.caller().principal.name().to_owned(),
            address: session.caller().address,
            revision: session.caller().revision.as_str(),
            idle: session.idle(),
        });
        shown.collect()
    }

    /// The same endpoint, of which this is served, also to those without a credential while that is open to them.
    pub fn serving(&self, faces: Faces, open: &OpenAccess) -> Self {
        Self { faces, open: open.clone(), ..self.clone() }
    }

    /// The same endpoint, for the requests of one connection.
    pub fn on(&self, arrival: &Arrival) -> Self {
        Self { arrival: Some(arrival.clone()), last: Arc::default(), ..self.clone() }
    }
}

impl<B> tower::Service<LetIn<B>> for McpService
where
    B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: LetIn<B>) -> Self::Future {
        let served = (self.faces, self.open.now());
        Answering::new(self.endpoint.clone(), served, (self.arrival.clone(), self.last.clone()), request)
    }
}

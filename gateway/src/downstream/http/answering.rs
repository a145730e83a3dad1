//! A request on its way to its response, as one future: neither boxed nor made of futures that each keep the request once more.

use super::decide::Deciding;
use super::endpoint::Endpoint;
use super::post::{self, Begun};
use super::read::{self, Terms, Unread};
use super::stream::Body;
use super::work::Work;
use super::{ops, respond};
use crate::downstream::config::Config;
use crate::downstream::edge::Heads;
use crate::downstream::edge::client_era::{self, Who};
use crate::downstream::listen::Arrival;
use crate::health::chain;
use crate::memory::account::Hold;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Longer addresses are not looked into.
const URI_BYTES_MAX: usize = 8192;
/// What a gateway is told that leads back here.
const LOOP: &str = "a gateway would be an upstream of its own, maybe by way of others; take the upstream that closes the circle out of \
                    one gateway's configuration and restart that gateway: the others find it out within a minute";

/// A request that is being answered.
pub struct Answering<B> {
    endpoint: Arc<Endpoint>,
    arrival: Option<Arrival>,
    /// A gateway asks: it is told which gateways lie below.
    is_of_gateway: bool,
    stage: Stage<B>,
}

enum Stage<B> {
    /// Nothing of it was looked at.
    Arrived(Request<B>),
    /// Its body is not there in one piece.
    Reading(HeaderMap, Reading),
    /// It is waited for. The map of its headers is done with, and bears those of the response.
    Working(HeaderMap, Deciding<Work>),
    Over,
}

/// How a request goes on; boxed, what is answered at once.
type Next<B> = Result<Stage<B>, Box<Response<Body>>>;

/// A body that is read, and of whom.
type Reading = Pin<Box<dyn Future<Output = (Who, Result<(Bytes, Option<Hold>), Unread>)> + Send>>;

impl<B> Answering<B>
where
    B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
{
    /// The answer to a request, of which nothing is looked at yet.
    pub(super) fn new(endpoint: Arc<Endpoint>, arrival: Option<Arrival>, request: Request<B>) -> Self {
        Self { endpoint, arrival, is_of_gateway: false, stage: Stage::Arrived(request) }
    }

    fn take(&mut self) -> Stage<B> {
        std::mem::replace(&mut self.stage, Stage::Over)
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Response<Body>> {
        let Stage::Working(_, deciding) = &mut self.stage else { return Poll::Pending };
        let first = ready!(deciding.poll(cx));
        let Stage::Working(map, deciding) = self.take() else { return Poll::Pending };
        let response = deciding.work.respond(&self.endpoint, first, map);
        Poll::Ready(self.last(response))
    }

    /// What is said of any response.
    fn last(&mut self, mut response: Response<Body>) -> Response<Body> {
        self.stage = Stage::Over;
        if self.is_of_gateway {
            response.headers_mut().insert(chain::LEADS_TO, chain::leads_to());
        }
        response
    }

    /// Answers what needs no body, and begins to read it where one is needed.
    fn arrived(&mut self, request: Request<B>, cx: &mut Context<'_>) -> Next<B> {
        let endpoint = &self.endpoint;
        let answered = |response| Err(Box::new(response));
        let misused = |status, why: &str| answered(respond::misused(status, why));
        if request.uri().path_and_query().is_some_and(|asked| asked.as_str().len() > URI_BYTES_MAX) {
            return misused(StatusCode::URI_TOO_LONG, "the request URI is longer than 8192 bytes");
        }
        if request.uri().path() != endpoint.config.path {
            let why = format!("not found; the MCP endpoint is at {}", endpoint.config.path);
            return misused(StatusCode::NOT_FOUND, &why);
        }
        let (head, body) = request.into_parts();
        let heads = Heads::of(&head.headers);
        self.is_of_gateway = heads.is_of_gateway;
        if heads.is_of_gateway && !head.headers.get_all(chain::VIA).iter().all(chain::admits) {
            return misused(StatusCode::LOOP_DETECTED, LOOP);
        }
        if let Some(name) = heads.doubled() {
            return answered(respond::doubled(&name, heads.version().is_some_and(client_era::is_modern)));
        }
        let who = match endpoint.who(self.arrival.as_ref(), &head.extensions, &head.headers) {
            Ok(who) => who,
            Err(share) => {
                endpoint.edge.refusals.turn_away("connections", &format_args!("{share} has its part of them"));
                return answered(respond::crowded(&share));
            }
        };
        match head.method {
            Method::POST if heads.is_json() => match self.posted(who, &heads, body, cx) {
                Ok(begun) => Stage::begun(head.headers, begun),
                Err(reading) => Ok(Stage::Reading(head.headers, reading)),
            },
            Method::POST => misused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "`Content-Type` must be application/json"),
            Method::GET => answered(ops::get(endpoint, &who, &heads)),
            Method::DELETE => answered(ops::delete(endpoint, &who, &heads)),
            _ => misused(StatusCode::METHOD_NOT_ALLOWED, "this endpoint takes POST, GET and DELETE"),
        }
    }

    /// Begins what a POST asks for, where its body is there in one piece, as nearly all are.
    fn posted(&self, who: Who, heads: &Heads<'_>, mut body: B, cx: &mut Context<'_>) -> Result<Begun, Reading> {
        let (endpoint, length) = (self.endpoint.clone(), heads.content_length());
        match read::at_once(&mut body, length, endpoint.config.max_body, cx) {
            Ok(text) => Ok(post::begin(&endpoint, who, heads, Ok((text, None)))),
            Err(look) => Err(Box::pin(async move {
                let Config { max_body: max, header_read_timeout: pause, .. } = endpoint.config;
                let terms = Terms { max, pause, budget: &endpoint.edge.budget, who: &who };
                let read = post::unless_too_many(&endpoint, &who, read::body(body, look, length, terms)).await;
                (who, read)
            })),
        }
    }
}

impl<B> Stage<B> {
    fn begun(mut map: HeaderMap, begun: Begun) -> Next<B> {
        let work = begun?;
        map.clear();
        Ok(Self::Working(map, work))
    }
}

impl<B> Future for Answering<B>
where
    B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
{
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let next = match &mut this.stage {
                Stage::Arrived(_) => match this.take() {
                    Stage::Arrived(request) => this.arrived(request, cx),
                    _ => unreachable!("it was so a line above"),
                },
                Stage::Reading(map, reading) => {
                    let (who, read) = ready!(reading.as_mut().poll(cx));
                    let begun = post::begin(&this.endpoint, who, &Heads::of(map), read);
                    Stage::begun(std::mem::take(map), begun)
                }
                Stage::Working(..) => return this.poll_work(cx).map(Ok),
                Stage::Over => unreachable!("a future is not polled after its end"),
            };
            match next {
                Ok(stage) => this.stage = stage,
                Err(response) => return Poll::Ready(Ok(this.last(*response))),
            }
        }
    }
}

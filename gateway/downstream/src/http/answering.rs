//! A request on its way to its response, as one future: neither boxed nor made of futures that each keep the request once more.

use super::duplex::{self, Peer};
use super::endpoint::Endpoint;
use super::post::{self, Begun};
use super::read::{self, Terms, Unread};
use super::stream::Body;
use super::work::{Deciding, Work};
use super::{ops, respond};
use crate::call::caller::credential::{LetIn, Revocation};
use crate::config::{Config, Faces};
use crate::edge::client_era::{self, Who};
use crate::edge::{Heads, LastCaller};
use crate::health::chain;
use crate::listen::Arrival;
use crate::memory::account::Hold;
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Longer addresses are not looked into.
const URI_BYTES_MAX: usize = 8192;
/// What a gateway is told that leads back here.
const LOOP: &str = "this gateway is its own upstream, directly or through other gateways; remove the upstream that closes the loop from \
                    one gateway's configuration and restart that gateway: the others recover within a minute";

/// A request that is being answered.
pub struct Answering<B> {
    endpoint: Arc<Endpoint>,
    arrival: Option<Arrival>,
    last: Arc<LastCaller>,
    faces: Faces,
    /// Whether what it was let in with still counts.
    revocation: Revocation,
    /// A gateway asks: it is told which gateways lie below.
    is_of_gateway: bool,
    /// The client with two endpoints whose message it is.
    peer: Option<Arc<Peer>>,
    stage: Stage<B>,
}

/// What is asked for by a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    /// The endpoint.
    Endpoint,
    /// The stream of a client with two endpoints.
    Stream,
    /// Its messages.
    Messages,
    /// A WebSocket.
    WebSocket,
}

enum Stage<B> {
    /// Nothing of it was looked at.
    Arrived(LetIn<B>),
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
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        (faces, open): (Faces, Revocation),
        (arrival, last): (Option<Arrival>, Arc<LastCaller>),
        request: LetIn<B>,
    ) -> Self {
        let stage = Stage::Arrived(request);
        Self { endpoint, arrival, last, faces, revocation: open, is_of_gateway: false, peer: None, stage }
    }

    fn take(&mut self) -> Stage<B> {
        std::mem::replace(&mut self.stage, Stage::Over)
    }

    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Response<Body>> {
        let Stage::Working(_, deciding) = &mut self.stage else { return Poll::Pending };
        let timers = self.arrival.as_ref().map_or(&self.endpoint.edge.timers, Arrival::timers);
        let first = ready!(deciding.poll(timers, cx));
        let Stage::Working(map, deciding) = self.take() else { return Poll::Pending };
        // What it waited for was begun before: nobody is left to whom the answer could be shown.
        let response = match self.revocation.is_withdrawn() {
            true => respond::revoked(self.endpoint.challenge()),
            false => deciding.work.respond(&self.endpoint, first, map, &self.revocation),
        };
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
    fn arrived(&mut self, let_in: LetIn<B>, cx: &mut Context<'_>) -> Next<B> {
        let LetIn { request, credential } = let_in;
        let endpoint = &self.endpoint;
        let answered = |response| Err(Box::new(response));
        let misused = |status, why: &str| answered(respond::misused(status, why));
        if request.uri().path_and_query().is_some_and(|asked| asked.as_str().len() > URI_BYTES_MAX) {
            return misused(StatusCode::URI_TOO_LONG, "the request URI is longer than 8192 bytes");
        }
        let Some(route) = route(&endpoint.config, self.faces, request.uri().path()) else {
            return misused(StatusCode::NOT_FOUND, &elsewhere(&endpoint.config, self.faces));
        };
        let (head, body) = request.into_parts();
        let heads = Heads::of(&head.headers);
        self.is_of_gateway = heads.is_of_gateway;
        if heads.is_of_gateway && !head.headers.get_all(chain::VIA).iter().all(chain::admits) {
            return misused(StatusCode::LOOP_DETECTED, LOOP);
        }
        if let Some(name) = heads.doubled() {
            return answered(respond::doubled(&name, heads.version().is_some_and(client_era::is_modern)));
        }
        let open = std::mem::take(&mut self.revocation);
        let who = match endpoint.who((self.arrival.as_ref(), &self.last), credential, (&head.headers, open)) {
            Ok(who) => who,
            Err(share) => {
                endpoint.edge.refusals.turn_away("connections", &format_args!("{share} has its part of them"));
                return answered(respond::crowded(&share));
            }
        };
        self.revocation = who.revocation.clone();
        match route {
            Route::Endpoint => {}
            Route::Stream if head.method == Method::GET => {
                let config = &endpoint.config;
                let prefix = config.public_url.as_ref().map_or("", |public| &public.prefix);
                let stream = endpoint.clients.open(&endpoint.edge, &who, (config.sse_keepalive, prefix));
                return answered(stream);
            }
            // A client of Streamable HTTP that tries this address takes the other transport then.
            Route::Stream => {
                return answered(respond::no_method(
                    "a stream is opened with GET; messages go where its first event says",
                    "GET",
                ));
            }
            Route::Messages if head.method == Method::POST => match endpoint.clients.find(head.uri.query(), &who) {
                Some(peer) => self.peer = Some(peer),
                None => {
                    return misused(
                        StatusCode::NOT_FOUND,
                        "there is no such session, or its stream has ended; open another one",
                    );
                }
            },
            Route::WebSocket => return answered(duplex::upgrade(endpoint, who, &head, self.arrival.as_ref())),
            Route::Messages => return answered(respond::no_method("messages are sent with POST", "POST")),
        }
        match head.method {
            Method::POST if heads.is_encoded => answered(respond::encoded()),
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
        if length.is_some_and(|length| length > endpoint.config.max_body) {
            // Before it is looked at: a client that asks first whether it may send it is not told to.
            return Ok(self.begin(who, heads, Err(Unread::TooLarge)));
        }
        match read::at_once(&mut body, length, endpoint.config.max_body, cx) {
            Ok(text) => Ok(self.begin(who, heads, Ok((text, None)))),
            Err(look) => Err(Box::pin(async move {
                let Config { max_body: max, header_read_timeout: pause, .. } = endpoint.config;
                let terms = Terms { max, pause, budget: &endpoint.edge.budget, who: &who };
                let read = post::unless_too_many(&endpoint, &who, read::body(body, look, length, terms)).await;
                (who, read)
            })),
        }
    }
}

impl<B> Answering<B> {
    /// What follows a body that was read, or was not. What its request was let in with may have been taken back while it came; what is over
    /// by its time was good when it was shown.
    fn begin(&self, who: Who, heads: &Heads<'_>, read: Result<(Bytes, Option<Hold>), Unread>) -> Begun {
        if self.revocation.is_withdrawn() {
            return Err(Box::new(respond::revoked(self.endpoint.challenge())));
        }
        let Some(peer) = &self.peer else { return post::begin(&self.endpoint, who, heads, read) };
        let taken = peer.take(&who, read.map(|(text, _)| text), heads.trace());
        Err(Box::new(taken.unwrap_or_else(|unread| post::unread(&self.endpoint, &unread))))
    }
}

/// What a path asks for.
fn route(config: &Config, faces: Faces, path: &str) -> Option<Route> {
    match path {
        path if faces.mcp && path == config.path => Some(Route::Endpoint),
        duplex::STREAM if faces.sse => Some(Route::Stream),
        duplex::MESSAGES if faces.sse => Some(Route::Messages),
        duplex::WEBSOCKET if faces.websocket => Some(Route::WebSocket),
        _ => None,
    }
}

/// What is said of any other path.
fn elsewhere(config: &Config, faces: Faces) -> String {
    let served = [(faces.mcp, config.path.as_str()), (faces.sse, duplex::STREAM), (faces.websocket, duplex::WEBSOCKET)];
    let first = served.iter().find(|(is_served, _)| *is_served).map_or("/", |(_, path)| path);
    format!("not found; the MCP endpoint is at {first}")
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
                    let map = std::mem::take(map);
                    let begun = this.begin(who, &Heads::of(&map), read);
                    Stage::begun(map, begun)
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

//! The one way out: every request to an HTTP upstream is sent here, and sent on where the upstream says that it is to be.

use super::breaker;
use super::client::HttpClient;
use super::connection::Origin;
use super::connection::pool::{Held, Lane, Outgoing};
use super::response::body::beside_status;
use super::response::refusal::cut;
use super::status::{HttpStatusError, is_sent_on};
use super::token::{Token, TokenSource};
use crate::health::{Cause, CauseCode};
use crate::transport::exchange::Lost;
use http::header::{CONTENT_LENGTH, LOCATION, TRANSFER_ENCODING};
use http::{Response, StatusCode, Uri};
use http_body::Body as _;
use hyper::body::Incoming;
use std::sync::Arc;

/// So often one request is sent on.
const HOPS_MAX: usize = 5;

/// How far a request has come; whoever gives it up says by this whether it may have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// It waits for an access token: it was not sent, or the upstream has refused it with a 401.
    AwaitsToken,
    /// It waits for a connection: it was not sent, or the upstream has sent it elsewhere.
    AwaitsConnection,
    /// It may have left.
    MayHaveLeft,
}

/// The head of a response, and the connection that its body comes on.
pub(super) struct Received {
    pub(super) response: Response<Incoming>,
    pub(super) held: Held,
    /// Where the request was sent on to.
    pub(super) moved_to: Option<Box<Uri>>,
}

impl HttpClient {
    /// Sends a request, which is taken out of its place, and waits for the head of its response. `again` makes the same request once
    /// more, where the upstream proves that it did not run; `comes` is told how far it has come.
    ///
    /// A 307 or 308 within the upstream's own origin is followed for this request alone, with its method, headers and body. A 401 to a
    /// token that was fetched is answered with the next one, once.
    pub(super) async fn send(
        &self,
        lane: Lane<'_>,
        request: &mut Option<Outgoing>,
        again: &(dyn Fn() -> Outgoing + Sync),
        comes: &(impl Fn(Course) + Sync),
    ) -> Result<Received, Lost> {
        let token = match self.shown() {
            None => None,
            Some(tokens) => Some(match tokens.current(&self.tasks) {
                Some(token) => token,
                None => {
                    comes(Course::AwaitsToken);
                    // Boxed, as it is rare: every call has a future of the size of this one.
                    let token = Box::pin(self.first_token(tokens)).await?;
                    comes(Course::AwaitsConnection);
                    token
                }
            }),
        };
        if let (Some(token), Some(request)) = (&token, request.as_mut()) {
            token.put(request.headers_mut());
        }
        let make = || token.as_ref().map_or_else(again, |token| with(token, again));
        let (response, held) = self.pool.send(lane, request, &make, &|| comes(Course::MayHaveLeft)).await?;
        ends_once(&response)?;
        let received = Received { response, held, moved_to: None };
        let Some(token) = token else {
            if !is_sent_on(received.response.status()) {
                return Ok(received);
            }
            return Box::pin(self.follow(lane, received, again, comes)).await;
        };
        if !is_sent_on(received.response.status()) && received.response.status() != StatusCode::UNAUTHORIZED {
            token.taken();
            return Ok(received);
        }
        Box::pin(self.go_on(lane, received, again, comes, token)).await
    }

    /// Sends a request on a connection of its own, which its response may have become something else.
    pub(super) async fn send_alone(&self, make: &(dyn Fn() -> Outgoing + Sync)) -> Result<Response<Incoming>, Lost> {
        let Some(tokens) = self.shown() else { return self.pool.send_alone(make()).await };
        let token = self.first_token(tokens).await?;
        let response = self.pool.send_alone(with(&token, make)).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            token.taken();
            breaker::admitted(self);
            return Ok(response);
        }
        if !tokens.can_replace(&token) {
            return Ok(response);
        }
        drop(response);
        let next = self.next_token(tokens, &token).await?;
        let response = self.pool.send_alone(with(&next, make)).await?;
        next.judged(response.status());
        if response.status() != StatusCode::UNAUTHORIZED {
            breaker::admitted(self);
        }
        Ok(response)
    }

    /// The token that requests are shown, where they are.
    fn shown(&self) -> Option<&dyn TokenSource> {
        self.tokens.as_deref().filter(|tokens| tokens.is_active())
    }

    async fn first_token(&self, tokens: &dyn TokenSource) -> Result<Arc<Token>, Lost> {
        let epoch = self.epoch.number();
        let token = tokens.fetch(&self.tasks).await.map_err(|why| match why.code() {
            // The upstream has not failed: it would refuse whatever it is sent, until a person has done something.
            CauseCode::LoginRequired => {
                let status = StatusCode::UNAUTHORIZED.as_u16();
                let refusal = HttpStatusError { status, text: why, retry_after: None };
                breaker::denied(self, &refusal);
                Lost::Status(refusal)
            }
            CauseCode::LoginChanged => Lost::Session(why),
            _ => Lost::Unsent(why),
        })?;
        self.epoch.ended(epoch).map_or(Ok(token), |why| Err(Lost::Unsent(why)))
    }

    /// The token behind one that was refused; else the refusal stands, with the reason why there is no other one.
    async fn next_token(&self, tokens: &dyn TokenSource, refused: &Arc<Token>) -> Result<Arc<Token>, Lost> {
        let epoch = self.epoch.number();
        let next = tokens.replace(refused, &self.tasks).await.map_err(|why| {
            // What was refused did not run, and its session ends for one of the next login.
            if why.code() == CauseCode::LoginChanged {
                return Lost::Session(why);
            }
            let status = StatusCode::UNAUTHORIZED.as_u16();
            let refusal = HttpStatusError::bare(status, Cause::default().own("HTTP 401; ").then(&why));
            match why.code() {
                // The upstream takes the token for other requests.
                CauseCode::HttpStatus(_) => breaker::admitted(self),
                // The client gets another token for itself.
                CauseCode::ClientTokenRefused => {}
                _ => breaker::denied(self, &refusal),
            }
            Lost::Status(refusal)
        })?;
        self.epoch.ended(epoch).map_or(Ok(next), |why| Err(Lost::Unsent(why)))
    }

    /// Follows a response that was shown a token and leads elsewhere, and answers a 401 with the next token, once: neither has run.
    async fn go_on(
        &self,
        lane: Lane<'_>,
        received: Received,
        again: &(dyn Fn() -> Outgoing + Sync),
        comes: &(impl Fn(Course) + Sync),
        token: Arc<Token>,
    ) -> Result<Received, Lost> {
        let Some(tokens) = self.tokens.as_deref() else { return Ok(received) };
        let received = self.followed(lane, received, &|| with(&token, again), comes).await?;
        if received.response.status() != StatusCode::UNAUTHORIZED {
            token.taken();
            return Ok(received);
        }
        if !tokens.can_replace(&token) {
            return Ok(received);
        }
        comes(Course::AwaitsToken);
        // Its connection is for others meanwhile.
        let Received { response, held, .. } = received;
        if beside_status(response.into_body(), self.inbox.budget()).await.is_some() {
            self.pool.put(held);
        } else {
            drop(held);
        }
        let next = self.next_token(tokens, &token).await?;
        comes(Course::AwaitsConnection);
        let make = || with(&next, again);
        let received = self.sent(lane, &make, comes).await?;
        let received = self.followed(lane, received, &make, comes).await?;
        next.judged(received.response.status());
        Ok(received)
    }

    /// Sends a request that was sent before, as it is now.
    async fn sent(
        &self,
        lane: Lane<'_>,
        make: &(dyn Fn() -> Outgoing + Sync),
        comes: &(impl Fn(Course) + Sync),
    ) -> Result<Received, Lost> {
        let begun = || comes(Course::MayHaveLeft);
        let (response, held) = self.pool.send(lane, &mut Some(make()), make, &begun).await?;
        ends_once(&response)?;
        Ok(Received { response, held, moved_to: None })
    }

    async fn followed(
        &self,
        lane: Lane<'_>,
        received: Received,
        again: &(dyn Fn() -> Outgoing + Sync),
        comes: &(impl Fn(Course) + Sync),
    ) -> Result<Received, Lost> {
        match is_sent_on(received.response.status()) {
            true => self.follow(lane, received, again, comes).await,
            false => Ok(received),
        }
    }

    async fn follow(
        &self,
        lane: Lane<'_>,
        received: Received,
        again: &(dyn Fn() -> Outgoing + Sync),
        comes: &(impl Fn(Course) + Sync),
    ) -> Result<Received, Lost> {
        let Received { mut response, mut held, .. } = received;
        let epoch = self.epoch.number();
        let mut place = again().uri().clone();
        for _ in 0..HOPS_MAX {
            let found = leads_to(&self.origin, &place, &response).map_err(Lost::Status)?;
            comes(Course::AwaitsConnection);
            if response.body().is_end_stream() {
                self.pool.put(held);
            }
            if let Some(why) = self.epoch.ended(epoch) {
                return Err(Lost::Unsent(why));
            }
            let make = || {
                let mut request = again();
                *request.uri_mut() = found.clone();
                request
            };
            let received = self.sent(lane, &make, comes).await?;
            if !is_sent_on(received.response.status()) {
                return Ok(Received { moved_to: Some(Box::new(found)), ..received });
            }
            (response, held, place) = (received.response, received.held, found);
        }
        let status = response.status().as_u16();
        let text = format!("HTTP {status}: it sends the same request on more than {HOPS_MAX} times");
        Err(Lost::Status(HttpStatusError::new(status, Cause::default().own(&text), None)))
    }
}

/// A request that is shown with a token.
fn with(token: &Token, make: &(dyn Fn() -> Outgoing + Sync)) -> Outgoing {
    let mut request = make();
    token.put(request.headers_mut());
    request
}

/// A response with both lengths ends elsewhere for whoever believes the other one: what follows it on the connection could be anybody's
/// answer. The connection goes with what is dropped here.
fn ends_once(response: &Response<Incoming>) -> Result<(), Lost> {
    // Few headers are walked faster than one is looked up.
    let has = |name| response.headers().keys().any(|known| *known == name);
    match has(TRANSFER_ENCODING) && has(CONTENT_LENGTH) {
        true => Err(Lost::Odd(Cause::new(
            CauseCode::ResponseInvalid,
            "the response has Content-Length beside Transfer-Encoding, so its end is not certain",
        ))),
        false => Ok(()),
    }
}

/// Where a response to a request at `place` leads, as it is asked for there.
fn leads_to(origin: &Origin, place: &Uri, response: &Response<Incoming>) -> Result<Uri, HttpStatusError> {
    let status = response.status();
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let found = location.ok_or_else(|| "and does not say where".to_owned()).and_then(|to| origin.resolve(place, to));
    found.map_err(|why| {
        let text = Cause::default().own(&format!("HTTP {}: it sends the request elsewhere", status.as_u16()));
        HttpStatusError::new(status.as_u16(), text.foreign(&format!(" {}", cut(&why))), None)
    })
}

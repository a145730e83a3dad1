//! The one way out: every request to an HTTP upstream is sent here, and sent on where the upstream says that it is to be.

use super::client::HttpClient;
use super::connection::Origin;
use super::connection::pool::{Held, Lane, Outgoing};
use super::response::refusal::cut;
use super::status::{HttpStatusError, is_sent_on};
use crate::health::Cause;
use crate::upstream::transport::exchange::Lost;
use http::header::LOCATION;
use http::{Response, Uri};
use http_body::Body as _;
use hyper::body::Incoming;

/// So often one request is sent on.
const HOPS_MAX: usize = 5;

/// The head of a response, and the connection that its body comes on.
pub(super) struct Received {
    pub(super) response: Response<Incoming>,
    pub(super) held: Held,
    /// Where the request was sent on to.
    pub(super) moved_to: Option<Box<Uri>>,
}

impl HttpClient {
    /// Sends a request, which is taken out of its place, and waits for the head of its response. `again` makes the same request once
    /// more, where the upstream proves that it did not run; `begun` is called when it may leave.
    ///
    /// A 307 or 308 within the upstream's own origin is followed for this request alone, with its method, headers and body.
    pub(super) async fn send(
        &self,
        lane: Lane<'_>,
        request: &mut Option<Outgoing>,
        again: &(dyn Fn() -> Outgoing + Sync),
        begun: &(impl Fn() + Sync),
    ) -> Result<Received, Lost> {
        let (response, held) = self.pool.send(lane, request, begun).await?;
        if !is_sent_on(response.status()) {
            return Ok(Received { response, held, moved_to: None });
        }
        // Boxed, as it is rare: every call has a future of the size of this one.
        Box::pin(self.follow(lane, response, held, again, begun)).await
    }

    async fn follow(
        &self,
        lane: Lane<'_>,
        mut response: Response<Incoming>,
        mut held: Held,
        again: &(dyn Fn() -> Outgoing + Sync),
        begun: &(impl Fn() + Sync),
    ) -> Result<Received, Lost> {
        let life = self.lives.number();
        let mut place = again().uri().clone();
        for _ in 0..HOPS_MAX {
            let found = leads_to(&self.origin, &place, &response).map_err(Lost::Status)?;
            if response.body().is_end_stream() {
                self.pool.put(held);
            }
            if let Some(why) = self.lives.ended(life) {
                return Err(Lost::Unsent(why));
            }
            let mut request = again();
            *request.uri_mut() = found.clone();
            (response, held) = self.pool.send(lane, &mut Some(request), begun).await?;
            if !is_sent_on(response.status()) {
                return Ok(Received { response, held, moved_to: Some(Box::new(found)) });
            }
            place = found;
        }
        let status = response.status().as_u16();
        let text = format!("HTTP {status}: it sends the same request on more than {HOPS_MAX} times");
        Err(Lost::Status(HttpStatusError::new(status, Cause::default().own(&text), None)))
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

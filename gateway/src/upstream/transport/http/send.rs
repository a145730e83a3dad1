//! The one way out: every request to an HTTP upstream is sent here, and sent on where the upstream says that it is to be.

use super::client::HttpClient;
use super::connection::Origin;
use super::connection::pool::{Held, Lane, Outgoing};
use super::response::refusal::cut;
use super::status::{HttpStatusError, is_sent_on};
use crate::health::{Cause, CauseCode};
use crate::upstream::transport::exchange::Lost;
use http::header::{CONTENT_LENGTH, LOCATION, TRANSFER_ENCODING};
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
        ends_once(&response)?;
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
        let epoch = self.epoch.number();
        let mut place = again().uri().clone();
        for _ in 0..HOPS_MAX {
            let found = leads_to(&self.origin, &place, &response).map_err(Lost::Status)?;
            if response.body().is_end_stream() {
                self.pool.put(held);
            }
            if let Some(why) = self.epoch.ended(epoch) {
                return Err(Lost::Unsent(why));
            }
            let mut request = again();
            *request.uri_mut() = found.clone();
            (response, held) = self.pool.send(lane, &mut Some(request), begun).await?;
            ends_once(&response)?;
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

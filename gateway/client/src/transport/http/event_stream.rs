//! A stream of events that stands by itself, and POSTs beside it: what HTTP+SSE needs of HTTP.

use super::connection::pool::Lane;
use super::response::body::{beside_status, is_stream};
use super::response::refusal::cut;
use super::response::sse::Events;
use super::response::{refusal, sse, upgrade};
use super::session::HttpSession;
use super::status::StatusClass;
use crate::health::{Cause, CauseCode};
use crate::protocol::framing::Untaken;
use crate::protocol::framing::sse::{Skipped, SseEvent};
use crate::runtime::FairShare;
use crate::runtime::timer::Pace;
use crate::transport::exchange::Lost;
use crate::transport::http::connection::pool::causes;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Uri};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::sync::Arc;

/// What to do where no messages are taken.
const UNTAKEN: &str = "the address is that of its `endpoint` event: if it goes on so, see what a proxy before the server makes of the path";

/// A stream of events that was opened with a GET.
pub(crate) struct EventStream {
    http: Arc<HttpSession>,
    body: Incoming,
    decoder: Events,
    stretch: FairShare,
    pace: Pace,
    /// Where it was found.
    place: Uri,
}

impl HttpSession {
    /// Opens a stream of events where the URL of the upstream has it.
    pub(crate) async fn open_stream(self: &Arc<Self>) -> Result<EventStream, Lost> {
        let get = || self.get(None);
        let received = self.wire.send(Lane::Exchange(None), &mut Some(get()), &get, &|_| ()).await?;
        let response = received.response;
        if !response.status().is_success() {
            return Err(Lost::Status(refusal::read(response, self, None).await.why));
        }
        if !is_stream(&response) {
            let said = "the answer to GET is no stream of events";
            let advice = "check that `url` is the address of the stream, often /sse";
            return Err(Lost::Odd(Cause::new(CauseCode::HandshakeInvalid, said).advise(advice)));
        }
        Ok(EventStream {
            place: received.moved_to.map_or_else(|| self.wire.home.clone(), |place| *place),
            body: response.into_body(),
            decoder: sse::decoder(self, self.wire.inbox.budget()),
            stretch: FairShare::default(),
            pace: Pace::new(sse::EVENT_PAUSE),
            http: self.clone(),
        })
    }

    /// Opens a connection and has it become a WebSocket.
    pub(crate) async fn upgrade(&self, subprotocol: Option<&'static str>) -> Result<TokioIo<Upgraded>, Lost> {
        upgrade::upgrade(self, subprotocol).await
    }

    /// POSTs a message to an address of the upstream's own origin. The answer to it, if there is one, comes elsewhere. `identity` is the header that says whose
    /// call it is.
    pub(crate) async fn deliver(
        &self,
        address: &Uri,
        frame: Bytes,
        identity: Option<&(HeaderName, HeaderValue)>,
    ) -> Result<(), Lost> {
        let make = || {
            let mut request = self.post(frame.clone(), None);
            identity
                .into_iter()
                .for_each(|(name, value)| _ = request.headers_mut().insert(name.clone(), value.clone()));
            *request.uri_mut() = address.clone();
            request
        };
        let received = self.wire.send(Lane::Exchange(None), &mut Some(make()), &make, &|_| ()).await?;
        let (response, held) = (received.response, received.held);
        if response.status().is_success() {
            // Whatever a body says here means nothing; a small one is read so that the connection can be used again.
            if response.body().is_end_stream()
                || beside_status(response.into_body(), self.wire.inbox.budget()).await.is_some()
            {
                self.wire.pool.put(held);
            }
            return Ok(());
        }
        let refused = refusal::read(response, self, None).await.why;
        match refused.class() {
            // The address is that of one session.
            StatusClass::NotThere => Err(Lost::Session(refused.text.advise_instead(UNTAKEN))),
            _ => Err(Lost::Status(refused)),
        }
    }
}

impl EventStream {
    /// An event that was skipped, once it has ended.
    pub(crate) fn skipped(&mut self) -> Option<Skipped> {
        self.decoder.skipped()
    }

    /// What comes next: an event, or bytes that end none. The error says why nothing more comes.
    pub(crate) async fn next(&mut self) -> Result<Option<Result<SseEvent, Untaken>>, Cause> {
        if let Some(event) = self.decoder.next_event() {
            let bytes = event.as_ref().map_or(0, |event| event.data.len());
            self.stretch.message(bytes).await;
            return Ok(Some(event));
        }
        let begun = self.decoder.begun();
        let (body, gather) = (&mut self.body, self.decoder.gathering());
        let reading = async {
            let Some(gather) = gather else { return Some(body.frame().await) };
            tokio::select! {
                biased;
                () = gather.lost() => None,
                frame = body.frame() => Some(frame),
            }
        };
        let Ok(read) = self.pace.keep(begun, reading).await else {
            return Err(Cause::new(CauseCode::ResponseIncomplete, sse::TOO_SLOW));
        };
        let Some(frame) = read else {
            self.decoder.give_up();
            return Ok(None);
        };
        match frame {
            Some(Ok(frame)) => {
                self.http.wire.pulse.beat();
                frame.data_ref().into_iter().for_each(|chunk| self.decoder.push(chunk));
                Ok(None)
            }
            Some(Err(error)) => {
                Err(Cause::new(CauseCode::ConnectionLost, format!("its event stream broke: {}", causes(&error))))
            }
            None => Err(Cause::new(CauseCode::ConnectionLost, "it ended its event stream")),
        }
    }

    /// An address that an event names, where it is of the upstream's own origin.
    pub(crate) fn resolve(&self, address: &[u8]) -> Result<Uri, Cause> {
        let named = std::str::from_utf8(address).map_err(|_| "and says where in no words of a URL".to_owned());
        let found = named.and_then(|named| self.http.wire.origin.resolve(&self.place, named.trim()));
        found.map_err(|why| {
            let text = Cause::new(CauseCode::EndpointElsewhere, "its `endpoint` event sends our messages elsewhere");
            text.foreign(&format!(" {}", cut(&why)))
                .advise("the address must be relative, or of the origin of `url`; correct the server's public address")
        })
    }
}

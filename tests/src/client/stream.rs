//! A stream of events that stays open: headers first, events as they come.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use tokio::task::AbortHandle;

use crate::client::http::{Headers, HttpWire};
use crate::frame::Frame;
use crate::sse::{SseDecoder, SseEvent};
use crate::tape::Tape;
use crate::within::within;

/// An open stream; dropping it closes its connection.
pub struct EventStream {
    /// The HTTP status.
    pub status: u16,
    /// The HTTP headers.
    pub headers: HeaderMap,
    /// What has come; a last entry `None` says that the peer has ended the stream.
    pub events: Arc<Tape<Option<SseEvent>>>,
    task: AbortHandle,
}

impl EventStream {
    /// Sends a request and waits for the headers of its answer. Frames go to `notices` too.
    pub async fn open(
        wire: &HttpWire,
        method: Method,
        headers: &Headers,
        body: &str,
        notices: Arc<Tape<Frame>>,
    ) -> EventStream {
        let request = wire.build(method, headers, Bytes::from(body.to_owned()));
        let sent = within("the headers of a stream", wire.pool().send(request)).await;
        let (mut response, connection) = sent.expect("the endpoint answers");
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let events = Arc::new(Tape::default());
        let task = tokio::spawn(pump(wire.me(), response.into_body(), connection, events.clone(), notices));
        let task = task.abort_handle();
        EventStream { status, headers, events, task }
    }

    /// Waits for the first event that carries a frame for which `pick` gives something.
    pub async fn frame<R>(&self, what: &str, pick: impl Fn(&Frame) -> Option<R>) -> R {
        let look = |event: &Option<SseEvent>| {
            let data = event.as_ref()?.data.as_deref().filter(|data| !data.is_empty())?;
            pick(&Frame::parse(data.as_bytes()).ok()?)
        };
        self.events.wait(what, look).await
    }

    /// Waits until the peer has ended the stream.
    pub async fn ended(&self) {
        self.events.wait("the stream ends", |event| event.is_none().then_some(())).await;
    }

    /// Closes it.
    pub fn close(&self) {
        self.task.abort();
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pump<C>(
    wire: Weak<HttpWire>,
    mut body: Incoming,
    connection: C,
    events: Arc<Tape<Option<SseEvent>>>,
    notices: Arc<Tape<Frame>>,
) {
    let mut decoder = SseDecoder::default();
    while let Some(Ok(part)) = body.frame().await {
        for event in decoder.feed(part.data_ref().map_or(&[], Bytes::as_ref)) {
            if let Some(Ok(frame)) = event.data.as_deref().map(|data| Frame::parse(data.as_bytes())) {
                match wire.upgrade() {
                    Some(wire) if !frame.is_answer() => wire.sort(frame, &notices),
                    _ => notices.push(frame),
                }
            }
            events.push(Some(event));
        }
    }
    drop(connection);
    events.push(None);
}

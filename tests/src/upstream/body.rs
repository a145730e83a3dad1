//! Bodies of HTTP answers: whole ones, and streams that are fed from a channel.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;

/// What an HTTP upstream answers with.
pub(crate) type Answer = Response<Either<Full<Bytes>, Fed>>;

/// A body that ends when its feeder does.
pub(crate) struct Fed(mpsc::Receiver<Bytes>);

impl Body for Fed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A whole answer; an empty `kind` sends no content type.
pub(crate) fn whole(status: u16, kind: &str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(body.into())));
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
    if !kind.is_empty() {
        answer.headers_mut().insert("content-type", kind.parse().expect("a content type"));
    }
    answer
}

/// A stream of events, and the end that feeds it.
pub(crate) fn stream() -> (mpsc::Sender<Bytes>, Answer) {
    let (feeder, fed) = mpsc::channel(16);
    let mut answer = Response::new(Either::Right(Fed(fed)));
    answer.headers_mut().insert("content-type", "text/event-stream".parse().expect("a content type"));
    (feeder, answer)
}

/// A JSON-RPC error with an HTTP status.
pub(crate) fn refusal(status: u16, id: &str, code: i64, message: &str) -> Answer {
    let message = crate::frame::quote(message);
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}}}}}");
    whole(status, "application/json", body)
}

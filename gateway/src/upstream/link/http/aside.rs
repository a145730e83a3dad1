//! What is sent beside the exchanges: notifications, answers to what the upstream asks, the end of a session.

use super::super::request::Request;
use super::super::slot::{Arrival, Lost, Slot};
use super::body::collect;
use super::refused::{self, Refused};
use super::session::Http;
use crate::protocol::frame::Decimal;
use crate::protocol::{Method, Object};
use bytes::Bytes;
use http_body::Body as _;
use http_body_util::Full;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long what nobody waits for may take.
pub(super) const ASIDE_MAX: Duration = Duration::from_secs(10);

impl Http {
    /// Sends a notification aside.
    pub(crate) fn notify(self: &Arc<Self>, request: &Request<'_>) {
        let mut body = Vec::new();
        request.write_notification(&mut body);
        self.aside(vec![body.into()]);
    }

    /// Sends a notification and waits until it was taken.
    pub(crate) async fn tell(self: &Arc<Self>, request: &Request<'_>) -> Result<(), Lost> {
        let mut body = Vec::new();
        request.write_notification(&mut body);
        let posted = self.post(body.into(), None);
        self.wire.rested().await;
        timeout(ASIDE_MAX, told(self, posted))
            .await
            .unwrap_or_else(|_| Err(Lost::Unknown("a notification was not taken in time".into())))
    }

    /// Sends frames that want no answer, one after the other, and waits for none of it.
    pub(super) fn aside(self: &Arc<Self>, frames: Vec<Bytes>) {
        let (posts, http) = (frames.into_iter().map(|body| self.post(body, None)).collect::<Vec<_>>(), self.clone());
        self.wire.tasks.spawn(async move {
            for posted in posts {
                http.wire.rested().await;
                match timeout(ASIDE_MAX, told(&http, posted)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(lost)) => tracing::debug!(cause = &**lost.text(), "a message to an upstream was not taken"),
                    Err(_) => tracing::debug!("a message to an upstream was not taken in time"),
                }
            }
        });
    }

    /// Sends the answer to a question. Where it is not taken the call that asked ends with that, and is withdrawn: it would
    /// wait for what never comes.
    pub(super) fn reply(self: &Arc<Self>, frame: Bytes, call: Option<Arc<Slot>>) {
        let (posted, http) = (self.post(frame, None), self.clone());
        self.wire.tasks.spawn(async move {
            http.wire.rested().await;
            let why = match timeout(ASIDE_MAX, told(&http, posted)).await {
                Ok(Ok(())) => return,
                Ok(Err(lost)) => lost.text().to_string(),
                Err(_) => format!("nothing came back for {} s", ASIDE_MAX.as_secs()),
            };
            tracing::debug!(cause = why, "the answer to a question of an upstream was not taken");
            let Some(call) = call else { return };
            let id = http.number_of(&call);
            let lost = Lost::Unknown(format!("it did not take the answer to its question: {why}").into());
            if call.finish(Arrival::Lost(lost))
                && let Some(id) = id
            {
                http.aside(vec![withdrawal(id)]);
            }
        });
    }

    /// Ends the session, where there is one: the upstream may forget it.
    pub(crate) async fn farewell(&self) {
        if let Some(request) = self.delete().filter(|_| !self.wire.is_resting()) {
            let _ = timeout(Duration::from_secs(1), self.wire.pool.send_aside(request)).await;
        }
    }
}

/// What withdraws a request.
pub(super) fn withdrawal(id: u64) -> Bytes {
    let mut text = b"{\"requestId\":".to_vec();
    text.extend_from_slice(Decimal::of(id).as_bytes());
    text.push(b'}');
    let params = Object::parse(text.into()).unwrap_or_default();
    let mut cancelled = Vec::new();
    Request::new(&Method::Cancelled, &params, None).write_notification(&mut cancelled);
    cancelled.into()
}

/// Sends what wants no answer.
async fn told(http: &Arc<Http>, request: http::Request<Full<Bytes>>) -> Result<(), Lost> {
    let (response, held) = http.wire.pool.send_aside(request).await?;
    if response.status().is_success() {
        // Whatever a body says here means nothing; a small one is read so that the connection can be used again.
        if response.body().is_end_stream() || collect(response.into_body(), 64 * 1024).await.is_ok() {
            http.wire.pool.put(held);
        }
        return Ok(());
    }
    Err(match refused::read(response, http).await {
        Refused::Error(raw, status) => refused::status_of(raw, status),
        Refused::Session(text) => Lost::Session(text),
        Refused::Status(refusal) => Lost::Status(refusal),
    })
}

//! Bodies for an HTTP server that is no upstream, such as a collector of traces: over connections of the same kind, each for one POST.

use crate::health::CauseCode;
use crate::memory::budget::Budget;
use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use crate::runtime::Tasks;
use crate::upstream::config::Remote;
use crate::upstream::transport::events::{IncomingRequest, LinkEvents};
use crate::upstream::transport::http::{Breaker, HttpClient};
use crate::upstream::transport::questions::Asker;
use bytes::Bytes;
use std::fmt::Display;
use std::sync::Arc;

/// Posts bodies to one server. Dropped, it closes what it has open.
pub struct Courier(Arc<HttpClient>);

impl Courier {
    /// For the server at this URL; nothing is sent yet.
    pub fn new(remote: &Remote, budget: &Budget, tasks: Tasks) -> Result<Self, String> {
        let client = HttpClient::new(remote, 0, Arc::new(Breaker::new(None)), Arc::new(Nobody(budget.clone())), tasks)?;
        Ok(Self(client))
    }

    /// Posts a body of this type: the status of the answer, whose own body is not read; else why there is none.
    pub async fn post(&self, body: Bytes, kind: &'static str) -> Result<u16, String> {
        match self.0.deliver_alone(body, kind).await {
            Ok(status) => Ok(status.as_u16()),
            Err(lost) => Err(lost.text().full().into_owned()),
        }
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Nothing comes on a connection but the answer.
struct Nobody(Budget);

impl LinkEvents for Nobody {
    fn notified(&self, _method: Method, _params: Object) {}

    fn asked(&self, _asked: IncomingRequest, _by: Arc<dyn Asker>) {}

    fn violated(&self, _kind: &'static str, _detail: &dyn Display) {}

    fn budget(&self) -> &Budget {
        &self.0
    }

    fn failed(&self, _kind: &'static str, _code: CauseCode, _why: &dyn Display) {}

    fn suspect(&self, _cause: &str) {}
}

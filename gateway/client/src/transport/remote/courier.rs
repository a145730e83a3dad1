//! Bodies for an HTTP server that is no upstream, such as a collector of traces: over connections of the same kind, each for one POST.

use crate::config::Remote;
use crate::memory::budget::Budget;
use crate::runtime::Tasks;
use crate::transport::events::Nobody;
use crate::transport::http::{Breaker, HttpClient};
use bytes::Bytes;
use std::sync::Arc;

/// Posts bodies to one server. Dropped, it closes what it has open.
pub struct Courier(Arc<HttpClient>);

impl Courier {
    /// For the server at this URL; nothing is sent yet.
    pub fn new(remote: &Remote, budget: &Budget, tasks: Tasks) -> Result<Self, String> {
        let client =
            HttpClient::new((remote, None), 0, Arc::new(Breaker::new(None)), Arc::new(Nobody(budget.clone())), tasks)?;
        Ok(Self(client))
    }

    /// Posts a body of this type: the status and the body of the answer, as far as that is small and soon there; else why there is none.
    pub async fn post(&self, body: Bytes, kind: &'static str) -> Result<(u16, Bytes), String> {
        match self.0.deliver_alone(body, kind).await {
            Ok((status, answer)) => Ok((status.as_u16(), answer)),
            Err(lost) => Err(lost.text().full().into_owned()),
        }
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.0.close();
    }
}

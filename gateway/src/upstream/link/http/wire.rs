//! The way to an HTTP upstream, whatever session there is just now: connections, fixed headers, limits.

use super::super::inbox::Inbox;
use super::dial::Dialer;
use super::pool::Pool;
use crate::lifecycle::Tasks;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio_util::sync::CancellationToken;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// An HTTP upstream, whatever session there is just now.
pub(crate) struct Wire {
    pub(super) pool: Pool,
    pub(super) target: http::Uri,
    /// What every request says.
    pub(super) base: HeaderMap,
    pub(super) max: usize,
    pub(super) inbox: Arc<dyn Inbox>,
    /// How many exchanges are under way or wait for a connection.
    pub(super) exchanges: AtomicUsize,
    pub(super) tasks: Tasks,
    over: CancellationToken,
}

impl Wire {
    /// Makes ready to dial; nothing is sent yet. What runs aside belongs to the level.
    pub(crate) fn new(
        url: &http::Uri,
        given: &HeaderMap,
        max: usize,
        inbox: Arc<dyn Inbox>,
        tasks: Tasks,
    ) -> Result<Arc<Self>, String> {
        let over = CancellationToken::new();
        let dialer = Dialer::new(url, tasks.clone(), over.clone())?;
        let authority = url
            .authority()
            .map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default())
            .unwrap_or_default();
        let mut base = HeaderMap::new();
        base.insert(HOST, HeaderValue::from_str(authority).map_err(|_| "its URL names no host")?);
        base.insert(USER_AGENT, HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION"))));
        for name in given.keys() {
            base.remove(name);
            given.get_all(name).iter().for_each(|value| _ = base.append(name.clone(), value.clone()));
        }
        base.insert(ACCEPT, BOTH);
        base.insert(CONTENT_TYPE, JSON);
        let target = url
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str)
            .parse()
            .map_err(|_| "its URL has no path")?;
        Ok(Arc::new(Self {
            pool: Pool::new(dialer),
            target,
            base,
            max,
            inbox,
            exchanges: AtomicUsize::new(0),
            tasks,
            over,
        }))
    }

    /// Closes every connection.
    pub(crate) fn close(&self) {
        self.over.cancel();
    }
}

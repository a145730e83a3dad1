//! The way to an HTTP upstream, whatever session there is just now: connections, fixed headers, limits.

use super::super::super::config::Breaker;
use super::super::inbox::Inbox;
use super::super::pulse::Pulse;
use super::credentials::Credentials;
use super::dial::Dialer;
use super::lives::Lives;
use super::pool::Pool;
use super::restraint::Restraint;
use crate::lifecycle::Tasks;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

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
    /// Whether anything was heard.
    pub(super) pulse: Pulse,
    /// How many exchanges are under way or wait for a connection.
    pub(super) exchanges: AtomicUsize,
    /// When nothing is sent.
    pub(super) restraint: Restraint,
    /// Whether it takes what it is called with.
    pub(super) credentials: Credentials,
    pub(super) tasks: Tasks,
    /// What is under way ends with the life that it was begun in.
    pub(super) lives: Arc<Lives>,
}

impl Wire {
    /// Makes ready to dial; nothing is sent yet. What runs aside belongs to the level.
    pub(crate) fn new(
        url: &http::Uri,
        given: &HeaderMap,
        max: usize,
        breaker: Option<Breaker>,
        inbox: Arc<dyn Inbox>,
        tasks: Tasks,
    ) -> Result<Arc<Self>, String> {
        let lives = Arc::<Lives>::default();
        let dialer = Dialer::new(url, tasks.clone(), lives.clone())?;
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
            pulse: Pulse::default(),
            exchanges: AtomicUsize::new(0),
            restraint: Restraint::new(breaker),
            credentials: Credentials::default(),
            tasks,
            lives,
        }))
    }

    /// Ends all that is under way, and tells whoever waits for it why; what comes later is a new beginning.
    pub(crate) fn cut(&self, why: &str) {
        self.lives.end(why);
    }

    /// Closes every connection, for good.
    pub(crate) fn close(&self) {
        self.lives.end_for_good("it is being stopped");
    }
}

//! The way to an HTTP upstream, whatever session there is just now: connections, fixed headers, limits.

use super::breaker::Breaker;
use super::connection::pool::Pool;
use super::connection::{BesideQueue, ConnectionEpoch, Connector, Origin, Unread};
use super::response::body::beside_status;
use super::session::SessionIds;
use super::status::AuthStatus;
use super::token::TokenSource;
use crate::call::share::{Part, Shares};
use crate::config::Remote;
use crate::health::{Cause, CauseCode};
use crate::metrics::sampled;
use crate::protocol::http::headers;
use crate::runtime::Tasks;
use crate::runtime::watched::Pieces;
use crate::transport::events::LinkEvents;
use crate::transport::exchange::Lost;
use crate::transport::liveness::Liveness;
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::sync::Arc;

/// How many exchanges of clients may be under way or wait for a connection; one client gets half of them.
const EXCHANGES_MAX: usize = 8192;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// An HTTP upstream, whatever session there is just now.
pub struct HttpClient {
    pub(super) pool: Pool,
    /// Where its own URL has it, and where it was found last.
    pub(super) home: http::Uri,
    found: ArcSwapOption<http::Uri>,
    pub(super) origin: Origin,
    /// What every request says.
    pub(super) base: HeaderMap,
    pub(super) max: usize,
    pub(super) inbox: Arc<dyn LinkEvents>,
    /// Whether anything was heard.
    pub(super) pulse: Liveness,
    /// The exchanges of clients that are under way or wait for a connection.
    pub(super) exchanges: Arc<Shares>,
    /// When nothing is sent.
    pub(super) breaker: Arc<Breaker>,
    /// The token that every request is shown with, where that is fetched.
    pub(super) tokens: Option<Arc<dyn TokenSource>>,
    /// Whether it takes what it is called with.
    pub(super) credentials: AuthStatus,
    /// The ids of its sessions.
    pub(super) ids: SessionIds,
    /// What waits to be sent beside the exchanges.
    pub(super) beside: BesideQueue,
    pub(super) tasks: Tasks,
    /// Requests end with the epoch that they began in.
    pub(super) epoch: Arc<ConnectionEpoch>,
}

impl HttpClient {
    /// Makes ready to dial; nothing is sent yet. What runs aside belongs to the level.
    pub fn new(
        (remote, tokens): (&Remote, Option<Arc<dyn TokenSource>>),
        max: usize,
        breaker: Arc<Breaker>,
        inbox: Arc<dyn LinkEvents>,
        tasks: Tasks,
    ) -> Result<Arc<Self>, String> {
        let epoch = Arc::<ConnectionEpoch>::default();
        let unread = Unread::new(inbox.clone());
        let Remote { url, headers: given, .. } = remote;
        let dialer = Connector::new(remote, tasks.clone(), epoch.clone(), unread)?;
        let origin = Origin::of(url).ok_or("the URL has no host")?;
        let authority = url
            .authority()
            .map(|authority| authority.as_str().rsplit('@').next().unwrap_or_default())
            .unwrap_or_default();
        let mut base = HeaderMap::new();
        base.insert(HOST, HeaderValue::from_str(authority).map_err(|_| "the URL has no host")?);
        base.insert(USER_AGENT, HeaderValue::from_static(concat!("trunkline/", env!("CARGO_PKG_VERSION"))));
        for name in given.keys() {
            base.remove(name);
            given.get_all(name).iter().for_each(|value| _ = base.append(name.clone(), value.clone()));
        }
        base.insert(ACCEPT, BOTH);
        base.insert(CONTENT_TYPE, JSON);
        let home = url
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str)
            .parse()
            .map_err(|_| "its URL has no path")?;
        Ok(Arc::new(Self {
            pool: Pool::new(dialer),
            home,
            found: ArcSwapOption::empty(),
            origin,
            base,
            max,
            inbox,
            pulse: Liveness::default(),
            exchanges: Shares::new(EXCHANGES_MAX, Part::OfFree),
            breaker,
            tokens,
            credentials: AuthStatus::default(),
            ids: SessionIds::default(),
            beside: BesideQueue::default(),
            tasks,
            epoch,
        }))
    }

    /// Has the metrics of an upstream show its connections for as long as it is there.
    pub fn shown_at(self: &Arc<Self>, upstream: &str) {
        let (one, other) = (Arc::downgrade(self), Arc::downgrade(self));
        sampled::connections(
            upstream,
            move || Some(one.upgrade()?.pool.in_use()),
            move || Some(other.upgrade()?.pool.idle_count()),
        );
    }

    /// Where it was found when it was last met.
    pub(super) fn place(&self) -> http::Uri {
        self.found.load().as_deref().unwrap_or(&self.home).clone()
    }

    /// It was found there.
    pub(super) fn moves_to(&self, place: &http::Uri) {
        let is_known = self.found.load().as_deref().unwrap_or(&self.home) == place;
        if !is_known {
            self.found.store(Some(Arc::new(place.clone())));
        }
    }

    /// Posts a body of this type on a connection of its own: the status of the answer, and what it says beside that where it succeeded.
    pub(crate) async fn deliver_alone(&self, body: Bytes, kind: &'static str) -> Result<(StatusCode, Bytes), Lost> {
        let length = headers::number(body.len() as u64);
        let mut request = http::Request::new(Pieces::from(body));
        (*request.method_mut(), *request.uri_mut()) = (http::Method::POST, self.home.clone());
        let map = request.headers_mut();
        *map = self.base.clone();
        map.insert(ACCEPT, HeaderValue::from_static(kind));
        map.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        map.insert(CONTENT_LENGTH, length);
        map.insert(CONNECTION, HeaderValue::from_static("close"));
        let response = self.pool.send_alone(request).await?;
        let status = response.status();
        let said =
            if status.is_success() { beside_status(response.into_body(), self.inbox.budget()).await } else { None };
        Ok((status, said.unwrap_or_default()))
    }

    /// Ends all that is under way, and tells whoever waits for it why; what comes later is a new beginning.
    pub fn cut(&self, why: Cause) {
        self.epoch.end(why);
        self.beside.clear();
    }

    /// Closes every connection, for good.
    pub fn close(&self) {
        self.epoch.end_for_good(Cause::new(CauseCode::Stopping, "upstream stopping"));
        self.beside.clear();
    }
}

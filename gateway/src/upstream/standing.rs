//! What all parts of one upstream share: its configuration, its gate, its inventory, what is wanted of it.

use super::asking::{self, Kind, Pages, Refused, Terms};
use super::call_sessions::CallSessions;
use super::chunks::{self, Chunks};
use super::config::{Config, Sharing, Transport};
use super::gate::Gate;
use super::holding::{Holder, Holding};
use super::inventory::Inventory;
use super::legacy;
use super::levels::Levels;
use super::link::{Asked, Asker, Exchange, Inbox, Lost, Tail};
use super::notice::Notice;
use super::peer::Peer;
use super::reads::{Kinds, Reads};
use super::subscriptions::Wants;
use super::words;
use crate::call::{Call, LogLevel};
use crate::lifecycle::{Seat, State};
use crate::protocol::capability::Capabilities;
use crate::protocol::object::Key;
use crate::protocol::param_headers::ParamHeaders;
use crate::protocol::{Method, Object, meta};
use crate::signals;
use arc_swap::ArcSwap;
use http::{HeaderName, HeaderValue};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What happens to the best: counted, and not worth a word.
const HARMLESS: [&str; 2] = ["late_answer", "progress_dropped"];
/// How often one kind of violation is logged.
const WARN_EVERY: Duration = Duration::from_secs(10);
/// How often it is said that a question is nobody's.
const NOT_OWNED_EVERY: Duration = Duration::from_secs(60);

/// One upstream, whatever link it has just now.
pub(crate) struct Standing {
    pub(crate) name: Arc<str>,
    pub(crate) config: Config,
    /// Whose it is, and what it may ask.
    pub(crate) holding: Holding,
    /// Of an instance beside the primary one: that, and its own number.
    pub(crate) beside: Option<(Arc<Self>, u64)>,
    pub(crate) seat: Seat,
    pub(crate) metrics: signals::Upstream,
    pub(crate) gate: Gate,
    /// Beside the primary session, where it has sessions.
    pub(crate) sessions: CallSessions,
    pub(crate) inventory: watch::Sender<Option<Arc<Inventory>>>,
    pub(crate) reads: Reads,
    pub(crate) wants: Wants,
    pub(crate) levels: Levels,
    pub(crate) chunks: Arc<Chunks>,
    /// Which of its pages are open, and with whom.
    pub(crate) pages: Pages,
    pub(crate) notices: Arc<dyn Fn(Notice) + Send + Sync>,
    /// Of the tools that tell arguments in headers.
    pub(crate) headers: ArcSwap<HashMap<Arc<str>, Arc<ParamHeaders>>>,
    /// The tools that run as tasks only.
    pub(crate) as_tasks: ArcSwap<HashSet<Arc<str>>>,
    /// Supervision has ended, and nothing is left behind.
    pub(crate) stopped: CancellationToken,
    /// When it was last said that a question is nobody's.
    not_owned: Mutex<Option<Instant>>,
    /// Why it was last said not to be there, until it is again.
    said: Mutex<Option<(State, String)>>,
    /// What is probably wrong with it, as its link sees it.
    suspicion: Mutex<Option<String>>,
    /// When each kind of violation was last logged, and how many were not.
    warned: Mutex<HashMap<&'static str, (Instant, u64)>>,
}

impl Standing {
    pub(crate) fn new(config: Config, seat: Seat, notices: Arc<dyn Fn(Notice) + Send + Sync>) -> Self {
        let metrics = signals::upstream(&config.name);
        Self {
            name: config.name.clone(),
            holding: Holding::everyone(&config),
            config,
            beside: None,
            seat,
            metrics,
            gate: Gate::default(),
            sessions: CallSessions::default(),
            inventory: watch::Sender::new(None),
            reads: Reads::default(),
            wants: Wants::default(),
            levels: Levels::default(),
            chunks: Arc::default(),
            pages: Pages::default(),
            notices,
            headers: ArcSwap::default(),
            as_tasks: ArcSwap::default(),
            stopped: CancellationToken::new(),
            not_owned: Mutex::default(),
            said: Mutex::default(),
            suspicion: Mutex::default(),
            warned: Mutex::default(),
        }
    }

    /// The same, held by somebody.
    pub(crate) fn held(self, holding: Holding) -> Self {
        Self { holding, ..self }
    }

    /// An instance beside the primary one. What that offers counts as known, until the instance's own was read.
    pub(crate) fn beside(primary: &Arc<Self>, holding: Holding, seat: Seat, number: u64) -> Self {
        let standing = Self {
            holding,
            beside: Some((primary.clone(), number)),
            headers: ArcSwap::new(primary.headers.load_full()),
            as_tasks: ArcSwap::new(primary.as_tasks.load_full()),
            ..Self::new(primary.config.clone(), seat, primary.notices.clone())
        };
        standing.inventory.send_replace(primary.inventory.borrow().clone());
        standing.levels.want(primary.levels.of_sessions());
        standing
    }

    /// Its number, where it is an instance beside the primary one.
    pub(crate) fn number(&self) -> Option<u64> {
        self.beside.as_ref().map(|(_, number)| *number)
    }

    /// Lists are to be read again. What one principal's instance tells may be true of the primary one too.
    fn changed(&self, kinds: Kinds) {
        self.reads.mark(kinds);
        if let (Some((primary, _)), Holder::Principal(_)) = (&self.beside, &self.holding.holder) {
            primary.reads.mark(kinds);
        }
    }

    /// Sends a call to a peer.
    pub(crate) fn send(&self, peer: &Arc<Peer>, call: &Call) -> Result<Exchange, Lost> {
        peer.send(call, self.headers_of(call))
    }

    /// The `Mcp-Param-*` headers of a call, which only stateless HTTP upstreams look at.
    fn headers_of(&self, call: &Call) -> Vec<(HeaderName, HeaderValue)> {
        let headers = self.headers.load();
        if headers.is_empty() || call.method != Method::ToolsCall {
            return Vec::new();
        }
        let made = call
            .params
            .text(Key::Name)
            .and_then(|name| headers.get(&*name))
            .map(|known| known.make(call.params.get(Key::Arguments)));
        made.unwrap_or_default()
    }

    /// Whether it is reached by HTTP.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.config.transport, Transport::Http { .. })
    }

    /// How long a request of our own may take.
    pub(crate) fn ask_limit(&self) -> Duration {
        self.config.request_timeout.unwrap_or(Duration::from_secs(60 * 60))
    }

    /// The state for the board, the metrics and the log: one line a change.
    pub(crate) fn moved(&self, state: State, cause: Option<&str>, tail: Option<&Tail>, retry_in: Option<Duration>) {
        let before = self.seat.health();
        self.seat.update(|health| {
            health.state = state;
            health.cause = cause.map(str::to_owned);
            health.retry_at = retry_in.and_then(|delay| Instant::now().checked_add(delay));
            if let Some(tail) = tail {
                health.stderr = tail.lines();
            }
            if matches!(state, State::BackingOff | State::Failed | State::Stopped) {
                health.pid = None;
            }
        });
        if self.beside.is_none() {
            self.metrics.up.set(f64::from(u8::from(state == State::Ready)));
            self.metrics.state(state.as_str(), State::ALL.into_iter().map(State::as_str));
        }
        if before.state == state && before.cause.as_deref() == cause {
            return;
        }
        let (upstream, cause, instance) = (&*self.name, cause.unwrap_or_default(), self.number());
        if before.state == State::Ready && state != State::Ready {
            (self.notices)(Notice::Gone { upstream: self.name.clone(), whose: self.holding.audience() });
        }
        let is_news = self.is_news(state, cause);
        let retry_in = retry_in.map(|delay| format!("{:.1} s", delay.as_secs_f32())).unwrap_or_default();
        match state {
            State::BackingOff | State::Failed if !is_news => {
                tracing::debug!(target: signals::UPSTREAM_STATE, upstream, instance, cause, retry_in, "the upstream failed again as before")
            }
            State::BackingOff => {
                let text = "the upstream is not available and is tried again";
                tracing::warn!(target: signals::UPSTREAM_STATE, upstream, instance, cause, retry_in, "{text}")
            }
            State::Failed => {
                tracing::error!(target: signals::UPSTREAM_STATE, upstream, instance, cause, retry_in, "the upstream has failed")
            }
            State::Starting if before.state == state => {}
            State::Starting => tracing::debug!(upstream, instance, "the upstream is being started"),
            State::Stopped if cause.is_empty() => tracing::debug!(upstream, instance, "the upstream is stopped"),
            State::Stopped => tracing::info!(upstream, instance, cause, "the upstream is stopped"),
            State::Ready => {}
        }
    }

    /// Whether it was not said already, since it was last ready, that it is in this state for this reason. Figures in a
    /// reason (a process id, the name of a log file) make no other.
    fn is_news(&self, state: State, cause: &str) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            State::Ready => *said = None,
            State::BackingOff | State::Failed => {
                let now = (state, cause.replace(|c: char| c.is_ascii_digit(), ""));
                return said.replace(now.clone()) != Some(now);
            }
            State::Starting | State::Stopped => {}
        }
        true
    }

    /// Why it is not ready, in words.
    pub(crate) fn cause(&self) -> String {
        let health = self.seat.health();
        match (health.state, health.cause) {
            (_, Some(cause)) => cause,
            (State::Starting, None) => "it is still starting".into(),
            (state, None) => format!("it is in state {}", state.as_str()),
        }
    }

    /// A question was refused because nobody knows whose it is: counted, and said now and then with what helps.
    fn not_owned(&self, kind: Kind) {
        signals::dropped("not_owned").increment(1);
        let now = Instant::now();
        let mut last = self.not_owned.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| now.duration_since(last) < NOT_OWNED_EVERY) {
            return;
        }
        *last = Some(now);
        drop(last);
        // What already has an instance for each, or is one client's alone, gains nothing from `sharing`.
        let can_share_less = self.config.sharing == Sharing::Shared && self.holding.is_of_many();
        let why = words::not_owned(&self.name, kind, can_share_less);
        tracing::warn!(upstream = &*self.name, kind = kind.label(), "{why}");
    }

    /// What was suspected since this was last asked.
    pub(crate) fn suspicion(&self) -> Option<String> {
        self.suspicion.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What a handshake says that may be asked here: by whoever holds it, and of the configuration.
    pub(crate) async fn declares(&self) -> Capabilities {
        let declares = self.holding.declares().await;
        if self.config.roots.is_some() { declares.with(Capabilities::ROOTS) } else { declares }
    }

    /// Has the inventory read again, and waits for it.
    pub(crate) async fn read_again(&self) {
        self.reads.again(Kinds::TOOLS).await;
    }
}

impl Inbox for Standing {
    fn notified(&self, method: Method, params: Object) {
        match method {
            Method::ToolsChanged => self.changed(Kinds::TOOLS),
            Method::PromptsChanged => self.changed(Kinds::PROMPTS),
            Method::ResourcesChanged => self.changed(Kinds::RESOURCES),
            Method::ResourceUpdated => match params.text(Key::Uri) {
                Some(uri) => self.wants.updated(&uri, meta::subscription(&params)),
                None => self.violated("update_without_uri", &"a resource update without a URI"),
            },
            Method::Message => {
                let level = params.find("level").and_then(LogLevel::parse).unwrap_or(LogLevel::Info);
                let (upstream, whose) = (self.name.clone(), self.holding.audience());
                (self.notices)(Notice::Log { upstream, whose, level, params });
            }
            method if chunks::is_chunk(&method) => {
                if !self.chunks.arrived(&params) {
                    self.violated("odd_chunk", &"a chunk that belongs to no result");
                }
            }
            Method::TaskStatus => {
                let (upstream, whose) = (self.name.clone(), self.holding.audience());
                (self.notices)(Notice::Task { upstream, whose, params });
            }
            Method::ElicitationComplete => self.pages.complete(&params),
            _ => {
                tracing::trace!(upstream = &*self.name, method = method.label(), "a notification that nobody waits for")
            }
        }
    }

    fn missed(&self) {
        self.reads.mark(Kinds::ALL);
        self.wants.all_missed();
    }

    fn asked(&self, asked: Asked, by: Arc<dyn Asker>) {
        if by.revision().is_some_and(|revision| revision.is_modern()) {
            return self.violated("request", &"a request of a stateless upstream, which may not ask");
        }
        let Some(kind) = Kind::of(&asked.method) else { return asked.answer(&by, &legacy::answer(&asked.method)) };
        if let (Kind::Roots, Some(roots)) = (kind, &self.config.roots) {
            self.metrics.questions(kind.label(), "configured").increment(1);
            return asked.answer(&by, &asking::configured(roots));
        }
        let exclusive = self.holding.session_of_all();
        let terms = Terms {
            upstream: &self.name,
            metrics: &self.metrics,
            limit: self.config.question_timeout,
            exclusive: exclusive.as_ref(),
            pages: &self.pages,
        };
        match asking::put(&terms, asked, kind, by) {
            Ok(()) => {}
            Err(Refused::NotOwned) => self.not_owned(kind),
            Err(why) => {
                tracing::debug!(upstream = &*self.name, kind = kind.label(), ?why, "a question was refused")
            }
        }
    }

    fn unfinished(&self, id: &[u8]) {
        self.chunks.unfinished(id);
    }

    fn violated(&self, kind: &'static str, detail: &dyn std::fmt::Display) {
        self.metrics.violations(kind).increment(1);
        if HARMLESS.contains(&kind) {
            return;
        }
        let now = Instant::now();
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, more) = warned.entry(kind).or_insert((now, 0));
        let is_first = *last == now;
        if !is_first && now.duration_since(*last) < WARN_EVERY {
            *more += 1;
            return;
        }
        let more = std::mem::take(more);
        *last = now;
        drop(warned);
        let detail = super::link::printable(&detail.to_string().chars().take(500).collect::<String>());
        tracing::warn!(
            upstream = &*self.name,
            kind,
            detail,
            more,
            "the upstream broke the protocol; what it sent was skipped"
        );
    }

    fn suspect(&self, cause: &str) {
        let known = self.suspicion.lock().unwrap_or_else(PoisonError::into_inner).replace(cause.to_owned());
        if known.as_deref() == Some(cause) {
            return;
        }
        self.seat.update(|health| health.cause = Some(cause.to_owned()));
        tracing::warn!(upstream = &*self.name, cause, "the upstream does not seem to speak MCP");
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rig::config;
    use super::*;
    use crate::lifecycle::Board;

    #[test]
    fn the_same_failure_is_said_once_until_it_is_ready_again() {
        let config = config();
        let seat = Board::default().seat(&config.name, "stdio");
        let standing = Standing::new(config, seat, Arc::new(|_| {}));
        let said = |state, cause: &str| standing.is_news(state, cause);
        assert!(said(State::BackingOff, "see 17.log"));
        assert!(!said(State::BackingOff, "see 18.log"));
        assert!(said(State::BackingOff, "refused"));
        assert!(said(State::Failed, "refused"));
        assert!(said(State::Starting, "") && !said(State::Failed, "refused"));
        assert!(said(State::Ready, "") && said(State::Failed, "refused"));
    }
}

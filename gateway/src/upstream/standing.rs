//! What all parts of one upstream share: its configuration, its gate, its inventory, what is wanted of it.

use super::ails::{Ail, Ails};
use super::asking::{self, Kind, Pages, Refused, Terms};
use super::call_sessions::CallSessions;
use super::chunks::{self, Chunks};
use super::config::{Config, Sharing, Transport};
use super::gate::Gate;
use super::holding::{Holder, Holding};
use super::inventory::Inventory;
use super::legacy;
use super::levels::Levels;
use super::link::{Asked, Asker, Inbox};
use super::need::Need;
use super::notice::Notice;
use super::places::Places;
use super::reads::{Kinds, Reads};
use super::starts::{Starts, Ticket};
use super::stored::Stored;
use super::subscriptions::Wants;
use super::task_progress::TaskProgress;
use super::told::Told;
use super::words;
use crate::call::LogLevel;
use crate::lifecycle::{Seat, Traffic};
use crate::protocol::object::Key;
use crate::protocol::param_headers::ParamHeaders;
use crate::protocol::{Method, Object, meta};
use crate::signals;
use arc_swap::ArcSwap;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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
    /// How much it has to do.
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) gate: Gate,
    pub(crate) need: Arc<Need>,
    /// Beside the primary session, where it has sessions.
    pub(crate) sessions: CallSessions,
    pub(crate) inventory: watch::Sender<Option<Arc<Inventory>>>,
    /// Where it is kept for the next start, if anywhere.
    pub(crate) stored: OnceLock<Stored>,
    pub(crate) reads: Reads,
    pub(crate) wants: Wants,
    pub(crate) levels: Levels,
    pub(crate) chunks: Arc<Chunks>,
    /// Which of its pages are open, and with whom.
    pub(crate) pages: Pages,
    /// Who hears of the tasks that are driven.
    pub(crate) task_progress: TaskProgress,
    pub(crate) notices: Arc<dyn Fn(Notice) + Send + Sync>,
    /// Of the tools that tell arguments in headers.
    pub(crate) headers: ArcSwap<HashMap<Arc<str>, Arc<ParamHeaders>>>,
    /// The tools that run as tasks only.
    pub(crate) as_tasks: ArcSwap<HashSet<Arc<str>>>,
    /// Whose turn it is to start a child; its own, where it shares them with nobody.
    pub(crate) starts: OnceLock<Starts>,
    /// Supervision has ended, and nothing is left behind.
    pub(crate) stopped: CancellationToken,
    /// When it was last said that a question is nobody's.
    not_owned: Mutex<Option<Instant>>,
    /// What was last said of how it fares.
    pub(crate) told: Told,
    /// What ails it while it is there.
    pub(crate) ails: Ails,
    /// What is probably wrong with it, as its link sees it.
    suspicion: Mutex<Option<String>>,
    /// When each kind of violation was last logged, and how many were not.
    warned: Mutex<HashMap<&'static str, (Option<Instant>, u64)>>,
}

impl Standing {
    pub(crate) fn new(config: Config, seat: Seat, notices: Arc<dyn Fn(Notice) + Send + Sync>) -> Self {
        let (metrics, need) = (signals::upstream(&config.name), Need::new(config.idle_stop));
        let traffic = seat.traffic();
        let gate = Gate::new(Places::new(config.max_concurrency, traffic.clone(), &metrics), config.queue);
        Self {
            name: config.name.clone(),
            holding: Holding::everyone(&config),
            config,
            beside: None,
            seat,
            metrics,
            need,
            traffic,
            gate,
            sessions: CallSessions::default(),
            inventory: watch::Sender::new(None),
            stored: OnceLock::new(),
            reads: Reads::default(),
            wants: Wants::default(),
            levels: Levels::default(),
            chunks: Arc::default(),
            pages: Pages::default(),
            task_progress: TaskProgress::default(),
            notices,
            headers: ArcSwap::default(),
            as_tasks: ArcSwap::default(),
            starts: OnceLock::new(),
            stopped: CancellationToken::new(),
            not_owned: Mutex::default(),
            told: Told::default(),
            ails: Ails::default(),
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
            starts: primary.starts.clone(),
            ..Self::new(primary.config.clone(), seat, primary.notices.clone())
        };
        standing.inventory.send_replace(primary.inventory.borrow().clone());
        standing.levels.want(primary.levels.of_sessions());
        standing
    }

    /// A place among those who start children; `None` where there is none to start.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        (!self.is_http()).then(|| self.starts.get_or_init(Starts::of_this_machine).ticket())
    }

    /// Its number, where it is an instance beside the primary one.
    pub(crate) fn number(&self) -> Option<u64> {
        self.beside.as_ref().map(|(_, number)| *number)
    }

    /// Lists are to be read again. What one principal's instance tells may be true of the primary one too.
    fn changed(&self, kinds: Kinds) {
        self.reads.changed(kinds);
        if let (Some((primary, _)), Holder::Principal(_)) = (&self.beside, &self.holding.holder) {
            primary.reads.changed(kinds);
        }
    }

    /// Whether it is reached by HTTP.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.config.transport, Transport::Http { .. })
    }

    /// How long a request of our own may take.
    pub(crate) fn ask_limit(&self) -> Duration {
        self.config.request_timeout.unwrap_or(Duration::from_secs(60 * 60))
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

    /// What is suspected.
    pub(crate) fn suspicion(&self) -> Option<String> {
        self.suspicion.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on it may be suspected anew.
    pub(crate) fn forget_suspicion(&self) {
        *self.suspicion.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
                self.need.task(&params);
                self.task_stands(params);
            }
            Method::ElicitationComplete => self.pages.complete(&params),
            _ => {
                tracing::trace!(upstream = &*self.name, method = method.label(), "a notification that nobody waits for")
            }
        }
    }

    fn task_progressed(&self, task: &str, params: Object) {
        self.task_goes_on(task, params);
    }

    fn missed(&self) {
        self.reads.changed(Kinds::ALL);
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

    fn ails(&self, ail: Ail, cause: Option<&str>) {
        Self::ails(self, ail, cause);
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
        let (last, more) = warned.entry(kind).or_default();
        if last.is_some_and(|last| now.duration_since(last) < WARN_EVERY) {
            *more += 1;
            return;
        }
        let more = std::mem::take(more);
        *last = Some(now);
        drop(warned);
        let detail = super::link::printable(&detail.to_string().chars().take(500).collect::<String>());
        tracing::warn!(
            upstream = &*self.name,
            instance = self.number(),
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

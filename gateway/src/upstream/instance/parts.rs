//! One instance of an upstream: the parts that it is made of, and what its link tells them.

use super::admission::Admission;
use super::admission::own::OwnSessions;
use super::bounds::{CallRates, Counted, RetryBudget};
use super::chunks::Chunks;
use super::inventory::schedule::ListKinds;
use super::inventory::{Inventory, Offering};
use super::masked;
use super::questions::Questions;
use super::subscriptions::Wanted;
use crate::call::LogLevel;
use crate::health::{Cause, CauseCode, StatusHandle};
use crate::memory::budget::Budget;
use crate::metrics::edges::Bytes;
use crate::peer::eras::{SpokenEra, Trial};
use crate::protocol::frame::Method;
use crate::protocol::meta;
use crate::protocol::payload::chunk;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::{Key, Object};
use crate::transport::events::{IncomingRequest, LinkEvents};
use crate::transport::http::Breaker;
use crate::transport::questions::Asker;
use crate::transport::stdio::Children;
use crate::upstream::backoff::Starts;
use crate::upstream::config::{Config, Credentials, Sharing};
use crate::upstream::instance::task_progress::TaskProgress;
use crate::upstream::owner::{Holder, Ownership};
use crate::upstream::status::notice::{Notice, Notices, Others};
use crate::upstream::status::{Condition, Status};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use trunkline_oauth::Tokens;

/// The number of the instance of the other era; those of sessions and principals have higher ones.
pub(crate) const SECOND: u64 = 0;

/// One instance of an upstream, whatever link it has just now. Each part has its own methods; a function that needs several parts
/// takes the instance.
pub(crate) struct Instance {
    pub(crate) name: Arc<str>,
    pub(crate) config: Arc<Config>,
    /// Whose it is, and what it may ask.
    pub(crate) owner: Ownership,
    /// The primary instance, where this is one beside it.
    pub(crate) primary: Option<Arc<Self>>,
    /// Whether it stands for one session of a client's own with an HTTP upstream: the instance that it is one of is the primary one here.
    is_own_session: bool,
    /// The sessions that clients have to themselves, where they may have any.
    pub(crate) own: Option<Arc<OwnSessions<Self>>>,
    /// The era that is spoken on its link.
    pub(crate) era: SpokenEra,
    /// Of the instance of the other era: whether the upstream speaks that.
    pub(crate) trial: Option<Trial>,
    pub(crate) status: Status,
    pub(crate) admission: Admission,
    pub(crate) offering: Offering,
    pub(crate) wanted: Wanted,
    pub(crate) questions: Arc<Questions>,
    pub(crate) children: Children,
    /// The starts that count, and what holds back requests: those of both eras together.
    pub(crate) starts: Starts,
    pub(crate) breaker: Arc<Breaker>,
    /// Which failures of its child count already for that.
    pub(crate) counted: Counted,
    /// How many calls all instances together may have in a time, where that is configured.
    pub(crate) rates: Option<Arc<CallRates>>,
    /// How many of them are sent a second time.
    pub(crate) retries: Arc<RetryBudget>,
    /// The token of the upstream, where it is fetched: that of all instances together.
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// Results that come in pieces.
    pub(crate) chunks: Arc<Chunks>,
    /// Who hears of the tasks that are driven.
    pub(crate) task_progress: TaskProgress,
    /// Supervision has ended, and nothing is left behind.
    pub(crate) stopped: CancellationToken,
}

impl Instance {
    /// The primary instance of an upstream.
    pub(crate) fn new(
        config: Config,
        owner: Ownership,
        handle: StatusHandle,
        hear: Arc<dyn Fn(Notice) + Send + Sync>,
    ) -> Self {
        let notices = Notices::new(&config.name, &owner, hear);
        let status = Status::new(&config.name, handle, notices);
        let children = Children::new(&config.name, status.metrics.stderr.clone());
        let own = (config.sharing == Sharing::OwnSessions && config.is_http() && owner.is_of_many())
            .then(|| Arc::new(OwnSessions::new(&config)));
        let made = Self { own, ..Self::of(config.into(), owner, status, children) };
        if made.stands_apart() {
            made.offering.inventory.send_replace(Some(Inventory::empty(Revision::V2025_11_25).into()));
        } else {
            made.shows_login();
        }
        made
    }

    /// An instance beside the primary one, with a number of its own; where its principal has a login of its own, what is known to be offered
    /// to that one.
    pub(crate) fn beside(
        primary: &Arc<Self>,
        (owner, known): (Ownership, Option<watch::Sender<Option<Arc<Inventory>>>>),
        handle: StatusHandle,
        number: u64,
    ) -> Self {
        let notices = primary.status.notices.of(&owner);
        let status = primary.status.beside(number, handle, notices);
        let level = primary.wanted.level_of_sessions(&owner.audience(), &primary.config.name);
        let tokens = match (&primary.config.credentials, &owner.holder) {
            (Some(Credentials::Exchange(client)), Holder::Principal(whose)) => {
                Some(Tokens::exchanged(client, whose, &primary.config.name))
            }
            (Some(Credentials::Login(login)), Holder::Principal(whose)) if login.is_personal => {
                Some(Tokens::shown(Credentials::Login(Box::new(login.of(whose.name()))), &primary.config.name))
            }
            _ => primary.tokens.clone(),
        };
        let instance = Self {
            primary: Some(primary.clone()),
            offering: known.map_or_else(
                || Offering::beside(&primary.offering),
                |known| Offering::personal(&primary.offering, known),
            ),
            tokens,
            rates: primary.rates.clone(),
            retries: primary.retries.clone(),
            ..Self::of(primary.config.clone(), owner, status, primary.children.clone())
        };
        instance.wanted.levels.want(level);
        if instance.config.has_personal_logins() {
            instance.shows_login();
        }
        instance
    }

    /// Its login is shown with it.
    fn shows_login(&self) {
        let Some(tokens) = &self.tokens else { return };
        let handle = self.status.handle.clone();
        tokens.login_shown_by(Box::new(move |login| {
            if handle.health().login != login {
                handle.update(|health| health.login = login.clone());
            }
        }));
    }

    /// Whether it is the primary one of an upstream where each principal has a login, and so an instance, of its own: then it is not reached.
    pub(crate) fn stands_apart(&self) -> bool {
        self.primary.is_none() && self.config.has_personal_logins()
    }

    /// The instance of the other era: it serves everyone too, and takes from what the primary one has.
    pub(crate) fn second(primary: &Arc<Self>, era: Era, handle: StatusHandle) -> Self {
        let config = Arc::new(Config { era: era.into(), ..(*primary.config).clone() });
        let status = primary.status.beside(SECOND, handle, primary.status.notices.clone());
        let level = primary.wanted.level_of_sessions(&primary.owner.audience(), &primary.config.name);
        let instance = Self {
            primary: Some(primary.clone()),
            trial: Some(Trial::default()),
            admission: primary.admission.beside(&config, status.handle.traffic()),
            starts: primary.starts.clone(),
            breaker: primary.breaker.clone(),
            tokens: primary.tokens.clone(),
            rates: primary.rates.clone(),
            retries: primary.retries.clone(),
            own: primary.own.clone(),
            ..Self::of(config, primary.owner.clone(), status, primary.children.clone())
        };
        instance.wanted.levels.want(level);
        instance
    }

    /// What stands for the upstream in a session of a client's own: its calls are those of the instance that it is one of, and what is
    /// wanted of it and told in it is its own.
    pub(crate) fn own_session(of: &Arc<Self>, owner: Ownership, number: u64) -> Self {
        let status = of.status.of_session(number, of.status.notices.of(&owner));
        let shared = Self {
            primary: Some(of.clone()),
            is_own_session: true,
            breaker: of.breaker.clone(),
            tokens: of.tokens.clone(),
            rates: of.rates.clone(),
            retries: of.retries.clone(),
            starts: of.starts.clone(),
            chunks: of.chunks.clone(),
            questions: of.questions.clone(),
            task_progress: of.task_progress.clone(),
            offering: Offering::beside(&of.offering),
            admission: of.admission.of_session(&of.config),
            ..Self::of(of.config.clone(), owner, status, of.children.clone())
        };
        shared.era.set(Era::Legacy);
        shared
    }

    /// The instance whose faults and demand what is told in it counts as.
    fn counted_at(&self) -> &Self {
        self.primary.as_deref().filter(|_| self.is_own_session).unwrap_or(self)
    }

    /// For whom its log messages are. What the gateway's own session tells is not for those who have one to themselves; what the
    /// session of a principal's stateless clients tells outside of calls is for none of its handshake sessions.
    fn log(&self, level: LogLevel, params: Object) {
        match (&self.own, &self.owner.holder) {
            (Some(own), Holder::Everyone) if own.len() > 0 => {
                let own = own.clone();
                self.status.notices.log_to_others(Others::new(move |id| own.has_session(id)), level, params);
            }
            (_, Holder::Principal(_)) if self.is_own_session => {}
            _ => self.status.notices.log(level, params),
        }
    }

    /// The era in which it is met where nothing is known: that of its clients, where they are of one era. Else a child, which is pinned
    /// to an era by what opens it, is offered a handshake, and what is reached by HTTP, where that costs nothing, is asked.
    pub(crate) fn first_era(&self) -> Era {
        let of_all = if self.config.is_http() { Era::Modern } else { Era::Legacy };
        self.owner.era().unwrap_or(of_all)
    }

    /// Whether it serves everyone: the primary one, or that of the other era.
    pub(crate) fn is_of_upstream(&self) -> bool {
        self.primary.is_none() || self.trial.is_some()
    }

    fn of(config: Arc<Config>, owner: Ownership, status: Status, children: Children) -> Self {
        if let Some(doubt) = config.doubt() {
            status.handle.update(|health| _ = health.remarks.insert("questions", doubt));
        }
        Self {
            name: config.name.clone(),
            admission: Admission::new(&config, status.handle.traffic(), &status.metrics),
            breaker: breaker(&config),
            tokens: tokens(&config),
            counted: Counted::default(),
            rates: CallRates::of(&config),
            retries: Arc::default(),
            offering: Offering::telling(config.identity.clone()),
            config,
            owner,
            primary: None,
            is_own_session: false,
            own: None,
            era: SpokenEra::default(),
            trial: None,
            starts: Starts::default(),
            status,
            wanted: Wanted::default(),
            questions: Arc::default(),
            children,
            chunks: Arc::default(),
            task_progress: TaskProgress::default(),
            stopped: CancellationToken::new(),
        }
    }

    /// The upstream says that lists have changed. What one principal's instance tells may be true of the primary one too.
    fn changed(&self, kinds: ListKinds) {
        self.offering.reads.announced(kinds);
        if let (Some(primary), Holder::Principal(_)) = (&self.primary, &self.owner.holder) {
            primary.offering.reads.changed(kinds);
        }
    }
}

/// Creates the breaker. The metrics show it for children and for upstreams over HTTP.
fn breaker(config: &Config) -> Arc<Breaker> {
    match config.is_http() || config.is_child() {
        true => Breaker::shown(&config.name, config.breaker.clone()),
        false => Arc::new(Breaker::new(config.breaker.clone())),
    }
}

/// The token that an upstream is shown, or may be once somebody has logged in.
fn tokens(config: &Config) -> Option<Arc<Tokens>> {
    let found = || config.login.clone().map(Credentials::Login);
    config.credentials.clone().or_else(found).map(|from| Tokens::shown(from, &config.name))
}

impl LinkEvents for Instance {
    fn budget(&self) -> &Budget {
        self.status.handle.budget()
    }

    fn bytes(&self) -> Bytes {
        self.status.metrics.bytes.clone()
    }

    fn notified(&self, method: Method, params: Object) {
        self.status.metrics.attempts.notified(method.label());
        match method {
            Method::ToolsChanged => self.changed(ListKinds::TOOLS),
            Method::PromptsChanged => self.changed(ListKinds::PROMPTS),
            Method::ResourcesChanged => self.changed(ListKinds::RESOURCES),
            Method::ResourceUpdated => match params.text(Key::Uri) {
                Some(uri) => self.wanted.subscriptions.updated(&uri, meta::subscription(&params)),
                None => self.violated("update_without_uri", &"a resource update without a URI"),
            },
            Method::Message => {
                let level = params.find("level").and_then(LogLevel::parse).unwrap_or(LogLevel::Info);
                self.log(level, params);
            }
            method if chunk::is_chunk(&method) => {
                if !self.chunks.arrived(&params, self.budget()) {
                    self.violated("odd_chunk", &"a chunk that belongs to no result");
                }
            }
            Method::TaskStatus => {
                self.counted_at().admission.demand.task(&params);
                self.status.notices.task(masked::notification(params));
            }
            Method::ElicitationComplete => self.questions.pages.complete(&params),
            _ => {
                tracing::trace!(upstream = &*self.name, method = method.label(), "a notification that nobody waits for")
            }
        }
    }

    /// The driver of a task hears of its progress; where none drives it, the client that was given the task does.
    fn task_progressed(&self, task: &str, params: Object) {
        if !self.task_progress.told(task, &params) {
            self.status.notices.task_progress(task, masked::notification(params));
        }
    }

    fn missed(&self) {
        self.offering.reads.changed(ListKinds::ALL);
        self.wanted.subscriptions.all_missed();
    }

    fn asked(&self, asked: IncomingRequest, by: Arc<dyn Asker>) {
        if by.revision().is_some_and(|revision| revision.is_modern()) {
            return self.violated("request", &"a request of a stateless upstream, which may not ask");
        }
        let taken = self.questions.take((&self.config, &self.owner), &self.status.metrics, asked, by);
        if taken.is_err() {
            self.counted_at().status.refused(
                "questions_full",
                CauseCode::QueueFull,
                &"too many questions of it are open",
            );
        }
    }

    fn set_condition(&self, condition: Condition, cause: Option<&Cause>) {
        // What holds back the requests of both eras is shown at one place: either may end it.
        let is_common = matches!(condition, Condition::Failing | Condition::Resting);
        let primary = self.primary.as_ref().filter(|_| is_common && self.trial.is_some());
        primary.map_or(&self.status, |primary| &primary.status).set_condition(condition, cause);
    }

    fn unfinished(&self, id: &[u8]) {
        self.chunks.unfinished(id);
    }

    fn violated(&self, kind: &'static str, detail: &dyn std::fmt::Display) {
        self.counted_at().status.violated(kind, detail);
    }

    fn failed(&self, kind: &'static str, code: CauseCode, why: &dyn std::fmt::Display) {
        self.counted_at().status.failed(kind, code, why);
    }

    fn suspect(&self, cause: &str) {
        self.counted_at().status.suspect(cause);
    }
}

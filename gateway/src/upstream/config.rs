//! What one upstream may be told: checked values, made from the files by `config`.

use crate::call::share::Rate;
pub use crate::protocol::capabilities::Capabilities;
pub use crate::protocol::value::Glob;
use bytes::Bytes;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
pub use trunkline_client::config::{
    BreakerConfig, ChildCommand, Definitions, Dialect, EraChoice, Place, Proxy, Reach, Remote, Stamp, ToldIdentity,
    Transport, Trust, gives_out_credentials, meant, numbers,
};
pub use trunkline_oauth::config::{ClientCredentials, Credentials, Login, Registered, TokenCommand};

/// Whether what upstreams offer is kept for the next start, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// It is not to be.
    Off,
    /// It is to be, but nothing says where.
    #[default]
    Nowhere,
    /// In this folder.
    Folder(PathBuf),
}

/// One configured upstream. Every value is checked; nothing here can be wrong any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The configured name, as it appears in logs, metrics and messages.
    pub name: Arc<str>,
    /// The name as a host's file wrote it, where that is not the same.
    pub title: Option<Arc<str>>,
    /// What stands before the separator in public names; empty means that names stay bare.
    pub prefix: Arc<str>,
    /// How the upstream is reached.
    pub transport: Transport,
    /// What it is shown where that is fetched while the gateway runs.
    pub credentials: Option<Credentials>,
    /// The login that a person can make where nothing is configured that it is shown, should it ask for one.
    pub login: Option<Box<Login>>,
    /// How it is told whose call it is; `None` means that it is not.
    pub identity: Option<Arc<ToldIdentity>>,
    /// When it runs.
    pub start: Start,
    /// Without a call for so long it is stopped until it is needed again; `None` means never.
    pub idle_stop: Option<Duration>,
    /// Whether the era is probed or given.
    pub era: EraChoice,
    /// How it is spoken to.
    pub dialect: Dialect,
    /// Its tools, where the configuration says what they are: a result of `tools/list`.
    pub defined: Option<Bytes>,
    /// Whether a second child may run, for clients of the other era. Over HTTP both eras need no configuration.
    pub has_both_eras: bool,
    /// From spawn or dial to the end of the handshake.
    pub startup_timeout: Duration,
    /// So long a call waits for the upstream while it starts.
    pub start_wait: Duration,
    /// Bounds everything but calls, prompts and reads; `None` means no bound.
    pub request_timeout: Option<Duration>,
    /// Bounds calls, prompts and reads, extended by progress; `None` means no bound.
    pub call_timeout: Option<Duration>,
    /// The most that progress can extend a call to; `None` means no bound.
    pub max_call_time: Option<Duration>,
    /// What is said otherwise for single tools, by their own names.
    pub tool_times: HashMap<Box<str>, Times>,
    /// So many calls it has at once; `None` means as many as there are.
    pub max_concurrency: Option<usize>,
    /// So many calls, prompts and reads it may have in so much time, from all clients together.
    pub call_rate: Option<Rate>,
    /// So many more calls wait for it.
    pub queue: usize,
    /// How long an answer to a question of its own is waited for.
    pub question_timeout: Duration,
    /// Who has an instance in common.
    pub sharing: Sharing,
    /// So many instances there may be beside the primary one.
    pub max_instances: usize,
    /// So many sessions with it may belong to one client each.
    pub max_sessions: usize,
    /// A principal's instance ends after so long without a call.
    pub instance_idle: Duration,
    /// What a child that clients share is told that it may ask, where that is said.
    pub offer: Option<Capabilities>,
    /// So many principals may call it; without credentials all are one.
    pub principals: usize,
    /// What a handshake upstream that asks for roots is told, in place of a client's; `None` means that clients are asked.
    pub roots: Option<Arc<[Box<str>]>>,
    /// When and how often it is started again.
    pub restart: Restart,
    /// When it is asked whether it is there.
    pub health: Checks,
    /// Whether a child that does not answer then is killed and started again.
    pub hang_restart: bool,
    /// Whether a child, and all that it starts, may never gain rights by what it runs (`sudo`, setuid programs).
    pub no_new_privs: bool,
    /// When a remote one that fails is left alone.
    pub breaker: Option<BreakerConfig>,
    /// Whether one that is configured otherwise may be started beside it, and take its place when it is up.
    pub overlap: bool,
    /// Which of its tools are offered.
    pub tools: Filter,
    /// The largest message that is read from it, in bytes.
    pub max_message: usize,
}

impl Config {
    /// Whether one instance serves all clients.
    pub fn is_shared(&self) -> bool {
        matches!(self.sharing, Sharing::Shared | Sharing::OwnSessions)
    }

    /// A login that a person makes is kept in this folder of our state, sealed with these secrets where there are any.
    pub fn keeps_login_in(&mut self, state: Option<&Path>, keys: &[Vec<u8>]) {
        let said = if let Some(Credentials::Login(login)) = &mut self.credentials { Some(login) } else { None };
        for login in said.into_iter().chain(&mut self.login) {
            (login.state, login.keys) = (state.map(Path::to_owned), keys.to_vec());
        }
    }

    /// Whether each principal logs in for itself: then each has an instance of its own, and nobody has one in common.
    pub fn has_personal_logins(&self) -> bool {
        self.credentials.as_ref().is_some_and(Credentials::is_personal)
    }

    /// The login that a person can make.
    pub fn may_log_in(&self) -> Option<&Login> {
        match &self.credentials {
            Some(Credentials::Login(login)) => Some(login),
            _ => self.login.as_deref(),
        }
    }

    /// Whether the upstream is reached by Streamable HTTP.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    /// Whether the upstream is a child process.
    pub(crate) fn is_child(&self) -> bool {
        self.transport.child().is_some()
    }

    /// How long the end of a child may take; `None` where there is none.
    pub(crate) fn stop_limit(&self) -> Option<Duration> {
        self.is_child().then_some(self.restart.stop_timeout)
    }

    /// How long a request of the gateway's own may take.
    pub(crate) fn ask_limit(&self) -> Duration {
        self.request_timeout.unwrap_or(Duration::from_secs(60 * 60))
    }

    /// What the configuration answers itself, so that no client needs to.
    pub(crate) fn answers(&self) -> Capabilities {
        if self.roots.is_some() { Capabilities::ROOTS } else { Capabilities::NONE }
    }

    /// Whether one child, or one connection, which asks live, serves several principals: as soon as two of them have a call open
    /// there, nothing says whose a question of it is.
    pub fn is_ambiguous(&self) -> bool {
        let asks = self.era != EraChoice::Modern && self.dialect == Dialect::Mcp;
        asks && !self.is_http() && self.is_shared() && self.principals > 1
    }

    /// What a child that clients share is told that it may ask: what it was promised must be kept.
    pub fn offered(&self) -> Capabilities {
        let unsaid = if self.is_ambiguous() { Capabilities::NONE } else { OFFERS[0].1 };
        self.offer.unwrap_or(unsaid)
    }

    /// What is to be known of the questions of a child that several principals share; `None` where it shares none, or is said to
    /// have no questions.
    pub fn doubt(&self) -> Option<String> {
        if !self.is_ambiguous() || self.offer == Some(Capabilities::NONE) {
            return None;
        }
        let (name, count) = (&self.name, self.principals);
        let what = match self.offer {
            Some(_) => "its questions are refused while calls of two of them are open there",
            None => "it is not told that it may ask them anything",
        };
        Some(format!(
            "{count} principals share one {}, so {what}; `sharing = \"per-principal\"` under [upstreams.{name}] gives each its own, \
             and `offer = []` says that it need not ask",
            if self.is_child() { "child" } else { "connection" }
        ))
    }
}

/// What is said of the limits of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// As [`Config::call_timeout`], where it is said.
    pub call_timeout: Option<Option<Duration>>,
    /// As [`Config::max_call_time`], where it is said.
    pub max_call_time: Option<Option<Duration>>,
    /// So many calls it may have in so much time, from all clients together.
    pub call_rate: Option<Rate>,
}

/// When an upstream is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the gateway.
    #[default]
    Eager,
    /// When it is first needed.
    Lazy,
    /// When a person says so.
    Manual,
}

/// Kinds of questions, as a child may be told that it can ask them; the first is told where nothing is said.
pub const OFFERS: [(&str, Capabilities); 3] = [
    ("elicitation", Capabilities::FORM.with(Capabilities::URL)),
    ("sampling", Capabilities::SAMPLING.with(Capabilities::SAMPLING_TOOLS)),
    ("roots", Capabilities::ROOTS),
];

/// Who has an instance of an upstream in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Everyone has the one there is.
    #[default]
    Shared,
    /// As `Shared`; with an upstream over HTTP that gives sessions, each handshake session has one of its own there, and so have the
    /// stateless clients of a principal that declare the same.
    OwnSessions,
    /// Each handshake session has its own; a stateless client has its principal's.
    PerSession,
    /// Each principal has its own.
    PerPrincipal,
}

/// When an upstream is started again, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Restart {
    /// After which kind of end.
    pub policy: RestartPolicy,
    /// The first delay; each further one doubles.
    pub backoff_min: Duration,
    /// The longest delay.
    pub backoff_max: Duration,
    /// So long it must be well before the delays start anew.
    pub healthy_after: Duration,
    /// So many starts within `window`; after them one a `window`.
    pub max_restarts: u32,
    /// The window of `max_restarts`.
    pub window: Duration,
    /// From closed stdin to SIGKILL.
    pub stop_timeout: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            policy: RestartPolicy::Always,
            backoff_min: Duration::from_millis(250),
            backoff_max: Duration::from_secs(30),
            healthy_after: Duration::from_secs(30),
            max_restarts: 10,
            window: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(5),
        }
    }
}

/// When an upstream of which nothing is heard is asked whether it is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Checks {
    /// After so long without a sign of life; `None` means never.
    pub interval: Option<Duration>,
    /// So long it has for its answer.
    pub timeout: Duration,
    /// So many answers it may owe in a row before it counts as unwell.
    pub unhealthy_after: u32,
}

impl Default for Checks {
    fn default() -> Self {
        Self { interval: Some(Duration::from_secs(30)), timeout: Duration::from_secs(5), unhealthy_after: 3 }
    }
}

/// Which exits of an upstream lead to a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    /// After every end that we did not ask for.
    #[default]
    Always,
    /// Not after exit status 0.
    OnFailure,
    /// Never.
    Never,
}

impl RestartPolicy {
    /// The policies as a configuration names them.
    pub const WORDS: [(&'static str, Self); 3] =
        [("always", Self::Always), ("on-failure", Self::OnFailure), ("never", Self::Never)];
}

/// Which names pass: none of `deny`, and one of `allow` unless that is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Names that pass; empty means all.
    pub allow: Vec<Glob>,
    /// Names that do not, whatever `allow` says.
    pub deny: Vec<Glob>,
}

impl Filter {
    /// Whether every name passes.
    pub fn is_open(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Whether the upstream's own `name` passes.
    pub fn admits(&self, name: &str) -> bool {
        let allowed = self.allow.is_empty() || self.allow.iter().any(|glob| glob.matches(name));
        allowed && !self.deny.iter().any(|glob| glob.matches(name))
    }
}

#[cfg(test)]
mod tests;

//! What is known of one upstream: where it stands, since when and why, and what was last wrong with it.

use super::cause::Cause;
use super::traffic::Traffic;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Where an upstream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is being started, or its inventory is being read.
    Starting,
    /// It answers.
    Ready,
    /// It is there and takes calls, and something ails it: it answers nothing, or fails again and again, or asked for a pause.
    Degraded,
    /// It takes no more calls: what is left of it is being ended.
    Stopping,
    /// It ended or could not be reached; the next attempt is due soon.
    BackingOff,
    /// It failed too often; it is tried once a minute.
    Failed,
    /// It is not running, and is started when it is needed.
    Idle,
    /// It was told to stop.
    Stopped,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Starting,
        Self::Ready,
        Self::Degraded,
        Self::Stopping,
        Self::BackingOff,
        Self::Failed,
        Self::Idle,
        Self::Stopped,
    ];

    /// The word for logs, metrics and people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Stopping => "stopping",
            Self::BackingOff => "backing_off",
            Self::Failed => "failed",
            Self::Idle => "idle",
            Self::Stopped => "stopped",
        }
    }

    /// Whether there is somebody who takes calls.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Ready | Self::Degraded)
    }

    /// Whether it is meant not to run.
    pub fn is_at_rest(self) -> bool {
        matches!(self, Self::Idle | Self::Stopped)
    }

    /// Whether something is wrong with it.
    fn is_sick(self) -> bool {
        matches!(self, Self::Degraded | Self::BackingOff | Self::Failed)
    }
}

/// What was wrong with an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// When it was found.
    pub at: Instant,
    /// What it was, for a person.
    pub cause: Cause,
}

/// The login of a person that an upstream is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The principal whose login it is, where it is not that of all.
    pub principal: Option<String>,
    /// Who gave its tokens.
    pub issuer: String,
    /// When the access token ends, where that is known.
    pub ends: Option<Instant>,
    /// Whether that is followed by others without a person.
    pub is_refreshed: bool,
    /// What the upstream has asked for beyond what it allows.
    pub wanted: Vec<String>,
}

/// What is known of one upstream.
#[derive(Debug, Clone)]
pub struct Health {
    /// Its configured name.
    pub name: Arc<str>,
    /// `stdio` or `http`.
    pub transport: &'static str,
    /// Where it stands.
    pub state: State,
    /// Since when.
    pub since: Instant,
    /// When it last came up, went down, or came to rest: attempts that fail change nothing of it.
    pub turned: Instant,
    /// Why it is not ready, for a person: what happened and what to do.
    pub cause: Option<Cause>,
    /// Whether an attempt has failed since it was last up, at rest, or told to begin.
    pub has_failed: bool,
    /// When the next attempt is due.
    pub retry_at: Option<Instant>,
    /// The child's process id.
    pub pid: Option<u32>,
    /// How often it was started again.
    pub restarts: u64,
    /// What it was last started again for, in a word.
    pub restarted_for: Option<&'static str>,
    /// How often an instance beside the primary one did not come up.
    pub failed_starts: u64,
    /// What was last wrong with it, or with one of its instances; it stays when that is over.
    pub last_error: Option<LastError>,
    /// The revision that it speaks.
    pub revision: Option<&'static str>,
    /// What it was told that it may ask, where that is the same for all its calls.
    pub may_ask: Option<Vec<&'static str>>,
    /// How long the last start took, up to the inventory.
    pub started_in: Option<Duration>,
    /// How many tools, resources, templates and prompts it offers, once known.
    pub items: Option<[usize; 4]>,
    /// The login that it is called with, once it was needed.
    pub login: Option<Login>,
    /// What else is worth a look while it is well, by what it is about.
    pub remarks: BTreeMap<&'static str, String>,
    /// The last lines that it wrote to stderr, oldest first.
    pub stderr: Vec<String>,
    /// How much it has to do, as it is whenever this is read.
    pub traffic: Arc<Traffic>,
    /// How many sessions with it belong to one client each, where it is reached by HTTP and gives sessions.
    pub sessions: usize,
    /// Its instances beside the primary one, each by its number and whose it is.
    pub instances: BTreeMap<u64, Health>,
}

impl Health {
    /// Of one that is being started and of which nothing is known yet.
    pub(super) fn starting(name: &Arc<str>, transport: &'static str) -> Self {
        let now = Instant::now();
        Self {
            name: name.clone(),
            transport,
            state: State::Starting,
            since: now,
            turned: now,
            cause: None,
            has_failed: false,
            retry_at: None,
            pid: None,
            restarts: 0,
            restarted_for: None,
            failed_starts: 0,
            last_error: None,
            revision: None,
            may_ask: None,
            started_in: None,
            items: None,
            login: None,
            remarks: BTreeMap::new(),
            stderr: Vec::new(),
            traffic: Arc::default(),
            sessions: 0,
            instances: BTreeMap::new(),
        }
    }

    /// What a change means for what is remembered; before it was in this state, for this reason.
    pub(super) fn remember(&mut self, before: State, known: Option<&Cause>) {
        let now = Instant::now();
        if self.state != before {
            self.since = now;
        }
        if (self.state.is_up(), self.state.is_at_rest()) != (before.is_up(), before.is_at_rest()) {
            self.turned = now;
        }
        self.has_failed = match self.state {
            State::BackingOff | State::Failed => true,
            State::Ready | State::Idle | State::Stopped => false,
            State::Starting | State::Degraded | State::Stopping => self.has_failed,
        };
        let is_news = self.state != before || self.cause.as_ref() != known;
        if let Some(cause) = self.cause.clone().filter(|_| is_news && self.state.is_sick()) {
            self.note(cause);
        }
    }

    /// This was wrong with it.
    pub fn note(&mut self, cause: Cause) {
        self.last_error = Some(LastError { at: Instant::now(), cause });
    }

    /// How long it has been taking calls.
    pub fn uptime(&self) -> Option<Duration> {
        self.state.is_up().then(|| self.turned.elapsed())
    }

    /// How long it has not been, though it is meant to.
    pub fn downtime(&self) -> Option<Duration> {
        (!self.state.is_up() && !self.state.is_at_rest()).then(|| self.turned.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_last_wrong_stays_known_and_attempts_that_fail_do_not_begin_the_time_anew() {
        let mut health = Health::starting(&"a".into(), "stdio");
        let mut step = async |state, cause: Option<&str>| {
            let (before, known) = (health.state, health.cause.clone());
            (health.state, health.cause) = (state, cause.map(Cause::from));
            health.remember(before, known.as_ref());
            tokio::time::advance(Duration::from_secs(10)).await;
            let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
            let error =
                health.last_error.as_ref().map(|error| (error.cause.full().into_owned(), error.at.elapsed().as_secs()));
            (seconds(health.uptime()), seconds(health.downtime()), health.since.elapsed().as_secs(), error)
        };
        let error = |cause: &str, ago| Some((cause.to_owned(), ago));
        assert_eq!(step(State::Ready, None).await, (Some(10), None, 10, None));
        assert_eq!(step(State::Degraded, Some("silent")).await, (Some(20), None, 10, error("silent", 10)));
        assert_eq!(step(State::Ready, None).await, (Some(30), None, 10, error("silent", 20)));
        assert_eq!(step(State::Failed, Some("gone")).await, (None, Some(10), 10, error("gone", 10)));
        // What its last life ended of stands there while it is tried again.
        assert_eq!(step(State::Starting, Some("gone")).await, (None, Some(20), 10, error("gone", 20)));
        assert_eq!(step(State::Failed, Some("gone")).await, (None, Some(30), 10, error("gone", 10)));
        assert_eq!(step(State::Stopped, Some("by hand")).await, (None, None, 10, error("gone", 20)));
        assert_eq!(step(State::Starting, None).await, (None, Some(10), 10, error("gone", 30)));
    }

    #[test]
    fn a_failure_is_remembered_through_further_attempts_until_it_is_up_or_at_rest() {
        let mut health = Health::starting(&"a".into(), "stdio");
        let mut step = |state| {
            let before = std::mem::replace(&mut health.state, state);
            health.remember(before, None);
            health.has_failed
        };
        use State::{BackingOff, Degraded, Failed, Idle, Ready, Starting, Stopped};
        let states =
            [Starting, BackingOff, Starting, Failed, Starting, Ready, Degraded, BackingOff, Idle, Failed, Stopped];
        let expected = [false, true, true, true, true, false, false, true, false, true, false];
        assert_eq!(states.map(&mut step), expected);
    }
}

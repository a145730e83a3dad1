//! One login that waits for its person.

use super::cookie;
use super::cookie::Secret;
use super::logins::Begun;
use crate::call::caller::{ClientSession, Principal};
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::value::Object;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a link can be followed, and from then on how long its person may take.
pub(super) const PERSON_MAX: Duration = Duration::from_secs(10 * 60);
/// So long after its first visit whoever asks is told the same link again: its person is at it. After that there is another one, for one
/// whose link was opened by somebody else.
const AT_IT: Duration = Duration::from_secs(60);
/// So many sessions are told when the visit of one page is over.
const SESSIONS_MAX: usize = 16;

/// A login of one principal at one upstream, which waits for its person.
pub(super) struct Flow {
    /// What tells it from others where it is shown.
    pub(super) id: String,
    pub(super) upstream: Arc<str>,
    pub(super) principal: Principal,
    /// As [`Entry::place`](super::logins::Entry::place), when its link was told first.
    pub(super) place: String,
    /// The end of its page's address, which nobody can guess.
    pub(super) link: String,
    pub(super) until: Instant,
    sessions: Vec<Weak<ClientSession>>,
    pub(super) visit: Option<Visit>,
    /// Closed when nobody waits for its person any more; true where its page has been ended.
    pub(super) over: watch::Sender<bool>,
}

/// The one visit of a page.
pub(super) struct Visit {
    /// What the browser has that opened it.
    pub(super) cookie: Secret,
    since: Instant,
    pub(super) stage: Stage,
    /// Told of each stage.
    pub(super) moved: watch::Sender<()>,
}

/// How far a visit has come.
pub(super) enum Stage {
    /// It is found out where to log in.
    Beginning,
    /// The person is at the authorization server, or about to go there.
    Begun(Box<Begun>),
    /// The browser is back.
    Finishing,
    /// Nothing comes of it, and why.
    Failed(String),
}

impl Visit {
    pub(super) fn new(cookie: Secret) -> Self {
        Self { cookie, since: Instant::now(), stage: Stage::Beginning, moved: watch::Sender::new(()) }
    }

    pub(super) fn moves(&mut self, stage: Stage) {
        self.stage = stage;
        self.moved.send_replace(());
    }
}

impl Flow {
    pub(super) fn new((upstream, place): (&Arc<str>, &str), principal: &Principal) -> Option<Self> {
        let (id, link) = (random::<8>()?, random::<32>()?);
        let (upstream, place, principal) = (upstream.clone(), place.to_owned(), principal.clone());
        let until = Instant::now() + PERSON_MAX;
        let (sessions, visit, over) = (Vec::new(), None, watch::Sender::new(false));
        Some(Self { id, upstream, principal, place, link, until, sessions, visit, over })
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    pub(super) fn is_of(&self, upstream: &str, principal: &Principal) -> bool {
        *self.upstream == *upstream && self.principal == *principal
    }

    /// Whether another caller can be told its link.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        match &self.visit {
            None => true,
            Some(Visit { stage: Stage::Failed(_), .. }) => false,
            Some(visit) => now.duration_since(visit.since) < AT_IT,
        }
    }

    /// Somebody is told its link.
    pub(super) fn told(&mut self, session: Option<&Arc<ClientSession>>) {
        if self.visit.is_none() {
            self.until = Instant::now() + PERSON_MAX;
        }
        self.sessions.retain(|known| known.strong_count() > 0);
        let Some(session) = session else { return };
        let is_known = self.sessions.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(session)));
        if !is_known && self.sessions.len() < SESSIONS_MAX {
            self.sessions.push(Arc::downgrade(session));
        }
    }

    /// Whether a request comes from the browser that opened the page.
    pub(super) fn is_of_browser(&self, headers: &http::HeaderMap, is_secure: bool) -> bool {
        let name = cookie::name(&self.id, is_secure);
        self.visit.as_ref().is_some_and(|visit| cookie::is_borne(headers, &name, &visit.cookie))
    }

    /// Tells all that were told its link that its visit is over.
    pub(super) fn tell_complete(&self) {
        let params = format!("{{\"elicitationId\":{}}}", json::quote(&self.id));
        let params = Object::parse(params.into()).unwrap_or_default();
        let sessions = self.sessions.iter().filter_map(Weak::upgrade);
        sessions.for_each(|session| session.tell(&Method::ElicitationComplete, &params));
    }
}

/// So many bytes that nobody can guess, in hex; `None` where the system has none.
pub(super) fn random<const BYTES: usize>() -> Option<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

//! One legacy client's state: who it is, its open calls, its notices and its streams.

use super::kept::{Change, Earlier, KeptWishes, Wishes};
use super::notices::Notices;
use super::questions::ClientQuestions;
use super::requester::SessionCaller;
use super::sealed_id;
use super::streams::Streams;
use crate::call::LogLevel;
use crate::call::caller::credential::Revocation;
use crate::call::caller::{Caller, Can, ClientSession};
use crate::edge::client_era::Who;
use crate::edge::open_calls::OpenCalls;
use crate::edge::{Asks, Edge};
use crate::memory::StandingCharge;
use crate::memory::budget::Budget;
use crate::metrics::clients::{self, Present};
use crate::protocol::capabilities::Capabilities;
use crate::protocol::revision::Revision;
use crate::response::Label;
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Tells which of two sessions was opened later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Opened(u64);

impl Opened {
    fn next() -> Self {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        Self(OPENED.fetch_add(1, Ordering::Relaxed))
    }
}

/// How far a session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// `initialize` was answered, and nothing else came.
    Begun,
    /// The client has said `notifications/initialized`.
    Initialized,
    /// It has sent a request.
    Used,
}

/// A legacy client's state. Over stdio there is one; over HTTP without session ids, one for each request.
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    /// What it is known by inside: the id, or the part of a sealed one that no other has.
    pub(crate) short: Arc<str>,
    /// When it was opened.
    pub(crate) opened: Opened,
    /// Its caller, in the revision that the handshake agreed on, with the rights of the last token.
    caller: ArcSwap<SessionCaller>,
    /// Whether what it was opened with still counts.
    pub(crate) revocation: Revocation,
    pub(crate) open: Arc<OpenCalls>,
    /// What it is asked.
    pub(crate) outgoing: Arc<ClientQuestions>,
    /// What the client is told of unasked.
    pub(crate) notices: Notices,
    /// The streams that it can resume.
    pub(crate) streams: Streams,
    /// Whether it outlives the request that it came with.
    pub(crate) lasts: bool,
    /// Whether its client speaks the dialect of 2024-10-07.
    pub(crate) is_dialect: bool,
    /// How far it has come, as a [`Stage`].
    stage: AtomicU8,
    /// Whether another run has opened it.
    pub(crate) is_revived: bool,
    /// Open streams; with one, the session is not idle.
    attached: AtomicUsize,
    state: Mutex<State>,
    /// Where it is kept what its client wants lastingly, where the session may go on after a restart.
    wishes: OnceLock<Arc<KeptWishes>>,
    /// Counts it among what its client keeps.
    _kept: Option<StandingCharge>,
    /// Where it outlives its request: when it began, and its client among the programs that are there.
    counted: Option<(Instant, Present)>,
}

struct State {
    /// The level from which on the client wants log messages, once it has said so.
    level: Option<LogLevel>,
    /// When the last request of the session came or ended.
    used: Instant,
}

/// A session, and its caller with the rights of one request. Two requests with different tokens may come at the same time: each is judged
/// by its own.
#[derive(Clone)]
pub(crate) struct Requester {
    pub(crate) session: Arc<Session>,
    pub(crate) caller: Arc<SessionCaller>,
}

impl Session {
    /// The session of a client that has shaken hands.
    pub(crate) fn new(id: Arc<str>, who: Who, asks: Asks, terms: (Label, usize), budget: &Budget) -> Self {
        let budget = budget.owned_by(who.share().owner());
        Self::of(id, who, asks, terms, budget, (true, false))
    }

    /// That of a client that has shaken hands with another run.
    pub(crate) fn revived(id: Arc<str>, who: Who, asks: Asks, terms: (Label, usize), budget: &Budget) -> Self {
        let budget = budget.owned_by(who.share().owner());
        Self::of(id, who, asks, terms, budget, (true, true))
    }

    /// The session, which is counted from now on.
    pub(crate) fn counted(mut self, kept: StandingCharge) -> Self {
        self._kept = Some(kept);
        self
    }

    /// The session: what its client wants lastingly is kept here, where it may go on after a restart.
    pub(crate) fn wishing(self, wishes: &Arc<KeptWishes>) -> Self {
        if self.short != self.id {
            let _is_first = self.wishes.set(wishes.clone());
        }
        self
    }

    /// The session, of which this is known from an earlier run. Said before anybody else can find it: a second request of its client comes
    /// at the same time as the first.
    pub(crate) fn recalled(self, is_of_this_folder: bool, earlier: Earlier) -> Self {
        let Some(tenant) = self.caller().tenant.clone() else { return self };
        if !is_of_this_folder {
            tenant.comes_from_elsewhere();
        }
        match &earlier {
            Earlier::Found(_, true) => tenant.had_wishes(true),
            Earlier::Nothing if is_of_this_folder => tenant.had_wishes(false),
            Earlier::Found(_, false) | Earlier::Nothing | Earlier::Unknown => {}
        }
        if let Earlier::Found(wishes, _) = earlier {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).level = wishes.level;
            self.notices.await_again(wishes.uris);
        }
        self
    }

    /// What its client wants lastingly has changed; `None` where no later run will know.
    pub(crate) fn wishes_changed(&self) -> Option<Change> {
        // One that has ended is as it was: the next run may go on with it.
        let (wishes, uris) = (self.wishes.get()?, self.notices.uris()?);
        wishes.put(&self.short, Wishes { level: self.level(), uris })
    }

    /// Its client has ended it: nobody comes back to it.
    pub(crate) fn wants_nothing(&self) {
        if let Some(wishes) = self.wishes.get() {
            let _aside = wishes.put(&self.short, Wishes::default());
        }
    }

    /// The state of a single request of a client without a session.
    pub(crate) fn single(who: Who, revision: Revision, budget: &Budget) -> Self {
        let asks = Asks { revision, is_dialect: false, capabilities: Bytes::from_static(b"{}"), client: "".into() };
        Self::of("".into(), who, asks, (Label(false), 0), budget.clone(), (false, false))
    }

    fn of(
        id: Arc<str>,
        who: Who,
        asks: Asks,
        (label, resume_buffer): (Label, usize),
        budget: Budget,
        (lasts, is_revived): (bool, bool),
    ) -> Self {
        let Asks { revision, is_dialect, capabilities, client } = asks;
        let short = match sealed_id::short(&id) {
            whole if whole.len() == id.len() => id.clone(),
            short => short.into(),
        };
        let outgoing = Arc::new(ClientQuestions::new(revision, label, budget));
        let caller = Caller {
            principal: who.principal,
            address: who.address,
            grants: who.grants,
            revision,
            tenant: lasts.then(|| {
                let can = Capabilities::parse(&capabilities, revision);
                tenant(&short, &outgoing, (can, &client), (short.len() != id.len(), is_revived))
            }),
            capabilities,
            can: Can::default(),
        };
        Self {
            id,
            short,
            opened: Opened::next(),
            caller: ArcSwap::from_pointee(SessionCaller::new(caller)),
            revocation: who.revocation.of_session(),
            open: Arc::default(),
            notices: Notices::new(&outgoing),
            outgoing,
            streams: Streams::new(resume_buffer),
            lasts,
            is_dialect,
            stage: AtomicU8::new(Stage::Begun as u8),
            is_revived,
            attached: AtomicUsize::new(0),
            state: Mutex::new(State { level: None, used: Instant::now() }),
            wishes: OnceLock::new(),
            _kept: None,
            counted: lasts.then(|| (Instant::now(), clients::program(&client, revision.as_str()))),
        }
    }

    /// Its caller, with the rights of the last token.
    pub(crate) fn caller(&self) -> Arc<Caller> {
        self.caller.load().caller().clone()
    }

    /// Its caller for a request that comes with its connection, whose rights are those of the session.
    pub(crate) fn requester(self: &Arc<Self>) -> Requester {
        Requester { session: self.clone(), caller: self.caller.load_full() }
    }

    /// Its caller for a request with a token, whose rights are those of the session from now on: its streams follow them, and its client
    /// is told of the lists that differ.
    pub(crate) fn requester_with(self: &Arc<Self>, who: &Who) -> Requester {
        let (current, rights) = (self.caller.load_full(), who.rights());
        let Some(next) = current.with_rights(&rights) else {
            return Requester { session: self.clone(), caller: current };
        };
        let next = Arc::new(next);
        {
            // What listens has the same rights as the session, however many requests come at the same time.
            let _alone = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            self.caller.store(next.clone());
            next.caller().tenant.iter().for_each(|tenant| tenant.set_rights(rights.clone()));
        }
        self.notices.wake();
        Requester { session: self.clone(), caller: next }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.caller.load().caller().revision
    }

    /// The level from which on it wants log messages.
    pub(crate) fn level(&self) -> Option<LogLevel> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).level
    }

    /// Sets that level and listens anew with it.
    pub(crate) fn set_level(&self, edge: &Edge, level: LogLevel) -> Option<Change> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).level = Some(level);
        if self.lasts {
            self.notices.listen(edge, &self.caller(), Some(level));
        }
        self.wishes_changed()
    }

    /// Notes that the client is there.
    pub(crate) fn touch(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).used = Instant::now();
    }

    /// Notes how far it has come.
    pub(crate) fn reach(&self, stage: Stage) {
        if self.stage.load(Ordering::Relaxed) < stage as u8 {
            self.stage.fetch_max(stage as u8, Ordering::Relaxed);
        }
    }

    /// Whether it has come so far.
    pub(crate) fn has_reached(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::Relaxed) >= stage as u8
    }

    /// Whether a call or a question of it is open.
    pub(crate) fn is_at_work(&self) -> bool {
        !self.open.is_empty() || !self.outgoing.is_empty()
    }

    /// Notes an open stream for as long as the guard lives.
    pub(crate) fn attach(self: &Arc<Self>) -> Attached {
        self.attached.fetch_add(1, Ordering::Relaxed);
        Attached(self.clone())
    }

    /// For how long nothing happened; `None` while a call, a stream or a question is open.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let is_busy = self.attached.load(Ordering::Relaxed) > 0 || self.is_at_work();
        let used = self.state.lock().unwrap_or_else(PoisonError::into_inner).used;
        (!is_busy).then(|| used.elapsed())
    }

    /// Ends everything that belongs to it.
    pub(crate) fn end(&self) {
        if let Some(tenant) = &self.caller().tenant {
            tenant.end();
        }
        self.open.close();
        self.outgoing.close();
        self.notices.close();
        self.streams.close();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(tenant) = &self.caller().tenant {
            tenant.end();
        }
        self.outgoing.close();
        if let Some((began, _)) = &self.counted {
            clients::lasted().record(began.elapsed().as_secs_f64());
        }
    }
}

/// The session as the inside knows it.
fn tenant(
    id: &Arc<str>,
    outgoing: &Arc<ClientQuestions>,
    (can, client): (Capabilities, &str),
    (outlives, is_revived): (bool, bool),
) -> Arc<ClientSession> {
    let (asked, told) = (outgoing.clone(), outgoing.clone());
    let tenant = ClientSession::new(id.clone(), move |ask| asked.queue(ask))
        .able(can)
        .called(client)
        .lasting(outlives, is_revived);
    Arc::new(tenant.telling(move |method, params| told.tell(method, params)))
}

/// An open stream of a session.
pub(crate) struct Attached(Arc<Session>);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.attached.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

//! One legacy client's state: who it is, its open calls, its notices and its streams.

use super::edge::Edge;
use super::handshake::Asks;
use super::label::Label;
use super::notices::Notices;
use super::open::OpenCalls;
use super::outgoing::Outgoing;
use super::peer::Who;
use super::streams::Streams;
use crate::call::{Caller, Can, LogLevel, Tenant};
use crate::protocol::capability::Capabilities;
use crate::protocol::{Revision, need};
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A legacy client's state. Over stdio there is one; over HTTP without session ids, one for each request.
pub(super) struct Session {
    pub(super) id: Arc<str>,
    /// Who makes its calls, in the revision that the handshake agreed on.
    pub(super) caller: Arc<Caller>,
    /// The same for requests on whose stream it cannot be asked, once there was one.
    mute: OnceLock<Arc<Caller>>,
    pub(super) open: Arc<OpenCalls>,
    /// What it is asked.
    pub(super) outgoing: Arc<Outgoing>,
    /// What the client is told of unasked.
    pub(super) notices: Notices,
    /// The streams that it can resume.
    pub(super) streams: Streams,
    /// Whether it outlives the request that it came with.
    pub(super) lasts: bool,
    /// Whether its client speaks the dialect of 2024-10-07.
    pub(super) is_dialect: bool,
    /// Open streams; with one, the session is not idle.
    attached: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    /// The level from which on the client wants log messages, once it has said so.
    level: Option<LogLevel>,
    /// When the last request of the session came or ended.
    used: Instant,
}

impl Session {
    /// The session of a client that has shaken hands.
    pub(super) fn new(id: Arc<str>, who: Who, asks: Asks, label: Label, resume_buffer: usize) -> Self {
        Self::of(id, who, asks, label, resume_buffer, true)
    }

    /// The state of a single request of a client without a session.
    pub(super) fn single(who: Who, revision: Revision) -> Self {
        let asks = Asks { revision, is_dialect: false, capabilities: Bytes::from_static(b"{}") };
        Self::of("".into(), who, asks, Label(false), 0, false)
    }

    fn of(id: Arc<str>, who: Who, asks: Asks, label: Label, resume_buffer: usize, lasts: bool) -> Self {
        let Asks { revision, is_dialect, capabilities } = asks;
        let outgoing = Arc::new(Outgoing::new(revision, label));
        let caller = Caller {
            principal: who.principal,
            grants: who.grants,
            revision,
            tenant: lasts.then(|| tenant(&id, &outgoing, Capabilities::parse(&capabilities, revision))),
            capabilities,
            can: Can::default(),
        };
        Self {
            id,
            caller: Arc::new(caller),
            mute: OnceLock::new(),
            open: Arc::default(),
            notices: Notices::new(&outgoing),
            outgoing,
            streams: Streams::new(resume_buffer),
            lasts,
            is_dialect,
            attached: AtomicUsize::new(0),
            state: Mutex::new(State { level: None, used: Instant::now() }),
        }
    }

    pub(super) fn revision(&self) -> Revision {
        self.caller.revision
    }

    /// Who makes a call on whose stream it cannot be asked.
    pub(super) fn mute_caller(&self) -> &Arc<Caller> {
        self.mute.get_or_init(|| {
            let capabilities = need::mute(&self.caller.capabilities).into();
            Arc::new(Caller { capabilities, can: Can::default(), ..Caller::clone(&self.caller) })
        })
    }

    /// The level from which on it wants log messages.
    pub(super) fn level(&self) -> Option<LogLevel> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).level
    }

    /// Sets that level and listens anew with it.
    pub(super) fn set_level(&self, edge: &Edge, level: LogLevel) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).level = Some(level);
        if self.lasts {
            self.notices.listen(edge, &self.caller, Some(level));
        }
    }

    /// Notes that the client is there.
    pub(super) fn touch(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).used = Instant::now();
    }

    /// Notes an open stream for as long as the guard lives.
    pub(super) fn attach(self: &Arc<Self>) -> Attached {
        self.attached.fetch_add(1, Ordering::Relaxed);
        Attached(self.clone())
    }

    /// For how long nothing happened; `None` while a call, a stream or a question is open.
    pub(super) fn idle(&self) -> Option<Duration> {
        let is_busy = self.attached.load(Ordering::Relaxed) > 0 || !self.open.is_empty() || !self.outgoing.is_empty();
        let used = self.state.lock().unwrap_or_else(PoisonError::into_inner).used;
        (!is_busy).then(|| used.elapsed())
    }

    /// Ends everything that belongs to it.
    pub(super) fn end(&self) {
        if let Some(tenant) = &self.caller.tenant {
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
        if let Some(tenant) = &self.caller.tenant {
            tenant.end();
        }
        self.outgoing.close();
    }
}

/// The session as the inside knows it.
fn tenant(id: &Arc<str>, outgoing: &Arc<Outgoing>, can: Capabilities) -> Arc<Tenant> {
    let (asked, told) = (outgoing.clone(), outgoing.clone());
    let tenant = Tenant::new(id.clone(), move |ask| asked.queue(ask)).able(can);
    Arc::new(tenant.telling(move |method, params| told.tell(method, params)))
}

/// An open stream of a session.
pub(super) struct Attached(Arc<Session>);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.attached.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

//! One holder in the budget, and how it hears that it loses what it holds.

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A client's connection, with the buffers that it has at least.
    Connection,
    /// The body of a client's request, read or half read.
    Body,
    /// A line, an event or a body of an upstream, read or half read.
    Line,
    /// Messages of an upstream that wait for the reader of their reply.
    Reply,
    /// A response on its way to a client.
    Answer,
    /// What a client can come back for.
    Replay,
    /// What waits to be written to an upstream.
    Queue,
    /// What a session keeps: what its client has declared, subscriptions, messages that wait for it.
    Session,
    /// What upstreams offer: their lists as they were read, the merged catalog, and its lists as clients get them.
    List,
    /// What is too small to be counted by itself: all of one client together.
    Small,
}

/// One client of the budget: all that it makes the gateway keep is weighed together.
#[derive(Debug, Clone)]
pub struct Owner {
    key: u64,
    name: OwnerName,
}

/// What the operator knows a client by.
#[derive(Debug, Clone)]
pub enum OwnerName {
    /// Its principal.
    Principal(Arc<str>),
    /// Its address, or its network.
    Address(IpAddr),
    /// Nothing tells it apart from others.
    Unknown,
}

impl Owner {
    /// The owner that a share of clients is.
    pub fn of(share: &impl Hash, name: OwnerName) -> Self {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self { key: KEYS.hash_one(share), name }
    }

    /// What it is weighed by.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}

/// What is weighed together: all of one client, or a single holder that belongs to no client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Group {
    /// The holders of one client.
    Client(u64),
    /// One holder.
    Single(usize),
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Connection,
        Self::Body,
        Self::Line,
        Self::Reply,
        Self::Answer,
        Self::Replay,
        Self::Queue,
        Self::Session,
        Self::List,
        Self::Small,
    ];

    /// Whether it grows as a peer sends; what else there is follows from that, and may have the last quarter too.
    pub(crate) fn comes_in(self) -> bool {
        matches!(self, Self::Body | Self::Line | Self::Session | Self::List | Self::Small)
    }

    /// The word for metrics and people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Body => "body",
            Self::Line => "line",
            Self::Reply => "reply",
            Self::Answer => "answer",
            Self::Replay => "replay",
            Self::Queue => "queue",
            Self::Session => "session",
            Self::List => "list",
            Self::Small => "small",
        }
    }
}

/// It cannot be taken away: whoever has it does not wait.
const KEPT: u8 = 0;
/// Whoever has it waits and can be told.
const WAITING: u8 = 1;
/// Whoever has it was told to give it up.
const LOST: u8 = 2;

/// For whom a holder keeps what it has: for which client, and on behalf of which upstream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whose {
    pub(crate) owner: Option<Owner>,
    pub(crate) upstream: Option<Arc<str>>,
}

/// One holder.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) kind: Kind,
    /// Where it stands among all.
    pub(crate) key: usize,
    whose: Whose,
    bytes: AtomicUsize,
    state: AtomicU8,
    waker: Mutex<Option<Waker>>,
    /// What is woken takes locks: it is woken by a task that holds none.
    is_deferred: AtomicBool,
    /// It is whole and was handed on: what is left to do does not depend on its sender.
    is_whole: AtomicBool,
}

impl Account {
    pub(crate) fn new(kind: Kind, key: usize, whose: Whose) -> Self {
        let (bytes, state) = (AtomicUsize::new(0), AtomicU8::new(KEPT));
        let (is_deferred, is_whole) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { kind, key, whose, bytes, state, waker: Mutex::default(), is_deferred, is_whole }
    }

    /// With what it is weighed.
    pub(crate) fn group(&self) -> Group {
        self.whose.owner.as_ref().map_or(Group::Single(self.key), |owner| Group::Client(owner.key()))
    }

    pub(crate) fn whose(&self) -> &Whose {
        &self.whose
    }

    /// The upstream that it is kept on behalf of, where that is known.
    pub(crate) fn upstream(&self) -> Option<&str> {
        self.whose.upstream.as_deref()
    }

    /// The client that it is kept for, where that is known.
    pub(crate) fn client(&self) -> Option<String> {
        match &self.whose.owner.as_ref()?.name {
            OwnerName::Principal(name) => Some(name.to_string()),
            OwnerName::Address(address) => Some(address.to_string()),
            OwnerName::Unknown => None,
        }
    }

    /// Whether it depends on a client that sends or reads slowly.
    pub(crate) fn waits_for_client(&self) -> bool {
        match self.kind {
            Kind::Answer | Kind::Replay => true,
            Kind::Body => !self.is_whole.load(Ordering::Relaxed),
            _ => false,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    pub(crate) fn set(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Release);
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.state.load(Ordering::Acquire) == LOST
    }

    pub(crate) fn may_lose(&self) -> bool {
        self.state.load(Ordering::Acquire) == WAITING
    }

    /// It loses; false where it had lost.
    pub(crate) fn lose(&self) -> bool {
        self.state.swap(LOST, Ordering::AcqRel) != LOST
    }

    /// Ready once it is to be given up. From the first call on, until [`Self::keep`], it can be.
    pub(crate) fn poll_lost(&self, cx: &Context<'_>) -> Poll<()> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner).replace(cx.waker().clone());
        match self.state.compare_exchange(KEPT, WAITING, Ordering::AcqRel, Ordering::Acquire) {
            Err(LOST) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    /// It is handed on, and cannot be taken away meanwhile.
    pub(crate) fn keep(&self) {
        self.is_whole.store(true, Ordering::Relaxed);
        let _had_lost = self.state.compare_exchange(WAITING, KEPT, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Until it is polled again it is woken by a task.
    pub(crate) fn defer(&self) {
        self.is_deferred.store(true, Ordering::Release);
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.is_deferred.load(Ordering::Acquire)
    }

    pub(crate) fn waker(&self) -> Option<Waker> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a holder waits with that has not got the memory itself: that can be taken away until this is dropped.
#[derive(Debug)]
pub struct Hold(Arc<Account>);

impl Hold {
    pub(crate) fn of(account: &Arc<Account>) -> Self {
        Self(account.clone())
    }

    /// As [`Self::poll_lost`], where nobody polls: `give_up` is woken, by a task that holds no lock, and takes what it needs.
    pub fn give_up_by(&self, give_up: &Waker) -> Poll<()> {
        self.0.defer();
        self.0.poll_lost(&Context::from_waker(give_up))
    }

    /// Ready once it is to be given up. From the first call on it can be.
    pub fn poll_lost(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.poll_lost(cx)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.keep();
    }
}

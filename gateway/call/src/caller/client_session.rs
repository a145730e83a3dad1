//! A legacy session as the inside knows it: whose questions are its, how it is asked, and when it has ended.

use super::grants::Grants;
use super::host::{KNOWN_HOSTS, KnownHost};
use super::principal::Principal;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::frame::Method;
use crate::protocol::value::Object;
use crate::reply::ask::Ask;
use arc_swap::ArcSwapOption;
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How a session takes a question that belongs to no open call of it; gives it back where it cannot.
type Asking = Box<dyn Fn(Box<Ask>) -> Result<(), Box<Ask>> + Send + Sync>;

/// How a session is told something that belongs to no open call of it.
type Telling = Box<dyn Fn(&Method, &Object) + Send + Sync>;

/// The number of the next one.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// So many digits of its digest tell a session from others.
const MARK_DIGITS: usize = 8;

/// A legacy session as the inside knows it. What belongs to a session alone is compared and found by its id.
pub struct ClientSession {
    id: Arc<str>,
    number: u64,
    ended: CancellationToken,
    asking: Asking,
    telling: Option<Telling>,
    can: Capabilities,
    /// The host whose client it is, where that takes only so many tools.
    host: Option<&'static KnownHost>,
    /// Whether it goes on after a restart of the gateway.
    outlives: bool,
    /// Whether an earlier run has opened it.
    is_revived: bool,
    /// Whether that run has left nothing here.
    is_from_elsewhere: AtomicBool,
    /// Whether it had asked for anything in that, once that is known.
    wished: OnceLock<bool>,
    /// Notified of each instance of an upstream that it gets to itself. A `watch` channel would take 350 bytes of each session.
    instances: Notify,
    /// Whether it may see other lists than everyone does.
    has_lists: AtomicBool,
    /// The rights of the token that its client has shown last, once they differ from those at its handshake.
    rights: ArcSwapOption<SessionRights>,
}

/// The rights of a session: its principal, with what its token allows, and its grants.
#[derive(Debug, Clone)]
pub struct SessionRights {
    /// The principal. The name is the same for all tokens of a session.
    pub principal: Principal,
    /// The grants.
    pub grants: Grants,
}

impl SessionRights {
    /// Whether both come of tokens that allow the same.
    pub fn is(&self, other: &Self) -> bool {
        self.principal.is_as(&other.principal) && self.grants.is(&other.grants)
    }
}

impl ClientSession {
    /// A session with this id; questions outside of its calls go to `asking`.
    pub fn new(id: Arc<str>, asking: impl Fn(Box<Ask>) -> Result<(), Box<Ask>> + Send + Sync + 'static) -> Self {
        Self {
            id,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            ended: CancellationToken::new(),
            asking: Box::new(asking),
            telling: None,
            can: Capabilities::NONE,
            host: None,
            outlives: false,
            is_revived: false,
            is_from_elsewhere: AtomicBool::new(false),
            wished: OnceLock::new(),
            instances: Notify::new(),
            has_lists: AtomicBool::new(false),
            rights: ArcSwapOption::empty(),
        }
    }

    /// The session, which is told things through `telling`.
    pub fn telling(self, telling: impl Fn(&Method, &Object) + Send + Sync + 'static) -> Self {
        Self { telling: Some(Box::new(telling)), ..self }
    }

    /// The session, which has declared in its handshake that it can be asked this.
    pub fn able(self, can: Capabilities) -> Self {
        Self { can, ..self }
    }

    /// The session, whose client calls itself so.
    pub fn called(self, client: &str) -> Self {
        Self { host: KnownHost::of(client), ..self }
    }

    /// The hosts that are known to take only so many tools.
    pub fn host_limits() -> impl Iterator<Item = (&'static str, usize)> {
        KNOWN_HOSTS.iter().map(|host| (host.title, host.tools))
    }

    /// The host whose client it is, where that takes only so many tools.
    pub fn host(&self) -> Option<&'static KnownHost> {
        self.host
    }

    /// The session, which may go on after a restart of the gateway, or does so now.
    pub fn lasting(self, outlives: bool, is_revived: bool) -> Self {
        Self { outlives, is_revived, ..self }
    }

    /// Whether it goes on after a restart of the gateway.
    pub fn outlives(&self) -> bool {
        self.outlives
    }

    /// Whether an earlier run has opened it.
    pub fn is_revived(&self) -> bool {
        self.is_revived
    }

    /// The run that has opened it has left nothing here: it had another folder for its state.
    pub fn comes_from_elsewhere(&self) {
        self.is_from_elsewhere.store(true, Ordering::Release);
    }

    /// Whether nobody here knows what it had.
    pub fn is_from_elsewhere(&self) -> bool {
        self.is_from_elsewhere.load(Ordering::Acquire)
    }

    /// All is known that it had asked for in an earlier run, subscriptions and a log level: whether there was any. Said before any call.
    pub fn had_wishes(&self, had_any: bool) {
        let _is_first = self.wished.set(had_any);
    }

    /// Whether it had asked for anything in an earlier run, which is wanted again; `None` where some of that, or all, is lost.
    pub fn wished_before(&self) -> Option<bool> {
        self.wished.get().copied()
    }

    /// One that cannot be asked.
    pub fn mute(id: &str) -> Self {
        Self::new(id.into(), Err)
    }

    /// Its id, which is secret: it is never shown.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What tells it from the others of this process, where it is looked up.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What tells it from others where it is shown: it opens nothing.
    pub fn mark(&self) -> String {
        let digest = Sha256::digest(&*self.id);
        digest.iter().take(MARK_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
    }

    /// What it has declared that it can be asked, whatever a single call of it may say.
    pub fn can(&self) -> Capabilities {
        self.can
    }

    /// It got an instance of an upstream to itself.
    pub fn got_instance(&self) {
        self.has_lists.store(true, Ordering::Release);
        self.instances.notify_one();
    }

    /// Whether it may see other lists than everyone does.
    pub fn has_lists(&self) -> bool {
        self.has_lists.load(Ordering::Acquire)
    }

    /// Resolves when it has got an instance since the last call. At most one task waits.
    pub async fn next_instance(&self) {
        self.instances.notified().await;
    }

    /// Its client shows a token with these rights: all that listens for the session has them from now on.
    pub fn set_rights(&self, rights: SessionRights) {
        self.rights.store(Some(Arc::new(rights)));
    }

    /// The rights of its last token; `None` while they are those of its handshake.
    pub fn rights(&self) -> Option<Arc<SessionRights>> {
        self.rights.load_full()
    }

    /// Puts a question to it that belongs to no call; gives it back where the session cannot be asked.
    pub fn ask(&self, ask: Box<Ask>) -> Result<(), Box<Ask>> {
        if self.ended.is_cancelled() {
            return Err(ask);
        }
        (self.asking)(ask)
    }

    /// Tells it a notification that belongs to no call: that a page which an upstream had it open was seen to.
    pub fn tell(&self, method: &Method, params: &Object) {
        if let Some(telling) = self.telling.as_ref().filter(|_| !self.ended.is_cancelled()) {
            telling(method, params);
        }
    }

    /// Its client has gone: what was kept for it is given up.
    pub fn end(&self) {
        self.ended.cancel();
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Resolves when it has ended.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl std::fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenant").field("ended", &self.ended.is_cancelled()).finish_non_exhaustive()
    }
}

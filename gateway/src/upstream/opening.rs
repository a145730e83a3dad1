//! Opens sessions beside the primary one, keeps them while they are needed, and sends each call in the session it belongs to.

use super::call_sessions::{CallSession, Found, IDLE};
use super::holding::{BRIDGED, Holder};
use super::legacy;
use super::levels;
use super::link::{self, Http, Link, Lost, Wire};
use super::peer::Peer;
use super::queue::Entry;
use super::reads::Kinds;
use super::standing::Standing;
use super::turn::Sent;
use crate::call::Call;
use crate::lifecycle::Tasks;
use crate::protocol::beyond::Declared;
use crate::protocol::capability::Capabilities;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// How long its background stream may take to start.
const LISTEN_WAIT: Duration = Duration::from_secs(1);
/// A session that is lost sooner than this, twice in a row, is not simply opened anew.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// Why a session could not be opened.
enum Unopened {
    /// The upstream does not want it.
    Refused(String),
    /// It could not be asked, or is not well.
    NotNow(String),
}

/// How one life of a session ended.
enum End {
    Stopped,
    Idle,
    Lost,
}

impl Standing {
    /// The session that a call belongs to; `None` where that is the primary one.
    pub(crate) fn session_of(self: &Arc<Self>, primary: &Arc<Peer>, call: &Call) -> Option<Arc<CallSession>> {
        let Link::Http(http) = &primary.link else { return None };
        // Where there are no sessions nothing was declared for good, and where all calls are one session's all was.
        if primary.revision().is_modern() || !http.has_session() || matches!(self.holding.holder, Holder::Session(_)) {
            return None;
        }
        // Where the roots are configured, no client needs to have any.
        let roots = if self.config.roots.is_some() { Capabilities::ROOTS } else { Capabilities::NONE };
        let set = call.caller.can().with(roots).and(BRIDGED);
        if set == BRIDGED && call.caller.beyond().is_empty() {
            return None;
        }
        match self.sessions.find(Declared { can: set, beyond: call.caller.beyond().clone() }, self.config.queue)? {
            Found::Open(session) => Some(session),
            Found::New(session, wire, tasks) => {
                tasks.spawn(keep(self.clone(), session.clone(), wire, tasks.clone()));
                Some(session)
            }
        }
    }

    /// Opens the gate of the primary session; what waits goes first, each call to the session that it belongs to.
    pub(crate) fn open_gate(self: &Arc<Self>, peer: &Arc<Peer>) {
        let standing = self.clone();
        self.gate.open(peer, &move |peer, entry| standing.pass(peer, entry));
    }

    /// Has calls that wait for a place go on as places become free.
    pub(crate) async fn keep_places(self: Arc<Self>) {
        loop {
            self.gate.freed().await;
            self.gate.serve_waiting(&|peer, entry| self.pass(peer, entry));
        }
    }

    /// Sends a call that waited, in the session that it belongs to.
    fn pass(self: &Arc<Self>, peer: &Arc<Peer>, entry: Entry) {
        match self.session_of(peer, &entry.call) {
            Some(session) => session.gate.queue(entry, &|peer, entry| self.hand(peer, entry)),
            None => self.hand(peer, entry),
        }
    }

    /// Sends a call that waited.
    fn hand(&self, peer: &Arc<Peer>, entry: Entry) {
        let sent = self.send(peer, &entry.call, entry.place);
        // Who no longer waits drops the exchange, and that withdraws it.
        entry.turn.send(sent.map(|exchange| Sent { peer: peer.clone(), exchange }));
    }

    /// A session cannot be had, now or at all: what waits for it is refused, or goes to the primary one.
    fn give_up(&self, session: &Arc<CallSession>, why: Unopened) {
        let (upstream, wanted) = (&*self.name, session.set.to_json(crate::protocol::Revision::NEWEST_LEGACY));
        let waiting = match why {
            Unopened::NotNow(cause) => {
                tracing::debug!(
                    upstream,
                    wanted,
                    cause,
                    "no session could be opened for callers with these capabilities"
                );
                self.sessions.remove(session);
                return session.gate.shut(&cause.as_str().into());
            }
            Unopened::Refused(cause) => {
                if self.sessions.refuse() {
                    let text =
                        "the upstream bears no second session, so one is for all clients, whatever they can be asked";
                    tracing::info!(upstream, cause, "{text}");
                }
                self.sessions.remove(session);
                session.gate.clear(&cause.as_str().into())
            }
        };
        for entry in waiting {
            self.gate.queue(entry, &|peer, entry| self.hand(peer, entry));
        }
    }

    /// Resolves when a session was without a call for long; it can no longer be found then.
    async fn idle(&self, session: &Arc<CallSession>, http: &Http) {
        let mut until = Instant::now() + IDLE;
        loop {
            sleep_until(until).await;
            match self.sessions.remove_idle(session, || http.is_busy()) {
                Ok(()) => return,
                Err(later) => until = later,
            }
        }
    }
}

/// Keeps a session open while it is needed: one that the upstream loses is opened again, once for all who wait.
async fn keep(standing: Arc<Standing>, session: Arc<CallSession>, wire: Arc<Wire>, tasks: Tasks) {
    let limit = standing.config.startup_timeout;
    let mut lost_early = 0;
    loop {
        let http = Http::new(wire.clone());
        let link = Link::Http(http.clone());
        let opened = tokio::select! {
            biased;
            () = tasks.ending() => break,
            opened = timeout(limit, open(&link, &session.set)) => opened,
        };
        let late =
            || Err(Unopened::Refused(format!("it did not answer `initialize` within {} s", limit.as_secs_f32())));
        let peer = match opened.unwrap_or_else(|_| late()) {
            Ok(peer) => Arc::new(peer),
            Err(why) => return standing.give_up(&session, why),
        };
        let life = tasks.child();
        let begun = Instant::now();
        let end = live(&standing, &session, &http, &peer, &life).await;
        life.end();
        life.ended().await;
        match end {
            End::Stopped | End::Idle => {
                http.farewell().await;
                break;
            }
            End::Lost => {
                lost_early = if begun.elapsed() < LIFE_MIN { lost_early + 1 } else { 0 };
                // The primary one may be gone as well.
                standing.reads.mark(Kinds::ALL);
                if lost_early == 2 {
                    let why = "it lost it again and again";
                    return standing.give_up(&session, Unopened::Refused(why.to_owned()));
                }
            }
        }
    }
    standing.sessions.remove(&session);
    session.gate.shut(&"its session was closed".into());
}

/// One life of a session, from when it was opened.
async fn live(
    standing: &Arc<Standing>,
    session: &Arc<CallSession>,
    http: &Arc<Http>,
    peer: &Arc<Peer>,
    life: &Tasks,
) -> End {
    session.gate.expect(peer);
    let (leveled, of) = (peer.clone(), standing.clone());
    life.spawn_until_end(async move { levels::keep(&of.levels, &leveled).await });
    // Older servers ask on this stream, whatever call they do it for, and tell of changed lists.
    let (started, mut start) = watch::channel(false);
    let (listener, owner, listened) = (http.clone(), standing.clone(), peer.clone());
    life.spawn_until_end(async move {
        if let Some(lost) = link::listen(listener, started).await {
            owner.noticed(&listened, &lost);
        }
    });
    let _ = timeout(LISTEN_WAIT, start.wait_for(|is_started| *is_started)).await;
    drop(start);
    let owner = standing.clone();
    session.gate.open(peer, &move |peer, entry| owner.hand(peer, entry));
    tokio::select! {
        biased;
        () = life.ending() => End::Stopped,
        _ = session.gate.retired() => End::Lost,
        () = standing.idle(session, http) => End::Idle,
    }
}

/// Opens a session that declares a set.
async fn open(link: &Link, set: &Declared) -> Result<Peer, Unopened> {
    let not_now = |lost: &Lost| Unopened::NotNow(lost.text().to_string());
    let mut exchange = legacy::initialize(link, set).map_err(|lost| not_now(&lost))?;
    let answer = exchange.answer().await;
    match &answer {
        Err(lost @ (Lost::Unsent(_) | Lost::Busy(_) | Lost::Barred(..) | Lost::Unknown(_))) => {
            return Err(not_now(lost));
        }
        Err(lost @ Lost::Status(refusal)) if matches!(refusal.status, 408 | 429 | 500..) => return Err(not_now(lost)),
        _ => {}
    }
    let offer = legacy::read_initialize(&answer).map_err(|fault| Unopened::Refused(fault.text))?;
    let peer = Peer::new(link.clone(), offer);
    match legacy::initialized(link).await {
        Err(lost @ Lost::Unsent(_)) => Err(not_now(&lost)),
        Err(Lost::Session(text)) => Err(Unopened::Refused(text.to_string())),
        _ => Ok(peer),
    }
}

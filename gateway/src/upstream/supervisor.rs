//! Keeps one upstream alive: started, met, watched, started again within a budget, and stopped with proof.

use super::config::Transport;
use super::course::{Course, End, Lives};
use super::fault::Fault;
use super::gate::Retired;
use super::link::{self, Child, Http, Link, Spec, Wire};
use super::peer::Peer;
use super::probe::{self, Memory, Plan};
use super::resting::{self, Rest, Told};
use super::standing::Standing;
use super::starts::Ticket;
use super::{circle, health, keeping, listening, storing};
use crate::lifecycle::{State, Tasks, chain};
use crate::signals;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

/// A next attempt within this time is worth waiting for.
const SOON: Duration = Duration::from_secs(5);
/// A handshake that takes longer than this is worth a word.
const SLOW: Duration = Duration::from_secs(3);
/// How long a stream that tells of changes may take to start.
const LISTEN_WAIT: Duration = Duration::from_secs(1);

/// What follows when the end of a life was seen to.
enum Next {
    /// Another life.
    Live,
    /// None, for now.
    Rest(Rest),
    /// None.
    End,
}

/// Keeps the upstream alive until its level ends; then nothing of it is left.
pub(crate) async fn supervise(standing: Arc<Standing>, ticket: Option<Ticket>, tasks: Tasks) {
    tasks.spawn_until_end(standing.clone().keep_places());
    let restart = standing.config.restart.clone();
    let mut rest = resting::at_start(&standing);
    let mut supervisor = Supervisor {
        lives: Lives::new(restart, !standing.is_http()),
        memory: Memory::default(),
        // Who rests keeps nobody from starting meanwhile.
        ticket: ticket.filter(|_| rest.is_none()),
        was_at_rest: rest.is_some(),
        was_met: false,
        child: None,
        wire: None,
        http: None,
        sessions: tasks.child(),
        tasks: tasks.clone(),
        standing,
    };
    loop {
        let standing = supervisor.standing.clone();
        if let Some(rest) = rest
            && !resting::until_needed(&standing, rest, &tasks).await
        {
            break;
        }
        let level = tasks.child();
        let end = tokio::select! {
            biased;
            () = tasks.ending() => None,
            end = supervisor.live(&level) => Some(Ok(end)),
            told = resting::interrupted(&standing) => Some(Err(told)),
        };
        if let Some(Err(told)) = &end {
            supervisor.cut(told);
        }
        level.end();
        // What is left of this life ends before the next one begins.
        level.ended().await;
        let Some(end) = end else { break };
        let next = match end {
            Ok(end) => supervisor.pause(end, &tasks).await,
            Err(told) => supervisor.rest(told).await,
        };
        match next {
            Next::Live => rest = None,
            Next::Rest(what) => rest = Some(what),
            Next::End => break,
        }
    }
    supervisor.leave().await;
    let standing = supervisor.standing;
    standing.gate.shut(&"it was told to stop".into());
    standing.moved(State::Stopped, None, None, None);
    standing.stopped.cancel();
}

struct Supervisor {
    standing: Arc<Standing>,
    lives: Lives,
    memory: Memory,
    /// Its turn to start the first child.
    ticket: Option<Ticket>,
    /// It was not running because nobody wanted it to: its start is no attempt to mend anything.
    was_at_rest: bool,
    /// It was met before: what listeners want may have changed unseen.
    was_met: bool,
    child: Option<Child>,
    wire: Option<Arc<Wire>>,
    /// The session that is open, to be ended when nobody has lost it.
    http: Option<Arc<Http>>,
    /// Where further sessions of it live.
    sessions: Tasks,
    tasks: Tasks,
}

impl Supervisor {
    /// One life: opened, met, watched to its end.
    async fn live(&mut self, level: &Tasks) -> End {
        let standing = self.standing.clone();
        standing.gate.close();
        let last = standing.seat.health().cause;
        standing.moved(State::Starting, last.as_deref(), None, None);
        let start = match self.ticket.take().or_else(|| standing.ticket()) {
            Some(ticket) => Some(ticket.turn().await),
            None => None,
        };
        let begun = Instant::now();
        let link = match self.open(level) {
            Ok(link) => link,
            Err(fault) => return End::Unmet(fault),
        };
        if let (Some(start), Link::Pipe(pipe), Some(child)) = (start, &link, &self.child) {
            let pid = child.pid;
            level.spawn_until_end(start.hold(pipe.clone(), move || link::worked(pid)));
        }
        let now = Instant::now();
        let plan = if self.lives.is_not_asked() { Plan::Handshake } else { self.memory.plan(standing.config.era, now) };
        self.lives.started(now, std::mem::take(&mut self.was_at_rest));
        let version = chain::version();
        let peer = match self.meet(&link, plan).await {
            Ok(peer) => Arc::new(peer),
            Err(fault) if self.child.as_ref().is_some_and(Child::is_foreign) => {
                return End::Unmet(Fault::hopeless(fault.text));
            }
            Err(fault) => return End::Unmet(fault),
        };
        self.lives.met();
        self.memory.note(peer.revision().era(), Instant::now());
        let pid = self.child.as_ref().map(|child| child.pid);
        standing.seat.update(|health| (health.pid, health.revision) = (pid, Some(peer.revision().as_str())));
        standing.sessions.renew();
        standing.gate.expect(&peer);
        if standing.inventory.borrow().is_some() {
            // What it offers is known from its last life: calls need not wait for the lists, and so it is up.
            standing.open_gate(&peer);
            standing.seat.update(|health| health.started_in = Some(begun.elapsed()));
            standing.came_up();
        }
        self.listen(level, &peer).await;
        level.spawn_until_end(keeping::keep(standing.clone(), peer.clone(), begun));
        level.spawn_until_end(health::watch(standing.clone(), peer.clone()));
        if standing.is_http() {
            level.spawn_until_end(circle::watch(standing.clone(), peer.clone(), version));
        }
        let met = Instant::now();
        tokio::select! {
            cause = link.closed() => self.gone(&cause, met.elapsed()),
            why = standing.gate.retired() => match link.is_closed() {
                true => self.gone(&link.closed().await, met.elapsed()),
                false => self.retired(why, met.elapsed()),
            },
        }
    }

    /// Has the peer tell of changes; that it does is waited for a little before its lists are read, so that none is missed between.
    async fn listen(&mut self, level: &Tasks, peer: &Arc<Peer>) {
        let was_away = std::mem::replace(&mut self.was_met, true);
        let (settled, first) = oneshot::channel();
        let wants = listening::keep(self.standing.clone(), peer.clone(), was_away, settled);
        if peer.revision().is_modern() {
            level.spawn_until_end(wants);
            let _ = timeout(LISTEN_WAIT, first).await;
            return;
        }
        if let Some(http) = &self.http {
            // The background stream of a session.
            let (started, mut start) = watch::channel(false);
            let (http, standing, peer) = (http.clone(), self.standing.clone(), peer.clone());
            level.spawn_until_end(async move {
                if let Some(lost) = link::listen(http, started).await {
                    standing.noticed(&peer, &lost);
                }
            });
            let _ = timeout(LISTEN_WAIT, start.wait_for(|is_started| *is_started)).await;
        }
        level.spawn_until_end(wants);
    }

    /// Takes leave of an HTTP upstream, and closes what is open to it.
    async fn leave(&mut self) {
        self.part().await;
        if let Some(wire) = &self.wire {
            wire.close();
        }
    }

    /// Ends every session.
    async fn part(&mut self) {
        self.sessions.end();
        self.sessions.ended().await;
        if let Some(http) = self.http.take() {
            http.farewell().await;
        }
    }

    /// A peer was given up. A child that hangs is not asked to end: its calls have waited long enough.
    fn retired(&self, why: Retired, up: Duration) -> End {
        if let (Retired::Hung(cause), Some(child)) = (&why, &self.child) {
            child.kill(cause);
        }
        End::Retired { why, up }
    }

    fn gone(&self, cause: &str, up: Duration) -> End {
        let is_clean = self.child.as_ref().and_then(Child::status).is_some_and(|status| status.success());
        End::Gone { cause: cause.to_owned(), up, is_clean }
    }

    /// Opens a link: starts the child, or makes ready to dial.
    fn open(&mut self, level: &Tasks) -> Result<Link, Fault> {
        let standing = &self.standing;
        match &standing.config.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let spec = Spec {
                    name: &standing.name,
                    command,
                    args,
                    env,
                    cwd: cwd.as_ref(),
                    max_message: standing.config.max_message,
                    stop_timeout: standing.config.restart.stop_timeout,
                    stderr_lines: standing.metrics.stderr.clone(),
                };
                let child = link::start(spec, standing.clone(), level)?;
                standing.seat.update(|health| health.pid = Some(child.pid));
                let (tail, shown) = (child.tail.clone(), standing.clone());
                level.spawn_until_end(async move {
                    loop {
                        tail.grown().await;
                        shown.seat.update(|health| health.stderr = tail.lines());
                        // Not more often than anyone could read.
                        sleep(Duration::from_secs(1)).await;
                    }
                });
                standing.chunks.forget();
                let link = Link::Pipe(child.pipe.clone());
                self.child = Some(child);
                Ok(link)
            }
            Transport::Http { url, headers } => {
                // One set of connections for all sessions: a call that runs outlives a session that was lost.
                let wire = match &self.wire {
                    Some(wire) => wire.clone(),
                    None => {
                        let inbox = standing.clone();
                        let config = &standing.config;
                        let (max, breaker) = (config.max_message, config.breaker.clone());
                        let wire = Wire::new(url, headers, max, breaker, inbox, self.tasks.clone())
                            .map_err(Fault::hopeless)?;
                        standing.sessions.reach(&wire, &self.sessions);
                        self.wire.insert(wire).clone()
                    }
                };
                let http = Http::new(wire);
                self.http = Some(http.clone());
                Ok(Link::Http(http))
            }
        }
    }

    /// Finds out who is at the other end.
    async fn meet(&mut self, link: &Link, plan: Plan) -> Result<Peer, Fault> {
        let limit = self.standing.config.startup_timeout;
        let declares = self.standing.declares().await;
        storing::recall_for(&self.standing, &declares).await;
        let mut meeting = std::pin::pin!(timeout(limit, probe::meet(link, plan, &declares)));
        let mut was_told = false;
        let met = loop {
            tokio::select! {
                met = &mut meeting => break met,
                () = sleep(SLOW) => self.is_slow(std::mem::replace(&mut was_told, true)),
            }
        };
        let met = met.unwrap_or_else(|_| {
            let (limit, hints) = (limit.as_secs_f32(), self.hints());
            self.standing.forget_suspicion();
            Err(Fault::passing(format!(
                "it answered neither `initialize` nor `server/discover` within {limit} s (`startup_timeout`){hints}"
            )))
        });
        if met.is_err() && plan != Plan::Ask {
            // What was remembered may be what is wrong.
            self.memory.forget();
        }
        met
    }

    /// It takes long to answer: that is shown in place of what its last life ended of, with what shows by now of why; and said once.
    fn is_slow(&self, was_told: bool) {
        let cause = format!("it has answered neither `initialize` nor `server/discover` so far{}", self.hints());
        if !was_told {
            let (upstream, instance) = (&*self.standing.name, self.standing.number());
            tracing::info!(target: signals::UPSTREAM_STATE, upstream, instance, cause, "the upstream is slow to start");
        }
        self.standing.seat.update(|health| health.cause = Some(cause));
    }

    /// Why it may not answer, as far as it shows, for the end of a cause.
    fn hints(&self) -> String {
        let said = || self.child.as_ref().map(Child::last_words).unwrap_or_default();
        // What is suspected says more than the lines that it was seen by.
        self.standing.suspicion().map_or_else(said, |hint| format!("; {hint}"))
    }

    /// Ends every call that is open, with a child or in whichever session, and tells it why.
    fn cut(&self, told: &Told) {
        let why = told.cause(&self.standing);
        if let Some(wire) = &self.wire {
            wire.cut(&why);
        }
        if let Some(child) = &self.child {
            child.pipe.close(why);
        }
    }

    /// Nothing of a life is left that could have gone on; what was open has been cut.
    async fn rest(&mut self, told: Told) -> Next {
        self.part().await;
        // Further sessions are of what comes next.
        self.sessions = self.tasks.child();
        if let Some(wire) = &self.wire {
            self.standing.sessions.reach(wire, &self.sessions);
        }
        self.child = None;
        self.was_at_rest = true;
        resting::after(&self.standing, told).map_or(Next::Live, Next::Rest)
    }

    /// Decides what follows, says so, and waits.
    async fn pause(&mut self, end: End, tasks: &Tasks) -> Next {
        let tail = self.child.take().map(|child| child.tail);
        self.http = None;
        match self.lives.course(&self.standing, end) {
            Course::Now => Next::Live,
            Course::After { delay, state, cause, reason } => {
                let shown: Arc<str> = cause.as_str().into();
                if delay <= SOON {
                    self.standing.gate.close()
                } else {
                    self.standing.gate.shut(&shown)
                }
                self.standing.moved(state, Some(&cause), tail.as_ref(), Some(delay));
                tokio::select! {
                    () = sleep(delay) => {}
                    () = tasks.ending() => return Next::End,
                    ordered = self.standing.seat.ordered() => {
                        let told = Told::Order(ordered);
                        self.cut(&told);
                        return self.rest(told).await;
                    }
                }
                self.standing.seat.update(|health| {
                    health.restarts += 1;
                    health.restarted_for = Some(reason);
                });
                self.standing.metrics.restarts(reason).increment(1);
                Next::Live
            }
            Course::Rest { state, cause } => {
                self.standing.gate.shut(&cause.as_str().into());
                self.standing.moved(state, Some(&cause), tail.as_ref(), None);
                self.was_at_rest = true;
                Next::Rest(Rest::Ordered)
            }
        }
    }
}

//! Keeps one upstream alive: started, met, watched, started again within a budget, and stopped with proof.

use super::backoff::{self, Backoff, Next};
use super::config::{RestartPolicy, Transport};
use super::fault::{Fault, FaultKind};
use super::gate::Retired;
use super::link::{self, Child, Http, Link, Spec, Wire};
use super::peer::Peer;
use super::probe::{self, Memory, Plan};
use super::standing::Standing;
use super::{keeping, listening};
use crate::lifecycle::{State, Tasks};
use crate::signals;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// A next attempt within this time is worth waiting for.
const SOON: Duration = Duration::from_secs(5);
/// A handshake that takes longer than this is worth a word.
const SLOW: Duration = Duration::from_secs(3);
/// How long the background stream of a legacy session may take to start.
const LISTEN_WAIT: Duration = Duration::from_secs(1);
/// A session that was lost sooner than this is not simply opened anew.
const SESSION_MIN: Duration = Duration::from_secs(1);

/// How one life of an upstream ended.
#[derive(Debug)]
enum End {
    /// It did not come up.
    Unmet(Fault),
    /// It was up, and its link is gone.
    Gone { cause: String, up: Duration, is_clean: bool },
    /// It was up, and a call found it unusable.
    Retired { why: Retired, up: Duration },
}

/// What follows an end.
enum Course {
    /// At once; it does not count.
    Now,
    /// After a while.
    After { delay: Duration, state: State, cause: String, reason: &'static str },
    /// Never.
    Rest { state: State, cause: String },
}

/// Keeps the upstream alive until its level ends; then nothing of it is left.
pub(crate) async fn supervise(standing: Arc<Standing>, tasks: Tasks) {
    let restart = standing.config.restart.clone();
    let mut supervisor = Supervisor {
        backoff: Backoff::new(restart, !standing.is_http()),
        memory: Memory::default(),
        is_not_asked: false,
        was_met: false,
        child: None,
        wire: None,
        http: None,
        sessions: tasks.child(),
        tasks: tasks.clone(),
        standing,
    };
    loop {
        let level = tasks.child();
        let end = tokio::select! {
            biased;
            () = tasks.ending() => None,
            end = supervisor.live(&level) => Some(end),
        };
        level.end();
        // What is left of this life ends before the next one begins.
        level.ended().await;
        let Some(end) = end else { break };
        if !supervisor.pause(end, &tasks).await {
            break;
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
    backoff: Backoff,
    memory: Memory,
    /// The child ended when it was asked which era it speaks: the next one is not asked.
    is_not_asked: bool,
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
        let begun = Instant::now();
        standing.gate.close();
        let last = standing.seat.health().cause;
        standing.moved(State::Starting, last.as_deref(), None, None);
        let link = match self.open(level) {
            Ok(link) => link,
            Err(fault) => return End::Unmet(fault),
        };
        let now = Instant::now();
        let plan = if self.is_not_asked { Plan::Handshake } else { self.memory.plan(standing.config.era, now) };
        if !self.is_not_asked {
            self.backoff.started(now);
        }
        let peer = match self.meet(&link, plan).await {
            Ok(peer) => Arc::new(peer),
            Err(fault) => return End::Unmet(fault),
        };
        self.is_not_asked = false;
        self.memory.note(peer.revision().era(), Instant::now());
        let pid = self.child.as_ref().map(|child| child.pid);
        standing.seat.update(|health| (health.pid, health.revision) = (pid, Some(peer.revision().as_str())));
        standing.sessions.renew();
        standing.gate.expect(&peer);
        if standing.inventory.borrow().is_some() {
            // What it offers is known from its last life: calls need not wait for the lists.
            standing.open_gate(&peer);
        }
        self.listen(level, &peer).await;
        level.spawn_until_end(keeping::keep(standing.clone(), peer.clone(), begun));
        level.spawn_until_end(listening::keep(
            standing.clone(),
            peer.clone(),
            std::mem::replace(&mut self.was_met, true),
        ));
        let met = Instant::now();
        tokio::select! {
            cause = link.closed() => self.gone(&cause, met.elapsed()),
            why = standing.gate.retired() => match link.is_closed() {
                true => self.gone(&link.closed().await, met.elapsed()),
                false => End::Retired { why, up: met.elapsed() },
            },
        }
    }

    /// Opens the background stream of a legacy session; its start is waited for a little, so that no change is missed.
    async fn listen(&self, level: &Tasks, peer: &Arc<Peer>) {
        let (Some(http), false) = (&self.http, peer.revision().is_modern()) else { return };
        let (started, mut start) = watch::channel(false);
        let (http, standing, peer) = (http.clone(), self.standing.clone(), peer.clone());
        level.spawn_until_end(async move {
            if let Some(lost) = link::listen(http, started).await {
                standing.noticed(&peer, &lost);
            }
        });
        let _ = timeout(LISTEN_WAIT, start.wait_for(|is_started| *is_started)).await;
    }

    /// Takes leave of an HTTP upstream, and closes what is open to it.
    async fn leave(&mut self) {
        self.sessions.end();
        self.sessions.ended().await;
        if let Some(http) = self.http.take() {
            http.farewell().await;
        }
        if let Some(wire) = &self.wire {
            wire.close();
        }
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
                        let wire = Wire::new(url, headers, standing.config.max_message, inbox, self.tasks.clone())
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
        let mut meeting = std::pin::pin!(timeout(limit, probe::meet(link, plan, declares)));
        let met = tokio::select! {
            met = &mut meeting => met,
            () = sleep(SLOW) => {
                let cause = format!("it has answered neither `initialize` nor `server/discover` after {} s", SLOW.as_secs());
                self.standing.seat.update(|health| _ = health.cause.get_or_insert_with(|| cause.clone()));
                tracing::info!(target: signals::UPSTREAM_STATE, upstream = &*self.standing.name, cause, "the upstream is slow to start");
                meeting.await
            }
        };
        let met = met.unwrap_or_else(|_| {
            let last = self.child.as_ref().and_then(|child| child.tail.last());
            let last = last.map(|line| format!("its last line on stderr: {line}"));
            let hints = [self.standing.suspicion(), last].into_iter().flatten().map(|hint| format!("; {hint}"));
            let (limit, hints) = (limit.as_secs_f32(), hints.collect::<String>());
            Err(Fault::passing(format!(
                "it answered neither `initialize` nor `server/discover` within {limit} s{hints}"
            )))
        });
        if met.is_err() && plan != Plan::Ask {
            // What was remembered may be what is wrong.
            self.memory.forget();
        }
        met
    }

    /// Decides what follows, says so, and waits; false when that is the end of all.
    async fn pause(&mut self, end: End, tasks: &Tasks) -> bool {
        let tail = self.child.take().map(|child| child.tail);
        self.http = None;
        match self.course(end) {
            Course::Now => true,
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
                    () = tasks.ending() => return false,
                }
                self.standing.seat.update(|health| health.restarts += 1);
                self.standing.metrics.restarts(reason).increment(1);
                true
            }
            Course::Rest { state, cause } => {
                self.standing.gate.shut(&cause.as_str().into());
                self.standing.moved(state, Some(&cause), tail.as_ref(), None);
                tasks.ending().await;
                false
            }
        }
    }

    fn course(&mut self, end: End) -> Course {
        let now = Instant::now();
        let (cause, up, is_clean, kind, reason) = match end {
            End::Unmet(Fault { kind: FaultKind::EndedWhenAsked, text }) if !self.is_not_asked => {
                tracing::debug!(
                    upstream = &*self.standing.name,
                    cause = text,
                    "it ended when it was asked for its era, and is started again"
                );
                self.is_not_asked = true;
                return Course::Now;
            }
            End::Unmet(Fault { text, kind }) => (text, None, false, kind, "start_failed"),
            End::Gone { cause, up, is_clean } => {
                (cause, Some(up), is_clean, FaultKind::Passing, if is_clean { "exit" } else { "crash" })
            }
            End::Retired { why: Retired::Session(_) | Retired::Revision(_), up } if up >= SESSION_MIN => {
                return Course::Now;
            }
            End::Retired { why: Retired::Session(text) | Retired::Revision(text) | Retired::Unreachable(text), up } => {
                (text.to_string(), Some(up), false, FaultKind::Passing, "lost")
            }
        };
        self.is_not_asked = false;
        match self.standing.config.restart.policy {
            RestartPolicy::OnFailure if is_clean => return Course::Rest { state: State::Stopped, cause },
            RestartPolicy::Never => {
                return Course::Rest { state: if is_clean { State::Stopped } else { State::Failed }, cause };
            }
            _ => {}
        }
        let (delay, state) = match (kind, self.backoff.next(now, up, backoff::random())) {
            (FaultKind::Hopeless, _) => (self.backoff.hopeless(), State::Failed),
            (FaultKind::NotBefore(least), Next::Soon(delay) | Next::Slowly(delay)) => {
                (delay.max(least), State::BackingOff)
            }
            (_, Next::Soon(delay)) => (delay, State::BackingOff),
            (_, Next::Slowly(delay)) => (delay, State::Failed),
        };
        Course::After { delay, state, cause, reason }
    }
}

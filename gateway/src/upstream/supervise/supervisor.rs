//! Keeps one upstream alive: what each phase leads to, and what is done in it, from the first start to the proven end.

use super::control::{self, Rest, Told, Woken};
use super::grace;
use super::phase::{Leaving, Life, Pause, Phase, Then};
use super::restart::{Decision, Exit, Gone, Restarts};
use crate::health::row::State;
use crate::health::{Cause, CauseCode, Order};
use crate::peer::fault::Fault;
use crate::peer::probe::EraMemory;
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::transport::http::{HttpClient, HttpSession};
use crate::transport::pipe::Pipe;
use crate::transport::stdio::Child;
use crate::transport::stdio::start_limit::StartTicket;
use crate::upstream::calls::sessions::keep_places;
use crate::upstream::instance::Instance;
use crate::upstream::instance::admission::gate::Retired;
use crate::upstream::status::being_ended;
use std::sync::Arc;
use std::time::Duration;
use trunkline_oauth::OfLogin;

/// A next attempt within this time is worth waiting for, and so is the end of a process.
const SOON: Duration = Duration::from_secs(5);
/// The end of a process that takes longer than this has a line in the log.
const SLOW_END: Duration = Duration::from_millis(250);

/// Keeps the upstream alive until its level ends; then nothing of it is left.
pub(crate) async fn supervise(instance: Arc<Instance>, ticket: Option<StartTicket>, tasks: Tasks) {
    tasks.spawn_until_end(keep_places(instance.clone()));
    let mut phase = Phase::from(control::at_start(&instance));
    // An upstream that rests keeps no other from starting meanwhile.
    let ticket = ticket.filter(|_| matches!(phase, Phase::Starting));
    let mut supervisor = Supervisor::new(instance.clone(), ticket, tasks);
    loop {
        phase = match phase {
            // Nobody needs it, so it costs nothing: no child, no connection. The first call wakes it.
            Phase::Idle => supervisor.rest(Rest::Needed).await,
            // A person, or the restart policy, has said that it is not to run: no call may start it.
            Phase::Stopped => supervisor.rest(Rest::Ordered).await,
            // Each principal has an instance of its own, and this one reaches nobody.
            Phase::Starting if instance.stands_apart() => supervisor.rest(control::apart(&instance)).await,
            // Calls wait at the gate while it is met, for a bounded time each.
            Phase::Starting => supervisor.start().await,
            // Calls pass; the supervisor only waits for whatever ends this life.
            Phase::Up(life) => supervisor.serve(life).await,
            // What follows is decided and shown already. The next life must not begin before the last one has ended: two
            // children of one upstream would write to the same files.
            Phase::Stopping(leaving) => supervisor.stop(leaving).await,
            // An upstream that fails again and again is not started in a loop; an order ends the pause.
            Phase::BackingOff(pause) => supervisor.back_off(pause).await,
            Phase::Ended => break,
        };
    }
    supervisor.leave().await;
    instance.admission.gate.shut(&Cause::new(CauseCode::StoppedByOrder, "stopped on request"));
    instance.status.transition(State::Stopped, None, None, None);
    instance.stopped.cancel();
}

/// Keeps one upstream; each phase is one of its functions.
pub(super) struct Supervisor {
    pub(super) instance: Arc<Instance>,
    pub(super) restarts: Restarts,
    pub(super) memory: EraMemory,
    /// Its turn to start the first child.
    pub(super) ticket: Option<StartTicket>,
    /// It was not running because nobody wanted it to: its start is no attempt to mend anything.
    pub(super) was_at_rest: bool,
    /// It was met before: what listeners want may have changed unseen.
    pub(super) was_met: bool,
    pub(super) child: Option<Child>,
    pub(super) wire: Option<Arc<HttpClient>>,
    /// The pipe that is open over the network.
    pub(super) remote: Option<Arc<Pipe>>,
    /// It was found to speak HTTP+SSE where Streamable HTTP was expected.
    pub(super) is_older: bool,
    /// The session that is open, to be ended when nobody has lost it.
    pub(super) http: Option<Arc<HttpSession>>,
    /// Where further sessions of it live.
    pub(super) sessions: Tasks,
    /// Whose login its sessions are of, while any is open.
    pub(super) login: Option<OfLogin>,
    pub(super) tasks: Tasks,
}

/// Why a life ends.
enum End {
    /// The gateway ends.
    Shutdown,
    /// It could have gone on.
    Told(Told),
    /// It ended by itself, or is of no use.
    Exit(Exit),
}

impl Supervisor {
    pub(super) fn new(instance: Arc<Instance>, ticket: Option<StartTicket>, tasks: Tasks) -> Self {
        Self {
            restarts: Restarts::new(
                instance.config.restart.clone(),
                instance.config.is_child(),
                instance.starts.clone(),
            ),
            memory: EraMemory::default(),
            was_at_rest: false,
            ticket,
            was_met: false,
            child: None,
            wire: None,
            remote: None,
            is_older: false,
            http: None,
            sessions: tasks.child(),
            login: None,
            tasks,
            instance,
        }
    }

    /// [`Phase::Idle`] and [`Phase::Stopped`]: waits until it is to run.
    pub(super) async fn rest(&mut self, rest: Rest) -> Phase {
        self.was_at_rest = true;
        match control::woken(&self.instance, rest, &self.tasks).await {
            Woken::Start => Phase::Starting,
            Woken::Restart(ordered) => {
                let told = self.drained(Told::Order(ordered)).await;
                self.cut(&told);
                Phase::from(control::after(&self.instance, told))
            }
            Woken::Stop => Phase::Stopped,
            Woken::End => Phase::Ended,
        }
    }

    /// [`Phase::Starting`]: opens a link and meets who is there.
    pub(super) async fn start(&mut self) -> Phase {
        let (instance, tasks, level) = (self.instance.clone(), self.tasks.clone(), self.tasks.child());
        self.opens_by_login().await;
        let met = tokio::select! {
            biased;
            () = tasks.ending() => Err(End::Shutdown),
            met = self.begin(&level) => met.map_err(|fault| End::Exit(Exit::Unmet(fault))),
            told = control::interrupted(&instance) => Err(End::Told(told)),
        };
        match met {
            Ok(life) => Phase::Up(life),
            // Without the other era the upstream is as well as with it: nothing has failed.
            Err(End::Exit(Exit::Unmet(fault))) if self.ends_trial(&fault) => self.given_up(level, End::Shutdown),
            Err(End::Told(told)) => {
                let told = self.drained(told).await;
                self.given_up(level, End::Told(told))
            }
            Err(end) => self.given_up(level, end),
        }
    }

    /// Nothing of it runs, or is yet to; but calls of the other era may.
    async fn drained(&self, told: Told) -> Told {
        grace::until_calls_end(&self.instance, told, self.tasks.ending()).await
    }

    fn ends_trial(&self, fault: &Fault) -> bool {
        let Some(trial) = self.instance.trial.as_ref().filter(|trial| trial.unmet(fault)) else { return false };
        let (upstream, era, cause) = (&*self.instance.name, self.instance.config.era.word(), &*fault.text.full());
        let (cause_code, finding) = (fault.text.code().as_str(), trial.finding().word());
        tracing::debug!(upstream, era, finding, cause, cause_code, "upstream not met in its other era");
        true
    }

    /// [`Phase::Up`]: waits for what ends this life.
    pub(super) async fn serve(&mut self, life: Life) -> Phase {
        let Life { level, peer, met } = life;
        let gate = &self.instance.admission.gate;
        let end = tokio::select! {
            biased;
            () = self.tasks.ending() => End::Shutdown,
            cause = peer.link.closed() => End::Exit(self.gone(&cause, met.elapsed())),
            why = gate.retired() => match peer.link.is_closed() {
                true => End::Exit(self.gone(&peer.link.closed().await, met.elapsed())),
                false => End::Exit(self.retired(why, met.elapsed())),
            },
            told = control::interrupted(&self.instance) => End::Told(told),
        };
        let end = match end {
            End::Told(told) => {
                let gone = async {
                    tokio::select! {
                        () = self.tasks.ending() => {}
                        _cause = peer.link.closed() => {}
                    }
                };
                End::Told(grace::until_calls_end(&self.instance, told, gone).await)
            }
            end => end,
        };
        self.given_up(level, end)
    }

    /// From here on this life takes no call: what follows is decided, calls are told or wait, and it is shown. Only then what is
    /// left of it is ended, which may take long.
    fn given_up(&mut self, level: Tasks, end: End) -> Phase {
        let instance = self.instance.clone();
        let is_alive = self.child.as_ref().is_some_and(|child| child.status().is_none());
        let stop = if is_alive { instance.config.restart.stop_timeout } else { Duration::ZERO };
        let then = match end {
            End::Shutdown => Then::End,
            End::Told(told) => {
                self.cut(&told);
                let is_back = !matches!(&told, Told::Order(ordered) if ordered.order == Order::Stop);
                instance.status.transition(
                    State::Stopping,
                    Some(&told.cause(&instance)),
                    None,
                    is_back.then_some(stop),
                );
                Then::Told(told)
            }
            End::Exit(exit) => {
                let was_met = !matches!(exit, Exit::Unmet(_));
                let decision = self.restarts.after(&instance.config, &instance.status, exit);
                if let (false, Decision::After { cause, .. } | Decision::Rest { cause, .. }) = (was_met, &decision) {
                    instance.status.start_failed(cause.code());
                    control::offers_login(&instance, cause);
                }
                match &decision {
                    Decision::Now => {
                        instance.admission.gate.close();
                        // One that only has to be asked otherwise is still starting.
                        if was_met {
                            instance.status.transition(State::Stopping, None, None, Some(stop));
                        }
                    }
                    Decision::After { delay, cause, .. } => {
                        self.close(*delay, cause);
                        instance.status.transition(State::Stopping, Some(cause), None, Some(stop + *delay));
                    }
                    Decision::Rest { cause, .. } => {
                        instance.admission.gate.shut_for_good(cause);
                        instance.status.transition(State::Stopping, Some(cause), None, None);
                    }
                }
                Then::Decided(decision)
            }
        };
        Phase::Stopping(Leaving { level, then })
    }

    /// Calls wait for an attempt that is due soon, and are refused where it is not.
    fn close(&self, delay: Duration, cause: &Cause) {
        match delay <= SOON {
            true => self.instance.admission.gate.close(),
            false => self.instance.admission.gate.shut(cause),
        }
    }

    /// [`Phase::Stopping`]: ends what is left of a life.
    pub(super) async fn stop(&mut self, leaving: Leaving) -> Phase {
        let (Leaving { level, then }, _login) = (leaving, self.login.take());
        level.end();
        self.ended(&level, &then).await;
        match then {
            Then::End => Phase::Ended,
            Then::Told(told) => self.follow_order(told).await,
            Then::Decided(decision) => self.follow(decision),
        }
    }

    /// Waits until nothing of a life is left. A process that takes its time is spoken of, and calls do not wait for it for long.
    async fn ended(&self, level: &Tasks, then: &Then) {
        if matches!(then, Then::End) || within(SLOW_END, level.ended()).await.is_ok() {
            return level.ended().await;
        }
        let instance = &self.instance;
        let health = instance.status.handle.health();
        let (upstream, number, cause) = (&*instance.name, instance.status.number, health.cause.unwrap_or_default());
        let limit = instance.config.stop_limit();
        let at_most = limit.map(|limit| format!("{} s", limit.as_secs_f32())).unwrap_or_default();
        tracing::warn!(
            upstream,
            instance = number,
            cause = &*cause.full(),
            cause_code = cause.code().as_str(),
            cause_number = cause.number(),
            at_most,
            "upstream stopping; its process has not ended yet"
        );
        if within(SOON - SLOW_END, level.ended()).await.is_err() && health.retry_at.is_some() {
            instance.admission.gate.shut(&being_ended(&cause, limit));
        }
        level.ended().await;
    }

    /// Nothing of a life is left that could have gone on; what was open has been cut.
    async fn follow_order(&mut self, told: Told) -> Phase {
        self.part().await;
        // Further sessions are of what comes next.
        self.sessions = self.tasks.child();
        if let Some(wire) = &self.wire {
            self.instance.admission.sessions.reach(wire, &self.sessions);
        }
        self.child = None;
        self.was_at_rest = true;
        Phase::from(control::after(&self.instance, told))
    }

    /// What follows an end that nobody asked for.
    fn follow(&mut self, decision: Decision) -> Phase {
        let stderr = self.child.take().map(|child| child.tail.lines());
        self.http = None;
        match decision {
            Decision::Now => Phase::Starting,
            Decision::After { delay, state, cause, reason } => {
                self.close(delay, &cause);
                self.instance.status.transition(state, Some(&cause), stderr, Some(delay));
                Phase::BackingOff(Pause { delay, reason })
            }
            Decision::Rest { state, cause } => {
                self.instance.admission.gate.shut_for_good(&cause);
                self.instance.status.transition(state, Some(&cause), stderr, None);
                Phase::Stopped
            }
        }
    }

    /// [`Phase::BackingOff`]: waits for the next attempt.
    pub(super) async fn back_off(&mut self, pause: Pause) -> Phase {
        tokio::select! {
            () = control::paused(&self.instance, pause.delay) => {}
            () = self.tasks.ending() => return Phase::Ended,
            ordered = self.instance.status.handle.ordered() => {
                let told = self.drained(Told::Order(ordered)).await;
                self.cut(&told);
                return self.follow_order(told).await;
            }
        }
        self.instance.status.handle.update(|health| {
            health.restarts += 1;
            health.restarted_for = Some(pause.reason);
        });
        self.instance.status.metrics.restarts(pause.reason).increment(1);
        Phase::Starting
    }

    /// Takes leave of an HTTP upstream, and closes what is open to it.
    pub(super) async fn leave(&mut self) {
        self.part().await;
        if let Some(wire) = &self.wire {
            wire.close();
        }
        self.instance.admission.sessions.unreach();
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
    fn retired(&self, why: Retired, up: Duration) -> Exit {
        if let (Retired::Hung(cause), Some(child)) = (&why, &self.child) {
            child.kill(cause);
        }
        if let (Retired::Hung(cause), Some(pipe)) = (&why, &self.remote) {
            pipe.close(cause.clone());
        }
        Exit::Retired { why, up }
    }

    fn gone(&self, cause: &Cause, up: Duration) -> Exit {
        let how = match &self.child {
            Some(child) if child.status().is_some_and(|status| status.success()) => Gone::Clean,
            Some(child) if child.has_hung_up() => Gone::HungUp,
            // A connection says nothing of how the server fares.
            None => Gone::HungUp,
            _ => Gone::Crashed,
        };
        Exit::Gone { cause: cause.clone(), up, how }
    }

    /// Ends every call that is open, with a child or in whichever session, and tells it why.
    fn cut(&self, told: &Told) {
        if let Told::Order(ordered) = told {
            self.instance.admission.demand.order(ordered.order != Order::Restart);
        }
        let why = told.cause(&self.instance);
        if let Some(wire) = &self.wire {
            wire.cut(why.clone());
        }
        if let Some(pipe) = self.child.as_ref().map(|child| &child.pipe).or(self.remote.as_ref()) {
            pipe.close(why);
        }
    }
}

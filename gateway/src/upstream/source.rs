//! What a call's reply is read from: the frames of its exchange, within its time limits.

use super::gate::{Admission, Retired, Sent, Turn};
use super::judge;
use super::link::{Arrival, Lost};
use super::peer::Peer;
use super::standing::Standing;
use super::words;
use crate::call::{Call, Event, Outcome, Refusal, Source, Step};
use crate::protocol::Revision;
use crate::protocol::error::{HEADER_MISMATCH, RpcError, UNSUPPORTED_REVISION};
use crate::protocol::frame::Body;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

/// How long a call waits for an upstream that starts.
const START_WAIT: Duration = Duration::from_secs(5);

/// A call on its way.
pub(crate) struct CallSource {
    standing: Arc<Standing>,
    call: Call,
    stage: Stage,
    limits: Limits,
    revision: Revision,
    /// When it was sent.
    sent: Instant,
    upstream_time: Duration,
    /// Whether it was sent a second time, because the first proved not to have run.
    is_second: bool,
}

enum Stage {
    /// It waits for its turn, nothing sent.
    Waiting(oneshot::Receiver<Turn>),
    /// It waits for the tools to be read again, since its headers were refused.
    Rereading(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// It was sent.
    Sent(Sent),
    Over,
}

impl CallSource {
    /// A call that was sent.
    pub(crate) fn sent(standing: &Arc<Standing>, call: Call, sent: Sent) -> Self {
        let now = Instant::now();
        let mut limits = Limits::new(standing, &call);
        limits.begin(now);
        let revision = sent.peer.revision();
        Self::new(standing, call, Stage::Sent(sent), limits, revision, now)
    }

    /// A call that waits for its turn.
    pub(crate) fn waiting(standing: &Arc<Standing>, call: Call, turn: oneshot::Receiver<Turn>) -> Self {
        let now = Instant::now();
        let mut limits = Limits::new(standing, &call);
        limits.wait(now);
        let revision = call.revision();
        Self::new(standing, call, Stage::Waiting(turn), limits, revision, now)
    }

    fn new(
        standing: &Arc<Standing>,
        call: Call,
        stage: Stage,
        limits: Limits,
        revision: Revision,
        sent: Instant,
    ) -> Self {
        standing.metrics.inflight.increment(1);
        Self {
            standing: standing.clone(),
            call,
            stage,
            limits,
            revision,
            sent,
            upstream_time: Duration::ZERO,
            is_second: false,
        }
    }

    fn done(&mut self, outcome: impl Into<Outcome>) -> Poll<Step> {
        if let Stage::Sent(_) = self.stage {
            self.upstream_time = self.sent.elapsed();
        }
        self.stage = Stage::Over;
        Poll::Ready(Step::Done(outcome.into()))
    }

    fn refuse(&mut self, refusal: Refusal) -> Poll<Step> {
        self.done(refusal)
    }

    /// Its turn has come.
    fn turn(&mut self, turn: Turn) -> Option<Poll<Step>> {
        match turn {
            Ok(sent) => {
                self.revision = sent.peer.revision();
                self.sent = Instant::now();
                self.limits.begin(self.sent);
                self.stage = Stage::Sent(sent);
                None
            }
            Err(lost) => {
                let refusal = words::lost(&self.standing.name, &self.call, &lost);
                Some(self.refuse(refusal))
            }
        }
    }

    /// A frame of its exchange.
    fn arrived(&mut self, arrival: Arrival) -> Option<Poll<Step>> {
        match arrival {
            Arrival::Progress(params) => {
                self.limits.extend(Instant::now());
                Some(Poll::Ready(Step::Event(Event::Progress(params))))
            }
            Arrival::Log(level, params) => {
                let wanted = self.call.log_level.is_some_and(|wanted| level >= wanted);
                wanted.then(|| Poll::Ready(Step::Event(Event::Log(level, params))))
            }
            Arrival::Ask(ask) => {
                self.limits.stop(Instant::now());
                Some(Poll::Ready(Step::Event(Event::Ask(ask))))
            }
            Arrival::Acknowledged(_) => None,
            Arrival::Response(body) => {
                if let Some(next) = self.refused_unrun(&body) {
                    return next;
                }
                let outcome = judge::outcome(&self.standing.name, &self.call, body, self.revision);
                Some(self.done(outcome))
            }
            Arrival::Lost(lost) => self.lost(lost),
        }
    }

    /// Where a stateless upstream has proved that the call did not run: it is on its way again, once.
    fn refused_unrun(&mut self, body: &Body) -> Option<Option<Poll<Step>>> {
        let Body::Error(raw) = body else { return None };
        if self.is_second || !self.revision.is_modern() {
            return None;
        }
        match RpcError::from_raw(raw.clone()).code() {
            Some(HEADER_MISMATCH) => {
                let standing = self.standing.clone();
                self.is_second = true;
                self.stage = Stage::Rereading(Box::pin(async move { standing.read_again().await }));
                Some(None)
            }
            Some(UNSUPPORTED_REVISION) => {
                let Stage::Sent(sent) = &self.stage else { return None };
                self.standing.gate.retire(&sent.peer, Retired::Revision("it no longer speaks the revision".into()));
                Some(self.again())
            }
            _ => None,
        }
    }

    /// There is no answer.
    fn lost(&mut self, lost: Lost) -> Option<Poll<Step>> {
        if let Stage::Sent(Sent { peer, .. }) = &self.stage {
            self.standing.noticed(peer, &lost);
            if matches!(lost, Lost::Session(_)) && !self.is_second {
                return self.again();
            }
        }
        let refusal = words::lost(&self.standing.name, &self.call, &lost);
        Some(self.refuse(refusal))
    }

    /// Sends it a second time, once: the first did not run.
    fn again(&mut self) -> Option<Poll<Step>> {
        self.is_second = true;
        match self.standing.admit(&self.call) {
            Ok(Sending::Sent(sent)) => self.turn(Ok(sent)),
            Ok(Sending::Waiting(turn)) => {
                self.limits.wait(Instant::now());
                self.stage = Stage::Waiting(turn);
                None
            }
            Err(refusal) => Some(self.refuse(refusal)),
        }
    }

    fn expired(&mut self) -> Poll<Step> {
        let refusal = match &self.stage {
            Stage::Sent(_) => words::timeout(&self.standing.name, &self.call, self.limits.limit()),
            _ => words::unavailable(&self.standing.name, &self.call, &self.standing.cause()),
        };
        // Dropping the exchange tells the upstream.
        self.refuse(refusal)
    }
}

impl Source for CallSource {
    fn poll_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = &mut *self;
        loop {
            let next = match &mut this.stage {
                Stage::Sent(sent) => match sent.exchange.poll(cx) {
                    Poll::Ready(arrival) => this.arrived(arrival),
                    Poll::Pending if sent.exchange.is_asked() => return Poll::Pending,
                    Poll::Pending => {
                        if let Some(waited) = this.limits.go_on(Instant::now()) {
                            this.standing.metrics.waiting.record(waited.as_secs_f64());
                        }
                        ready!(this.limits.poll(cx));
                        Some(this.expired())
                    }
                },
                Stage::Waiting(turn) => match Pin::new(turn).poll(cx) {
                    Poll::Ready(Ok(turn)) => this.turn(turn),
                    Poll::Ready(Err(_)) => {
                        let refusal = words::unavailable(&this.standing.name, &this.call, &this.standing.cause());
                        Some(this.refuse(refusal))
                    }
                    Poll::Pending => {
                        ready!(this.limits.poll(cx));
                        Some(this.expired())
                    }
                },
                Stage::Rereading(reread) => match reread.as_mut().poll(cx) {
                    Poll::Ready(()) => this.again(),
                    Poll::Pending => {
                        ready!(this.limits.poll(cx));
                        Some(this.expired())
                    }
                },
                Stage::Over => Some(this.expired()),
            };
            if let Some(step) = next {
                return step;
            }
        }
    }

    fn revision(&self) -> Revision {
        self.revision
    }

    fn upstream_time(&self) -> Duration {
        self.upstream_time
    }
}

impl Drop for CallSource {
    fn drop(&mut self) {
        self.standing.metrics.inflight.decrement(1);
    }
}

/// What becomes of a call at the gate.
pub(crate) enum Sending {
    Sent(Sent),
    Waiting(oneshot::Receiver<Turn>),
}

impl Standing {
    /// Sends a call, or has it wait, or refuses it; nothing waits here.
    pub(crate) fn admit(self: &Arc<Self>, call: &Call) -> Result<Sending, Refusal> {
        // A peer that turns out to be gone is given up, and the call waits for the next one: nothing of it was sent.
        for _ in 0..2 {
            let mut admission = self.gate.admit(call);
            if let Admission::Now(primary) = &admission
                && let Some(session) = self.session_of(primary, call)
            {
                admission = match session.gate.admit(call) {
                    // It has just been given up: there is another one by now, or the primary is for all.
                    Admission::Shut(_) => continue,
                    admission => admission,
                };
            }
            match admission {
                Admission::Now(peer) => match self.send(&peer, call) {
                    Ok(exchange) => return Ok(Sending::Sent(Sent { peer, exchange })),
                    Err(lost @ Lost::Unsent(_)) => self.noticed(&peer, &lost),
                    Err(lost) => return Err(words::lost(&self.name, call, &lost)),
                },
                Admission::Wait(turn) => return Ok(Sending::Waiting(turn)),
                Admission::Full => return Err(words::full(&self.name, call)),
                Admission::Shut(cause) => return Err(words::unavailable(&self.name, call, &cause)),
            }
        }
        Err(words::unavailable(&self.name, call, &self.cause()))
    }

    /// What a loss says of the peer itself.
    pub(crate) fn noticed(&self, peer: &Arc<Peer>, lost: &Lost) {
        let why = match lost {
            Lost::Session(why) => Retired::Session(why.clone()),
            Lost::Unsent(why) => Retired::Unreachable(why.clone()),
            _ => return,
        };
        self.sessions.retire(peer, &why);
        self.gate.retire(peer, why);
    }
}

/// The time limits of a call: one that progress extends, and one that nothing does.
struct Limits {
    /// Between two signs of life.
    idle: Option<Duration>,
    /// In all.
    whole: Option<Duration>,
    idle_until: Option<Instant>,
    whole_until: Option<Instant>,
    /// Since when they stand still: a person is being asked.
    stopped: Option<Instant>,
    /// Made when it is first needed, and set anew only when it fires too early.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Limits {
    fn new(standing: &Standing, call: &Call) -> Self {
        let config = &standing.config;
        let (idle, whole) = if call.method.is_long() {
            (config.call_timeout, config.max_call_time)
        } else {
            (None, config.request_timeout)
        };
        Self { idle, whole, idle_until: None, whole_until: None, stopped: None, timer: None }
    }

    /// The time runs from now.
    fn begin(&mut self, now: Instant) {
        self.idle_until = self.idle.and_then(|idle| now.checked_add(idle));
        self.whole_until = self.whole.and_then(|whole| now.checked_add(whole));
        self.timer = None;
    }

    /// Nothing is sent yet: it waits for the upstream.
    fn wait(&mut self, now: Instant) {
        let wait = [Some(START_WAIT), self.idle, self.whole].into_iter().flatten().min().unwrap_or(START_WAIT);
        self.idle_until = None;
        self.whole_until = Some(now + wait);
        self.timer = None;
    }

    /// They stand still from now.
    fn stop(&mut self, now: Instant) {
        self.stopped.get_or_insert(now);
    }

    /// They go on where they stood still: how long they did.
    fn go_on(&mut self, now: Instant) -> Option<Duration> {
        let waited = now.duration_since(self.stopped.take()?);
        self.whole_until = self.whole_until.and_then(|until| until.checked_add(waited));
        self.extend(now);
        Some(waited)
    }

    /// A sign of life.
    fn extend(&mut self, now: Instant) {
        self.idle_until = self.idle.and_then(|idle| now.checked_add(idle));
    }

    /// The limit that was passed.
    fn limit(&self) -> Duration {
        match (self.idle_until, self.whole_until) {
            (Some(idle), Some(whole)) if whole < idle => self.whole.unwrap_or_default(),
            (Some(_), _) => self.idle.unwrap_or_default(),
            _ => self.whole.unwrap_or_default(),
        }
    }

    /// Resolves when the time is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(until) = [self.idle_until, self.whole_until].into_iter().flatten().min() else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= until {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
    }
}

//! How one life of an upstream begins: a link is opened, and it is met.

use super::phase::Life;
use super::supervisor::Supervisor;
use super::upkeep::{keep_inventory, keep_wanted};
use super::{control, loop_detection, ping};
use crate::health::row::State;
use crate::health::{Cause, CauseCode, chain};
use crate::metrics;
use crate::peer::Peer;
use crate::peer::fault::Fault;
use crate::peer::probe::{self, ProbePlan};
use crate::process::program;
use crate::protocol::capabilities::Capabilities;
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::transport;
use crate::transport::exchange::Lost;
use crate::transport::http::{HttpClient, HttpSession, TokenSource};
use crate::transport::link::Link;
use crate::transport::stdio::{Child, ChildSpec};
use crate::upstream::calls::sessions::open_gate;
use crate::upstream::config::{Dialect, EraChoice, OFFERS, Transport};
use crate::upstream::declaring::{declares, declares_now};
use crate::upstream::instance::persist;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};
use trunkline_oauth::SharedTokens;

/// A handshake that takes longer than this is worth a word.
const SLOW: Duration = Duration::from_secs(3);
/// How long the first event of HTTP+SSE may take: what is no such stream may be open for ever and say nothing.
const ENDPOINT_MAX: Duration = Duration::from_secs(10);
/// How long a stream that tells of changes may take to start.
const LISTEN_WAIT: Duration = Duration::from_secs(1);
/// What is remarked of an upstream whose tools are not asked for.
const UNASKED: &str = "its tools are those of `tools.define`: the first call shows whether it answers";

impl Supervisor {
    /// Opens a link and meets who is there; what belongs to this life is started in `level`.
    pub(super) async fn begin(&mut self, level: &Tasks) -> Result<Life, Fault> {
        let instance = self.instance.clone();
        instance.admission.gate.close();
        instance.status.renew_conditions();
        let last = instance.status.handle.health().cause;
        instance.status.transition(State::Starting, last.as_ref(), None, None);
        let start = match self.ticket.take().or_else(|| control::ticket(&instance)) {
            Some(ticket) => Some(ticket.turn(instance.admission.demand.is_urgent()).await),
            None => None,
        };
        let begun = Instant::now();
        let link = self.open(level).await?;
        if let (Some(start), Link::Pipe(pipe), Some(child)) = (start, &link, &self.child) {
            let pid = child.pid;
            level.spawn_until_end(start.hold(pipe.clone(), move || crate::process::worked(pid)));
        }
        let now = Instant::now();
        let plan = match &instance.trial {
            Some(_) if instance.config.era == EraChoice::Legacy => ProbePlan::HandshakeToo,
            _ if self.restarts.is_not_asked() => ProbePlan::Handshake,
            _ => self.memory.plan(instance.config.era, instance.first_era(), now),
        };
        self.restarts.started(now, std::mem::take(&mut self.was_at_rest));
        let version = chain::version();
        let met = match self.meet(&link, plan).await {
            Err(fault) if self.may_be_older(&fault) => self.meet_older(level, fault).await,
            met => met,
        };
        let peer = match met {
            Ok(peer) => Arc::new(peer),
            Err(fault) if self.child.as_ref().is_some_and(Child::is_foreign) => {
                return Err(Fault::hopeless(fault.text));
            }
            Err(fault) => return Err(fault),
        };
        if let Link::Http(http) = &peer.link {
            // It may be that of a session which the upstream had before it was started again.
            http.displace();
        }
        self.restarts.met();
        self.memory.note(peer.revision().era(), Instant::now());
        self.shows(&peer);
        instance.admission.sessions.renew();
        if let Some(own) = &instance.own {
            own.renew();
        }
        instance.admission.gate.expect(&peer);
        instance.era.set(peer.revision().era());
        instance.offering.login_was_made();
        let is_known =
            instance.offering.inventory.borrow().is_some() && !self.login.as_ref().is_some_and(|it| it.is_another);
        if is_known || instance.trial.is_some() {
            // What it offers is known from its last life, or from the other era: calls need not wait for the lists, and so it is up.
            open_gate(&instance, &peer);
            instance.status.handle.update(|health| health.started_in = Some(begun.elapsed()));
            instance.status.came_up();
        }
        if let Some(trial) = &instance.trial {
            trial.met();
        }
        self.listen(level, &peer).await;
        level.spawn_until_end(keep_inventory(instance.clone(), peer.clone(), begun));
        level.spawn_until_end(ping::watch(instance.clone(), peer.clone()));
        if instance.config.is_http() {
            level.spawn_until_end(loop_detection::watch(instance.clone(), peer.clone(), version));
        }
        Ok(Life { level: level.clone(), peer, met: Instant::now() })
    }

    /// What is opened from now on is of the login that is there now.
    pub(super) async fn opens_by_login(&mut self) {
        let Some(tokens) = &self.instance.tokens else { return };
        tokio::select! {
            () = self.tasks.ending() => {}
            login = tokens.opens() => self.login = login,
        }
    }

    /// Has the peer tell of changes; that it does is waited for a little before its lists are read, so that none is missed between.
    async fn listen(&mut self, level: &Tasks, peer: &Arc<Peer>) {
        let was_away = std::mem::replace(&mut self.was_met, true);
        let (settled, first) = oneshot::channel();
        let wants = keep_wanted(self.instance.clone(), peer.clone(), was_away, settled);
        if peer.revision().is_modern() {
            level.spawn_until_end(wants);
            let _ = within(LISTEN_WAIT, first).await;
            return;
        }
        let has_stream = self.instance.config.dialect == Dialect::Mcp;
        if let Some(http) = self.http.as_ref().filter(|_| has_stream) {
            // The background stream of a session.
            let (started, mut start) = watch::channel(false);
            let (http, instance, peer) = (http.clone(), self.instance.clone(), peer.clone());
            level.spawn_until_end(async move {
                if let Some(lost) = http.listen(started).await {
                    instance.admission.retire_if_gone(&peer, &lost);
                }
            });
            let _ = within(LISTEN_WAIT, start.wait_for(|is_started| *is_started)).await;
        }
        level.spawn_until_end(wants);
    }

    /// Opens a link: starts the child, connects, or makes ready to dial.
    async fn open(&mut self, level: &Tasks) -> Result<Link, Fault> {
        let instance = self.instance.clone();
        match &instance.config.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let spec = ChildSpec {
                    name: &instance.name,
                    command,
                    args,
                    env,
                    cwd: cwd.as_ref(),
                    max_message: instance.config.max_message,
                    stop_timeout: instance.config.restart.stop_timeout,
                    limits: crate::process::ChildLimits { no_new_privs: instance.config.no_new_privs },
                    stderr: instance.children.stderr.clone(),
                };
                let child = transport::stdio::start(spec, instance.clone(), level)?;
                instance.status.handle.update(|health| health.pid = Some(child.pid));
                let (tail, shown) = (child.tail.clone(), instance.clone());
                level.spawn_until_end(async move {
                    loop {
                        tail.grown().await;
                        shown.status.handle.update(|health| health.stderr = tail.lines());
                        // Not more often than anyone could read.
                        sleep(Duration::from_secs(1)).await;
                    }
                });
                instance.chunks.forget();
                let link = Link::Pipe(child.pipe.clone());
                self.child = Some(child);
                Ok(link)
            }
            Transport::Http(_) if self.is_older => {
                let met = self.open_older(level).await;
                self.is_older = met.is_ok();
                met
            }
            Transport::Http(_) => {
                let http = HttpSession::new(self.wire()?);
                self.http = Some(http.clone());
                Ok(Link::Http(http))
            }
            Transport::Sse(_) => self.open_older(level).await,
            Transport::WebSocket(_) => {
                let (http, config) = (HttpSession::new(self.wire()?), &instance.config);
                let limits = (&*config.name, config.max_message);
                let opening =
                    transport::remote::websocket::open(&http, config.dialect, limits, instance.clone(), level);
                let opened = within(config.startup_timeout, opening).await.unwrap_or_else(|_| {
                    let limit = config.startup_timeout.as_secs_f32();
                    let said = format!("no answer to the upgrade to a WebSocket within {limit} s (`startup_timeout`)");
                    Err(Lost::Unsent(Cause::new(CauseCode::TimedOut, said)))
                });
                let pipe = opened.map_err(|lost| Fault::from(&lost))?;
                instance.chunks.forget();
                self.remote = Some(pipe.clone());
                Ok(Link::Pipe(pipe))
            }
            Transport::Lines(place) => {
                let limits = (&*instance.config.name, instance.config.max_message);
                let opened = transport::remote::lines::open(place, limits, instance.clone(), level).await;
                let pipe = opened.map_err(|why| Fault::from(&Lost::Unsent(why)))?;
                instance.chunks.forget();
                self.remote = Some(pipe.clone());
                Ok(Link::Pipe(pipe))
            }
        }
    }

    /// The way to an upstream on the network. One set of connections for all sessions: a call that runs outlives a session that was
    /// lost.
    fn wire(&mut self) -> Result<Arc<HttpClient>, Fault> {
        let (instance, config) = (&self.instance, &self.instance.config);
        if let Some(tokens) = &instance.tokens {
            tokens.look();
        }
        if let Some(wire) = &self.wire {
            return Ok(wire.clone());
        }
        let hopeless = |why: String| Fault::hopeless(Cause::new(CauseCode::UrlInvalid, why));
        let remote = config.transport.remote().ok_or_else(|| hopeless("there is no URL".to_owned()))?;
        let (max, breaker, inbox) = (config.max_message, instance.breaker.clone(), instance.clone());
        let tokens = instance.tokens.clone().map(|tokens| Arc::new(SharedTokens(tokens)) as Arc<dyn TokenSource>);
        let wire = HttpClient::new((remote, tokens), max, breaker, inbox, self.tasks.clone()).map_err(hopeless)?;
        wire.shown_at(&instance.name);
        instance.admission.sessions.reach(&wire, &self.sessions);
        Ok(self.wire.insert(wire).clone())
    }

    /// Opens a link over HTTP+SSE.
    async fn open_older(&mut self, level: &Tasks) -> Result<Link, Fault> {
        let instance = self.instance.clone();
        let (http, config) = (HttpSession::new(self.wire()?), &instance.config);
        let opening = transport::remote::sse::open(&http, (&config.name, config.max_message), instance.clone(), level);
        let limit = config.startup_timeout.min(ENDPOINT_MAX);
        let opened = within(limit, opening).await.unwrap_or_else(|_| {
            let said = format!("no `endpoint` event within {} s on the stream of HTTP+SSE", limit.as_secs_f32());
            Err(Lost::Odd(
                Cause::new(CauseCode::TimedOut, said).advise("check that `url` is the address of the stream"),
            ))
        });
        let pipe = opened.map_err(|lost| Fault::from(&lost))?;
        instance.chunks.forget();
        self.http = None;
        self.remote = Some(pipe.clone());
        Ok(Link::Pipe(pipe))
    }

    /// Whether an upstream that was asked over Streamable HTTP may speak HTTP+SSE: it refused the POST as such.
    fn may_be_older(&self, fault: &Fault) -> bool {
        let is_refused = matches!(fault.text.code(), CauseCode::HttpStatus(400 | 402 | 404..=406 | 409..=428));
        let (config, trial) = (&self.instance.config, &self.instance.trial);
        is_refused && config.is_http() && config.dialect == Dialect::Mcp && trial.is_none() && self.http.is_some()
    }

    /// Meets one that refused a POST over HTTP+SSE, where it has that; else the refusal stands.
    async fn meet_older(&mut self, level: &Tasks, refusal: Fault) -> Result<Peer, Fault> {
        let http = self.http.take();
        let link = match self.open_older(level).await {
            Ok(link) => link,
            Err(why) => {
                self.http = http;
                // A stream that names an address for messages is one, though that cannot be used.
                let is_there = why.text.code() == CauseCode::EndpointElsewhere;
                return Err(if is_there { why } else { refusal });
            }
        };
        let met = self.meet(&link, ProbePlan::HandshakeFirst).await;
        self.is_older = met.is_ok();
        if met.is_ok() {
            let upstream = &*self.instance.name;
            tracing::info!(target: metrics::UPSTREAM_STATE, upstream, state = "starting", "upstream speaks HTTP+SSE; `transport = \"sse\"` spares the first attempt");
        }
        met
    }

    /// Shows what is known of who was met.
    fn shows(&self, peer: &Peer) {
        let (pid, may_ask) = (self.child.as_ref().map(|child| child.pid), self.may_ask(peer));
        self.instance.status.handle.update(|health| {
            (health.pid, health.revision, health.may_ask) = (pid, peer.named_revision(), may_ask);
            // Nothing is sent to such a one before the first call.
            match peer.has_defined_tools() && !peer.link.is_pipe() {
                true => _ = health.remarks.insert("defined", UNASKED.to_owned()),
                false => _ = health.remarks.remove("defined"),
            }
        });
    }

    /// Finds out who is at the other end.
    async fn meet(&mut self, link: &Link, plan: ProbePlan) -> Result<Peer, Fault> {
        let limit = self.instance.config.startup_timeout;
        let declares = declares(&self.instance.owner, &self.instance.config).await;
        persist::recall_for(&self.instance, &declares).await;
        let config = &self.instance.config;
        let meeting = async {
            match config.dialect {
                Dialect::Mcp => probe::meet(link, plan, &declares).await,
                Dialect::CallsOnly | Dialect::Bare => probe::meet_tools_only(link, config.defined.as_ref()).await,
            }
        };
        let mut meeting = std::pin::pin!(within(limit, meeting));
        let mut was_told = false;
        let met = loop {
            tokio::select! {
                met = &mut meeting => break met,
                () = sleep(SLOW) => self.is_slow(std::mem::replace(&mut was_told, true)),
            }
        };
        let met = met.unwrap_or_else(|_| {
            let (limit, hints) = (limit.as_secs_f32(), self.hints());
            self.instance.status.forget_suspicion();
            let said = match self.instance.config.dialect {
                Dialect::Mcp => "no answer to `initialize` or `server/discover` within",
                Dialect::CallsOnly | Dialect::Bare => "no answer to `tools/list` within",
            };
            let said = format!("{said} {limit} s (`startup_timeout`)");
            Err(Fault::passing(Cause::new(CauseCode::TimedOut, said).then(&hints)))
        });
        if met.is_err() && plan != ProbePlan::Ask {
            // What was remembered may be what is wrong.
            self.memory.forget();
        }
        met
    }

    /// It takes long to answer: that is shown in place of what its last life ended of, with what shows by now of why; and said once.
    fn is_slow(&self, was_told: bool) {
        let installer = self.instance.config.transport.child().and_then(|child| program::installer(child.command));
        let doing = installer.map(|name| format!(" (`{name}` may still be downloading)")).unwrap_or_default();
        let cause = Cause::new(CauseCode::Starting, format!("no answer yet{doing}")).then(&self.hints());
        if !was_told {
            let (upstream, instance) = (&*self.instance.name, self.instance.status.number);
            let (cause_code, cause) = (cause.code().as_str(), &*cause.full());
            tracing::info!(target: metrics::UPSTREAM_STATE, upstream, instance, state = "starting", cause, cause_code, "upstream slow to start");
        }
        self.instance.status.handle.update(|health| health.cause = Some(cause));
    }

    /// Why it may not answer, as far as it shows, for the end of a cause.
    fn hints(&self) -> Cause {
        let said = || self.child.as_ref().map(Child::last_words).unwrap_or_default();
        // What is suspected says more than the lines that it was seen by, and than what it may lack.
        if let Some(hint) = self.instance.status.suspicion() {
            return Cause::default().own(&format!("; {hint}"));
        }
        let Some(child) = self.instance.config.transport.child() else { return said() };
        said().foreign(&program::withheld::said(std::env::vars_os().map(|(name, _)| name), child.env))
    }

    /// What it was told that it may ask; nothing is said where that differs by call or by session.
    fn may_ask(&self, peer: &Peer) -> Option<Vec<&'static str>> {
        let (config, owner) = (&self.instance.config, &self.instance.owner);
        if config.is_http() || peer.revision().is_modern() {
            return None;
        }
        let told = declares_now(owner, config)?.can;
        Some(OFFERS.iter().filter(|(_, kind)| told.and(*kind) != Capabilities::NONE).map(|(word, _)| *word).collect())
    }
}

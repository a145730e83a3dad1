//! The composition root: builds all parts, holds the one visible chain, ends everything in order.

mod shutdown_signals;
mod timer_keep_alive;

pub use crate::admin::Mode;
pub use admin::{Seen, seen_by};
pub use clients::{Error, Place, reachable};
pub use reload::Read;
pub use shutdown_signals::ShutdownSignals;
pub use terms::budget;
pub use upstreams::Changes;

mod admin;
mod ceiling;
mod clients;
mod doorbell;
mod file_watch;
mod one_client;
mod reload;
mod renewal;
mod terms;
mod upstreams;

pub use crate::process::{ChildLimits, become_program, guard, own_program};

use crate::admin::Page;
use crate::call::{Handle, Handler};
use crate::config::Config;
use crate::downstream::listen::{Leaving, listener};
use crate::downstream::{McpService, stdio};
use crate::health::StatusBoard;
use crate::memory::{Refusals, keep_purging};
use crate::metrics::edges::Face;
use crate::policy::connect::Connect;
use crate::policy::limits::Limits;
use crate::policy::redact::Redact;
use crate::protocol::capabilities::beyond::Declared;
use crate::router::config::Unknown;
use crate::router::{Listeners, Router};
use crate::runtime::Tasks;
use crate::runtime::system::handed::HandedSocket;
use crate::runtime::system::{ServiceManager, handles};
use crate::runtime::watched::{Counted, Watched};
use crate::telemetry::calls::Calls;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::observe::Observe;
use crate::telemetry::{audit, logging, metrics};
use crate::upstream::{self, inventory::InventoryCache};
use admin::{Admin, Joined};
use clients::{Doors, PersonalLogins};
use doorbell::Doorbell;
use one_client::OneClient;
use reload::Reloader;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use timer_keep_alive::TimerKeepAlive;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use upstreams::Upstreams;

/// After the grace time, so long the faces have to write what is left.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// What the end may take beyond that, for a service manager that waits for it.
const SLACK: Duration = Duration::from_secs(10);

/// The levels of the task tree, in the order in which they end.
#[derive(Default)]
struct Levels {
    faces: Tasks,
    /// No tasks: told to end when what the faces still have to answer is answered as cut off.
    cut: Tasks,
    router: Tasks,
    upstreams: Tasks,
    /// Probes and metrics: to be seen to the last.
    ground: Tasks,
}

impl Levels {
    /// What a face lives in, and what cuts it off.
    fn face(&self) -> (Tasks, Tasks) {
        (self.faces.clone(), self.cut.clone())
    }
}

/// The whole gateway. Dropping it ends nothing: see [`Gateway::drain`].
pub struct Gateway {
    config: Config,
    mode: Mode,
    board: StatusBoard,
    /// Clients that found no room.
    refusals: Refusals,
    upstreams: Arc<Upstreams>,
    /// Takes another configuration, where it is said how that is read.
    reloader: Option<Arc<Reloader>>,
    handler: Handler,
    /// Who started the process, and is told what it does.
    manager: ServiceManager,
    /// The calls under way and the last ones.
    calls: Calls,
    /// What each client may have.
    limits: Limits,
    redact: Redact,
    connect: Connect,
    router: Arc<Router>,
    /// The face of clients over HTTP, once it is there.
    face: Arc<OnceLock<McpService>>,
    listeners: Listeners,
    metrics: Metrics,
    levels: Levels,
    /// Set when the gateway is told to end.
    leaving: Leaving,
    /// What the one client on stdin has declared.
    said: watch::Sender<Option<Declared>>,
    /// Those that have joined by the control socket.
    joined: Joined,
    /// What the service manager has bound.
    handed: Mutex<Vec<HandedSocket>>,
}

/// Where it serves, as bound.
#[derive(Debug, Clone)]
pub struct Addresses {
    /// The faces towards clients.
    pub clients: Vec<Place>,
    /// Probes and metrics.
    pub admin: Option<SocketAddr>,
}

impl Gateway {
    /// Builds all parts; no upstream is started, nothing is listened to.
    pub fn start(config: Config, mode: Mode) -> Self {
        config.secrets.keep();
        let (budget, refusals) = (budget(&config), Refusals::default());
        let (board, listeners, levels) =
            (StatusBoard::new(budget.clone()), Listeners::new(budget, refusals.clone()), Levels::default());
        keep_purging(board.budget(), &levels.ground);
        let (metrics, calls) = (metrics::install(), Calls::default());
        let said = watch::Sender::new(None);
        let upstreams = Upstreams::new(
            upstreams::Terms {
                is_of_one_client: mode == Mode::Stdio,
                board: board.clone(),
                listeners: listeners.clone(),
                said: said.clone(),
                store: InventoryCache::at(&config.cache),
                kept: terms::kept_sessions(&config, mode != Mode::Serve),
                tasks: levels.upstreams.clone(),
                ground: levels.ground.clone(),
            },
            &config.upstreams,
        );
        let terms = terms::of(&config, mode != Mode::Serve);
        let router = Arc::new(Router::start(upstreams.owners(), terms, listeners.clone(), &levels.router));
        upstreams.led_to_by(&router);
        let observe = terms::observe(&config, &calls, board.budget(), &levels.ground);
        let (limits, redact) = (Limits::new(&config.limits), Redact::new(&config.redact, &levels.router));
        let layers = (observe, limits.clone(), redact.clone());
        let connect = Connect::new(PersonalLogins::new(&upstreams, &levels.ground), &levels.ground);
        // Innermost: the others see where a caller is sent.
        let handler = match (chain(tower::Layer::layer(&connect, router.clone()), layers, &levels.router), mode) {
            (handler, Mode::Serve | Mode::Shared) => handler,
            (handler, Mode::Stdio) => OneClient::around(handler, &upstreams),
        };
        let (reloader, leaving, face, manager) = (None, Leaving::default(), Arc::default(), ServiceManager::default());
        let joined = Joined::new(&leaving, &levels.faces);
        Self {
            handler,
            calls,
            limits,
            redact,
            connect,
            router,
            face,
            config,
            mode,
            board,
            refusals,
            manager,
            upstreams,
            reloader,
            listeners,
            metrics,
            levels,
            leaving,
            said,
            joined,
            handed: Mutex::default(),
        }
    }

    /// Takes over these sockets, where its listeners say so.
    #[must_use]
    pub fn with_sockets(self, handed: Vec<HandedSocket>) -> Self {
        Self { handed: Mutex::new(handed), ..self }
    }

    /// Tells this manager what the gateway does, from now on.
    #[must_use]
    pub fn managed_by(mut self, manager: ServiceManager) -> Self {
        self.manager = manager;
        self
    }

    /// The configuration is read anew by this on a signal, an order, or when its files change.
    #[must_use]
    pub fn reloaded_by(mut self, read: Read) -> Self {
        let heed = (self.leaving.clone(), self.manager.clone(), self.limits.clone(), self.redact.clone());
        self.reloader = Some(Reloader::new(read, self.config.clone(), self.upstreams.clone(), heed));
        self
    }

    /// What every upstream is doing.
    pub fn board(&self) -> &StatusBoard {
        &self.board
    }

    /// Takes over the care for all processes that this one starts, and for what those leave behind. Only the program itself can:
    /// it starts children by way of itself.
    pub fn own_processes(&self) {
        handles::raise();
        if let Err(error) = crate::process::spawner::own_processes(&self.levels.ground) {
            tracing::warn!(%error, "cannot adopt orphaned processes; some may outlive their upstreams");
        }
    }

    /// Listens, then starts the upstreams: the doors are open before any of them is there.
    pub async fn serve(&self) -> Result<Addresses, Error> {
        let server = &self.config.server;
        let handed = std::mem::take(&mut *self.handed.lock().unwrap_or_else(PoisonError::into_inner));
        let doors = Doors::open(&self.config, handed).await?;
        let clients = doors.places();
        PersonalLogins::reached(&self.connect, &self.config, &clients);
        let admin = match self.config.admin.listen {
            Some(address) => Some(clients::bind(address).await?),
            None => None,
        };
        let admin_at = admin.as_ref().map(|(_, address)| *address);
        let admin_face = self.admin(admin_at, &clients);
        if let Some((listener, address)) = admin {
            admin_face.serve(listener, address);
        }
        admin_face.control();
        let room = (self.board.budget(), &self.refusals);
        let (level, cut) = self.levels.face();
        let face = McpService::new(self.handler.clone(), server.clone(), (level, cut.clone()), room);
        let _is_first = self.face.set(face.clone());
        let patience =
            listener::Patience::new(server.header_read_timeout, server.shutdown_grace, self.leaving.clone(), cut);
        let (config, bounds) = (&self.config, clients::bounds(&self.config, self.board.budget(), &self.refusals));
        let reloads = self.reloader.as_ref().map(|reloader| reloader.reloads().clone()).unwrap_or_default();
        doors.certificates().for_each(|one| renewal::follow(one, reloads.clone(), &self.levels.ground));
        let (issuers, connect, faces) =
            (clients::issuers(&config.auth, &self.levels.ground), self.connect.clone(), &self.levels.faces);
        let kept = doors.serve(&clients::Serving { config, issuers, face, connect, patience, bounds, faces });
        if let Some(reloader) = &self.reloader {
            reloader.guards(kept);
        }
        self.wake();
        self.manager.keep_alive(&self.levels.ground);
        self.manager.ready();
        Ok(Addresses { clients, admin: admin_at })
    }

    /// Where it is looked at; `address` is that of the page, where there is one, `clients` where clients are served.
    fn admin<'a>(&'a self, address: Option<SocketAddr>, clients: &'a [Place]) -> Admin<'a> {
        let (mode, joined, ground) = (self.mode, &self.joined, &self.levels.ground);
        let (board, refusals) = (&self.board, &self.refusals);
        let (config, metrics, reloader) = (&self.config, &self.metrics, self.reloader.as_ref());
        let (calls, router, face) = (&self.calls, &self.router, &self.face);
        let (handler, page) = (&self.handler, Page::at(address));
        Admin {
            config,
            board,
            refusals,
            metrics,
            joined,
            ground,
            mode,
            reloader,
            calls,
            router,
            face,
            handler,
            page,
            clients,
        }
    }

    /// Serves those that join by the control socket. What it returns resolves once nobody was there for a while.
    pub fn share(&self) -> io::Result<impl Future<Output = ()> + use<>> {
        self.admin(None, &[]).controlled()?;
        self.wake();
        Ok(self.joined.clone().left_alone(self.config.server.linger))
    }

    /// Serves the one client on a pair of pipes, to the end of either or until [`Self::drain`], which needs this to go on
    /// meanwhile; `gone` resolves at the end of stdout, where that is known before a write. The upstreams start with its first request: a host may only be looking which era we speak.
    pub async fn stdio<R, W>(&self, stdin: R, stdout: W, gone: impl Future<Output = ()>) -> io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        // The drain waits for it.
        let _held = self.levels.faces.hold();
        let upstreams = self.upstreams.clone();
        let ears = doorbell::Ears {
            said: self.said.clone(),
            passes: self.config.extensions == Unknown::Pass,
            recall: Box::new(move |era, declared| upstreams.recall(era, declared)),
        };
        let (stdin, mut bell) = Doorbell::new(stdin, ears);
        let level = self.levels.faces.clone();
        let room = (self.board.budget(), &self.refusals);
        let counted = || Counted(Face::new("stdio").bytes().clone());
        let (stdin, stdout) = (Watched::new(stdin, counted()), Watched::new(stdout, counted()));
        let serve = stdio::serve(self.handler.clone(), &self.config.server, (stdin, stdout, gone), level, room);
        let wake = async {
            if let Some(era) = bell.rings().await {
                // Not before: a host that only looks which era we speak is gone again at once.
                self.admin(None, &[]).control();
                self.upstreams.open_in(era);
                self.wake();
            }
            std::future::pending().await
        };
        tokio::select! {
            served = serve => served,
            () = wake => Ok(()),
        }
    }

    fn wake(&self) {
        self.upstreams.wake();
        if let Some(reloader) = &self.reloader
            && let Err(error) = reloader.follow(&self.levels.router)
        {
            tracing::warn!(%error, "neither SIGHUP nor a changed file is noticed");
        }
    }

    /// From now on these are the upstreams; those that are configured as before are not touched.
    pub async fn set_upstreams(&self, configs: &[upstream::config::Config]) -> Changes {
        self.upstreams.set(configs, self.config.server.shutdown_grace).await
    }

    /// Ends everything in order: no longer ready, no longer listening, calls finished or cancelled, upstreams stopped.
    pub async fn drain(&self) {
        let (delay, grace) = (self.config.server.pre_stop_delay, self.config.server.shutdown_grace);
        self.leaving.ask();
        let stop = self.config.upstreams.iter().filter_map(upstream::config::Config::stop_limit).max();
        self.manager.stopping(delay + grace + LAST_WORDS + stop.unwrap_or_default() + SLACK);
        if self.mode == Mode::Serve && !delay.is_zero() {
            tracing::info!(?delay, "no longer ready; requests are still taken");
            tokio::time::sleep(delay).await;
        }
        // The end of stdin has had its own time, and its own line.
        if !self.levels.faces.is_empty() {
            tracing::info!("shutting down: waiting up to {} s for calls in progress", grace.as_secs_f32());
        }
        self.levels.faces.end();
        self.listeners.close();
        let in_time = tokio::time::timeout(grace, self.levels.faces.ended()).await;
        self.levels.cut.end();
        if in_time.is_err() {
            // What still runs is answered as cut off. What is unwritten after that is dropped, and so cancelled, with its level.
            let _in_time = tokio::time::timeout(LAST_WORDS, self.levels.faces.ended()).await;
        }
        self.upstreams.leave();
        for level in [&self.levels.router, &self.levels.upstreams, &self.levels.ground] {
            level.end();
            level.ended().await;
        }
        crate::process::spawner::leave_guard().await;
        tracing::info!("shutdown complete");
        audit::flush();
        logging::flush();
    }
}

/// The one visible chain, from the outside in.
fn chain(router: impl Handle, (observe, limits, redact): (Observe, Limits, Redact), tasks: &Tasks) -> Handler {
    let chain = tower::ServiceBuilder::new()
        // Outermost, so that it sees whatever becomes of a call.
        .layer(observe)
        // Before anything is done for a call that is one too many.
        .layer(limits)
        // Within them, so that what is refused is not looked at.
        .layer(redact)
        // The far timers of each call wake nobody.
        .layer(TimerKeepAlive::new(tasks))
        .service(router);
    Arc::new(chain)
}

#[cfg(test)]
mod tests;

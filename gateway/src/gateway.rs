//! The composition root: builds all parts, holds the one visible chain, ends everything in order.

mod shutdown_signals;
mod timer_keep_alive;

pub use shutdown_signals::ShutdownSignals;

mod admin;
mod ceiling;
mod doorbell;
mod one_client;

pub use crate::upstream::process::{ChildLimits, become_program, guard};

use crate::admin::control;
use crate::call::Handler;
use crate::config::Config;
use crate::downstream::listen::{Arrival, listener};
use crate::downstream::parking::key;
use crate::downstream::{Connections, GuardLayer, McpService, stdio};
use crate::health::StatusBoard;
use crate::memory::budget::Budget;
use crate::memory::{Refusals, keep_purging};
use crate::policy::authenticate::AuthenticateLayer;
use crate::protocol::capabilities::beyond::Declared;
use crate::router::config::Unknown;
use crate::router::{Listeners, Owner, Router, Secret, Terms};
use crate::runtime::{Tasks, handles};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::observe::Observe;
use crate::telemetry::{logging, metrics};
use crate::upstream;
use crate::upstream::config::{Sharing, Transport};
use crate::upstream::inventory::InventoryCache;
use crate::upstream::{StartLimit, Upstream};
use admin::Admin;
use doorbell::Doorbell;
use one_client::OneClient;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use timer_keep_alive::TimerKeepAlive;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::Layer;

/// How long first lists wait where the configuration does not say: a host asks once and remembers, so it waits longer.
const FIRST_LIST_WAIT_SERVE: Duration = Duration::from_secs(2);
const FIRST_LIST_WAIT_STDIO: Duration = Duration::from_secs(8);
/// After the grace time, so long the faces have to write what is left.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Its three pipes, and what its start and its end need.
const FILES_PER_CHILD: usize = 5;

/// Who the clients are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Many, over HTTP.
    Serve,
    /// The one on stdin and stdout.
    Stdio,
}

/// Why the gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {}", hint(cause))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
    /// Anybody could call.
    #[error(
        "{0} can be reached by others and no token is asked for: add [[auth.tokens]], or say --allow-unauthenticated"
    )]
    Open(SocketAddr),
}

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
    upstreams: Vec<Upstream>,
    handler: Handler,
    listeners: Listeners,
    metrics: Metrics,
    levels: Levels,
    /// What the one client on stdin has declared.
    said: watch::Sender<Option<Declared>>,
}

/// Where it serves, as bound.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// The face towards clients.
    pub clients: SocketAddr,
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
        let metrics = metrics::install();
        let said = watch::Sender::new(None);
        let upstreams: Vec<_> = config
            .upstreams
            .iter()
            .map(|one| {
                let handle = board.add(&one.name, one.transport.word());
                match mode {
                    Mode::Serve => Upstream::new(one.clone(), handle, listeners.notices()),
                    // One session and one principal: what there is, is theirs already.
                    Mode::Stdio => {
                        let one = upstream::config::Config { sharing: Sharing::Shared, principals: 1, ..one.clone() };
                        Upstream::of_one_client(one, handle, listeners.notices(), said.subscribe())
                    }
                }
            })
            .collect();
        if let Some(store) = InventoryCache::at(&config.cache) {
            // Before anybody can ask: the first answer has what was offered last.
            upstreams.iter().for_each(|upstream| upstream.kept_in(&store));
        }
        let owners = upstreams.iter().map(|upstream| Arc::new(upstream.clone()) as Arc<dyn Owner>).collect();
        let router = Router::start(owners, terms(&config, mode), listeners.clone(), &levels.router);
        let handler = match (chain(router, &levels.router), mode) {
            (handler, Mode::Serve) => handler,
            (handler, Mode::Stdio) => OneClient::around(handler, &upstreams),
        };
        Self { handler, config, mode, board, refusals, upstreams, listeners, metrics, levels, said }
    }

    /// What every upstream is doing.
    pub fn board(&self) -> &StatusBoard {
        &self.board
    }

    /// Takes over the care for all processes that this one starts, and for what those leave behind. Only the program itself can:
    /// it starts children by way of itself.
    pub fn own_processes(&self) {
        handles::raise();
        if let Err(error) = upstream::process::spawner::own_processes(&self.levels.ground) {
            tracing::warn!(%error, "cannot adopt orphaned processes: some may outlive their upstreams");
        }
    }

    /// Listens, then starts the upstreams: the door is open before any of them is there.
    pub async fn serve(&self) -> Result<Addresses, Error> {
        let server = &self.config.server;
        let is_open = self.config.auth.tokens.is_empty() && !self.config.auth.allow_unauthenticated;
        if is_open && !server.listen.ip().is_loopback() {
            return Err(Error::Open(server.listen));
        }
        let (clients, clients_at) = bind(server.listen).await?;
        let admin = match self.config.admin.listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let admin_at = admin.as_ref().map(|(_, address)| *address);
        if let Some((listener, address)) = admin {
            self.admin().serve(listener, address);
        }
        self.admin().control();
        let guard = GuardLayer::new(clients_at, &server.allowed_hosts, &server.allowed_origins);
        // From the outside in: who may be asked for and whose pages may ask, who calls, then frames.
        let room = (self.board.budget(), &self.refusals);
        let face = McpService::new(self.handler.clone(), server.clone(), self.levels.face(), room);
        let authenticate = AuthenticateLayer::new(&self.config.auth);
        let service = move |arrival: &Arrival| guard.layer(authenticate.layer(face.on(arrival)));
        let (bounds, (level, cut)) = (self.bounds(), self.levels.face());
        let patience = listener::Patience::new(server, cut);
        self.levels.faces.spawn(listener::serve(clients, service, patience, bounds, level));
        self.wake();
        Ok(Addresses { clients: clients_at, admin: admin_at })
    }

    fn admin(&self) -> Admin<'_> {
        let mode = match self.mode {
            Mode::Serve => control::Mode::Serve,
            Mode::Stdio => control::Mode::Stdio,
        };
        let (faces, ground) = (&self.levels.faces, &self.levels.ground);
        let (board, refusals) = (&self.board, &self.refusals);
        Admin { config: &self.config, board, refusals, metrics: &self.metrics, faces, ground, mode }
    }

    /// The connections of clients: fewer than there are files, so that upstreams, children and probes always find some, and fewer than
    /// half of the memory allows. Shares are reckoned of this number, so that one client never takes all of either.
    fn bounds(&self) -> listener::Bounds {
        let is_child = |one: &&upstream::config::Config| matches!(one.transport, Transport::Stdio { .. });
        let instances = self.config.upstreams.iter().filter(is_child).map(|one| match one.sharing {
            Sharing::Shared => 1,
            _ => 1 + one.max_instances,
        });
        let children = instances.sum::<usize>() * FILES_PER_CHILD;
        let budget = self.board.budget();
        let most = handles::for_clients(handles::limit(), children).min(listener::connections_within(budget));
        let asks_credential = !self.config.auth.tokens.is_empty();
        let room = Connections::new(most, asks_credential, self.config.server.trusted_proxies.clone());
        listener::Bounds { room, budget: budget.clone(), refusals: self.refusals.clone() }
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
        let (stdin, mut bell) = Doorbell::new(stdin, self.said.clone(), self.config.extensions == Unknown::Pass);
        let level = self.levels.faces.clone();
        let room = (self.board.budget(), &self.refusals);
        let serve = stdio::serve(self.handler.clone(), &self.config.server, (stdin, stdout, gone), level, room);
        let wake = async {
            if bell.rings().await {
                // Not before: a host that only looks which era we speak is gone again at once.
                self.admin().control();
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
        let starts = StartLimit::of_this_machine();
        for upstream in &self.upstreams {
            upstream.share_starts(&starts);
            upstream.keep_alive(&self.levels.upstreams);
        }
    }

    /// Ends everything in order: no longer ready, no longer listening, calls finished or cancelled, upstreams stopped.
    pub async fn drain(&self) {
        let grace = self.config.server.shutdown_grace;
        // The end of stdin has had its own time, and its own line.
        if !self.levels.faces.is_empty() {
            tracing::info!(at_most = ?grace, "draining");
        }
        self.levels.faces.end();
        self.listeners.close();
        let in_time = tokio::time::timeout(grace, self.levels.faces.ended()).await;
        self.levels.cut.end();
        if in_time.is_err() {
            // What still runs is answered as cut off. What is unwritten after that is dropped, and so cancelled, with its level.
            let _in_time = tokio::time::timeout(LAST_WORDS, self.levels.faces.ended()).await;
        }
        for level in [&self.levels.router, &self.levels.upstreams, &self.levels.ground] {
            level.end();
            level.ended().await;
        }
        upstream::process::spawner::leave_guard().await;
        tracing::info!("ended");
        logging::flush();
    }
}

/// What all peers together may make the gateway keep.
pub fn budget(config: &Config) -> Budget {
    Budget::new(config.server.memory_limit.unwrap_or_else(ceiling::default_limit))
}

/// The one visible chain, from the outside in.
fn chain(router: Router, tasks: &Tasks) -> Handler {
    let chain = tower::ServiceBuilder::new()
        // Outermost, so that it sees whatever becomes of a call.
        .layer(Observe::default())
        // The far timers of each call wake nobody.
        .layer(TimerKeepAlive::new(tasks))
        .service(router);
    Arc::new(chain)
}

fn terms(config: &Config, mode: Mode) -> Terms {
    let wait = match mode {
        Mode::Serve => FIRST_LIST_WAIT_SERVE,
        Mode::Stdio => FIRST_LIST_WAIT_STDIO,
    };
    Terms {
        naming: config.naming.clone(),
        page_size: config.catalog.page_size,
        first_list_wait: config.catalog.first_list_wait.unwrap_or(wait),
        instructions: config.server.instructions.clone(),
        unknown: config.extensions,
        secret: secret(config),
    }
}

/// What the ids of tasks are wrapped with: the key that seals what clients carry, so that they too survive a restart.
fn secret(config: &Config) -> Secret {
    let (configured, folder) = (config.server.session.signing_keys.clone(), config.server.state_folder.clone());
    Secret::found_by(move || key::find(&configured, folder.as_deref()))
}

/// What can be done about an address that cannot be listened on.
fn hint(cause: &io::Error) -> String {
    let hint = match cause.kind() {
        io::ErrorKind::AddrInUse => {
            "end what listens there, or choose another with --listen (for probes and metrics: --admin)"
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        io::ErrorKind::PermissionDenied => "choose a port from 1024 on",
        _ => return cause.to_string(),
    };
    format!("{cause}; {hint}")
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |cause| Error::Listen { address, cause };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

#[cfg(test)]
mod tests;

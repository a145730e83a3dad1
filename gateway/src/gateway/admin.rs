//! Where the gateway is looked at and ordered about: the admin address, for machines, and the control socket, for whoever runs it.

use super::reload::{Outcome, Reloader};
use crate::admin::looks::{Looks, Session, Tool};
use crate::admin::{self, Access, Mode, Reload, Shown, control, looks, pages};
use crate::config::Config;
use crate::downstream::listen::{Leaving, listener};
use crate::downstream::{Connections, GuardLayer, McpService, ShownSession};
use crate::health::StatusBoard;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::metrics::edges::Face;
use crate::router::Router;
use crate::runtime::Tasks;
use crate::telemetry::calls::Calls;
use crate::telemetry::config::Written;
use crate::telemetry::metrics::Metrics;
use serde_json::Value;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use tokio::net::TcpListener;
use tower::Layer;

/// The most connections for probes and metrics.
const CONNECTIONS_MAX: usize = 256;
/// The memory of these connections and their answers. Clients cannot take it: probes are answered whatever they hold.
const RESERVE_BYTES: usize = 16 * 1024 * 1024;

/// Has the configuration put into force, and says what became of it.
fn reload_order(reloader: Arc<Reloader>) -> Reload {
    Arc::new(move || {
        let reloader = reloader.clone();
        let reloading: Pin<Box<dyn Future<Output = Result<Value, String>> + Send>> = Box::pin(async move {
            match reloader.reload().await {
                Outcome::Unchanged { needs_restart } => {
                    Ok(serde_json::json!({ "outcome": "unchanged", "needs_restart": needs_restart }))
                }
                Outcome::Applied { upstreams, needs_restart } => Ok(serde_json::json!({
                    "outcome": "applied",
                    "added": names(&upstreams.added),
                    "changed": names(&upstreams.changed),
                    "removed": names(&upstreams.removed),
                    "unchanged": upstreams.unchanged,
                    "needs_restart": needs_restart,
                })),
                Outcome::Refused(faults) => Err(faults.to_string()),
            }
        });
        reloading
    })
}

fn session(session: ShownSession) -> Session {
    let ShownSession { mark, principal, address, revision, idle } = session;
    let (address, idle_seconds) = (address.map(|address| address.to_string()), idle.map(|idle| idle.as_secs()));
    Session { session: mark, principal, address, revision, idle_seconds }
}

fn names(names: &[Arc<str>]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

/// What is shown, and where it is served from.
pub(super) struct Admin<'a> {
    pub(super) config: &'a Config,
    pub(super) board: &'a StatusBoard,
    pub(super) refusals: &'a Refusals,
    pub(super) metrics: &'a Metrics,
    /// Set when the gateway is told to end.
    pub(super) leaving: &'a Leaving,
    /// Where it is served: to be seen to the last.
    pub(super) ground: &'a Tasks,
    pub(super) mode: Mode,
    pub(super) reloader: Option<&'a Arc<Reloader>>,
    pub(super) calls: &'a Calls,
    pub(super) router: &'a Arc<Router>,
    /// The face of clients, once it is there.
    pub(super) face: &'a Arc<OnceLock<McpService>>,
}

impl Admin<'_> {
    /// Serves the admin address.
    pub(super) fn serve(&self, listener: TcpListener, address: SocketAddr) {
        let (config, server) = (&self.config.admin, &self.config.server);
        let router = admin::router(self.shown(Access::Token(config.token.clone())));
        let service = GuardLayer::of_admin(address, &config.allowed_hosts, pages::is_probe).layer(router);
        // Its connections are short: they need no grace.
        let cut = Tasks::new();
        cut.end();
        let patience =
            listener::Patience::new(server.header_read_timeout, server.shutdown_grace, Leaving::default(), cut)
                .without_linger();
        let (room, budget) = (Connections::of_probes(CONNECTIONS_MAX), Budget::new(RESERVE_BYTES));
        let (refusals, face) = (self.refusals.clone(), Face::new("admin"));
        let bounds = listener::Bounds { room, budget, refusals, face };
        self.ground.spawn(listener::serve(listener, move |_| service.clone(), patience, bounds, self.ground.clone()));
    }

    /// Serves the control socket, where there is to be one. A gateway without it serves its clients all the same.
    pub(super) fn control(&self) {
        let Some(control) = &self.config.admin.control else { return };
        match control::bind(&control.folders, &control.files, self.mode) {
            Ok(bound) => {
                let router = admin::router(self.shown(Access::All));
                self.ground.spawn(control::serve(bound, router, self.ground.clone()));
            }
            Err(error) => tracing::warn!(
                %error,
                "cannot create the control socket; `trunkline ls`, `status`, `start`, `stop` and `restart` need `--admin` and its token"
            ),
        }
    }

    fn shown(&self, access: Access) -> Shown {
        let leaving = self.leaving.clone();
        Shown {
            board: self.board.clone(),
            refusals: self.refusals.clone(),
            metrics: self.metrics.clone(),
            is_draining: Arc::new(move || leaving.is_asked()),
            access,
            own: self.own().into(),
            reloads: self.reloader.map(|reloader| reloader.reloads().clone()).unwrap_or_default(),
            looks: self.looks(),
            reload: self.reloader.map(|reloader| reload_order(reloader.clone())),
        }
    }

    /// What is to be seen beside the board.
    fn looks(&self) -> Looks {
        let (router, face) = (self.router.clone(), self.face.clone());
        let tools = move |most: usize| -> Vec<Tool> {
            let tool = |names: [Arc<str>; 3]| {
                let [name, upstream, own_name] = names.map(|name| name.to_string());
                Tool { name, upstream, own_name }
            };
            router.tools(most).into_iter().map(tool).collect()
        };
        let sessions = move |most: usize| -> Vec<Session> {
            let sessions = face.get().map_or_else(Vec::new, |face| face.sessions(most));
            sessions.into_iter().map(session).collect()
        };
        let (written, reloader) = (self.config.written.clone(), self.reloader.cloned());
        let config: looks::Config = Arc::new(move || {
            let (written, reloader) = (written.clone(), reloader.clone());
            let told: Pin<Box<dyn Future<Output = Written> + Send>> = Box::pin(async move {
                match reloader {
                    Some(reloader) => reloader.written().await,
                    None => written,
                }
            });
            told
        });
        Looks {
            calls: self.calls.clone(),
            tools: Some(Arc::new(tools)),
            sessions: Some(Arc::new(sessions)),
            config: Some(config),
        }
    }

    /// What is said of the gateway itself.
    fn own(&self) -> String {
        let files = self.config.admin.control.iter().flat_map(|control| &control.files);
        let files: Vec<_> = files.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())).collect();
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let (version, pid, mode) = (env!("CARGO_PKG_VERSION"), std::process::id(), self.mode.as_str());
        serde_json::json!({ "version": version, "pid": pid, "mode": mode, "configuration": files }).to_string()
    }
}

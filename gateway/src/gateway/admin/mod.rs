//! Where the gateway is looked at and ordered about: the admin address, for machines, and the control socket, for whoever runs it.

// Calls a tool for who looks at the gateway.
mod trial;
// Those that join the gateway by its control socket, and the end of one that was started for them.
mod joined;
// The tools that somebody is to approve.
mod to_approve;
// What one who calls may see, by a configuration and the lists that upstreams gave last.
mod seen;

pub(super) use joined::Joined;
pub use seen::{Seen, seen_by};

use joined::Behind;

use super::clients::Place;
use super::reload::{Outcome, Reloader};
use crate::admin::looks::{Hidden, Looks, Session, Tool, Tools};
use crate::admin::{self, Access, Mode, Page, Reload, Shown, control, looks, pages};
use crate::call::Handler;
use crate::config::Config;
use crate::downstream::listen::{Leaving, listener};
use crate::downstream::{Connections, GuardLayer, McpService, ShownSession};
use crate::health::StatusBoard;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::metrics::edges::Face;
use crate::router::{HiddenTool, OfferedTool, Router};
use crate::runtime::Tasks;
use crate::telemetry::calls::Calls;
use crate::telemetry::config::Written;
use crate::telemetry::metrics::Metrics;
use serde_json::Value;
use std::io;
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

/// A token is about four bytes of JSON, for the models that read it.
const BYTES_PER_TOKEN: usize = 4;

fn tool(tool: OfferedTool) -> Tool {
    let OfferedTool { public, upstream, own, bytes } = tool;
    let [name, upstream, own_name] = [public, upstream, own].map(|name| name.to_string());
    Tool { name, upstream, own_name, definition_bytes: bytes, tokens: bytes.div_ceil(BYTES_PER_TOKEN) }
}

fn hidden(tool: HiddenTool) -> Hidden {
    let HiddenTool { upstream, own, why } = tool;
    Hidden { upstream: upstream.to_string(), own_name: own.to_string(), why }
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
    /// Who may join, and has.
    pub(super) joined: &'a Joined,
    /// Where it is served: to be seen to the last.
    pub(super) ground: &'a Tasks,
    pub(super) mode: Mode,
    pub(super) reloader: Option<&'a Arc<Reloader>>,
    pub(super) calls: &'a Calls,
    pub(super) router: &'a Arc<Router>,
    /// The face of clients, once it is there.
    pub(super) face: &'a Arc<OnceLock<McpService>>,
    /// Takes calls from the page.
    pub(super) handler: &'a Handler,
    pub(super) page: Page,
    /// Where clients are served.
    pub(super) clients: &'a [Place],
}

impl Admin<'_> {
    /// Serves the admin address.
    pub(super) fn serve(&self, listener: TcpListener, address: SocketAddr) {
        let (config, server) = (&self.config.admin, &self.config.server);
        let router = admin::router(self.shown(Access::Token(config.token.clone(), self.page.visits.clone())));
        self.page.history.keep(self.metrics, self.board, self.ground);
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
        if let Err(error) = self.controlled() {
            tracing::warn!(
                %error,
                "cannot create the control socket; `trunkline ls`, `status`, `ui`, `start`, `stop` and `restart` need `--admin` and its token"
            );
        }
    }

    /// Serves the control socket, where there is to be one; at that of a gateway of many clients some can join.
    pub(super) fn controlled(&self) -> io::Result<()> {
        let Some(control) = &self.config.admin.control else { return Ok(()) };
        let bound = control::bind(&control.folders, &control.files, self.mode)?;
        let router = admin::router(self.shown(Access::All(self.page.visits.clone())));
        let router = if self.mode.is_of_many() { router.merge(self.joined.way_in(self.door())) } else { router };
        self.ground.spawn(control::serve(bound, router, self.ground.clone()));
        Ok(())
    }

    fn door(&self) -> Behind {
        Behind {
            handler: self.handler.clone(),
            config: self.config.clone().into(),
            written: self.written(),
            room: (self.board.budget().clone(), self.refusals.clone()),
        }
    }

    fn shown(&self, access: Access) -> Shown {
        let leaving = self.joined.leaving.clone();
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
        let (router, defined, face) = (self.router.clone(), self.router.clone(), self.face.clone());
        let tools = move |most: usize| -> Tools {
            let offered = router.offered();
            let hidden = offered.hidden(most).into_iter().map(hidden).collect();
            Tools { tools: offered.tools(most).into_iter().map(tool).collect(), hidden }
        };
        let sessions = move |most: usize| -> Vec<Session> {
            let sessions = face.get().map_or_else(Vec::new, |face| face.sessions(most));
            sessions.into_iter().map(session).collect()
        };
        let handler = self.handler.clone();
        let call: looks::Caller = Arc::new(move |name, wanted| {
            let handler = handler.clone();
            Box::pin(async move { trial::call(&handler, &name, &wanted).await })
        });
        Looks {
            calls: self.calls.clone(),
            to_approve: Some(to_approve::look(self.router)),
            history: self.page.history.clone(),
            tools: Some(Arc::new(tools)),
            definition: Some(Arc::new(move |name| defined.offered().definition(name))),
            call: Some(call),
            sessions: Some(Arc::new(sessions)),
            config: Some(self.written()),
        }
    }

    /// What the configuration in force says.
    fn written(&self) -> looks::Config {
        let (written, reloader) = (self.config.written.clone(), self.reloader.cloned());
        Arc::new(move || {
            let (written, reloader) = (written.clone(), reloader.clone());
            let told: Pin<Box<dyn Future<Output = Written> + Send>> = Box::pin(async move {
                match reloader {
                    Some(reloader) => reloader.written().await,
                    None => written,
                }
            });
            told
        })
    }

    /// What is said of the gateway itself.
    fn own(&self) -> String {
        let files = self.config.admin.control.iter().flat_map(|control| &control.files);
        let files: Vec<_> = files.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())).collect();
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let (version, pid, mode) = (env!("CARGO_PKG_VERSION"), std::process::id(), self.mode.as_str());
        let path = &self.config.server.path;
        let listener = |place: &Place| serde_json::json!({ "url": place.url(path), "faces": place.faces.names() });
        let listeners: Vec<_> = self.clients.iter().map(listener).collect();
        serde_json::json!({ "version": version, "pid": pid, "mode": mode, "listeners": listeners, "configuration": files })
            .to_string()
    }
}

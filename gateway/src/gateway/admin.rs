//! Where the gateway is looked at and ordered about: the admin address, for machines, and the control socket, for whoever runs it.

use crate::admin::{Access, Mode, Shown, control, pages};
use crate::config::Config;
use crate::downstream::listen::listener;
use crate::downstream::{Connections, GuardLayer};
use crate::health::StatusBoard;
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::runtime::Tasks;
use crate::telemetry::metrics::Metrics;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tower::Layer;

/// The most connections for probes and metrics.
const CONNECTIONS_MAX: usize = 256;
/// The memory of these connections and their answers. Clients cannot take it: probes are answered whatever they hold.
const RESERVE_BYTES: usize = 16 * 1024 * 1024;

/// What is shown, and where it is served from.
pub(super) struct Admin<'a> {
    pub(super) config: &'a Config,
    pub(super) board: &'a StatusBoard,
    pub(super) refusals: &'a Refusals,
    pub(super) metrics: &'a Metrics,
    /// Those that end when the gateway takes no more calls.
    pub(super) faces: &'a Tasks,
    /// Where it is served: to be seen to the last.
    pub(super) ground: &'a Tasks,
    pub(super) mode: Mode,
}

impl Admin<'_> {
    /// Serves the admin address.
    pub(super) fn serve(&self, listener: TcpListener, address: SocketAddr) {
        let (config, server) = (&self.config.admin, &self.config.server);
        let router = pages::router(self.shown(Access::Token(config.token.clone())));
        let service = GuardLayer::of_admin(address, &config.allowed_hosts, pages::is_probe).layer(router);
        // Its connections are short: they need no grace.
        let cut = Tasks::new();
        cut.end();
        let patience = listener::Patience::new(server, cut);
        let (room, budget) = (Connections::of_probes(CONNECTIONS_MAX), Budget::new(RESERVE_BYTES));
        let bounds = listener::Bounds { room, budget, refusals: self.refusals.clone() };
        self.ground.spawn(listener::serve(listener, move |_| service.clone(), patience, bounds, self.ground.clone()));
    }

    /// Serves the control socket, where there is to be one. A gateway without it serves its clients all the same.
    pub(super) fn control(&self) {
        let Some(control) = &self.config.admin.control else { return };
        match control::bind(&control.folders, &control.files, self.mode) {
            Ok(bound) => {
                let router = pages::router(self.shown(Access::All));
                self.ground.spawn(control::serve(bound, router, self.ground.clone()));
            }
            Err(error) => tracing::warn!(
                %error,
                "no control socket can be made: `trunkline ls`, `status` and orders need the admin address and its token"
            ),
        }
    }

    fn shown(&self, access: Access) -> Shown {
        let faces = self.faces.clone();
        Shown {
            board: self.board.clone(),
            refusals: self.refusals.clone(),
            metrics: self.metrics.clone(),
            is_draining: Arc::new(move || faces.is_ending()),
            access,
            own: self.own().into(),
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

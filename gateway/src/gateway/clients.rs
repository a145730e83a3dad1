//! The door towards clients, from the outside in: who may be asked for and whose pages may ask, who calls, then frames.

use super::renewal;
use crate::config::Config;
use crate::downstream::config::Config as Server;
use crate::downstream::listen::{Arrival, Certificates, listener};
use crate::downstream::{GuardLayer, McpService};
use crate::policy::authenticate::AuthenticateLayer;
use crate::policy::certified::Certified;
use crate::policy::config::Auth;
use crate::runtime::Tasks;
use crate::telemetry::reloads::Reloads;
use std::io;
use std::sync::Arc;
use tokio::net::TcpListener;
use tower::Layer;

/// What stands between a connection and the endpoint.
pub(super) struct Clients {
    pub(super) guard: GuardLayer,
    pub(super) authenticate: AuthenticateLayer,
    pub(super) face: McpService,
}

/// The certificate that clients are shown, where they are; in words, why it cannot be used.
pub(super) fn certificates(config: &Config) -> Result<Option<Arc<Certificates>>, String> {
    let opened = config.server.tls.as_ref().map(|tls| Certificates::open(tls, is_demanded(&config.auth)));
    opened.transpose().map_err(|fault| fault.to_string())
}

/// Whether clients are to show who they are.
pub(super) fn asks_credential(server: &Server, auth: &Auth) -> bool {
    !auth.tokens.is_empty() || server.asks_certificate()
}

/// Whether whoever shows no certificate can have no other credential.
pub(super) fn is_demanded(auth: &Auth) -> bool {
    auth.tokens.is_empty() && !auth.allow_unauthenticated
}

impl Clients {
    /// Serves connections, over TLS where there is a certificate. Its renewals are followed by a task of the ground.
    pub(super) fn serve(
        self,
        config: &Config,
        (listener, certificates): (TcpListener, Option<(Arc<Certificates>, Reloads)>),
        (patience, bounds, level): (listener::Patience, listener::Bounds, Tasks),
        (faces, ground): (&Tasks, &Tasks),
    ) {
        let Self { guard, authenticate, face } = self;
        let Some((certificates, reloads)) = certificates else {
            let service = move |arrival: &Arrival| guard.layer(authenticate.layer(face.on(arrival)).of(arrival.peer()));
            return faces.spawn(listener::serve(listener, service, patience, bounds, level));
        };
        renewal::follow(&certificates, reloads, ground);
        let asks = config.server.asks_certificate() && !config.auth.allow_unauthenticated;
        let asks = asks.then(|| authenticate.clone());
        let service = move |arrival: &Arrival| {
            let inner = face.on(arrival);
            let otherwise = authenticate.layer(inner.clone()).of(arrival.peer());
            guard.layer(Certified::new(arrival.certified(), asks.clone(), otherwise, inner))
        };
        faces.spawn(listener::serve_tls(listener, certificates, service, patience, bounds, level));
    }
}

/// What can be done about an address that cannot be listened on.
pub(super) fn hint(cause: &io::Error) -> String {
    let hint = match cause.kind() {
        io::ErrorKind::AddrInUse => {
            "stop the process that listens there, or use another address (--listen; for probes and metrics --admin)"
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        io::ErrorKind::PermissionDenied => "use a port from 1024 on",
        _ => return cause.to_string(),
    };
    format!("{cause}; {hint}")
}

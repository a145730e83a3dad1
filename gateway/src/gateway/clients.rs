//! The door towards clients, from the outside in: who may be asked for and whose pages may ask, who calls, then frames.

use super::renewal;
use crate::config::Config;
use crate::config::fault::Fault;
use crate::downstream::config::Config as Server;
use crate::downstream::listen::{Arrival, Certificates, listener};
use crate::downstream::{Connections, GuardLayer, McpService};
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::metrics::edges::Face;
use crate::policy::authenticate::AuthenticateLayer;
use crate::policy::certified::Certified;
use crate::policy::config::Auth;
use crate::runtime::Tasks;
use crate::runtime::system::handles;
use crate::telemetry::reloads::Reloads;
use crate::upstream;
use crate::upstream::config::Sharing;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tower::Layer;

/// Its three pipes, and what its start and its end need.
const FILES_PER_CHILD: usize = 5;

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

/// The connections of clients: fewer than there are files, so that upstreams, children and probes always find some, and fewer than
/// half of the memory allows. Shares are reckoned of this number, so that one client never takes all of either.
pub(super) fn bounds(config: &Config, budget: &Budget, refusals: &Refusals) -> listener::Bounds {
    let is_child = |one: &&upstream::config::Config| one.transport.child().is_some();
    let instances = config.upstreams.iter().filter(is_child).map(|one| match one.sharing {
        Sharing::Shared | Sharing::OwnSessions => 1,
        _ => 1 + one.max_instances,
    });
    let children = instances.sum::<usize>() * FILES_PER_CHILD;
    let most = handles::for_clients(handles::limit(), children).min(listener::connections_within(budget));
    let (server, auth) = (&config.server, &config.auth);
    let room = Connections::new(most, asks_credential(server, auth), server.trusted_proxies.clone());
    listener::Bounds { room, budget: budget.clone(), refusals: refusals.clone(), face: Face::new("http") }
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

/// Tokens go at once, and the address stays to the next start: the one must not leave the other open to everybody.
pub(super) fn opened(listen: SocketAddr, auth: &Auth) -> Option<Fault> {
    let is_open = !listen.ip().is_loopback() && auth.tokens.is_empty() && !auth.allow_unauthenticated;
    is_open.then(|| {
        let text =
            format!("{listen} can be reached from other machines until the next start, and no tokens are configured");
        Fault::error("open-door", text)
            .hint("restart the gateway, or keep the tokens until `server.listen` is in force")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stay_while_the_address_of_the_start_can_be_reached_by_others() {
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 8808));
        let says = |listen, auth: &Auth| opened(listen, auth).map(|fault| (fault.kind, fault.text));
        let (kind, text) = says(everywhere, &Auth::default()).expect("it is refused");
        assert!(
            kind == "open-door" && text.contains("0.0.0.0:8808") && text.contains("until the next start"),
            "{text}"
        );
        let allowed = Auth { allow_unauthenticated: true, ..Auth::default() };
        assert_eq!(says(everywhere, &allowed), None);
        assert_eq!(says(SocketAddr::from(([127, 0, 0, 1], 8808)), &Auth::default()), None);
    }
}

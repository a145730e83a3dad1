//! One door, from the outside in: who may be asked for and whose pages may ask, who calls, then frames.

use super::place::Place;
use crate::call::caller::credential::{Credential, Revocation};
use crate::config::Config;
use crate::downstream::config::{Address, Listener};
use crate::downstream::listen::listener::LocalListener;
use crate::downstream::listen::{Arrival, Certificates, listener};
use crate::downstream::{Connections, GuardLayer, McpService};
use crate::memory::Refusals;
use crate::memory::budget::Budget;
use crate::metrics::edges::Face;
use crate::policy::authenticate::AuthenticateLayer;
use crate::policy::certified::Certified;
use crate::policy::config::Auth;
use crate::policy::connect::{Connect, ConnectLayer};
use crate::policy::oauth::Issuers;
use crate::runtime::Tasks;
use crate::runtime::system::handed::HandedListener;
use crate::runtime::system::handles;
use crate::upstream;
use crate::upstream::config::Sharing;
use http::HeaderMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::net::TcpListener;
use tower::Layer;

/// Its three pipes, and what its start and its end need.
const FILES_PER_CHILD: usize = 5;

/// Why the gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {}", hint(address, cause))]
    Listen {
        /// The address.
        address: Address,
        /// What the system says.
        cause: io::Error,
    },
    /// Anybody could call.
    #[error(
        "{0} can be reached from other machines and no tokens are configured: add [[auth.tokens]], or pass --allow-unauthenticated"
    )]
    Open(Address),
    /// The certificate that clients are shown cannot be used.
    #[error("{0}")]
    Tls(String),
}

/// What all doors have in common.
pub(crate) struct Serving<'a> {
    pub(crate) config: &'a Config,
    /// Those whose access tokens are taken.
    pub(crate) issuers: Issuers,
    pub(crate) face: McpService,
    /// The pages where people log in to upstreams.
    pub(crate) connect: Connect,
    pub(crate) patience: listener::Patience,
    pub(crate) bounds: listener::Bounds,
    /// Where connections live, and the listeners themselves.
    pub(crate) faces: &'a Tasks,
}

/// A listener that is bound, and what stands between its connections and the endpoint.
pub(super) struct Door {
    pub(super) listener: Listener,
    pub(super) socket: Socket,
    pub(super) place: Place,
    pub(super) certificates: Option<Arc<Certificates>>,
}

/// What is listened on.
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(LocalListener),
}

impl Socket {
    /// What is listened on at an address, and which address that is.
    async fn of(address: &Address, handed: Option<HandedListener>) -> Result<(Self, Address), Error> {
        let failed = |cause| Error::Listen { address: address.clone(), cause };
        let socket = match (address, handed) {
            (Address::Tcp(address), _) => {
                let (socket, bound) = bind(*address).await?;
                return Ok((Self::Tcp(socket), Address::Tcp(bound)));
            }
            (Address::Unix(path), _) => {
                return Ok((Self::Unix(LocalListener::bind(path).map_err(failed)?), address.clone()));
            }
            (Address::Handed(_), socket) => socket,
        };
        match socket {
            Some(HandedListener::Tcp(socket)) => {
                let socket = TcpListener::from_std(socket).map_err(failed)?;
                let bound = socket.local_addr().map_err(failed)?;
                Ok((Self::Tcp(socket), Address::Tcp(bound)))
            }
            Some(HandedListener::Unix(socket)) => {
                let bound = socket.local_addr().map_err(failed)?;
                // One without a name in the file system is known by the name of its unit.
                let bound = bound.as_pathname().map_or_else(|| address.clone(), |path| Address::Unix(path.to_owned()));
                Ok((Self::Unix(LocalListener::of(socket).map_err(failed)?), bound))
            }
            None => Err(failed(io::Error::other("no socket was handed over"))),
        }
    }
}

/// What a door asks for.
pub(super) struct Asks {
    pub(super) authenticate: AuthenticateLayer,
    pub(super) room: Arc<Connections>,
    /// Who may be asked for, and whose pages may ask.
    pub(super) guard: GuardLayer,
}

impl Door {
    /// Binds a listener, or takes over what is bound; `key` names its certificate, where it has one.
    pub(super) async fn open(
        listener: &Listener,
        handed: Option<HandedListener>,
        key: String,
        auth: &Auth,
    ) -> Result<Self, Error> {
        let auth = auth.only(listener.tokens.as_deref());
        let opened = listener.tls.as_ref().map(|tls| Certificates::open(key.clone(), tls, auth.is_open()));
        let certificates = opened.transpose().map_err(Error::Tls)?;
        let is_open = |address: &Address| auth.is_open() && !listener.asks_certificate() && !address.is_local();
        if is_open(&listener.address) {
            return Err(Error::Open(listener.address.clone()));
        }
        let (socket, address) = Socket::of(&listener.address, handed).await?;
        if is_open(&address) {
            return Err(Error::Open(address));
        }
        if certificates.is_some() && matches!(socket, Socket::Unix(_)) {
            return Err(Error::Tls(format!("{key}: has no meaning at a Unix socket, and {address} is one; remove it")));
        }
        let (is_tls, asks_token) = (certificates.is_some(), auth.asks_token());
        let place = Place { address, is_tls, faces: listener.faces, asks_token };
        Ok(Self { listener: listener.clone(), socket, place, certificates })
    }

    /// What it asks for, of connections that are counted with those of other doors.
    pub(super) fn asks(&self, serving: &Serving<'_>) -> Asks {
        let auth = serving.config.auth.only(self.listener.tokens.as_deref());
        let room = serving.bounds.room.beside(asks_credential(&self.listener, &auth));
        let (hosts, origins) = (&self.listener.allowed_hosts, &self.listener.allowed_origins);
        let guard = match &self.place.address {
            Address::Tcp(address) => GuardLayer::new(*address, hosts, origins),
            Address::Unix(_) | Address::Handed(_) => GuardLayer::of_socket(hosts, origins),
        };
        Asks { authenticate: AuthenticateLayer::new(&auth, Some(serving.issuers.clone())), room, guard }
    }

    /// Serves its connections, over TLS where there is a certificate.
    pub(super) fn serve(self, asks: Asks, serving: &Serving<'_>) {
        let Self { listener, socket, certificates, .. } = self;
        let Asks { authenticate, room, guard } = asks;
        let socket = match socket {
            Socket::Unix(socket) => Socket::Unix(socket.with_others(&room)),
            socket => socket,
        };
        let face = serving.face.serving(listener.faces, authenticate.open());
        serving.faces.spawn_until_end(expire(authenticate.clone(), serving.face.clone()));
        let (patience, level) = (serving.patience.clone(), serving.faces.clone());
        let pages = ConnectLayer(serving.connect.clone());
        let bounds = listener::Bounds { room, ..serving.bounds.clone() };
        let (socket, certificates) = match (socket, certificates) {
            (Socket::Tcp(socket), Some(certificates)) => (socket, certificates),
            (socket, _) => {
                let service = move |arrival: &Arrival| {
                    let authenticate = authenticate.layer(face.on(arrival)).of(arrival.peer(), whence(arrival));
                    guard.layer(pages.layer(authenticate))
                };
                return match socket {
                    Socket::Tcp(socket) => {
                        serving.faces.spawn(listener::serve(socket, service, patience, bounds, level));
                    }
                    Socket::Unix(socket) => {
                        serving.faces.spawn(listener::serve(socket, service, patience, bounds, level));
                    }
                };
            }
        };
        let asks = listener.asks_certificate() && !serving.config.auth.allow_unauthenticated;
        let asks = asks.then(|| authenticate.clone());
        let service = move |arrival: &Arrival| {
            let inner = face.on(arrival);
            let otherwise = authenticate.layer(inner.clone()).of(arrival.peer(), whence(arrival));
            let certified = arrival.certified().map(|principal| {
                let grants = authenticate.grants_of(&principal);
                Credential { principal, grants, revocation: Revocation::never(), expires: None }
            });
            guard.layer(pages.layer(Certified::new(certified, asks.clone(), otherwise, inner)))
        };
        serving.faces.spawn(listener::serve_tls(socket, certificates, service, patience, bounds, level));
    }
}

/// Tells where the requests of a connection come from.
fn whence(arrival: &Arrival) -> impl Fn(&HeaderMap) -> Option<IpAddr> + Send + Sync + 'static {
    let arrival = arrival.clone();
    move |headers| arrival.client(headers)
}

/// Ends the sessions and streams of those whose tokens expire, when they do.
async fn expire(authenticate: AuthenticateLayer, face: McpService) {
    let mut since = SystemTime::now();
    loop {
        let (gone, now) = authenticate.expired(since).await;
        since = now;
        face.end_revoked();
        let tokens = gone.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
        tracing::info!(tokens, "tokens expired; their sessions and streams have ended");
    }
}

/// Whether clients of a listener are to show who they are, where these tokens count.
pub(super) fn asks_credential(listener: &Listener, auth: &Auth) -> bool {
    auth.asks_token() || listener.asks_certificate()
}

/// The connections of clients: fewer than there are files, so that upstreams, children and probes always find some, and fewer than
/// half of the memory allows. Shares are reckoned of this number, so that one client never takes all of either.
pub(crate) fn bounds(config: &Config, budget: &Budget, refusals: &Refusals) -> listener::Bounds {
    let is_child = |one: &&upstream::config::Config| one.transport.child().is_some();
    let instances = config.upstreams.iter().filter(is_child).map(|one| match one.sharing {
        Sharing::Shared | Sharing::OwnSessions => 1,
        _ => 1 + one.max_instances,
    });
    let children = instances.sum::<usize>() * FILES_PER_CHILD;
    let most = handles::for_clients(handles::limit(), children).min(listener::connections_within(budget));
    let room = Connections::new(most, false, config.server.trusted_proxies.clone());
    listener::Bounds { room, budget: budget.clone(), refusals: refusals.clone(), face: Face::new("http") }
}

/// Listens at an address; says which one it is.
pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |cause| Error::Listen { address: Address::Tcp(address), cause };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// What can be done about an address that cannot be listened on.
fn hint(address: &Address, cause: &io::Error) -> String {
    let hint = match cause.kind() {
        io::ErrorKind::AddrInUse => {
            "stop the process that listens there, or use another address (--listen, [[server.listeners]]; for probes and metrics --admin)"
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address",
        io::ErrorKind::PermissionDenied if address.port().is_some() => "use a port from 1024 on",
        _ => return cause.to_string(),
    };
    format!("{cause}; {hint}")
}

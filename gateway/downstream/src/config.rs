//! What the clients' side may be told: checked values, made from the files by `config`.

pub use super::listen::{Network, Tls};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The face towards clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where `serve` listens; at least one.
    pub listeners: Vec<Listener>,
    /// Whether they are written one by one, and not as `[server] listen`.
    pub lists_listeners: bool,
    /// The path of the Streamable HTTP endpoint; begins with `/`.
    pub path: String,
    /// Whether clients of HTTP+SSE are served, at `/sse` and `/message`, where a listener does not say otherwise.
    pub legacy_sse: bool,
    /// Whether clients are served over WebSocket, at `/ws`, where a listener does not say otherwise.
    pub websocket: bool,
    /// Browser origins that may call, lower case, where a listener does not say otherwise.
    pub allowed_origins: Vec<String>,
    /// Host names that may be asked for, lower case, where a listener does not say otherwise.
    pub allowed_hosts: Vec<String>,
    /// The address by which clients reach the gateway, where that is not the one that it listens on.
    pub public_url: Option<PublicUrl>,
    /// Proxies that say for whom they ask.
    pub trusted_proxies: Vec<Network>,
    /// The largest message that is read from a client, in bytes.
    pub max_body: usize,
    /// What all peers together may make the gateway keep, in bytes; `None`: a half of what the process may have.
    pub memory_limit: Option<usize>,
    /// From the first byte of a request to the end of its headers.
    pub header_read_timeout: Duration,
    /// A comment is sent at least so often on every open stream.
    pub sse_keepalive: Duration,
    /// `serverInfo.name`.
    pub name: String,
    /// Put before the merged instructions of the upstreams.
    pub instructions: String,
    /// Sessions of handshake clients.
    pub session: Session,
    /// How long calls are still taken once the gateway is told to end: whoever sends them hears first that it is no longer ready.
    pub pre_stop_delay: Duration,
    /// How long calls may go on once no more are taken.
    pub shutdown_grace: Duration,
    /// How long a gateway that clients have started for themselves waits for the next one once the last has gone.
    pub linger: Duration,
    /// Questions of upstreams to clients.
    pub questions: Questions,
    /// Whether the key that seals logins lies in the keyring of the system.
    pub keyring: bool,
    /// Where what must outlast the process is kept; `None` where the environment does not say.
    pub state_folder: Option<PathBuf>,
}

impl Config {
    /// `[server.shutdown]`.
    pub fn shutdown(&self) -> [Duration; 3] {
        [self.pre_stop_delay, self.shutdown_grace, self.linger]
    }

    /// The paths of the endpoint, and those of each older transport that some listener serves; clients begin at the first of each.
    pub fn paths(&self) -> Vec<Vec<&str>> {
        let serves = |face: fn(&Faces) -> bool| self.listeners.iter().any(|listener| face(&listener.faces));
        let sse = serves(|faces| faces.sse).then(|| vec![Faces::SSE_PATH, Faces::MESSAGE_PATH]);
        let websocket = serves(|faces| faces.websocket).then(|| vec![Faces::WEBSOCKET_PATH]);
        [Some(vec![&*self.path]), sse, websocket].into_iter().flatten().collect()
    }

    /// What is served where a listener does not say otherwise.
    pub fn faces(&self) -> Faces {
        Faces { mcp: true, sse: self.legacy_sse, websocket: self.websocket }
    }
}

/// The address of the gateway for its clients, behind whatever stands before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// `https://host` or `https://host:port`, lower case.
    pub origin: String,
    /// What stands before the paths of the gateway: empty, or `/prefix`.
    pub prefix: String,
}

impl PublicUrl {
    /// The authority: the host, with its port where it has one.
    pub fn host(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, host)| host)
    }

    /// A page that was served there may call, and a request may name that host: at a listener that may be asked for few names, too.
    pub fn opens(&self, listener: &mut Listener) {
        let is_local = matches!(listener.address, Address::Tcp(address) if address.ip().is_loopback());
        if is_local || !listener.allowed_hosts.is_empty() {
            listener.allowed_hosts.push(self.host().to_owned());
        }
        listener.allowed_origins.push(self.origin.clone());
    }
}

impl std::fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.origin, self.prefix)
    }
}

/// An address where clients are served, and what is served there to whom.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The address.
    pub address: Address,
    /// The certificate that clients are shown; `None`: they are served without TLS.
    pub tls: Option<Tls>,
    /// What is served.
    pub faces: Faces,
    /// The names of the tokens that count; `None`: all. Of an empty list none counts, and none is asked for.
    pub tokens: Option<Vec<Arc<str>>>,
    /// Browser origins that may call, lower case; empty means those derived from the address.
    pub allowed_origins: Vec<String>,
    /// Host names that may be asked for, lower case; empty means those derived from the address.
    pub allowed_hosts: Vec<String>,
}

impl Listener {
    /// One at an address, for all clients, of everything.
    pub fn at(address: SocketAddr) -> Self {
        let (allowed_origins, allowed_hosts) = (Vec::new(), Vec::new());
        let address = Address::Tcp(address);
        Self { address, tls: None, faces: Faces::ALL, tokens: None, allowed_origins, allowed_hosts }
    }

    /// Whether clients may show certificates that say who they are.
    pub fn asks_certificate(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }
}

/// Where connections come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A port.
    Tcp(SocketAddr),
    /// A socket of this machine, for its user and for root.
    Unix(PathBuf),
    /// What the service manager hands over under this name; without a name, all that no other listener names.
    Handed(Option<Arc<str>>),
}

impl Address {
    /// The port; `None` where it is no port.
    pub fn port(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) | Self::Handed(_) => None,
        }
    }

    /// Whether nobody on another machine reaches it. What is handed over is known at the start.
    pub fn is_local(&self) -> bool {
        self.port().is_none_or(|address| address.ip().is_loopback())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Handed(Some(name)) => write!(f, "systemd:{name}"),
            Self::Handed(None) => f.write_str("systemd"),
        }
    }
}

/// Which of the transports over HTTP are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faces {
    /// Streamable HTTP, at the path of the endpoint.
    pub mcp: bool,
    /// HTTP+SSE, at `/sse` and `/message`.
    pub sse: bool,
    /// WebSocket, at `/ws`.
    pub websocket: bool,
}

impl Faces {
    /// All of them.
    pub const ALL: Self = Self { mcp: true, sse: true, websocket: true };
    /// Where a client of HTTP+SSE opens its stream.
    pub const SSE_PATH: &str = "/sse";
    /// Where it posts its messages.
    pub const MESSAGE_PATH: &str = "/message";
    /// Where a client asks for a WebSocket.
    pub const WEBSOCKET_PATH: &str = "/ws";

    /// What they are called.
    pub fn names(self) -> Vec<&'static str> {
        let named = [(self.mcp, "mcp"), (self.sse, "sse"), (self.websocket, "ws")];
        named.into_iter().filter(|(is_served, _)| *is_served).map(|(_, name)| name).collect()
    }
}

/// Questions of upstreams to clients, and the calls that wait for their answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Questions {
    /// The most calls that wait for an answer at once, parked or live.
    pub max_open: usize,
    /// The most of them for one principal.
    pub max_per_principal: usize,
    /// How often a stateless upstream may ask a handshake client during one call.
    pub max_rounds: usize,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// Upstreams whose answers are waited for differently.
    pub timeouts: Vec<(Arc<str>, Duration)>,
    /// Whether the person is told which upstream asks.
    pub names_upstream: bool,
}

impl Questions {
    /// How long an answer to this upstream is waited for.
    pub fn timeout_of(&self, upstream: &str) -> Duration {
        let own = self.timeouts.iter().find(|(name, _)| **name == *upstream);
        own.map_or(self.timeout, |(_, timeout)| *timeout)
    }
}

impl Default for Questions {
    fn default() -> Self {
        Self {
            max_open: 1024,
            max_per_principal: 64,
            max_rounds: 10,
            timeout: Duration::from_secs(600),
            timeouts: Vec::new(),
            names_upstream: true,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listeners: vec![Listener::at(SocketAddr::from(([127, 0, 0, 1], 8808)))],
            lists_listeners: false,
            path: "/mcp".to_owned(),
            legacy_sse: true,
            websocket: true,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            public_url: None,
            trusted_proxies: Vec::new(),
            max_body: 16 << 20,
            memory_limit: None,
            header_read_timeout: Duration::from_secs(10),
            sse_keepalive: Duration::from_secs(15),
            name: "trunkline".to_owned(),
            instructions: String::new(),
            session: Session::default(),
            pre_stop_delay: Duration::ZERO,
            shutdown_grace: Duration::from_secs(25),
            linger: Duration::from_secs(30),
            questions: Questions::default(),
            keyring: false,
            state_folder: None,
        }
    }
}

/// Sessions of handshake clients over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Whether a request without a session id is refused; if not, no id is ever issued.
    pub required: bool,
    /// A session without call and stream ends after this.
    pub idle_timeout: Duration,
    /// The most sessions at once.
    pub max: usize,
    /// Bytes kept per stream for `Last-Event-ID`.
    pub resume_buffer: usize,
    /// Whether the sessions that clients have with HTTP upstreams outlive a restart.
    pub resume_upstream: bool,
    /// What seals the state that clients carry for us: the first seals, all open. Empty: made once, and kept in the folder of
    /// our state.
    pub signing_keys: Vec<SigningKey>,
}

/// A secret that is never shown.
#[derive(Clone, PartialEq)]
pub struct SigningKey(Arc<str>);

impl SigningKey {
    /// The shortest that is taken, in bytes.
    pub const BYTES_MIN: usize = 32;

    /// A key of a text; `None` where it is too short.
    pub fn new(text: impl Into<Arc<str>>) -> Option<Self> {
        Some(Self(text.into())).filter(|key| key.0.len() >= Self::BYTES_MIN)
    }

    /// The secret.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

impl Default for Session {
    fn default() -> Self {
        Self {
            required: true,
            idle_timeout: Duration::from_secs(30 * 60),
            max: 10_000,
            resume_buffer: 1 << 20,
            resume_upstream: true,
            signing_keys: Vec::new(),
        }
    }
}

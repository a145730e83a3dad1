//! How an upstream is reached.

use super::reach::Reach;
use super::trust::Trust;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// How an upstream is reached.
#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A child process that speaks on its stdin and stdout.
    Stdio {
        /// The program, a path or a name on the child's `PATH`.
        command: String,
        /// Its arguments, variables already filled in.
        args: Vec<String>,
        /// The whole environment of the child, but for its mark: nothing else is inherited.
        env: Vec<(OsString, OsString)>,
        /// Its working directory; `None` means ours.
        cwd: Option<PathBuf>,
    },
    /// A Streamable HTTP endpoint.
    Http(Remote),
    /// A WebSocket.
    WebSocket(Remote),
    /// An endpoint of HTTP+SSE (2024-11-05): a stream of events down, POSTs up.
    Sse(Remote),
    /// A connection with one message a line, as on the stdin and stdout of a child.
    Lines(Place),
}

/// An upstream that is reached by HTTP, at least at first.
#[derive(Clone, PartialEq)]
pub struct Remote {
    /// `http`, `https`, `ws` or `wss`, without credentials in it.
    pub url: http::Uri,
    /// Sent with every request; the values are marked sensitive.
    pub headers: http::HeaderMap,
    /// The socket of this machine where it listens, in place of the host of the URL.
    pub socket: Option<PathBuf>,
    /// What it is secured with besides the authorities of the platform.
    pub trust: Trust,
    /// The proxy that leads there.
    pub proxy: Option<Proxy>,
    /// Which addresses its host may stand for.
    pub reach: Reach,
}

/// An HTTP proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Proxy {
    /// Its name, or its address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What it is shown; marked sensitive.
    pub credentials: Option<http::HeaderValue>,
    /// Whether the environment names it, and not the upstream's own section.
    pub is_of_environment: bool,
}

impl Remote {
    /// At the host of a URL.
    pub fn new(url: http::Uri, headers: http::HeaderMap) -> Self {
        Self { url, headers, socket: None, trust: Trust::default(), proxy: None, reach: Reach::Written }
    }

    fn shown(&self, f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
        f.debug_struct(word)
            .field("host", &self.url.authority().map(http::uri::Authority::as_str))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// Header values and the query may hold secrets, so they are never shown.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown(f, "Remote")
    }
}

/// Where a connection with one message a line leads.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// To a socket of this machine.
    Socket(PathBuf),
    /// To a host, by its name or its address without brackets, and a port.
    Host(String, u16),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
            Self::Host(name, port) => write!(f, "tcp:{name}:{port}"),
        }
    }
}

/// How a child is started.
#[derive(Clone, Copy)]
pub struct ChildCommand<'a> {
    /// The program, a path or a name on the child's `PATH`.
    pub command: &'a str,
    /// Its arguments.
    pub args: &'a [String],
    /// Its whole environment, but for its mark.
    pub env: &'a [(OsString, OsString)],
    /// Its working directory; `None` means ours.
    pub cwd: Option<&'a Path>,
}

impl Transport {
    /// The command of a child; `None` for an upstream on the network.
    pub fn child(&self) -> Option<ChildCommand<'_>> {
        match self {
            Self::Stdio { command, args, env, cwd } => Some(ChildCommand { command, args, env, cwd: cwd.as_deref() }),
            _ => None,
        }
    }

    /// How an upstream is reached by HTTP; `None` for others.
    pub fn remote(&self) -> Option<&Remote> {
        match self {
            Self::Http(remote) | Self::Sse(remote) | Self::WebSocket(remote) => Some(remote),
            Self::Stdio { .. } | Self::Lines(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn remote_mut(&mut self) -> Option<&mut Remote> {
        match self {
            Self::Http(remote) | Self::Sse(remote) | Self::WebSocket(remote) => Some(remote),
            Self::Stdio { .. } | Self::Lines(_) => None,
        }
    }

    /// What carries its messages, as OpenTelemetry calls that, and the host and port where there is one.
    pub fn network(&self) -> (&'static str, Option<(&str, u16)>) {
        match self {
            Self::Stdio { .. } => ("pipe", None),
            Self::Lines(Place::Socket(_)) => ("unix", None),
            Self::Lines(Place::Host(host, port)) => ("tcp", Some((host, *port))),
            Self::Http(remote) | Self::Sse(remote) | Self::WebSocket(remote) if remote.socket.is_none() => {
                let is_tls = matches!(remote.url.scheme_str(), Some("https" | "wss"));
                let port = remote.url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
                ("tcp", remote.url.host().map(|host| (host, port)))
            }
            Self::Http(_) | Self::Sse(_) | Self::WebSocket(_) => ("unix", None),
        }
    }

    /// The word for it in configuration, lines and metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::WebSocket(_) => "websocket",
            Self::Lines(Place::Socket(_)) => "unix",
            Self::Lines(Place::Host(..)) => "tcp",
        }
    }
}

/// Arguments, environment, header values and queries may hold secrets, so they are never shown.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.iter().map(|(name, _)| name).collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
            Self::Http(remote) | Self::Sse(remote) | Self::WebSocket(remote) => remote.shown(f, self.word()),
            Self::Lines(place) => f.debug_tuple("Lines").field(place).finish(),
        }
    }
}

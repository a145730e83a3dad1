//! How an upstream is reached.

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
    Http {
        /// `http` or `https`, without credentials in it.
        url: http::Uri,
        /// Sent with every request; the values are marked sensitive.
        headers: http::HeaderMap,
    },
    /// A WebSocket.
    WebSocket {
        /// `ws` or `wss`, without credentials in it.
        url: http::Uri,
        /// Sent with the request that opens it; the values are marked sensitive.
        headers: http::HeaderMap,
    },
    /// An endpoint of HTTP+SSE (2024-11-05): a stream of events down, POSTs up.
    Sse {
        /// Where the stream is: `http` or `https`, without credentials in it.
        url: http::Uri,
        /// Sent with every request; the values are marked sensitive.
        headers: http::HeaderMap,
    },
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
            Self::Http { .. } | Self::Sse { .. } | Self::WebSocket { .. } => None,
        }
    }

    /// The address of an upstream on the network, and the headers for it; `None` for a child.
    pub fn remote(&self) -> Option<(&http::Uri, &http::HeaderMap)> {
        match self {
            Self::Stdio { .. } => None,
            Self::Http { url, headers } | Self::Sse { url, headers } | Self::WebSocket { url, headers } => {
                Some((url, headers))
            }
        }
    }

    /// The word for it in configuration, lines and metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
            Self::WebSocket { .. } => "websocket",
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
            Self::Http { url, headers } | Self::Sse { url, headers } | Self::WebSocket { url, headers } => f
                .debug_struct(self.word())
                .field("host", &url.authority().map(http::uri::Authority::as_str))
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish_non_exhaustive(),
        }
    }
}

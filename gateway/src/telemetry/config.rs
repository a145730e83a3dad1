//! What is recorded and where it can be looked at: checked values, made from the files by `config`.

use std::net::SocketAddr;

/// The address of probes and metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// `None` means that there is no such address.
    pub listen: Option<SocketAddr>,
}

impl Default for Admin {
    fn default() -> Self {
        Self { listen: Some(SocketAddr::from(([127, 0, 0, 1], 9808))) }
    }
}

/// The log, always on stderr.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// A filter in the syntax of `RUST_LOG`, known to be well formed.
    pub level: String,
    /// How a line looks.
    pub format: Format,
    /// The level at which lines of upstreams' stderr are logged; `None` drops them.
    pub upstream_stderr: Option<tracing::Level>,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: Format::Auto, upstream_stderr: Some(tracing::Level::INFO) }
    }
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}

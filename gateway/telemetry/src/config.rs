//! What is recorded and where it can be looked at: checked values, made from the files by `config`.

use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the gateway is looked at and ordered about.
#[derive(Clone, Debug, PartialEq)]
pub struct Admin {
    /// The address of probes and metrics; `None` means that there is no such address.
    pub listen: Option<SocketAddr>,
    /// The names that it may be asked for by, beside those that follow from the address. Probes and metrics have any.
    pub allowed_hosts: Vec<String>,
    /// What orders and details cost there; without one they are given at the control socket alone.
    pub token: Option<AdminToken>,
    /// Where the control socket may be, and for which configuration; `None` means that there is none.
    pub control: Option<Control>,
}

/// A bearer token.
#[derive(Clone, PartialEq)]
pub struct AdminToken(Box<str>);

impl AdminToken {
    /// A shorter one could be guessed.
    pub const CHARACTERS_MIN: usize = 16;

    /// `None` where it is too short, or cannot stand in a header.
    pub fn new(text: &str) -> Option<Self> {
        let is_sound = text.len() >= Self::CHARACTERS_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_sound.then(|| Self(text.into()))
    }

    /// For whoever sends it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// It is a secret.
impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(…)")
    }
}

/// Where a control socket may be, and what it is found by.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// The first that can have one has it.
    pub folders: Vec<PathBuf>,
    /// The files of the configuration.
    pub files: Vec<PathBuf>,
}

impl Default for Admin {
    fn default() -> Self {
        let listen = Some(SocketAddr::from(([127, 0, 0, 1], 9808)));
        Self { listen, allowed_hosts: Vec::new(), token: None, control: None }
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
    /// Whether each call has a line.
    pub calls: bool,
}

impl Default for Log {
    fn default() -> Self {
        let upstream_stderr = Some(tracing::Level::INFO);
        Self { level: "info".to_owned(), format: Format::Auto, upstream_stderr, calls: false }
    }
}

/// An upstream that is configured and not there: something that it needs was missing when the configuration was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// What was missing or wrong.
    pub why: String,
    /// What to do about it.
    pub advice: String,
}

/// What a configuration says, key by key: for whoever looks. Where a value stands makes no difference between two configurations.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Each key that is set.
    pub settings: Arc<[Setting]>,
    /// Stands for all values, those that references lead to among them; those of `[log]` are left out.
    pub digest: [u8; 32],
}

impl Written {
    /// A number of its keys and values as they are shown, so that nobody who sees the number can search for a secret by it.
    pub fn number(&self) -> u64 {
        let mut hash = Sha256::new();
        for Setting { key, value, .. } in &*self.settings {
            hash.update(format!("{key}={value}\n"));
        }
        hash.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// What a gateway is known by to those that would share it: its values, its folder and its version, without a word of them.
    pub fn identity(&self) -> String {
        let folder = std::env::current_dir().unwrap_or_default();
        let mut hash = Sha256::new_with_prefix(self.digest);
        hash.update(folder.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(env!("CARGO_PKG_VERSION"));
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A key that is set.
#[derive(Clone, Debug, Serialize)]
pub struct Setting {
    /// The key, as `server.listen`.
    pub key: String,
    /// Its value as it is written; one that may be a secret is not shown.
    pub value: serde_json::Value,
    /// The file and line, the variable or the flag that has it.
    pub source: String,
}

impl PartialEq for Written {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What is counted beside what always is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Whether calls are counted by tool.
    pub per_tool: bool,
    /// Whether they are timed by tool, too.
    pub tool_durations: bool,
}

/// How spans of calls are made; where they go is another's to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// What the gateway is called in traces.
    pub service: String,
    /// What else is said of it.
    pub resource: Vec<(String, String)>,
    /// Which traces have spans.
    pub sampler: Sampler,
}

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Which part of them, from 0 to 1.
    pub ratio: f64,
    /// Whether a caller that says so decides it.
    pub is_parent_based: bool,
}

impl Sampler {
    /// Whether a span of this trace is recorded; its caller may have decided that.
    pub(super) fn samples(self, trace: &[u8; 16], parent: Option<bool>) -> bool {
        if let Some(is_sampled) = parent.filter(|_| self.is_parent_based) {
            return is_sampled;
        }
        let [.., a, b, c, d, e, f, g, h] = *trace;
        // As OpenTelemetry has it: a trace that is recorded at one ratio is so at every higher one.
        let place = (u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1) as f64;
        self.ratio >= 1.0 || place < self.ratio * (1u64 << 63) as f64
    }
}

impl Default for Sampler {
    fn default() -> Self {
        Self { ratio: 1.0, is_parent_based: true }
    }
}

/// The file that has a line for each call, order and configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// The file; `None` means that there is none.
    pub file: Option<PathBuf>,
    /// What it has of the arguments of calls.
    pub arguments: Arguments,
    /// A file that is longer is put aside.
    pub max_size: usize,
    /// So many that were put aside are kept.
    pub keep: usize,
}

impl Default for Audit {
    fn default() -> Self {
        Self { file: None, arguments: Arguments::Hash, max_size: 100 << 20, keep: 10 }
    }
}

/// What the audit has of the arguments of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// Nothing.
    None,
    /// Their SHA-256.
    Hash,
    /// All of them, without the secrets of the configuration.
    Full,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text on a terminal and under `stdio`, JSON otherwise.
    #[default]
    Auto,
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}

//! All that the gateway may be told, checked.

use crate::secrets::Secrets;
use crate::{downstream, policy, router, telemetry, upstream};

/// All that the gateway may be told; every value is checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `[server]`: the face towards clients.
    pub server: downstream::config::Config,
    /// `[admin]`: the address of probes and metrics.
    pub admin: telemetry::config::Admin,
    /// `[log]`.
    pub log: telemetry::config::Log,
    /// `[audit]`: the file that has a line for each call and order.
    pub audit: telemetry::config::Audit,
    /// `[metrics]`.
    pub metrics: telemetry::config::Metrics,
    /// `[traces]`: how spans of calls are made, and where they go.
    pub traces: Option<(telemetry::config::Traces, upstream::config::Remote)>,
    /// `[auth]`: who may call.
    pub auth: policy::config::Auth,
    /// `[redact]`: what is taken out of texts.
    pub redact: policy::config::Redaction,
    /// `[limits]`: how much one client may have.
    pub limits: policy::config::Limits,
    /// `[naming]`: how many names become one set.
    pub naming: router::config::Naming,
    /// `[catalog]`: how lists are served.
    pub catalog: router::config::Catalog,
    /// `[catalog]`: whether what upstreams offer is kept for the next start.
    pub cache: upstream::config::Cache,
    /// `[extensions]`: what becomes of extensions that the gateway does not know.
    pub extensions: router::config::Unknown,
    /// The upstreams that are switched on, in the order of the files.
    pub upstreams: Vec<upstream::config::Config>,
    /// The names of those that are switched off.
    pub disabled: Vec<std::sync::Arc<str>>,
    /// Those that are switched on and left out, with the reason.
    pub left_out: Vec<telemetry::config::LeftOut>,
    /// What is known of them: enough to judge it, and not to start it.
    pub lacking: Vec<upstream::config::Config>,
    /// What is written, and where.
    pub written: telemetry::config::Written,
    /// What seals logins: the first seals, all open. Empty: a key of their own in the folder of our state.
    pub login_keys: Vec<Vec<u8>>,
    /// What nobody may read in a log, an error or a page.
    pub secrets: Secrets,
}

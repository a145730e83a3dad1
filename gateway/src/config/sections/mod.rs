//! The sections of the configuration, one file each.

// `[auth]`: static tokens, and what their bearers may see.
mod auth;
// `[auth.roles.NAME]`: what is admitted, and to whom it is given.
mod roles;
// `[limits]`, and rates as people write them.
mod limits;
// `[defaults]`: what holds for every upstream that does not say otherwise.
mod defaults;
// Where an upstream is, as its `url` says it: a URL, a socket of this machine, or a host and a port.
mod address;
// How an upstream is reached: from `command` or `url` to a checked transport.
mod transport;
// `auth` of an upstream: what it is shown.
mod credentials;
// `[upstreams.NAME]` and the servers of hosts' files: every upstream, in the order of the files.
mod upstreams;
// `[[server.listeners]]`: where clients are served, and what is served there to whom.
pub(crate) mod listeners;
// By which proxy an upstream is reached.
mod proxy;
// `[traces]`: whether calls have spans, where these go, and what of that OpenTelemetry's variables say.
mod traces;
// The sections that say how the gateway itself is: server, admin, log, naming, catalog.
pub(crate) mod settings;

use super::doc::TableDoc;
use super::source::host::HOST_DOC;

pub(crate) use auth::auth;
pub(crate) use defaults::Defaults;
pub(crate) use limits::limits;
pub(crate) use traces::traces;
pub(crate) use upstreams::{Upstreams, needs_issuers, upstreams};

/// All described tables, in the order of the reference page.
pub(crate) const TABLES: [&TableDoc; 36] = [
    &settings::SERVER_DOC,
    &listeners::LISTENERS_DOC,
    &listeners::TLS_DOC,
    &settings::SESSION_DOC,
    &settings::SHUTDOWN_DOC,
    &settings::QUESTIONS_DOC,
    &settings::ADMIN_DOC,
    &defaults::DEFAULTS_DOC,
    &defaults::HEALTH_DOC,
    &defaults::BREAKER_DOC,
    &defaults::RESTART_DOC,
    &settings::NAMING_DOC,
    &settings::CATALOG_DOC,
    &settings::EXTENSIONS_DOC,
    &auth::AUTH_DOC,
    &auth::TOKENS_DOC,
    &auth::ISSUERS_DOC,
    &auth::RULES_DOC,
    &auth::INTROSPECTION_DOC,
    &roles::CERTIFICATES_DOC,
    &roles::ROLES_DOC,
    &limits::LIMITS_DOC,
    &settings::REDACT_DOC,
    &settings::LOG_DOC,
    &settings::AUDIT_DOC,
    &settings::METRICS_DOC,
    &traces::TRACES_DOC,
    &traces::TRACES_TLS_DOC,
    &upstreams::UPSTREAM_DOC,
    &credentials::CREDENTIALS_DOC,
    &upstreams::IDENTITY_DOC,
    &credentials::CREDENTIALS_TLS_DOC,
    &upstreams::TOOLS_DOC,
    &upstreams::OVERRIDE_DOC,
    &transport::UPSTREAM_TLS_DOC,
    &HOST_DOC,
];

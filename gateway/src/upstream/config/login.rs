//! An upstream that a person logs in to (OAuth): what is known of it before, and where the login is kept.

use super::reach::Reach;
use super::transport::Remote;
use http::HeaderMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a person logs in to.
#[derive(Clone, PartialEq)]
pub struct Login {
    /// The name of the upstream.
    pub upstream: Arc<str>,
    /// Whether nothing says that it needs a login, unless it says so itself.
    pub is_found: bool,
    /// Where it is.
    pub at: Remote,
    /// What it is called as a resource (RFC 8707), by its URL.
    pub resource: String,
    /// The same where the configuration says it: it is sent in place of what the upstream says.
    pub said_resource: Option<String>,
    /// Where URLs may lead that it names.
    pub reach: Reach,
    /// The only authorization server that is taken, where one is written.
    pub issuer: Option<String>,
    /// Who the gateway is there, where it is known there already.
    pub client: Option<Registered>,
    /// What the token is to allow; empty: what the upstream says.
    pub scopes: Vec<String>,
    /// The folder of our state, in which logins are kept.
    pub state: Option<PathBuf>,
    /// The secrets that seal them, where they are configured.
    pub keys: Vec<Vec<u8>>,
}

/// A client that an authorization server knows.
#[derive(Clone, PartialEq)]
pub struct Registered {
    /// Who it is there.
    pub id: String,
    /// What it proves that by.
    pub secret: Option<String>,
    /// Whether the secret stands in the body of a request, and not in a header.
    pub is_in_body: bool,
}

impl Login {
    /// One that is kept for an upstream that may stand in no configuration any more: all that is known of it is its name and its URL.
    pub(crate) fn stored(upstream: &str, resource: &str, (state, keys): (&Path, &[Vec<u8>])) -> Option<Self> {
        let at = Remote::new(resource.parse().ok()?, HeaderMap::new());
        let host = at.url.host()?;
        let reach = match () {
            () if Reach::is_machine(host) => Reach::Machine,
            () if Reach::Internet.admits_host(host.trim_start_matches('[').trim_end_matches(']')) => Reach::Internet,
            () => Reach::Network,
        };
        Some(Self {
            upstream: upstream.into(),
            is_found: true,
            at,
            resource: resource.to_owned(),
            said_resource: None,
            reach,
            issuer: None,
            client: None,
            scopes: Vec::new(),
            state: Some(state.to_owned()),
            keys: keys.to_vec(),
        })
    }
}

/// Secrets are never shown.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("at", &self.at).field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

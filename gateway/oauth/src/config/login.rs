//! An upstream that a person logs in to (OAuth): what is known of it before, and where the login is kept.

use http::HeaderMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trunkline_client::config::Reach;
use trunkline_client::config::Remote;

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
    /// Whether it may be known by the document of the gateway itself.
    pub has_document: bool,
    /// What the token is to allow; empty: what the upstream says.
    pub scopes: Vec<String>,
    /// Whether each principal logs in for itself.
    pub is_personal: bool,
    /// Whether that of who calls without a credential is named as such: principals are told apart.
    pub is_told_apart: bool,
    /// The name of the principal whose login it is, where that is one of several.
    pub principal: Option<Arc<str>>,
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
    /// What stands behind `--as` for who calls without a credential.
    pub const ANONYMOUS: &str = "anonymous";

    /// That of one principal, where each has its own; else that of all. Who calls without a credential has what is nobody's in particular.
    pub fn of(&self, principal: &str) -> Self {
        let is_own = self.is_personal && !principal.is_empty();
        Self { principal: is_own.then(|| principal.into()), ..self.clone() }
    }

    /// What a person runs to log in.
    pub fn command(&self) -> String {
        let anonymous = self.is_told_apart.then_some(Self::ANONYMOUS);
        Self::command_of(&self.upstream, self.principal.as_deref().or(anonymous))
    }

    /// What a person runs for a login at an upstream: that of one principal, or that of all.
    pub fn command_of(upstream: &str, principal: Option<&str>) -> String {
        let run = format!("trunkline login {upstream}");
        match principal {
            Some(principal) => format!("{run} --as {}", as_word(principal)),
            None => run,
        }
    }

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
            has_document: false,
            scopes: Vec::new(),
            is_personal: false,
            is_told_apart: false,
            principal: None,
            state: Some(state.to_owned()),
            keys: keys.to_vec(),
        })
    }
}

/// A text as one word of a shell.
fn as_word(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-.:/@%+,".contains(char);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Secrets are never shown.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("at", &self.at).field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_run_names_whose_login_it_is_as_one_word() {
        let shared = Login::stored("up", "https://h.example/mcp", (Path::new("/x"), &[])).unwrap();
        let personal = Login { is_personal: true, ..shared.clone() };
        assert_eq!(shared.of("token:ada").command(), "trunkline login up");
        assert_eq!(personal.of("").command(), "trunkline login up");
        assert_eq!(personal.of("token:ada").command(), "trunkline login up --as token:ada");
        let apart = Login { is_told_apart: true, ..personal.clone() };
        assert_eq!(apart.of("").command(), "trunkline login up --as anonymous");
        assert_eq!(apart.of("token:ada").command(), "trunkline login up --as token:ada");
        let odd = personal.of("oauth:o'hara $(id) https://as.example").command();
        assert_eq!(odd, r"trunkline login up --as 'oauth:o'\''hara $(id) https://as.example'");
    }
}

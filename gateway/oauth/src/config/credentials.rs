//! What an upstream is shown where that is fetched while the gateway runs: a token, and where it comes from.

use super::login::Login;
use std::ffi::OsString;
use std::fmt;
use std::time::Duration;
use trunkline_client::config::Remote;

/// Where the token for an upstream comes from.
#[derive(Clone, PartialEq)]
pub enum Credentials {
    /// From a command.
    Command(TokenCommand),
    /// From an authorization server that knows the gateway as a client.
    Client(Box<ClientCredentials>),
    /// From an authorization server that exchanges the access tokens of clients for it (RFC 8693); for the gateway's own requests as from
    /// [`Self::Client`].
    Exchange(Box<ClientCredentials>),
    /// From an authorization server, after a person has logged in.
    Login(Box<Login>),
}

/// A command that writes a token to its stdout.
#[derive(Clone, PartialEq)]
pub struct TokenCommand {
    /// The program, a path or a name on its `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment, but for its mark.
    pub env: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub timeout: Duration,
}

/// A client of an authorization server (RFC 6749, 4.4).
#[derive(Clone, PartialEq)]
pub struct ClientCredentials {
    /// The token end point, and how it is reached.
    pub endpoint: Remote,
    /// Who the gateway is there.
    pub id: String,
    /// What it proves that by.
    pub secret: Option<String>,
    /// Whether the secret stands in the body of the request, and not in a header.
    pub is_in_body: bool,
    /// What the token is to allow.
    pub scopes: Vec<String>,
    /// For which server the token is (RFC 8707).
    pub resource: Option<String>,
    /// What else the authorization server is told.
    pub params: Vec<(String, String)>,
}

impl Credentials {
    /// Whether each client has a token of its own, for which its access token is exchanged.
    pub fn is_exchange(&self) -> bool {
        matches!(self, Self::Exchange(_))
    }

    /// Whether each principal has a login of its own.
    pub fn is_personal(&self) -> bool {
        matches!(self, Self::Login(login) if login.is_personal)
    }

    /// Principals are told apart: whose login is meant is said also where it is that of who calls without a credential.
    pub fn tell_apart(&mut self) {
        if let Self::Login(login) = self {
            login.is_told_apart = login.is_personal;
        }
    }

    /// The same for a gateway of one client, which has one login.
    #[must_use]
    pub fn of_one_client(mut self) -> Self {
        if let Self::Login(login) = &mut self {
            login.is_personal = false;
        }
        self
    }

    /// All that decides which token it is, piece by piece.
    pub fn parts(&self) -> Vec<Vec<u8>> {
        let bytes = |text: &OsString| text.as_encoded_bytes().to_vec();
        match self {
            Self::Command(TokenCommand { command, args, env, .. }) => {
                let words = [command].into_iter().chain(args).map(|word| word.clone().into_bytes());
                let variables = env.iter().flat_map(|(name, value)| [bytes(name), bytes(value)]);
                words.chain([Vec::new()]).chain(variables).collect()
            }
            Self::Client(client) | Self::Exchange(client) => {
                let ClientCredentials { endpoint, id, scopes, resource, params, .. } = &**client;
                let all = [endpoint.url.to_string(), id.clone(), resource.clone().unwrap_or_default()];
                let params = params.iter().flat_map(|(name, value)| [name.clone(), value.clone()]);
                all.into_iter().chain([scopes.join(" ")]).chain(params).map(String::into_bytes).collect()
            }
            Self::Login(login) => {
                let client = login.client.as_ref().map(|client| client.id.clone()).unwrap_or_default();
                [login.resource.clone(), client, login.scopes.join(" ")].map(String::into_bytes).into()
            }
        }
    }
}

/// Arguments, variables, secrets and parameters are never shown.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => {
                f.debug_struct("Command").field("command", &command.command).finish_non_exhaustive()
            }
            Self::Client(client) | Self::Exchange(client) => {
                f.debug_struct("Client").field("endpoint", &client.endpoint).finish_non_exhaustive()
            }
            Self::Login(login) => login.fmt(f),
        }
    }
}

//! A login that a person makes at a page of the gateway while it runs: the browser comes back to the gateway itself.

use super::authorization::{elsewhere, page, record, scopes};
use super::discovery::discovered;
use crate::config::{Login, Registered};
use crate::health::Cause;
use crate::oauth::callback;
use crate::oauth::client::{Reached, client};
use crate::oauth::grant::{Endpoint, Refused};
use crate::oauth::pkce::ProofKey;
use crate::oauth::record::LoggedIn;
use crate::oauth::resource::Resource;
use crate::oauth::server::Server;
use crate::oauth::store::Store;
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use crate::token_request::unavailable;
use sha2::{Digest, Sha256};

/// A login that waits for what a browser brings back. What was kept before stays until it is finished.
pub struct BegunLogin {
    login: Login,
    resource: Resource,
    server: Server,
    client: Registered,
    is_registered: bool,
    scopes: Vec<String>,
    key: ProofKey,
    redirect: String,
    url: String,
    state: String,
    secrets: mask::Learned,
}

impl BegunLogin {
    /// Finds out where to log in, and becomes a client there whose browsers come back to the gateway.
    pub async fn begin(login: &Login, reached: Reached<'_>, tasks: &Tasks) -> Result<Self, Cause> {
        let store = Store::of(login)?;
        // Whoever cannot keep a login need not begin one.
        private::off_the_workers(|| store.is_writable())?;
        let (resource, server, entry) = discovered((login, Some(reached)), tasks, &|_| ()).await?;
        let (client, is_registered) = client(entry, &server, reached.redirect, tasks).await?;
        let redirect = reached.redirect.to_owned();
        let scopes = scopes(&resource, &server, private::off_the_workers(|| store.read()).ok().flatten());
        let secrets = mask::Learned::new();
        client.secret.iter().for_each(|secret| secrets.note(secret));
        let key = ProofKey::random();
        let (url, state) = page((&server, &client), &resource, &scopes, &key, &redirect)?;
        let login = login.clone();
        Ok(Self { login, resource, server, client, is_registered, scopes, key, redirect, url, state, secrets })
    }

    /// The page of the authorization server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the browser brings back from there.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// The authorization server, as it names itself.
    pub fn issuer(&self) -> &str {
        &self.server.issuer
    }

    /// The origin of its page, where that is another one than its own.
    pub fn elsewhere(&self) -> Option<String> {
        elsewhere(&self.server, &self.server.authorization_endpoint).map(|(page, _)| page)
    }

    /// What it is asked for; empty where that is whatever is usual there.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Takes what the browser brings back, and keeps what is given for it.
    pub async fn finish(self, query: &str, tasks: &Tasks) -> Result<LoggedIn, Cause> {
        let Self { login, resource, server, client, is_registered, scopes, key, redirect, state, secrets, .. } = self;
        let digest = Sha256::digest(state.as_bytes()).into();
        let brought = callback::read(query, &digest).ok_or_else(|| unavailable("the browser brings back no answer"))?;
        let code = brought.from(&server.issuer, server.authorization_response_iss_parameter_supported)?;
        secrets.note(&code);
        let (url, audience) = (&*server.token_endpoint, &*resource.audience);
        let endpoint = Endpoint { login: &login, url, client: &client, is_registered, audience, tasks };
        let given = endpoint.for_code(&code, &key, &redirect).await.map_err(Refused::cause)?;
        let record = record(&login, (resource, server), (client, is_registered), scopes, given);
        record.secrets().for_each(|secret| secrets.note(secret));
        let said = LoggedIn::from(&record);
        let store = Store::of(&login)?;
        let _lock = store.locked().await?;
        private::off_the_workers(|| store.write(&record))
            .map_err(|error| store.unusable("the login cannot be kept", &error.to_string()))?;
        Ok(said)
    }
}

//! A login, from the first question to the kept tokens.

// Whom a person logs in at, and how the gateway becomes a client there.
mod discovery;
// What the authorization server is asked for, the page where that is done, and what is kept of what it gives.
mod authorization;
// A login on another device (RFC 8628).
mod device;
// A login that a person makes at a page of the gateway while it runs.
mod begun;

pub use super::client::Reached;
pub use begun::BegunLogin;

use super::callback::Callback;
use super::client::client;
use super::grant::{Endpoint, Given, Refused};
use super::pkce::ProofKey;
use super::record::LoggedIn;
use super::resource::Resource;
use super::server::Server;
use super::store::Store;
use crate::config::Login;
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use authorization::{elsewhere, page, record, scopes};
use device::DeviceLogin;
use discovery::discovered;
use tokio::sync::mpsc::Receiver;

/// What the person is shown.
#[derive(Debug)]
pub enum Page {
    /// The page to log in at.
    At {
        /// Where it is.
        url: String,
        /// The origins of the page and of the authorization server, where they differ: a person should know both before following the link.
        elsewhere: Option<(String, String)>,
        /// The client that a person has registered there.
        known: Option<String>,
    },
    /// The page, on any device, where this code is to be entered.
    Code {
        /// Where it is.
        url: String,
        /// The code.
        code: String,
        /// As in [`Page::At`].
        elsewhere: Option<(String, String)>,
    },
    /// What was pasted is not the address that the browser was sent back to: what is wrong with it.
    NotPasted(&'static str),
    /// There is none yet: who is being asked for it.
    Asking(String),
}

/// Has a person log in to an upstream: `show` brings the page to the person, who may paste the address that the browser is sent back to. Where
/// no browser opens a code for another device is asked for first. What was kept before stays until the new login is there.
pub async fn log_in(
    login: &Login,
    tasks: &Tasks,
    (has_browser, pasted): (bool, Receiver<String>),
    show: impl Fn(&Page) + Send + Sync,
) -> Result<LoggedIn, Cause> {
    let store = Store::of(login)?;
    // Whoever cannot keep a login need not begin one.
    drop(store.locked().await?);
    private::off_the_workers(|| store.is_writable())?;
    let (resource, server, entry) = discovered((login, None), tasks, &|who| show(&Page::Asking(who))).await?;
    let callback = Callback::open(entry.named_in_redirect(login)).await?;
    let (client, is_registered) = client(entry, &server, &callback.url(), tasks).await?;
    let scopes = scopes(&resource, &server, private::off_the_workers(|| store.read()).ok().flatten());
    let secrets = mask::Learned::new();
    client.secret.iter().for_each(|secret| secrets.note(secret));
    let (url, audience) = (&*server.token_endpoint, &*resource.audience);
    let endpoint = Endpoint { login, url, client: &client, is_registered, audience, tasks };
    let begun = match (&server.device_authorization_endpoint, has_browser) {
        // Where no code is given the browser of another machine does.
        (Some(at), false) => DeviceLogin::begin(&endpoint, at, &scopes).await.ok(),
        _ => None,
    };
    let given = match begun {
        Some(device) => {
            let (url, code) = (device.page().to_owned(), device.code().to_owned());
            show(&Page::Code { elsewhere: elsewhere(&server, &url), url, code });
            device.given(&endpoint).await
        }
        None => {
            let asked = (&server, &resource, &*scopes);
            by_browser(&endpoint, asked, (callback, pasted), &secrets, &show).await?
        }
    };
    let given = given.map_err(Refused::cause)?;
    let record = record(login, (resource, server), (client, is_registered), scopes, given);
    record.secrets().for_each(|secret| secrets.note(secret));
    let said = LoggedIn::from(&record);
    let _lock = store.locked().await?;
    private::off_the_workers(|| store.write(&record))
        .map_err(|error| store.unusable("the login cannot be kept", &error.to_string()))?;
    Ok(said)
}

/// What is given for the code that a browser brings back.
async fn by_browser(
    endpoint: &Endpoint<'_>,
    (server, resource, scopes): (&Server, &Resource, &[String]),
    (callback, pasted): (Callback, Receiver<String>),
    secrets: &mask::Learned,
    show: &(impl Fn(&Page) + Send + Sync),
) -> Result<Result<Given, Refused>, Cause> {
    let redirect = callback.url();
    let key = ProofKey::random();
    let (url, state) = page((server, endpoint.client), resource, scopes, &key, &redirect)?;
    // One that registered itself did so with this very address.
    let known = (!endpoint.is_registered).then(|| endpoint.client.id.clone());
    show(&Page::At { url, elsewhere: elsewhere(server, &server.authorization_endpoint), known });
    let waits_for = (endpoint.login.upstream.clone(), &*state);
    let brought = callback.brought(waits_for, pasted, |why| show(&Page::NotPasted(why)), endpoint.tasks).await?;
    let code = brought.from(&server.issuer, server.authorization_response_iss_parameter_supported)?;
    secrets.note(&code);
    Ok(endpoint.for_code(&code, &key, &redirect).await)
}

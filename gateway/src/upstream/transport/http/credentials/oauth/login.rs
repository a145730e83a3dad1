//! A login, from the first question to the kept tokens.

use super::callback::Callback;
use super::client::{Entry, client, entry};
use super::grant::{Endpoint, Given, Refused};
use super::record::{LoggedIn, Record};
use super::resource::{Resource, resource};
use super::server::{Server, server};
use super::store::Store;
use super::way::{quoted, to};
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::secrets::{mask, private};
use crate::upstream::config::{Login, Registered};
use crate::upstream::transport::http::connection::Origin;
use crate::upstream::transport::http::credentials::granted::unavailable;
use crate::upstream::transport::http::credentials::token::Unissued;
use oauth2::basic::BasicClient;
use oauth2::{AuthUrl, ClientId, CsrfToken, PkceCodeChallenge, RedirectUrl, Scope};
use tokio::sync::mpsc::Receiver;

/// What lets a client have a refresh token at servers of OpenID Connect, and the consent that they want for it.
const OFFLINE: &str = "offline_access";

/// What the person is shown.
#[derive(Debug)]
pub enum Page {
    /// The page to log in at.
    At {
        /// Where it is.
        url: String,
        /// The origins of the page and of the authorization server, where they differ: a person should know both before following the link.
        elsewhere: Option<(String, String)>,
    },
    /// What was pasted is not the address that the browser was sent back to: what is wrong with it.
    NotPasted(&'static str),
}

/// Has a person log in to an upstream: `show` brings the page to the person, who may paste the address that the browser is sent back to. What
/// was kept before stays until the new login is there.
pub async fn log_in(
    login: &Login,
    tasks: &Tasks,
    pasted: Receiver<String>,
    show: impl Fn(&Page) + Send + Sync,
) -> Result<LoggedIn, Cause> {
    let store = Store::of(login)?;
    // Whoever cannot keep a login need not begin one.
    drop(store.locked().await?);
    private::off_the_workers(|| store.is_writable())?;
    let resource = resource(login, tasks).await?;
    let (server, entry) = first_that_will_do(login, &resource, tasks).await?;
    let callback = Callback::open().await?;
    let redirect = callback.url();
    let (client, is_registered) = client(entry, &server, &redirect, tasks).await?;
    let scopes = scopes(&resource, &server, private::off_the_workers(|| store.read()).ok().flatten());
    let secrets = mask::Learned::new();
    client.secret.iter().for_each(|secret| secrets.note(secret));
    let redirect = RedirectUrl::new(redirect).map_err(|_| unavailable("the address of the callback is no URL"))?;
    let (challenge, proof) = PkceCodeChallenge::new_random_sha256();
    let (url, state) = page((&server, &client), &resource, &scopes, challenge, &redirect)?;
    show(&Page::At { url, elsewhere: elsewhere(&server) });
    let brought = callback.brought(state.secret(), pasted, |why| show(&Page::NotPasted(why)), tasks).await?;
    let code = brought.from(&server.issuer, server.authorization_response_iss_parameter_supported)?;
    secrets.note(&code);
    let (url, audience) = (&*server.token_endpoint, &*resource.audience);
    let endpoint = Endpoint { login, url, client: &client, is_registered, audience, tasks };
    let given = endpoint.for_code(&code, proof, &redirect).await.map_err(|why| match why {
        Refused::Over(why) | Refused::Now(Unissued { why, .. }) => {
            Cause::new(why.code(), "no access token: ").then(&why)
        }
    })?;
    let record = record(login, (resource, server), (client, is_registered), scopes, given);
    record.secrets().for_each(|secret| secrets.note(secret));
    let said = LoggedIn::from(&record);
    let _lock = store.locked().await?;
    private::off_the_workers(|| store.write(&record))
        .map_err(|error| store.unusable("the login cannot be kept", &error.to_string()))?;
    Ok(said)
}

/// The first authorization server of the upstream that a person can log in at, and how the gateway becomes its client.
async fn first_that_will_do(login: &Login, resource: &Resource, tasks: &Tasks) -> Result<(Server, Entry), Cause> {
    let mut failed: Option<Cause> = None;
    for issuer in &resource.issuers {
        let found = server(login, resource, issuer, tasks).await.and_then(|server| {
            // It is for the browser; all the same it leads to no scheme of a program, and to nothing that the gateway would not ask itself.
            to(login, "the page of the authorization server", &server.authorization_endpoint)?;
            let entry = entry(login, &server)?;
            Ok((server, entry))
        });
        match found {
            Ok(found) => return Ok(found),
            Err(why) => failed = Some(failed.map_or(why.clone(), |before| before.own("; ").then(&why))),
        }
    }
    Err(failed.unwrap_or_else(|| unavailable("the upstream names no authorization server")))
}

/// The origins of the page and of the authorization server, where they differ.
fn elsewhere(server: &Server) -> Option<(String, String)> {
    let origin = |url: &str| url.parse().ok().and_then(|url: http::Uri| Origin::of(&url));
    let (page, issuer) = (origin(&server.authorization_endpoint)?, origin(&server.issuer)?);
    (page != issuer).then(|| (page.to_string(), issuer.to_string()))
}

/// What is asked for: what the upstream wants, and a refresh token where the authorization server wants to be asked for that.
/// Where the upstream asked for more than the login before allows, that is asked for besides all that it did.
fn scopes(resource: &Resource, server: &Server, before: Option<Record>) -> Vec<String> {
    let mut scopes = resource.scopes.clone();
    for scope in before.filter(|before| !before.wanted.is_empty()).into_iter().flat_map(Record::all_scopes) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    // A login without scopes asks for whatever is usual there.
    let is_offered = server.scopes_supported.iter().any(|scope| scope == OFFLINE);
    if is_offered && !scopes.is_empty() && !scopes.iter().any(|scope| scope == OFFLINE) {
        scopes.push(OFFLINE.to_owned());
    }
    scopes
}

/// The page where the person logs in, and the state that the browser brings back from there.
fn page(
    (server, client): (&Server, &Registered),
    resource: &Resource,
    scopes: &[String],
    challenge: PkceCodeChallenge,
    redirect: &RedirectUrl,
) -> Result<(String, CsrfToken), Cause> {
    let page = AuthUrl::new(server.authorization_endpoint.clone());
    let page = page.map_err(|_| {
        unavailable("the page of the authorization server is no URL:").foreign(&quoted(&server.authorization_endpoint))
    })?;
    let asking =
        BasicClient::new(ClientId::new(client.id.clone())).set_auth_uri(page).set_redirect_uri(redirect.clone());
    let mut request = asking.authorize_url(CsrfToken::new_random).set_pkce_challenge(challenge);
    if !resource.audience.is_empty() {
        request = request.add_extra_param("resource", resource.audience.clone());
    }
    if scopes.iter().any(|scope| scope == OFFLINE) {
        request = request.add_extra_param("prompt", "consent");
    }
    for scope in scopes {
        request = request.add_scope(Scope::new(scope.clone()));
    }
    let (url, state) = request.url();
    Ok((url.to_string(), state))
}

fn record(
    login: &Login,
    (resource, server): (Resource, Server),
    (client, is_registered): (Registered, bool),
    scopes: Vec<String>,
    given: Given,
) -> Record {
    let mut record = Record {
        upstream: login.upstream.to_string(),
        resource: login.resource.clone(),
        audience: resource.audience,
        issuer: server.issuer,
        token_endpoint: server.token_endpoint,
        revocation_endpoint: server.revocation_endpoint,
        client_id: client.id,
        client_secret: client.secret,
        is_in_body: client.is_in_body,
        is_registered,
        // Where nothing is said of them they are what was asked for.
        scopes: given.scopes.unwrap_or(scopes),
        wanted: Vec::new(),
        access: String::new(),
        refresh: None,
        given: 0,
        ends: None,
    };
    record.renewed(given.access, given.refresh, given.lasts);
    record
}

//! A login, from the first question to the kept tokens.

// A login on another device (RFC 8628).
mod device;

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
use crate::upstream::transport::http::credentials::once::ANSWER_MAX;
use crate::upstream::transport::http::credentials::token::Unissued;
use device::DeviceLogin;
use oauth2::basic::BasicClient;
use oauth2::{AuthUrl, ClientId, CsrfToken, PkceCodeChallenge, RedirectUrl, Scope};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::{sleep, timeout};

/// What lets a client have a refresh token at servers of OpenID Connect, and the consent that they want for it.
const OFFLINE: &str = "offline_access";
/// So long it may take to find out where to log in; and so often a person who waits for it is told who is being asked.
const DISCOVERED_WITHIN: Duration = Duration::from_secs(30);
const TOLD_EVERY: Duration = Duration::from_secs(3);

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
    let (resource, server, entry) = discovered(login, tasks, &show).await?;
    let callback = Callback::open().await?;
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
    let given = given.map_err(|why| match why {
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

/// What is given for the code that a browser brings back.
async fn by_browser(
    endpoint: &Endpoint<'_>,
    (server, resource, scopes): (&Server, &Resource, &[String]),
    (callback, pasted): (Callback, Receiver<String>),
    secrets: &mask::Learned,
    show: &(impl Fn(&Page) + Send + Sync),
) -> Result<Result<Given, Refused>, Cause> {
    let redirect = callback.url();
    let redirect = RedirectUrl::new(redirect).map_err(|_| unavailable("the address of the callback is no URL"))?;
    let (challenge, proof) = PkceCodeChallenge::new_random_sha256();
    let (url, state) = page((server, endpoint.client), resource, scopes, challenge, &redirect)?;
    show(&Page::At { url, elsewhere: elsewhere(server, &server.authorization_endpoint) });
    let brought = callback.brought(state.secret(), pasted, |why| show(&Page::NotPasted(why)), endpoint.tasks).await?;
    let code = brought.from(&server.issuer, server.authorization_response_iss_parameter_supported)?;
    secrets.note(&code);
    Ok(endpoint.for_code(&code, proof, &redirect).await)
}

/// What a person logs in to, where, and how the gateway becomes a client there: all that is asked before anybody is shown a page.
async fn discovered(
    login: &Login,
    tasks: &Tasks,
    show: &(impl Fn(&Page) + Sync),
) -> Result<(Resource, Server, Entry), Cause> {
    let asked = Mutex::new("the upstream".to_owned());
    let now = || asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let asking = async {
        let resource = resource(login, tasks).await?;
        let asks = |issuer: &str| {
            let said = format!("the authorization server{}", quoted(issuer));
            *asked.lock().unwrap_or_else(PoisonError::into_inner) = said;
        };
        let (server, entry) = first_that_will_do(login, &resource, &asks, tasks).await?;
        Ok((resource, server, entry))
    };
    let telling = async {
        loop {
            sleep(TOLD_EVERY).await;
            show(&Page::Asking(now()));
        }
    };
    let late = |_| {
        let said = format!("nobody to log in at was found within {} s: ", DISCOVERED_WITHIN.as_secs());
        Err(unavailable(said).foreign(&now()).own(" was asked last"))
    };
    tokio::select! {
        found = timeout(DISCOVERED_WITHIN, Box::pin(asking)) => found.unwrap_or_else(late),
        () = telling => unreachable!("it is told as long as it lasts"),
    }
}

/// The first authorization server of the upstream that a person can log in at, and how the gateway becomes its client.
async fn first_that_will_do(
    login: &Login,
    resource: &Resource,
    asks: &(impl Fn(&str) + Sync),
    tasks: &Tasks,
) -> Result<(Server, Entry), Cause> {
    let mut failed: Option<Cause> = None;
    for issuer in &resource.issuers {
        asks(issuer);
        let late = |_| Err(unavailable("no answer within 10 s from").foreign(&quoted(issuer)));
        let found = timeout(ANSWER_MAX, Box::pin(server(login, resource, issuer, tasks))).await.unwrap_or_else(late);
        let found = found.and_then(|server| {
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

/// The origins of a page and of the authorization server, where they differ.
fn elsewhere(server: &Server, page: &str) -> Option<(String, String)> {
    let origin = |url: &str| url.parse().ok().and_then(|url: http::Uri| Origin::of(&url));
    let (page, issuer) = (origin(page)?, origin(&server.issuer)?);
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

#[cfg(test)]
mod tests {
    use super::super::way::tests::login;
    use super::*;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn where_to_log_in_is_found_within_half_a_minute_or_not_at_all_and_who_is_asked_is_told_meanwhile() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (login, tasks, told) = (login("up", port), Tasks::new(), Mutex::new(Vec::new()));
        let servers: Vec<_> = (0..8).map(|at| format!("http://127.0.0.1:{port}/a{at}")).collect();
        let document = json!({ "resource": login.resource, "authorization_servers": servers }).to_string();
        // All that an authorization server says takes nine seconds, and is nothing.
        let serving = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let document = document.clone();
                tasks.spawn_until_end(async move {
                    let mut head = vec![0; 4096];
                    let length = stream.read(&mut head).await.unwrap_or_default();
                    let head = String::from_utf8_lossy(&head[..length]).into_owned();
                    let (status, body) = match head.contains("oauth-protected-resource") {
                        true => ("200 OK", &*document),
                        false => ("404 Not Found", ""),
                    };
                    if head.contains("/a") {
                        sleep(Duration::from_secs(9)).await;
                    }
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
                    _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        };
        let show = |page: &Page| match page {
            Page::Asking(who) => told.lock().unwrap().push(who.clone()),
            other => panic!("{other:?}"),
        };
        let begun = Instant::now();
        let why = tokio::select! {
            found = discovered(&login, &tasks, &show) => found.err().unwrap(),
            () = serving => unreachable!(),
        };
        // Each has ten seconds, so that the fourth one is asked in the end.
        let last = format!("the authorization server `http://127.0.0.1:{port}/a3`");
        assert_eq!(begun.elapsed().as_secs(), 30);
        assert_eq!(why.full(), format!("nobody to log in at was found within 30 s: {last} was asked last"));
        let told = told.into_inner().unwrap();
        assert!(told.len() >= 9 && told[0].ends_with("/a0`") && told[8].ends_with("/a2`"), "{told:?}");
        tasks.end();
    }
}

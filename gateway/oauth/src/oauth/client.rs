//! Who the gateway is at an authorization server: a client that the configuration names, or one that registers there (RFC 7591).

use super::server::{Server, unsaid};
use super::way::{posted, quoted, to};
use crate::config::{Login, Registered, Remote};
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::secrets::mask;
use crate::token_request::unavailable;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

/// The longest name or secret that a registration may give: both are kept with the login.
const GIVEN_MAX: usize = 4096;

/// What is answered to a registration.
#[derive(Deserialize)]
struct Answer {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// How the gateway becomes a client of an authorization server.
pub(super) enum Entry {
    /// It is one by its configuration.
    Known(Registered),
    /// It registers itself there.
    Registration(Box<Remote>),
}

impl Entry {
    /// The upstream whose name is in the address that a browser comes back to, where that is registered here: what is configured was
    /// registered by hand.
    pub(super) fn named_in_redirect<'a>(&self, login: &'a Login) -> Option<&'a str> {
        matches!(self, Self::Registration(_)).then_some(&*login.upstream)
    }
}

/// The gateway as it is reached by browsers, where a person logs in by a page of it.
#[derive(Clone, Copy)]
pub struct Reached<'a> {
    /// Where browsers come back to.
    pub redirect: &'a str,
    /// Where it says itself who it is as a client.
    pub document: Option<&'a str>,
}

/// How the gateway becomes a client of this authorization server, if it can.
pub(super) fn entry(login: &Login, server: &Server, reached: Option<Reached<'_>>) -> Result<Entry, Cause> {
    if let Some(client) = &login.client {
        // A client that is known by the document at its own URL is known where such documents are read.
        if !client.id.starts_with("https://") || server.client_id_metadata_document_supported {
            return Ok(Entry::Known(client.clone()));
        }
    }
    if let Some(document) = reached
        .and_then(|reached| reached.document)
        .filter(|_| login.client.is_none() && login.has_document && reads_documents(server))
    {
        return Ok(Entry::Known(Registered { id: document.to_owned(), secret: None, is_in_body: false }));
    }
    let Some(endpoint) = &server.registration_endpoint else {
        let cause = unavailable("the authorization server").foreign(&quoted(&server.issuer));
        let redirect = reached.map_or("http://127.0.0.1/callback", |reached| reached.redirect);
        let advice = format!(
            "register the gateway there, with the redirect URI {redirect}, and write its `client_id` under `auth`"
        );
        return Err(cause.own(" registers no clients by itself").advise(&advice));
    };
    to(login, "the registration end point", endpoint).map(|place| Entry::Registration(Box::new(place)))
}

/// Whether a client can be known there by a document, which has no secret.
fn reads_documents(server: &Server) -> bool {
    server.client_id_metadata_document_supported
        && server
            .token_endpoint_auth_methods_supported
            .as_ref()
            .is_none_or(|known| known.iter().any(|one| one == "none"))
}

/// The client, and whether it has registered itself.
pub(super) async fn client(
    entry: Entry,
    server: &Server,
    redirect: &str,
    tasks: &Tasks,
) -> Result<(Registered, bool), Cause> {
    let place = match entry {
        Entry::Known(client) => return Ok((client, false)),
        Entry::Registration(place) => *place,
    };
    let method = method(server);
    let mut grants = vec!["authorization_code", "refresh_token"];
    grants
        .extend(server.device_authorization_endpoint.as_ref().map(|_| "urn:ietf:params:oauth:grant-type:device_code"));
    let wanted = json!({
        "client_name": "Trunkline",
        "redirect_uris": [redirect],
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        // A redirect to this machine is for programs, and one by `https` for servers.
        "application_type": if redirect.starts_with("https://") { "web" } else { "native" },
    });
    let (status, body) = posted(&place, wanted.to_string().into_bytes(), tasks).await.map_err(|why| {
        let why = unavailable("the gateway cannot register at the authorization server: ").then(&why);
        if server.is_assumed { unsaid(&Cause::default().own("; ").then(&why)) } else { why }
    })?;
    let refused = |said: String| {
        if server.is_assumed {
            return Err(unsaid(&Cause::default()));
        }
        let cause =
            unavailable(format!("the authorization server does not register the gateway (HTTP {})", status.as_u16()));
        let advice = "register it there by hand, and write its `client_id` under `auth`";
        Err(cause.foreign(&said).advise(advice))
    };
    if !matches!(status, StatusCode::OK | StatusCode::CREATED) {
        return refused(said(&body));
    }
    let Ok(answer) = serde_json::from_slice::<Answer>(&body) else { return refused(String::new()) };
    if !is_short(&answer) {
        return refused(format!(": its `client_id` or `client_secret` is longer than {} KiB", GIVEN_MAX / 1024));
    }
    let is_in_body = answer.token_endpoint_auth_method.as_deref().unwrap_or(method) == "client_secret_post";
    // One without a proof of its own is told by its id alone.
    let secret = answer.client_secret.filter(|secret| !secret.is_empty());
    let secret = secret.filter(|_| answer.token_endpoint_auth_method.as_deref() != Some("none"));
    Ok((Registered { id: answer.client_id, secret, is_in_body }, true))
}

/// Whether what a registration gives can be kept.
fn is_short(answer: &Answer) -> bool {
    answer.client_secret.iter().chain([&answer.client_id]).all(|text| text.len() <= GIVEN_MAX)
}

/// How the client is to prove who it is: not at all where that is possible, since a program on a person's machine keeps no secret from them.
fn method(server: &Server) -> &'static str {
    const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];
    match &server.token_endpoint_auth_methods_supported {
        None => "client_secret_basic",
        Some(known) => METHODS.into_iter().find(|method| known.iter().any(|known| known == method)).unwrap_or("none"),
    }
}

/// What stands in an error.
pub(super) fn said(body: &[u8]) -> String {
    let error: Value = serde_json::from_slice(body).unwrap_or_default();
    let words = [&error["error"], &error["error_description"]].map(|word| word.as_str().unwrap_or_default());
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).map(|word| mask::masked(word)).collect();
    if words.is_empty() { String::new() } else { format!(":{}", quoted(&words.join(": "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_name_or_secret_of_a_registration_is_not_taken() {
        let answer = |id: usize, secret: usize| Answer {
            client_id: "x".repeat(id),
            client_secret: Some("x".repeat(secret)),
            token_endpoint_auth_method: None,
        };
        assert!(is_short(&answer(GIVEN_MAX, GIVEN_MAX)));
        assert!(!is_short(&answer(GIVEN_MAX + 1, 1)) && !is_short(&answer(1, GIVEN_MAX + 1)));
    }

    #[test]
    fn a_client_proves_itself_by_nothing_where_it_may_and_else_as_the_server_can() {
        let server = |known: Option<&[&str]>| Server {
            token_endpoint_auth_methods_supported: known.map(|known| known.iter().map(ToString::to_string).collect()),
            ..Server::default()
        };
        assert_eq!(method(&server(None)), "client_secret_basic", "that is what nothing means (RFC 8414)");
        assert_eq!(method(&server(Some(&["client_secret_post", "none"]))), "none");
        assert_eq!(method(&server(Some(&["private_key_jwt", "client_secret_post"]))), "client_secret_post");
    }
}

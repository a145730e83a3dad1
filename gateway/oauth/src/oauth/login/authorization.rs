//! What the authorization server is asked for, the page where that is done, and what is kept of what it gives.

use crate::config::{Login, Registered};
use crate::health::Cause;
use crate::oauth::grant::Given;
use crate::oauth::pkce::{ProofKey, random};
use crate::oauth::record::Record;
use crate::oauth::resource::Resource;
use crate::oauth::server::Server;
use crate::oauth::way::quoted;
use crate::token_request::unavailable;
use crate::transport::http::Origin;
use form_urlencoded::Serializer;
use http::Uri;

/// What lets a client have a refresh token at servers of OpenID Connect, and the consent that they want for it.
const OFFLINE: &str = "offline_access";

/// The origins of a page and of the authorization server, where they differ.
pub(super) fn elsewhere(server: &Server, page: &str) -> Option<(String, String)> {
    let origin = |url: &str| url.parse().ok().and_then(|url: http::Uri| Origin::of(&url));
    let (page, issuer) = (origin(page)?, origin(&server.issuer)?);
    (page != issuer).then(|| (page.to_string(), issuer.to_string()))
}

/// What is asked for: what the upstream wants, and a refresh token where the authorization server wants to be asked for that.
/// Where the upstream asked for more than the login before allows, that is asked for besides all that it did.
pub(super) fn scopes(resource: &Resource, server: &Server, before: Option<Record>) -> Vec<String> {
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

/// The URL of the page where the person logs in, and the state that the browser brings back from there.
pub(super) fn page(
    (server, client): (&Server, &Registered),
    resource: &Resource,
    scopes: &[String],
    key: &ProofKey,
    redirect: &str,
) -> Result<(String, String), Cause> {
    let page = &server.authorization_endpoint;
    if page.parse::<Uri>().is_err() || page.contains('#') {
        return Err(unavailable("the page of the authorization server is no URL:").foreign(&quoted(page)));
    }
    let page = percent_encode(page);
    let (state, challenge, scope) = (random(), key.challenge(), scopes.join(" "));
    let mut query = Serializer::new(String::new());
    query.extend_pairs([
        ("response_type", "code"),
        ("client_id", &client.id),
        ("state", &state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("redirect_uri", redirect),
    ]);
    if !scope.is_empty() {
        query.append_pair("scope", &scope);
    }
    if !resource.audience.is_empty() {
        query.append_pair("resource", &resource.audience);
    }
    if scopes.iter().any(|scope| scope == OFFLINE) {
        query.append_pair("prompt", "consent");
    }
    // A query of the endpoint's own is kept (RFC 6749, 3.1).
    let separator = if page.contains('?') { '&' } else { '?' };
    Ok((format!("{page}{separator}{}", query.finish()), state))
}

/// Percent-encodes the characters of a URL that a browser would encode. The command that opens the browser refuses them.
fn percent_encode(url: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'<>`".contains(&byte);
    url.bytes().map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// What is kept of a login, with what was given for it.
pub(super) fn record(
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
        principal: login.principal.as_deref().map(str::to_owned),
        made: random(),
        account: given.account,
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
    use super::*;

    #[test]
    fn authorization_endpoint_is_percent_encoded() {
        assert_eq!(percent_encode("https://as.example/a?b=%20c'd"), "https://as.example/a?b=%20c%27d");
        assert_eq!(percent_encode("https://as.example/ä"), "https://as.example/%C3%A4");
    }
}

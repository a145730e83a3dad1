//! Who the gateway is at an authorization server: a client that the configuration names, or one that registers there (RFC 7591).

use super::server::Server;
use super::way::{posted, quoted, to};
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::secrets::mask;
use crate::upstream::config::{Login, Registered};
use crate::upstream::transport::http::credentials::granted::unavailable;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

/// What is answered to a registration.
#[derive(Deserialize)]
struct Answer {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// The client, and whether it has registered itself.
pub(super) async fn client(
    login: &Login,
    server: &Server,
    redirect: &str,
    tasks: &Tasks,
) -> Result<(Registered, bool), Cause> {
    if let Some(client) = &login.client {
        // A client that is known by the document at its own URL is known where such documents are read.
        if !client.id.starts_with("https://") || server.client_id_metadata_document_supported {
            return Ok((client.clone(), false));
        }
    }
    let Some(endpoint) = &server.registration_endpoint else {
        let cause = unavailable("the authorization server").foreign(&quoted(&server.issuer));
        let advice = "register the gateway there, with the redirect URI http://127.0.0.1/callback, and write its `client_id` under `auth`";
        return Err(cause.own(" registers no clients by itself").advise(advice));
    };
    let place = to(login, "the registration end point", endpoint)?;
    let method = method(server);
    let wanted = json!({
        "client_name": "Trunkline",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native",
    });
    let (status, body) = posted(&place, wanted.to_string().into_bytes(), tasks)
        .await
        .map_err(|why| unavailable("the gateway cannot register at the authorization server: ").then(&why))?;
    let refused = |said: String| {
        let cause =
            unavailable(format!("the authorization server does not register the gateway (HTTP {})", status.as_u16()));
        let advice = "register it there by hand, and write its `client_id` under `auth`";
        Err(cause.foreign(&said).advise(advice))
    };
    if !matches!(status, StatusCode::OK | StatusCode::CREATED) {
        return refused(said(&body));
    }
    let Ok(answer) = serde_json::from_slice::<Answer>(&body) else { return refused(String::new()) };
    let is_in_body = answer.token_endpoint_auth_method.as_deref().unwrap_or(method) == "client_secret_post";
    // One without a proof of its own is told by its id alone.
    let secret = answer.client_secret.filter(|secret| !secret.is_empty());
    let secret = secret.filter(|_| answer.token_endpoint_auth_method.as_deref() != Some("none"));
    Ok((Registered { id: answer.client_id, secret, is_in_body }, true))
}

/// How the client is to prove who it is: not at all where that is possible, since a program on a person's machine keeps no secret from them.
fn method(server: &Server) -> &'static str {
    const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];
    match &server.token_endpoint_auth_methods_supported {
        None => "client_secret_basic",
        Some(known) => METHODS.into_iter().find(|method| known.iter().any(|known| known == method)).unwrap_or("none"),
    }
}

/// What stands in an error of a registration.
fn said(body: &[u8]) -> String {
    let error: Value = serde_json::from_slice(body).unwrap_or_default();
    let words = [&error["error"], &error["error_description"]].map(|word| word.as_str().unwrap_or_default());
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).map(|word| mask::masked(word)).collect();
    if words.is_empty() { String::new() } else { format!(":{}", quoted(&words.join(": "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

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

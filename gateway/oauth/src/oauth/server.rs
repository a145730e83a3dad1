//! What an authorization server says of itself (RFC 8414, and as OpenID Connect has it).

// Where its document may lie.
mod places;
// One whose tokens our clients bear.
pub(super) mod provider;

use super::resource::{Resource, is_same};
use super::way::{Document, URL_MAX, document, quoted, to};
use crate::config::{Login, Remote};
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::token_request::unavailable;
use places::places;
use serde::Deserialize;

/// An authorization server. Where its end points lead is judged before each is used.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Server {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
    /// Where a login on another device begins (RFC 8628).
    pub(super) device_authorization_endpoint: Option<String>,
    pub(super) scopes_supported: Vec<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(super) client_id_metadata_document_supported: bool,
    /// Whether it names itself in what it sends the browser back with (RFC 9207).
    pub(super) authorization_response_iss_parameter_supported: bool,
    pub(super) code_challenge_methods_supported: Vec<String>,
    /// It says nothing of itself, and its end points are those that 2025-03-26 has for such a one.
    #[serde(skip)]
    pub(super) is_assumed: bool,
}

impl Server {
    /// An upstream that has no word on authorization, as its own authorization server (2025-03-26).
    fn assumed(issuer: &str) -> Self {
        let at = |path: &str| format!("{}{path}", issuer.trim_end_matches('/'));
        Self {
            issuer: issuer.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: Some(at("/register")),
            is_assumed: true,
            ..Self::default()
        }
    }
}

/// Asks an authorization server of a resource, in all places where its document may lie.
pub(super) async fn server(login: &Login, resource: &Resource, issuer: &str, tasks: &Tasks) -> Result<Server, Cause> {
    let at = to(login, "the authorization server", issuer)?;
    let it = |said: &str| unavailable("the authorization server").foreign(&quoted(issuer)).own(said);
    if at.url.query().is_some() {
        return Err(it(" has a query in its URL"));
    }
    let (mut other, mut failed, mut odd, mut down) = (None, None, None, None);
    for url in places(&at.url) {
        match document::<Server>(&Remote { url, ..at.clone() }, tasks).await {
            Ok(Document::There(server)) if is_same(&server.issuer, issuer) => return judged(server),
            // It speaks for another one: whoever believes it shows that one's codes to this one.
            Ok(Document::There(server)) if !server.issuer.is_empty() => other = Some(server.issuer),
            Ok(Document::Missing(status)) if status.is_server_error() => down = Some(status),
            Ok(Document::There(_) | Document::Missing(_)) => {}
            Ok(Document::Odd(why)) => odd = odd.or(Some(why)),
            Err(why) => failed = Some(why),
        }
    }
    if let Some(other) = other {
        return Err(it(" says that it is another one:").foreign(&quoted(&other)));
    }
    if let Some(why) = failed {
        let advice = if why.advice().is_empty() { AGAIN } else { "" };
        return Err(it(" is not reached: ").then(&why).advise(advice));
    }
    if !resource.is_said && login.issuer.is_none() {
        return match resource.odd.as_ref().or(odd.as_ref()) {
            Some(why) => Err(unsaid(&Cause::default().own(": ").then(why))),
            None => Ok(Server::assumed(issuer)),
        };
    }
    if let Some(status) = down {
        return Err(it(&format!(" is out of order: it answers with HTTP {}", status.as_u16())).advise(AGAIN));
    }
    match odd {
        Some(why) => Err(it(" says nothing of itself that can be read: ").then(&why).advise(AGAIN)),
        None => {
            let tried: Vec<_> = places(&at.url).iter().map(|url| format!("`{url}`")).collect();
            let why = it(" says nothing of itself; asked were ").foreign(&tried.join(" and "));
            Err(why.advise("check that it is one: what the upstream names, or `issuer` under `auth`"))
        }
    }
}

/// What a person does where an authorization server is not there, or out of order.
pub(super) const AGAIN: &str = "try again in a while, or ask those who run it";

/// Why nobody can log in at an upstream that has no word on authorization.
pub(super) fn unsaid(why: &Cause) -> Cause {
    let said = "the upstream says neither which authorization server it believes nor that it is its own";
    let advice = "write the authorization server as `issuer` under `auth`, or set a token there";
    unavailable(said).then(why).advise(advice)
}

fn judged(server: Server) -> Result<Server, Cause> {
    let who = |said: &str| unavailable("the authorization server").foreign(&quoted(&server.issuer)).own(said);
    if server.authorization_endpoint.is_empty() || server.token_endpoint.is_empty() {
        return Err(who(" does not say where to log in and where tokens are given"));
    }
    let more = [&server.registration_endpoint, &server.revocation_endpoint].into_iter().flatten();
    let named = [&server.issuer, &server.authorization_endpoint, &server.token_endpoint];
    if named.into_iter().chain(more).any(|url| url.len() > URL_MAX) {
        return Err(who(&format!(" names a URL that is longer than {} KiB", URL_MAX / 1024)));
    }
    if !server.code_challenge_methods_supported.iter().any(|method| method == "S256") {
        return Err(who(" does not protect codes by PKCE with S256, without which nobody is logged in"));
    }
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::super::way::tests::login;
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn an_upstream_without_a_word_is_asked_where_2025_03_26_has_it_and_nobody_else_is() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, tasks) = (listener.local_addr().unwrap().port(), Tasks::new());
        let own = format!("http://127.0.0.1:{port}");
        let answering = |answer: &'static str| {
            let listener = &listener;
            async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let _head = stream.read(&mut [0; 4096]).await;
                    _ = stream.write_all(answer.as_bytes()).await;
                }
            }
        };
        let nothing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let page = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>";
        let written = Login { issuer: Some(own.clone()), ..login("up", port) };
        for (login, is_said, answer, says) in [
            (login("up", port), false, nothing, None),
            (login("up", port), false, page, Some("says neither which authorization server it believes")),
            (login("up", port), true, nothing, Some("says nothing of itself")),
            (written, false, nothing, Some("says nothing of itself")),
        ] {
            let audience = login.resource.clone();
            let resource = Resource { audience, issuers: vec![own.clone()], is_said, scopes: Vec::new(), odd: None };
            let found = tokio::select! {
                found = server(&login, &resource, &own, &tasks) => found,
                () = answering(answer) => unreachable!(),
            };
            match says {
                Some(says) => assert!(found.unwrap_err().full().contains(says), "{says}"),
                None => {
                    let found = found.unwrap();
                    let registers = found.registration_endpoint.unwrap();
                    let at = [found.authorization_endpoint, found.token_endpoint, registers];
                    assert_eq!(at, ["/authorize", "/token", "/register"].map(|path| format!("{own}{path}")));
                    assert!(found.is_assumed);
                }
            }
        }
        tasks.end();
    }

    #[test]
    fn a_server_with_an_endless_url_is_refused_before_anybody_logs_in() {
        let long = format!("https://as.example/{}", "x".repeat(URL_MAX));
        let server = Server {
            authorization_endpoint: "https://as.example/a".to_owned(),
            token_endpoint: "https://as.example/t".to_owned(),
            code_challenge_methods_supported: vec!["S256".to_owned()],
            ..Server::default()
        };
        for server in [
            Server { revocation_endpoint: Some(long.clone()), ..server.clone() },
            Server { registration_endpoint: Some(long.clone()), ..server.clone() },
            Server { token_endpoint: long.clone(), ..server.clone() },
            Server { authorization_endpoint: long.clone(), ..server },
        ] {
            assert!(judged(server).unwrap_err().full().ends_with("names a URL that is longer than 2 KiB"));
        }
    }

    #[test]
    fn without_pkce_nobody_is_logged_in() {
        let server = |methods: &[&str]| Server {
            authorization_endpoint: "https://as.example/a".to_owned(),
            token_endpoint: "https://as.example/t".to_owned(),
            code_challenge_methods_supported: methods.iter().map(|method| (*method).to_owned()).collect(),
            ..Server::default()
        };
        assert!(judged(server(&["plain", "S256"])).is_ok());
        for methods in [&[][..], &["plain"]] {
            assert!(judged(server(methods)).unwrap_err().full().contains("PKCE"), "{methods:?}");
        }
    }
}

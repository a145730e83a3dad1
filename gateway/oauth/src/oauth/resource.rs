//! What an upstream says of itself as a resource: which authorization server it believes, and how it is called there (RFC 9728).

use super::challenge::{Challenge, challenge};
use super::record::{scopes_among, scopes_of};
use super::way::{Document, REVISION, document, quoted, with_path};
use crate::config::{Login, Remote};
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::token_request::unavailable;
use crate::transport::http::Origin;
use crate::transport::http::{Token, once};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use serde::Deserialize;

/// Where the document lies, before the path of the upstream.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// The most authorization servers that are asked for one login.
const ISSUERS_MAX: usize = 8;
/// A request without effect, for its refusal.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// What is known of an upstream before anybody is logged in there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resource {
    /// How it is called at the authorization server.
    pub(super) audience: String,
    /// The authorization servers, in the order in which they are tried.
    pub(super) issuers: Vec<String>,
    /// Whether the upstream says so itself; else it is taken for its own authorization server, as in 2025-03-26.
    pub(super) is_said: bool,
    /// What the token is to allow: what the refusal says, else all that there is.
    pub(super) scopes: Vec<String>,
    /// Why what it says of itself cannot be read, where something lies there.
    pub(super) odd: Option<Cause>,
}

/// The document, as far as it is read.
#[derive(Deserialize)]
struct Metadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// Asks the upstream.
pub(super) async fn resource(login: &Login, tasks: &Tasks) -> Result<Resource, Cause> {
    let Challenge { resource_metadata, scope, .. } = refused(login, tasks).await?;
    let (mut beyond, mut odd) = (None, None);
    for place in places(login, resource_metadata.as_deref(), &mut beyond) {
        let place = Remote { url: place, ..login.at.clone() };
        match document::<Metadata>(&place, tasks).await? {
            Document::There(metadata) => return judged(login, metadata, scope.as_deref()),
            Document::Odd(why) => odd = odd.or(Some(why)),
            Document::Missing(_) => {}
        }
    }
    if let (Some(url), None) = (beyond, &login.issuer) {
        let cause = unavailable("the upstream says at another origin what it is as a resource, which is not asked:");
        return Err(cause.foreign(&quoted(&url)));
    }
    // What has no such document may be its own authorization server.
    let own = with_path(&login.at.url, "").map(|url| url.to_string().trim_end_matches('/').to_owned());
    let issuer = login.issuer.clone().or(own).ok_or_else(|| unavailable("its URL has no host"))?;
    let audience = login.said_resource.clone().unwrap_or_else(|| login.resource.clone());
    Ok(Resource { audience, issuers: vec![issuer], is_said: false, scopes: wanted(login, scope.as_deref(), &[]), odd })
}

/// Whether an upstream says of itself at a known place that it is a resource that a person can log in to.
pub(super) async fn is_described(login: &Login, tasks: &Tasks) -> bool {
    for place in places(login, None, &mut None) {
        let place = Remote { url: place, ..login.at.clone() };
        if let Ok(Document::There(Metadata { resource, authorization_servers, .. })) = document(&place, tasks).await {
            return is_it(&login.resource, &resource) && !authorization_servers.is_empty();
        }
    }
    false
}

/// What the upstream says to a request without a token; what is no refusal says nothing.
async fn refused(login: &Login, tasks: &Tasks) -> Result<Challenge, Cause> {
    if is_socket(login) {
        return Ok(Challenge::default());
    }
    Ok(challenge(asked(login, None, tasks).await?.headers()))
}

/// Whether the upstream refuses a token whatever it is asked, and not one request alone; nothing where it does not say. A WebSocket is
/// opened with a token, and asked for nothing else with it.
pub(super) async fn refuses(login: &Login, token: &str, tasks: &Tasks) -> Option<bool> {
    if is_socket(login) {
        return Some(true);
    }
    let answer = asked(login, Some(token), tasks).await.ok()?;
    Some(answer.status() == StatusCode::UNAUTHORIZED)
}

fn is_socket(login: &Login) -> bool {
    matches!(login.at.url.scheme_str(), Some("ws" | "wss"))
}

/// The head of the answer to a request without effect, shown with this token or none.
async fn asked(login: &Login, token: Option<&str>, tasks: &Tasks) -> Result<Response<Incoming>, Cause> {
    let request = Request::builder().method(Method::POST).uri(login.at.url.clone());
    let request =
        request.header(ACCEPT, "application/json, text/event-stream").header(CONTENT_TYPE, "application/json");
    let request = request.header(REVISION.0, REVISION.1).body(PING.to_vec());
    let mut request = request.map_err(|_| unavailable("its URL cannot be asked"))?;
    request.headers_mut().extend(login.at.headers.clone());
    if let Some(token) = token {
        let odd = |_| unavailable("its token cannot be shown");
        let token = Token::new(token, None, false).map_err(odd)?;
        token.put(request.headers_mut());
    }
    let asked = within(once::ANSWER_MAX, Box::pin(once::send(&login.at, request, tasks))).await;
    let asked = asked.unwrap_or_else(|_| Err(unavailable("no answer within 10 s")));
    asked.map_err(|why| unavailable("the upstream cannot be asked: ").then(&why))
}

/// Where the document may be: where the refusal says, then behind the path of the upstream, then at the root; all at its own origin.
fn places(login: &Login, said: Option<&str>, beyond: &mut Option<String>) -> Vec<Uri> {
    let at = &login.at.url;
    let path = at.path().trim_end_matches('/');
    let said = said.and_then(|text| match text.parse::<Uri>() {
        Ok(url) if is_own(login, text) => {
            with_path(at, url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str))
        }
        _ => {
            *beyond = Some(text.to_owned());
            None
        }
    });
    let known = [path, ""].map(|path| with_path(at, &format!("{WELL_KNOWN}{path}")));
    let mut places: Vec<Uri> = said.into_iter().chain(known.into_iter().flatten()).collect();
    places.dedup();
    places
}

/// Whether a URL is at the origin of the upstream: none elsewhere is asked what the upstream is.
pub(super) fn is_own(login: &Login, url: &str) -> bool {
    let origin = url.parse().ok().and_then(|url| Origin::of(&url));
    origin.is_some() && origin == Origin::of(&login.at.url)
}

/// What the document says, where it speaks of this upstream: a token for another one is asked for nowhere.
fn judged(login: &Login, metadata: Metadata, scope: Option<&str>) -> Result<Resource, Cause> {
    let Metadata { resource, authorization_servers, scopes_supported } = metadata;
    if !is_it(&login.resource, &resource) {
        let cause = unavailable("the upstream says that it is another resource than the one at its URL:");
        return Err(cause.foreign(&quoted(&resource)).advise("check `url`"));
    }
    let issuers = match &login.issuer {
        Some(issuer) if !authorization_servers.iter().any(|server| is_same(server, issuer)) => {
            let cause = unavailable("the upstream names another authorization server than the `issuer` of `auth`:");
            return Err(cause.foreign(&quoted(&authorization_servers.join(", "))));
        }
        Some(issuer) => vec![issuer.clone()],
        None if authorization_servers.is_empty() => {
            let cause = unavailable("the upstream names no authorization server");
            return Err(cause.advise("write it as `issuer` under `auth`"));
        }
        None => authorization_servers.into_iter().take(ISSUERS_MAX).collect(),
    };
    let audience = login.said_resource.clone().unwrap_or(resource);
    let scopes = wanted(login, scope, &scopes_supported);
    Ok(Resource { audience, issuers, is_said: true, scopes, odd: None })
}

fn wanted(login: &Login, challenged: Option<&str>, supported: &[String]) -> Vec<String> {
    match (&login.scopes[..], challenged) {
        ([], None) => scopes_among(supported.iter().map(|scope| &**scope)),
        ([], Some(challenged)) => scopes_of(challenged),
        (scopes, _) => scopes.to_vec(),
    }
}

/// Whether a resource is the one at this URL, or the part of its server that it lies in.
fn is_it(own: &str, named: &str) -> bool {
    let (Ok(own), Ok(other)) = (own.parse::<Uri>(), named.parse::<Uri>()) else { return false };
    let is_plain = other.query().is_none() && !named.contains(['#', '\\', '%']);
    let is_named = other.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    let (path, within) = (own.path().trim_end_matches('/'), other.path().trim_end_matches('/'));
    let is_within = path.strip_prefix(within).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_dotted = other.path().split('/').any(|segment| matches!(segment, "." | ".."));
    is_plain
        && is_named
        && is_within
        && !is_dotted
        && Origin::of(&own).is_some()
        && Origin::of(&own) == Origin::of(&other)
}

/// Whether two issuers are the same, but for the slash of an empty path.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let bare = |text: &str| match text.strip_suffix('/') {
        Some(bare) if bare.matches('/').count() == 2 => bare.to_owned(),
        _ => text.to_owned(),
    };
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::super::way::tests::login;
    use super::*;

    #[test]
    fn a_resource_is_the_upstream_itself_or_what_it_lies_in_and_never_another_one() {
        let own = "https://h.example/a/mcp";
        for named in [
            "https://h.example/a/mcp",
            "https://H.example:443/a/mcp/",
            "https://h.example/a",
            "https://h.example",
            "https://h.example/",
        ] {
            assert!(is_it(own, named), "{named}");
        }
        for named in [
            "https://other.example/a/mcp",
            "https://h.example.evil.example/a/mcp",
            "https://h.example@evil.example/a/mcp",
            "https://x@h.example/a/mcp",
            "http://h.example/a/mcp",
            "https://h.example:8443/a/mcp",
            "https://h.example/a/mc",
            "https://h.example/a/mcp/x",
            "https://h.example/b",
            "https://h.example/a/mcp?x=1",
            "https://h.example/a/../a/mcp",
            "https://h.example/%61/mcp",
            "https://h.example/a/mcp#x",
            "//h.example/a/mcp",
            "h.example",
            "",
        ] {
            assert!(!is_it(own, named), "{named}");
        }
    }

    #[test]
    fn the_document_is_looked_for_where_the_refusal_says_then_by_path_then_at_the_root_and_at_no_other_origin() {
        let login = login("a", 7);
        let mut beyond = None;
        let mut at = |said: Option<&str>| -> Vec<String> {
            places(&login, said, &mut beyond).iter().map(|url| url.path().to_owned()).collect()
        };
        let (path, root) = (format!("{WELL_KNOWN}/mcp"), WELL_KNOWN.to_owned());
        assert_eq!(at(None), [path.clone(), root.clone()]);
        assert_eq!(at(Some("http://127.0.0.1:7/x")), ["/x", &path, &root]);
        assert_eq!(at(Some(&format!("http://127.0.0.1:7{path}"))), [path.clone(), root.clone()]);
        for elsewhere in ["http://127.0.0.1:8/x", "https://127.0.0.1:7/x", "http://169.254.169.254/", "file:///x", "x"]
        {
            assert_eq!(at(Some(elsewhere)), [path.clone(), root.clone()], "{elsewhere}");
        }
        assert_eq!(beyond.as_deref(), Some("x"));
    }

    #[test]
    fn scopes_are_those_of_the_configuration_else_of_the_refusal_else_all() {
        let mut login = login("a", 7);
        let supported = ["x".to_owned(), "y".to_owned()];
        assert_eq!(wanted(&login, None, &supported), supported);
        assert_eq!(wanted(&login, Some("a  b"), &supported), ["a", "b"]);
        login.scopes = vec!["mine".to_owned()];
        assert_eq!(wanted(&login, Some("a"), &supported), ["mine"]);
    }

    #[test]
    fn a_configured_issuer_is_the_only_one_that_is_taken() {
        let metadata = |servers: &[&str]| Metadata {
            resource: "http://127.0.0.1:7/mcp".to_owned(),
            authorization_servers: servers.iter().map(|server| (*server).to_owned()).collect(),
            scopes_supported: Vec::new(),
        };
        let mut login = login("a", 7);
        let of = |login: &Login, servers: &[&str]| judged(login, metadata(servers), None).unwrap().issuers;
        assert_eq!(of(&login, &["https://x", "https://y"]), ["https://x", "https://y"], "in this order");
        assert_eq!(of(&login, &["https://x"; 100]).len(), ISSUERS_MAX);
        assert!(judged(&login, metadata(&[]), None).unwrap_err().full().contains("names no authorization server"));
        login.issuer = Some("https://y/".to_owned());
        assert_eq!(of(&login, &["https://x", "https://y"]), ["https://y/"]);
        assert!(
            judged(&login, metadata(&["https://x"]), None).unwrap_err().full().contains("another authorization server")
        );
        assert!(
            is_same("https://y", "https://y/")
                && !is_same("https://y/a", "https://y/a/")
                && !is_same("https://y", "https://z")
        );
    }
}

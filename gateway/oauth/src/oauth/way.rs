//! Where the URLs lead that an upstream or an authorization server names, and the documents that are there.

use crate::config::{Login, Reach, Remote, Trust};
use crate::endpoint::in_short;
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::runtime::timer::late::within;
use crate::token_request::{self, unavailable};
use crate::transport::http::Origin;
use crate::transport::http::once;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use serde::de::DeserializeOwned;

/// The most bytes of a document.
const DOCUMENT_MAX: usize = 1024 * 1024;
/// The longest URL that a server may name.
pub(super) const URL_MAX: usize = 2048;
/// The revision whose rules of authorization are followed.
pub(super) const REVISION: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

/// A foreign text as the operator is shown it.
pub(super) fn quoted(text: &str) -> String {
    format!(" `{}`", in_short(text))
}

/// Where a URL leads that a server names: by `https`, or to this machine where the upstream is there itself; and into no network of
/// one's own that the upstream is not in.
pub(super) fn to(login: &Login, what: &str, text: &str) -> Result<Remote, Cause> {
    let odd = |why: &str| {
        let cause = unavailable(format!("{what}, a URL that a server named,")).foreign(&quoted(text));
        Err(cause.own(&format!(" is not asked: {why}")))
    };
    let url: Uri = match text.parse::<Uri>() {
        Ok(url) if text.len() <= URL_MAX && !text.contains(['#', '\\']) => url,
        _ => return odd("it is no URL"),
    };
    let Some(origin) = Origin::of(&url) else { return odd("it is no address of HTTP") };
    let (host, is_plain) = (url.host().unwrap_or_default(), url.scheme_str() != Some("https"));
    if url.authority().is_none_or(|authority| authority.as_str().contains('@')) || host.is_empty() {
        return odd("it has a user name, or no host");
    }
    let headers = HeaderMap::new();
    if Origin::of(&login.at.url).as_ref() == Some(&origin) {
        return Ok(Remote { url, headers, ..login.at.clone() });
    }
    if is_plain && (url.scheme_str() != Some("http") || !Reach::is_machine(host)) {
        return odd("it does not begin with https://");
    }
    // What a person has written leads where it says.
    let issuer =
        login.issuer.as_ref().and_then(|issuer| issuer.parse().ok()).and_then(|issuer: Uri| Origin::of(&issuer));
    let reach = if issuer == Some(origin) { Reach::Written } else { login.reach };
    if !reach.admits_host(host.trim_start_matches('[').trim_end_matches(']')) {
        return odd("it leads to this machine, or into a network of one's own");
    }
    let proxy = login.at.proxy.clone().filter(|_| !Reach::is_machine(host));
    // The certificate of the gateway is for the upstream alone.
    let trust = Trust { own: None, ..login.at.trust.clone() };
    Ok(Remote { trust, proxy, reach, ..Remote::new(url, headers) })
}

/// A URL with another path, and without a query.
pub(super) fn with_path(url: &Uri, path: &str) -> Option<Uri> {
    let scheme = match url.scheme_str()? {
        "https" | "wss" => "https",
        _ => "http",
    };
    format!("{scheme}://{}{path}", url.authority()?).parse().ok()
}

/// What lies at a place.
pub(super) enum Document<T> {
    There(T),
    /// Nothing, as this status says.
    Missing(StatusCode),
    /// Something else than such a document: which and where, and why it cannot be read.
    Odd(Cause),
}

/// The document at a place.
pub(super) async fn document<T: DeserializeOwned>(place: &Remote, tasks: &Tasks) -> Result<Document<T>, Cause> {
    let request = Request::builder().method(Method::GET).uri(place.url.clone()).header(ACCEPT, "application/json");
    let request = request.header(REVISION.0, REVISION.1).body(Vec::new());
    let Ok(mut request) = request else { return Ok(Document::Missing(StatusCode::BAD_REQUEST)) };
    request.headers_mut().extend(place.headers.clone());
    let (status, body) = answered(place, request, tasks).await?;
    if status != StatusCode::OK {
        return Ok(Document::Missing(status));
    }
    let why = match body.as_deref().map(read) {
        Some(Some(document)) => return Ok(Document::There(document)),
        Some(None) => "is no JSON document of its kind",
        None => "has more than 1 MiB, or breaks off",
    };
    let odd = unavailable("the document at").foreign(&quoted(&place.url.to_string()));
    Ok(Document::Odd(odd.own(&format!(" {why}"))))
}

/// A document, where it can be read as such a one. Some servers write `null` for what they leave out.
fn read<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let mut members: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    members.retain(|_, value| !value.is_null());
    serde_json::from_value(members.into()).ok()
}

/// What is answered to a JSON document that is posted.
pub(super) async fn posted(place: &Remote, body: Vec<u8>, tasks: &Tasks) -> Result<(StatusCode, Vec<u8>), Cause> {
    let request = Request::builder().method(Method::POST).uri(place.url.clone()).header(ACCEPT, "application/json");
    let request = request.header(CONTENT_TYPE, "application/json").body(body);
    let request = request.map_err(|_| unavailable("it cannot be asked"))?;
    let (status, body) = answered(place, request, tasks).await?;
    body.map(|body| (status, body)).ok_or_else(|| unavailable("its answer has more than 1 MiB, or breaks off"))
}

/// What is answered to a form that is posted.
pub(super) async fn form(
    place: &Remote,
    fields: &[(&str, &str)],
    authorization: Option<HeaderValue>,
    tasks: &Tasks,
) -> Result<(StatusCode, Vec<u8>), Cause> {
    let request = token_request::form(place, fields, authorization)?;
    let (status, body) = answered(place, request, tasks).await?;
    body.map(|body| (status, body)).ok_or_else(|| unavailable("its answer has more than 1 MiB, or breaks off"))
}

/// What is answered; no body where that breaks off or is too large.
async fn answered(
    place: &Remote,
    request: Request<Vec<u8>>,
    tasks: &Tasks,
) -> Result<(StatusCode, Option<Vec<u8>>), Cause> {
    let asking = async {
        let (head, body) = once::send(place, request, tasks).await?.into_parts();
        Ok((head.status, once::body(body, DOCUMENT_MAX).await))
    };
    let host = place.url.host().unwrap_or_default();
    let late = || unavailable("no answer within 10 s from").foreign(&quoted(host));
    within(once::ANSWER_MAX, Box::pin(asking)).await.unwrap_or_else(|_| Err(late()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The login of an upstream on a port of this machine.
    pub(in super::super) fn login(upstream: &str, port: u16) -> Login {
        let url = format!("http://127.0.0.1:{port}/mcp");
        Login {
            upstream: upstream.into(),
            is_found: false,
            at: Remote::new(url.parse().unwrap(), HeaderMap::new()),
            resource: url,
            said_resource: None,
            reach: Reach::Machine,
            issuer: None,
            client: None,
            has_document: true,
            scopes: Vec::new(),
            is_personal: false,
            is_told_apart: false,
            principal: None,
            state: None,
            keys: Vec::new(),
        }
    }

    #[test]
    fn null_says_as_much_as_nothing() {
        #[derive(serde::Deserialize)]
        struct Said {
            #[serde(default)]
            scopes: Vec<String>,
        }
        let said = |body: &[u8]| read::<Said>(body).map(|said| said.scopes);
        assert_eq!(said(br#"{"scopes":null,"more":null}"#), Some(Vec::new()));
        assert_eq!(said(br#"{"scopes":["a"]}"#), Some(vec!["a".to_owned()]));
        assert!(said(br#"{"scopes":1}"#).is_none() && said(b"[]").is_none());
    }

    #[test]
    fn a_url_that_a_server_names_leads_by_https_to_the_internet_or_to_where_the_upstream_is_itself() {
        let at = |url: &str, reach| Login {
            at: Remote::new(url.parse().unwrap(), HeaderMap::new()),
            reach,
            ..login("a", 1)
        };
        let public = at("https://mcp.example/mcp", Reach::Internet);
        for url in [
            "http://as.example/token",
            "http://localhost/token",
            "http://127.0.0.1/token",
            "https://127.0.0.1/token",
            "https://[::1]/token",
            "https://2130706433/token",
            "https://0x7f.1/token",
            "https://0177.0.0.1/token",
            "https://10.0.0.1/token",
            "https://169.254.169.254/latest",
            "https://[fd00:ec2::254]/latest",
            "https://[64:ff9b::a00:1]/token",
            "https://[2002:a00:1::]/token",
            "https://[fec0::1]/token",
            "https://[::ffff:10.0.0.1]/token",
            "https://localhost/token",
            "https://x.localhost/token",
            "https://me:pass@as.example/token",
            "https://as.example\\@127.0.0.1/token",
            "https://as.example/token#x",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "gopher://as.example/",
            "ftp://as.example/",
            "ws://as.example/",
            "wss://as.example/",
            "/token",
            "https://",
            "",
            &format!("https://as.example/{}", "x".repeat(URL_MAX)),
        ] {
            let why = to(&public, "its token end point", url).err().map(|why| why.full().into_owned());
            assert!(why.is_some_and(|why| why.contains("is not asked")), "{url}");
        }
        let found = to(&public, "it", "https://as.example/token").unwrap();
        assert_eq!((found.reach, found.headers.len()), (Reach::Internet, 0));
        assert_eq!(to(&public, "it", "https://MCP.example:443/token").unwrap().reach, Reach::Written);
        let written = Login { issuer: Some("https://10.0.0.1".to_owned()), ..public };
        assert_eq!(to(&written, "it", "https://10.0.0.1/token").unwrap().reach, Reach::Written);
        assert!(to(&written, "it", "https://10.0.0.2/token").is_err());
        let here = login("a", 1);
        for url in ["http://127.0.0.1:2/token", "http://localhost:2/token", "https://10.0.0.1/", "http://127.0.0.1:1/x"]
        {
            assert!(to(&here, "it", url).is_ok(), "{url}");
        }
        assert!(
            to(&here, "it", "http://10.0.0.1/token").is_err() && to(&here, "it", "https://169.254.169.254/").is_err()
        );
    }

    #[test]
    fn neither_headers_nor_the_certificate_of_the_gateway_go_to_another_origin() {
        let mut here = login("a", 1);
        here.at.headers.insert("x-key", "canary".parse().unwrap());
        here.at.trust.own = Some(("/c".into(), "/k".into()));
        let other = to(&here, "it", "http://127.0.0.1:2/token").unwrap();
        assert!(other.headers.is_empty() && other.trust.own.is_none());
        let same = to(&here, "it", "http://127.0.0.1:1/token").unwrap();
        assert!(same.headers.is_empty() && same.trust.own.is_some());
    }
}

//! Clients of authorization servers: of type `client_credentials`, and of type `oauth`, whose users log in.

use http::{HeaderMap, Uri};

use crate::upstream::config::{ClientCredentials, Login, Reach, Registered, Remote, Transport};

use crate::config::fault::Fault;
use crate::config::read::Section;
use crate::config::sections::address::{Address, address, is_public};
use crate::config::sections::proxy::proxy;
use crate::config::sections::transport::trust;

/// What `auth` says of a client, whatever its type.
pub(super) struct Known {
    id: Option<String>,
    secret: Option<String>,
    is_in_body: bool,
    scopes: Vec<String>,
    resource: Option<String>,
}

/// Reads it.
pub(super) fn known(auth: &mut Section<'_>) -> Known {
    let id = auth.text("client_id").filter(|id| !id.is_empty());
    let secret = secret(auth, "client_secret");
    let is_in_body = auth.word("client_auth", &[("basic", false), ("post", true)]).unwrap_or(false);
    let scopes = auth.list("scopes", "[\"tickets.read\"]").unwrap_or_default();
    let is_scope = |scope: &String| {
        !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
    };
    if !scopes.iter().all(is_scope) {
        auth.wrong("scopes", "expected one scope an item, without spaces, `\"` and `\\`");
    }
    let resource = auth.parse("resource", |text| {
        let is_url = text.parse::<Uri>().is_ok_and(|url| url.scheme().is_some() && url.host().is_some());
        match text.is_empty() || is_url && !text.contains('#') {
            true => Ok(text.to_owned()),
            false => Err("expected a URL without `#`, or an empty text to leave it out".to_owned()),
        }
    });
    Known { id, secret, is_in_body, scopes, resource }
}

/// A text that nobody may read.
pub(super) fn secret(auth: &mut Section<'_>, key: &'static str) -> Option<String> {
    let text = auth.parse(key, |text| match text.trim() {
        "" => Err("the text is empty".to_owned()),
        text => Ok(text.to_owned()),
    })?;
    auth.reading.secret(&text);
    Some(text)
}

/// A client of its own, for an upstream at this URL.
pub(super) fn of_its_own(auth: &mut Section<'_>, known: &Known, upstream: Option<&Uri>) -> Option<ClientCredentials> {
    let url = auth.parse("token_url", |text| match address(text) {
        Ok(Address::Http(url, None)) if matches!(url.scheme_str(), Some("http" | "https")) && !text.contains('#') => {
            Ok(url)
        }
        _ => Err("expected the URL of a token end point, such as \"https://login.example.com/token\"".to_owned()),
    });
    let Known { id, secret, is_in_body, scopes, resource } = known;
    let resource = resource.clone().or_else(|| upstream.and_then(canonical)).filter(|resource| !resource.is_empty());
    let params = auth.pairs("params");
    let (trust, proxy) = (trust(auth, false), proxy(auth, url.as_ref()));
    let endpoint = Remote { trust, proxy, ..Remote::new(url?, HeaderMap::new()) };
    let (id, secret, scopes) = (id.clone()?, secret.clone(), scopes.clone());
    Some(ClientCredentials { endpoint, id, secret, is_in_body: *is_in_body, scopes, resource, params })
}

/// The authorization server that a person logs in at, where it is written.
pub(super) fn issuer(auth: &mut Section<'_>) -> Option<String> {
    auth.parse("issuer", |text| {
        let expected =
            || "expected the URL of an authorization server, such as \"https://login.example.com\"".to_owned();
        let Ok(Address::Http(url, None)) = address(text) else { return Err(expected()) };
        let is_safe = match url.scheme_str() {
            Some("https") => true,
            Some("http") => Reach::is_machine(url.host().unwrap_or_default()),
            _ => false,
        };
        match is_safe && !text.contains(['#', '?']) {
            true => Ok(text.to_owned()),
            false => Err(expected() + "; http:// is for this machine alone"),
        }
    })
}

/// A login of a person, for the upstream of this name, which is there.
pub(super) fn login(
    auth: &Section<'_>,
    (name, at): (&str, &Remote),
    known: Known,
    (issuer, is_personal, has_document): (Option<String>, bool, bool),
) -> Option<Login> {
    if at.socket.is_some() {
        let fault = Fault::error("bad-value", "`auth` of type `oauth` needs an upstream at the URL of a host");
        auth.reading.fault(fault.at(auth.place("type")));
        return None;
    }
    let Known { id, secret, is_in_body, scopes, resource } = known;
    if id.is_none() && secret.is_some() {
        let fault = Fault::error("missing-key", "`client_secret` is that of a client: `client_id` is missing");
        auth.reading.fault(fault.at(auth.place("client_secret")));
    }
    if issuer.is_none() && secret.is_some() {
        let said = "`client_secret` is for one authorization server alone, and an upstream could name any: `issuer` is missing";
        auth.reading.fault(Fault::error("missing-key", said).at(auth.place("client_secret")));
    }
    let client = id.map(|id| Registered { id, secret, is_in_body });
    Some(Login {
        said_resource: resource,
        issuer,
        client,
        has_document,
        scopes,
        is_personal,
        is_found: false,
        ..plain(name, at)?
    })
}

/// The login that a person can make at an upstream of Streamable HTTP for which nothing is written that it is shown: should it ask for one.
pub(crate) fn found(name: &str, transport: &Transport) -> Option<Login> {
    let Transport::Http(at) = transport else { return None };
    let is_readable = at.url.scheme_str() == Some("http") && is_public(at.url.host().unwrap_or_default());
    match at.socket.is_some() || !at.headers.is_empty() || at.url.query().is_some() || is_readable {
        true => None,
        false => plain(name, at),
    }
}

/// A login of which nothing is said.
fn plain(name: &str, at: &Remote) -> Option<Login> {
    let host = at.url.host().unwrap_or_default();
    let reach = match () {
        () if Reach::is_machine(host) => Reach::Machine,
        () if is_public(host) => Reach::Internet,
        () => Reach::Network,
    };
    Some(Login {
        upstream: name.into(),
        is_found: true,
        at: at.clone(),
        resource: canonical(&at.url)?,
        said_resource: None,
        reach,
        issuer: None,
        client: None,
        has_document: true,
        scopes: Vec::new(),
        is_personal: false,
        is_told_apart: false,
        principal: None,
        state: None,
        keys: Vec::new(),
    })
}

/// The name of an upstream as a resource: its URL, without what a request adds.
fn canonical(url: &Uri) -> Option<String> {
    let scheme = match url.scheme_str()? {
        "https" | "wss" => "https",
        _ => "http",
    };
    let authority = url.authority()?.as_str().to_ascii_lowercase();
    let path = if url.path() == "/" { "" } else { url.path() };
    Some(format!("{scheme}://{authority}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::Environment;
    use crate::config::{Inputs, load};
    use crate::runtime::Scratch;
    use crate::upstream::config::Credentials;
    use std::path::Path;

    /// The login of an upstream at this URL.
    fn read(url: &str, auth: &str) -> Result<Login, String> {
        let scratch = Scratch::new();
        let text = format!("[upstreams.a]\nurl = \"{url}\"\nauth = {{ type = \"oauth\"{auth} }}\n");
        let path = scratch.write("login.toml", &text);
        let environment = Environment::of(&[("XDG_STATE_HOME", "/state"), ("SECRET", "canary-secret")]);
        let loaded = load(Inputs { files: vec![path], environment, ..Inputs::default() });
        let config = loaded.map_err(|faults| faults.to_string())?.config;
        assert!(config.secrets.has("canary-secret") == auth.contains("SECRET"), "{auth}");
        match config.upstreams.into_iter().next().and_then(|upstream| upstream.credentials) {
            Some(Credentials::Login(login)) => Ok(*login),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn a_login_needs_nothing_but_its_type_and_is_kept_in_the_state_folder() {
        let login = read("https://H.example:8443/mcp?x=1", "").unwrap();
        assert_eq!((&*login.upstream, &*login.resource), ("a", "https://h.example:8443/mcp"));
        assert!(login.client.is_none() && login.issuer.is_none() && login.scopes.is_empty());
        assert_eq!(login.state.as_deref(), Some(Path::new("/state/trunkline")));
        let keys = r#", client_id = "me", client_secret = "${SECRET}", client_auth = "post", scopes = ["a"], resource = "", issuer = "https://10.0.0.1""#;
        let login = read("https://h.example/mcp", keys).unwrap();
        assert!(!format!("{login:?}").contains("canary"));
        assert!(
            login.client.is_some_and(|client| client.is_in_body && client.secret.as_deref() == Some("canary-secret"))
        );
        assert_eq!((login.said_resource.as_deref(), login.issuer.as_deref()), (Some(""), Some("https://10.0.0.1")));
    }

    #[test]
    fn where_an_upstream_is_decides_where_what_it_names_may_lead() {
        for (url, reach) in [
            ("https://h.example/mcp", Reach::Internet),
            ("https://8.8.8.8/mcp", Reach::Internet),
            ("https://10.0.0.1/mcp", Reach::Network),
            ("https://tickets.internal/mcp", Reach::Network),
            ("http://127.0.0.1:1/mcp", Reach::Machine),
            ("http://localhost:1/mcp", Reach::Machine),
            ("http://[::1]:1/mcp", Reach::Machine),
        ] {
            assert_eq!(read(url, "").map(|login| login.reach), Ok(reach), "{url}");
        }
    }

    #[test]
    fn what_is_wrong_in_a_login_is_said_where_it_stands() {
        for (url, auth, words) in [
            ("https://h.example", r#", issuer = "http://as.example""#, "http:// is for this machine alone"),
            ("https://h.example", r#", issuer = "as.example""#, "the URL of an authorization server"),
            ("https://h.example", r#", issuer = "https://as.example/?x""#, "the URL of an authorization server"),
            ("https://h.example", r#", client_secret = "canary""#, "`client_id` is missing"),
            ("https://h.example", r#", client_id = "me", client_secret = "canary""#, "`issuer` is missing"),
            ("https://h.example", r#", token_url = "https://as.example""#, "`token_url` has no meaning"),
            ("https://h.example", r#", scopes = ["a b"]"#, "one scope an item"),
            ("unix:///run/a.sock#/mcp", "", "needs an upstream at the URL of a host"),
            ("http://h.example", "", "`auth` would be sent without encryption to a public address"),
        ] {
            let why = read(url, auth).unwrap_err();
            assert!(why.contains(words) && !why.contains("canary"), "{auth}: {why}");
        }
    }
}

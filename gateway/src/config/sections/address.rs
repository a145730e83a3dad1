//! Where an upstream is, as its `url` says it: a URL, a socket of this machine, or a host and a port.

use std::net::IpAddr;
use std::path::PathBuf;

use http::Uri;

use crate::config::secret::decoded;
use crate::upstream::config::{Place, meant, numbers};

/// The longest path that the system takes for a socket, in bytes.
pub(super) const SOCKET_PATH_MAX: usize = 107;

/// How names end that are only known within a network.
const WITHIN: [&str; 11] = [
    ".svc",
    ".cluster.local",
    ".local",
    ".internal",
    ".localhost",
    ".lan",
    ".home.arpa",
    ".home",
    ".intranet",
    ".test",
    ".ts.net",
];

/// Where an upstream is.
pub(super) enum Address {
    /// Reached by HTTP, on a socket of this machine in place of the host where one is named.
    Http(Uri, Option<PathBuf>),
    /// A connection with one message a line.
    Lines(Place),
}

impl Address {
    /// Whether the scheme is that of a WebSocket.
    pub(super) fn is_websocket(&self) -> bool {
        matches!(self, Self::Http(url, _) if matches!(url.scheme_str(), Some("ws" | "wss")))
    }

    /// The URL of one that is reached over the network by HTTP.
    pub(super) fn url(&self) -> Option<&Uri> {
        match self {
            Self::Http(url, None) => Some(url),
            _ => None,
        }
    }

    /// Whether the scheme says nothing of what is spoken over HTTP.
    pub(super) fn is_socket(&self) -> bool {
        matches!(self, Self::Http(_, Some(_)))
    }
}

/// Whether a host is none of a network of one's own: an address that is routed everywhere, or a name with a dot that is not of a kind
/// that is only known within.
pub(super) fn is_public(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
    if let Some(ip) = host.parse::<IpAddr>().ok().or_else(|| numbers(&host).map(IpAddr::V4)) {
        return !meant(ip).into_iter().any(is_private);
    }
    host.contains('.') && !WITHIN.iter().any(|end| host.ends_with(end))
}

/// Whether a public host is written as clusters write a service and its namespace for short: two labels, which may as well be a domain.
pub(super) fn is_short_service(host: &str) -> bool {
    let is_label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_alphanumeric())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    numbers(host).is_none() && host.split_once('.').is_some_and(|(service, space)| is_label(service) && is_label(space))
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            let is_shared = first == 100 && (64..128).contains(&second) || first == 198 && (18..20).contains(&second);
            ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified() || is_shared
        }
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// Reads it. Nothing of the text is repeated in an error: it may hold a key.
pub(super) fn address(text: &str) -> Result<Address, String> {
    if let Some(rest) = text.strip_prefix("unix:") {
        let (path, at) = rest.split_once('#').map_or((rest, None), |(path, at)| (path, Some(at)));
        let path = socket(path.strip_prefix("//").unwrap_or(path))?;
        return match at {
            None => Ok(Address::Lines(Place::Socket(path))),
            Some(at) => over(path, at),
        };
    }
    if let Some(rest) = text.strip_prefix("http+unix://") {
        let (path, at) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let expected = || "expected the path of the socket as in \"http+unix://%2Frun%2Fmcp.sock/mcp\"".to_owned();
        return over(socket(&decoded(path).ok_or_else(expected)?)?, at);
    }
    if let Some(rest) = text.strip_prefix("tcp:") {
        let expected = || "expected a host and a port as in \"tcp://127.0.0.1:9000\"".to_owned();
        let authority: http::uri::Authority =
            rest.strip_prefix("//").unwrap_or(rest).parse().map_err(|_| expected())?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().filter(|port| *port > 0).ok_or_else(expected)?;
        return match host.is_empty() || authority.as_str().contains('@') {
            true => Err(expected()),
            false => Ok(Address::Lines(Place::Host(host, port))),
        };
    }
    url(text).map(|url| Address::Http(url, None))
}

fn over(socket: PathBuf, at: &str) -> Result<Address, String> {
    let expected =
        || "expected the path of the endpoint behind the socket, as in \"unix:///run/mcp.sock#/mcp\"".to_owned();
    if !at.starts_with('/') {
        return Err(expected());
    }
    let url: Uri = format!("http://localhost{at}").parse().map_err(|_| expected())?;
    Ok(Address::Http(url, Some(socket)))
}

fn socket(path: &str) -> Result<PathBuf, String> {
    if !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
        return Err("expected the absolute path of a socket as in \"unix:/run/mcp.sock\"".to_owned());
    }
    if path.len() > SOCKET_PATH_MAX {
        return Err(format!("the path of a socket has at most {SOCKET_PATH_MAX} bytes"));
    }
    Ok(path.into())
}

fn url(text: &str) -> Result<Uri, String> {
    let url: Uri = text.parse().map_err(|_| "expected a URL such as \"https://example.com/mcp\"".to_owned())?;
    let schemes = "expected a URL that begins with http://, https://, ws:// or wss://, or unix: or tcp: and an address";
    let authority = url.authority().ok_or_else(|| schemes.to_owned())?;
    match url.scheme_str() {
        Some("http" | "https" | "ws" | "wss") if authority.as_str().contains('@') => {
            Err("a user name and password in a URL are not sent; use headers = { Authorization = \"Basic …\" }"
                .to_owned())
        }
        Some("http" | "https" | "ws" | "wss") if !authority.host().is_empty() => Ok(url),
        _ => Err(schemes.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        address(text).map(|address| match address {
            Address::Http(url, None) => format!("{url}"),
            Address::Http(url, Some(socket)) => format!("{url} on {}", socket.display()),
            Address::Lines(place) => place.to_string(),
        })
    }

    #[test]
    fn sockets_and_ports_are_told_from_urls() {
        for (text, expected) in [
            ("https://h.example/mcp", "https://h.example/mcp"),
            ("unix:/run/a.sock", "unix:/run/a.sock"),
            ("unix:///run/a.sock", "unix:/run/a.sock"),
            ("unix:///run/a.sock#/mcp?x=1", "http://localhost/mcp?x=1 on /run/a.sock"),
            ("http+unix://%2Frun%2fa%20b.sock/mcp", "http://localhost/mcp on /run/a b.sock"),
            ("http+unix://%2Frun%2Fa.sock", "http://localhost/ on /run/a.sock"),
            ("tcp://127.0.0.1:9000", "tcp:127.0.0.1:9000"),
            ("tcp:h.example:9000", "tcp:h.example:9000"),
            ("tcp://[::1]:9000", "tcp:::1:9000"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_names_no_place_is_refused_without_being_repeated() {
        let long = format!("unix:/{}", "x".repeat(SOCKET_PATH_MAX));
        for text in [
            "unix:canary",
            "unix:/canary/",
            "unix:///run/a#canary",
            "http+unix://canary/mcp",
            "http+unix://%2/canary",
            "http+unix://%zz/canary",
            "tcp://canary",
            "tcp://canary:0",
            "tcp://canary:99999",
            "tcp://u@canary:1",
            "tcp:",
            "ftp://canary/",
            "canary",
            "http://canary@h.example/",
            &long,
        ] {
            assert!(shown(text).is_err_and(|why| !why.contains("canary") && !why.contains("xx")), "{text}");
        }
    }

    #[test]
    fn hosts_of_a_network_of_ones_own_are_told_from_public_ones() {
        for host in [
            "h",
            "10.0.0.1",
            "172.16.3.4",
            "192.168.0.9",
            "100.64.0.1",
            "127.0.0.1",
            "[::1]",
            "[fd00::1]",
            "[fe80::1]",
            "a.b.svc",
            "db.ns.svc.cluster.local",
            "x.internal.",
            "nas.home.arpa",
            "box.lan",
            "127.1",
            "0x0a000001",
            "198.18.0.1",
        ] {
            assert!(!is_public(host), "{host}");
        }
        for host in
            ["h.example", "8.8.8.8", "[2001:db8::1]", "100.128.0.1", "internal.example", "134744072", "0x08080808"]
        {
            assert!(is_public(host), "{host}");
        }
        for (host, is_short) in [
            ("mcp.default", true),
            ("h.example", true),
            ("a.b.example", false),
            ("1.2", false),
            ("8.8.8.8", false),
            ("h.example.", false),
        ] {
            assert_eq!((is_public(host), is_short_service(host)), (true, is_short), "{host}");
        }
    }
}

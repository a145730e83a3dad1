//! Which hosts may be asked for, and whose pages may ask.

use http::HeaderValue;
use std::net::{IpAddr, SocketAddr};

/// What is admitted.
#[derive(Debug)]
pub(crate) struct Rules {
    listen: SocketAddr,
    /// The listen address as most clients write it.
    usual: String,
    /// `host` or `host:port`, lower case; a `*` admits every host.
    hosts: Vec<String>,
    /// `scheme://host` or `scheme://host:port`, lower case.
    origins: Vec<String>,
}

impl Rules {
    pub(crate) fn new(listen: SocketAddr, hosts: &[String], origins: &[String]) -> Self {
        let lower =
            |list: &[String]| list.iter().map(|entry| entry.trim_end_matches('/').to_ascii_lowercase()).collect();
        Self { listen, usual: listen.to_string(), hosts: lower(hosts), origins: lower(origins) }
    }

    /// Whether a `Host` may be asked for. A loopback address is known by few names, and a page that was made to resolve
    /// to it still sends its own; other addresses may have any name, unless some were listed.
    pub(crate) fn admits_host(&self, host: &str) -> bool {
        if host == self.usual {
            return true;
        }
        let host = host.to_ascii_lowercase();
        let Some((name, port)) = split(&host) else { return false };
        if self.lists_host(&host, name) {
            return true;
        }
        match (self.listen.ip().is_loopback(), self.hosts.is_empty()) {
            (true, _) => self.is_local(name) && port.is_none_or(|port| port == self.listen.port()),
            (false, listed_none) => listed_none || self.is_here(name, port),
        }
    }

    /// Whether it is this machine by its address, where all addresses are listened on: a name that leads there is another one.
    fn is_here(&self, name: &str, port: Option<u16>) -> bool {
        let is_loopback = name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        self.listen.ip().is_unspecified() && is_loopback && port == Some(self.listen.port())
    }

    /// Whether a page may call: one whose origin is listed, one of this machine where only this machine is served, or
    /// one that was served under the very host it calls, where that host cannot be a name of the page's own choosing.
    pub(crate) fn admits_origin(&self, origin: &str, host: &str) -> bool {
        let (origin, host) = (origin.to_ascii_lowercase(), host.to_ascii_lowercase());
        if self.origins.contains(&origin) {
            return true;
        }
        let Some(authority) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) else {
            return false;
        };
        let Some((name, _)) = split(authority) else { return false };
        let is_fixed = name.parse::<IpAddr>().is_ok() || name == "localhost" || self.lists_host(authority, name);
        (self.listen.ip().is_loopback() && self.is_local(name)) || (is_fixed && authority == host)
    }

    fn lists_host(&self, host: &str, name: &str) -> bool {
        self.hosts.iter().any(|listed| listed == "*" || listed == host || listed.trim_matches(['[', ']']) == name)
    }

    fn is_local(&self, name: &str) -> bool {
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() && self.is_own(ip))
    }

    /// The usual loopback addresses, and the one that was bound.
    fn is_own(&self, ip: IpAddr) -> bool {
        ip == self.listen.ip() || [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])].contains(&ip)
    }
}

/// A header's text, where it is plain.
pub(crate) fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

/// The name, without the brackets of IPv6, and the port of an authority; `None` where it is none.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (name, rest) = rest.split_once(']')?;
            (name, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (authority, None),
        },
    };
    let is_name = !name.is_empty() && !name.contains(['/', '@', '?', '#', ' ', ',']);
    let port = match port {
        None => None,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok()?),
        Some(_) => return None,
    };
    is_name.then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(listen: &str, hosts: &[&str]) -> Rules {
        let hosts: Vec<_> = hosts.iter().map(|host| host.to_string()).collect();
        Rules::new(listen.parse().unwrap(), &hosts, &["https://App.example/".to_owned()])
    }

    #[test]
    fn a_loopback_address_has_few_names() {
        let rules = rules("127.0.0.1:8808", &["my.box", "other:99"]);
        for host in
            ["localhost:8808", "LOCALHOST", "127.0.0.1:8808", "[::1]:8808", "[::1]", "my.box", "My.Box:7", "other:99"]
        {
            assert!(rules.admits_host(host), "{host}");
        }
        for host in [
            "evil.example:8808",
            "localhost:80",
            "localhost.evil.example",
            "127.0.0.1.nip.io:8808",
            "127.0.0.2:8808",
            "other:98",
            "",
            "localhost:",
            "localhost:x",
            "a@localhost:8808",
            "[::1",
            "0.0.0.0:8808",
            "localhost:99999",
        ] {
            assert!(!rules.admits_host(host), "{host}");
        }
    }

    #[test]
    fn other_addresses_have_any_name_until_some_are_listed() {
        assert!(rules("0.0.0.0:8808", &[]).admits_host("gateway.example"));
        let listed = rules("0.0.0.0:8808", &["gateway.example"]);
        assert!(listed.admits_host("gateway.example:8808") && !listed.admits_host("evil.example"));
        assert!(listed.admits_host("127.0.0.1:8808") && listed.admits_host("[::1]:8808"));
        for host in ["127.0.0.1:80", "127.0.0.1", "localhost:8808", "10.0.0.1:8808", "127.0.0.1.nip.io:8808"] {
            assert!(!listed.admits_host(host), "{host}");
        }
        assert!(!rules("10.0.0.1:8808", &["gateway.example"]).admits_host("127.0.0.1:8808"));
    }

    #[test]
    fn pages_of_this_machine_and_listed_ones_may_call() {
        let rules = rules("127.0.0.1:8808", &[]);
        for origin in [
            "http://localhost:6274",
            "http://127.0.0.1:8808",
            "https://localhost",
            "http://[::1]:1",
            "https://app.example",
        ] {
            assert!(rules.admits_origin(origin, "localhost:8808"), "{origin}");
        }
        for origin in [
            "null",
            "http://app.example",
            "http://localhost:evil",
            "http://evil.example",
            "file://",
            "http://localhost.evil.example",
            "chrome-extension://abc",
            "https://app.example:444",
            "http://10.0.0.1",
        ] {
            assert!(!rules.admits_origin(origin, "localhost:8808"), "{origin}");
        }
    }

    #[test]
    fn the_same_origin_counts_where_no_page_can_choose_its_name() {
        let open = rules("0.0.0.0:8808", &[]);
        assert!(open.admits_origin("http://10.0.0.5:8808", "10.0.0.5:8808"));
        assert!(!open.admits_origin("http://10.0.0.5:80", "10.0.0.5:8808"));
        assert!(!open.admits_origin("http://rebound.example:8808", "rebound.example:8808"));
        assert!(!open.admits_origin("http://localhost:3000", "localhost:8808"));
        assert!(rules("0.0.0.0:8808", &["gw.example"]).admits_origin("https://gw.example", "gw.example"));
    }
}

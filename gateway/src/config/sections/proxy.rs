//! By which proxy an upstream is reached: as its `proxy` says, else as the environment does; what is on this machine by none.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};

use crate::upstream::config::{Proxy, meant, numbers};

use crate::config::doc::KeyDoc;
use crate::config::fault::{Fault, Place};
use crate::config::read::{Reading, Section};
use crate::config::secret::decoded;

/// What `proxy` says.
enum Said {
    Environment,
    None,
    This(Proxy),
}

/// The key `proxy` of `[upstreams.NAME]`.
pub(crate) const PROXY_KEYS: &[KeyDoc] = &[KeyDoc {
    key: "proxy",
    kind: "text",
    default: "`\"env\"`",
    description: "[proxy](../operations.md#proxies) that leads there: `\"http://HOST:PORT\"`, `\"env\"` for \
        that of the environment, `\"off\"` for none",
}];

/// Reads `proxy` for an upstream at this URL.
pub(super) fn proxy(section: &mut Section<'_>, url: Option<&Uri>) -> Option<Proxy> {
    let reading = section.reading;
    let said = section.parse("proxy", |text| match text {
        "env" => Ok(Said::Environment),
        "off" => Ok(Said::None),
        text => parsed(reading, text).map(Said::This),
    });
    let url = url.filter(|url| !is_here(url.host().unwrap_or_default()))?;
    match said {
        Some(Said::This(proxy)) => Some(Proxy { is_of_environment: false, ..proxy }),
        Some(Said::None) => None,
        Some(Said::Environment) | None => of_environment(reading, url),
    }
}

fn of_environment(reading: &Reading, url: &Uri) -> Option<Proxy> {
    let value = |name: &str| reading.environment.get(name)?.to_str().filter(|value| !value.is_empty());
    let either = |upper: &'static str, lower: &'static str| {
        value(lower).map(|value| (lower, value)).or_else(|| value(upper).map(|value| (upper, value)))
    };
    let is_tls = matches!(url.scheme_str(), Some("https" | "wss"));
    let own = if is_tls { either("HTTPS_PROXY", "https_proxy") } else { either("HTTP_PROXY", "http_proxy") };
    let (name, text) = own.or_else(|| either("ALL_PROXY", "all_proxy"))?;
    let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let (_, exempt) = either("NO_PROXY", "no_proxy").unwrap_or_default();
    if exempt.split(',').any(|entry| exempts(entry.trim(), bare(url.host().unwrap_or_default()), port)) {
        return None;
    }
    match parsed(reading, text) {
        Ok(proxy) => {
            // Hosts that reach an upstream by another proxy, or by none, do not share a gateway.
            reading.note(&format!("proxy of {url}"), text);
            Some(proxy)
        }
        Err(expected) => {
            let fault = Fault::warning("bad-value", format!("{name} is not the URL of an HTTP proxy and is ignored"));
            reading.fault(fault.at(Some(Place::Variable(name.to_owned()))).label(expected));
            None
        }
    }
}

/// Nothing of the text is repeated in an error: it may hold a password.
fn parsed(reading: &Reading, text: &str) -> Result<Proxy, String> {
    let expected = "expected \"env\", \"off\", or the URL of an HTTP proxy such as \"http://proxy.example:3128\"";
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url: Uri = text.parse().map_err(|_| expected.to_owned())?;
    let (Some("http"), Some(authority)) = (url.scheme_str(), url.authority()) else { return Err(expected.to_owned()) };
    let behind = authority.as_str().rsplit(['@', ']']).next().unwrap_or_default();
    let is_port_wrong = behind.contains(':') && url.port_u16().is_none_or(|port| port == 0);
    let is_more = !matches!(url.path(), "" | "/") || url.query().is_some() || text.contains('#');
    if authority.host().is_empty() || is_more || is_port_wrong {
        return Err(expected.to_owned());
    }
    let credentials = authority.as_str().rsplit_once('@').map(|(credentials, _)| {
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        // A lone name may be a token.
        reading.secret(if password.is_empty() { user } else { password });
        let read = |text: &str| decoded(text).unwrap_or_else(|| text.to_owned());
        let (user, password) = (read(user), read(password));
        reading.secret(if password.is_empty() { &user } else { &password });
        let encoded = STANDARD.encode(format!("{user}:{password}"));
        reading.secret(&encoded);
        let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).map_err(|_| expected.to_owned())?;
        value.set_sensitive(true);
        Ok::<_, String>(value)
    });
    let host = bare(authority.host()).to_owned();
    Ok(Proxy {
        host,
        port: url.port_u16().unwrap_or(80),
        credentials: credentials.transpose()?,
        is_of_environment: true,
    })
}

fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.')
}

/// Whether it is this machine, in any notation that a resolver takes: no proxy leads there.
fn is_here(host: &str) -> bool {
    let host = bare(host).to_ascii_lowercase();
    let address = host.parse::<IpAddr>().ok().or_else(|| numbers(&host).map(IpAddr::V4));
    let is_loopback = || address.is_some_and(|address| meant(address).iter().any(IpAddr::is_loopback));
    host == "localhost" || host.ends_with(".localhost") || is_loopback()
}

/// Whether an entry of NO_PROXY names a host: `*`, a name and all below it, an address, a network; with a port that one alone.
fn exempts(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    let (host, entry) = (host.to_ascii_lowercase(), entry.to_ascii_lowercase());
    if let (Some((network, bits)), Ok(ip)) = (entry.split_once('/'), host.parse::<IpAddr>()) {
        return within(network, bits, ip);
    }
    let (name, only) = match entry.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?))) {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
        _ => (entry.as_str(), None),
    };
    let name = bare(name.trim_start_matches('*').trim_start_matches('.'));
    let is_below = || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    !name.is_empty() && only.is_none_or(|only| only == port) && (host == name || is_below())
}

fn within(network: &str, bits: &str, ip: IpAddr) -> bool {
    let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) if bits <= 32 => {
            let shift = 32 - bits;
            shift == 32 || u32::from(network) >> shift == u32::from(ip) >> shift
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) if bits <= 128 => {
            let shift = 128 - bits;
            shift == 128 || u128::from(network) >> shift == u128::from(ip) >> shift
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::Environment;

    fn of(url: &str, variables: &[(&str, &str)]) -> (Option<String>, usize) {
        let reading = Reading::new(Vec::new(), Environment::of(variables), Vec::new());
        let proxy = of_environment(&reading, &url.parse().unwrap());
        (proxy.map(|proxy| format!("{}:{}", proxy.host, proxy.port)), reading.faults_so_far())
    }

    #[test]
    fn the_environment_names_the_proxy_by_scheme_and_what_is_exempt() {
        let all = [("HTTPS_PROXY", "http://s:1"), ("http_proxy", "p:2"), ("HTTP_PROXY", "http://no:9")];
        assert_eq!(of("https://h.example/", &all), (Some("s:1".into()), 0));
        assert_eq!(
            of("ws://h.example/", &all),
            (Some("p:2".into()), 0),
            "lower case wins, and the scheme may be left out"
        );
        assert_eq!(of("https://h.example/", &[("ALL_PROXY", "http://u:pw@a/")]), (Some("a:80".into()), 0));
        assert_eq!(of("https://h.example/", &[("ALL_PROXY", "socks5://a:1")]), (None, 1), "a warning");
        assert_eq!(of("https://h.example/", &[("HTTPS_PROXY", "")]), (None, 0));
        for exempt in ["*", "h.example", ".example", "x, example ", "*.example", "H.EXAMPLE:443"] {
            assert_eq!(of("https://h.example/", &[all[0], ("NO_PROXY", exempt)]), (None, 0), "{exempt}");
        }
        for other in ["", "xample", "h.example:80", "10.0.0.0/8", "a.h.example"] {
            assert_eq!(of("https://h.example/", &[all[0], ("no_proxy", other)]), (Some("s:1".into()), 0), "{other}");
        }
        for (ip, network) in [("10.1.2.3", "10.0.0.0/8"), ("[2001:db8::5]", "2001:db8::/32"), ("[::2]", "::2")] {
            assert_eq!(of(&format!("https://{ip}/"), &[all[0], ("NO_PROXY", network)]), (None, 0), "{network}");
        }
        assert!(of("https://10.1.2.3/", &[all[0], ("NO_PROXY", "10.2.0.0/16")]).0.is_some());
    }

    #[test]
    fn names_and_passwords_are_read_as_they_are_written_in_a_url() {
        let reading = Reading::new(Vec::new(), Environment::of(&[]), Vec::new());
        for (text, plain) in [
            ("http://us%40er:p%40ss%2Fword@h:1", "us@er:p@ss/word"),
            ("http://token@h:1", "token:"),
            ("u:100%@h:1", "u:100%"),
        ] {
            let credentials = parsed(&reading, text).unwrap().credentials.unwrap();
            assert_eq!(credentials.to_str().unwrap(), format!("Basic {}", STANDARD.encode(plain)), "{text}");
        }
        for text in ["http://h:99999", "http://h:0", "http://h:", "http://u:p#x@h:1", "http://h:1/x", "https://h:1"] {
            assert!(parsed(&reading, text).is_err(), "{text}");
        }
        assert_eq!(parsed(&reading, "http://[::1]").unwrap().port, 80);
    }

    #[test]
    fn this_machine_is_reached_by_no_proxy() {
        let spelled = ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.1."];
        for host in ["localhost", "a.localhost.", "127.0.0.9", "[::1]"].into_iter().chain(spelled) {
            assert!(is_here(host), "{host}");
        }
        for host in ["h.example", "10.0.0.1", "[::ffff:10.0.0.1]", "167772161", "127.example"] {
            assert!(!is_here(host), "{host}");
        }
    }
}

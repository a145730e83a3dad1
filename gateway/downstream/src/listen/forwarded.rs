//! For whom a trusted proxy asks: `Forwarded` and `X-Forwarded-For`, read from the right, strictly, and from nobody else.

use http::{HeaderMap, HeaderName, header};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// So many proxies may stand between a client and us.
const HOPS_MAX: usize = 16;
/// So long such a header may be.
const BYTES_MAX: usize = 4096;

/// Addresses that begin alike: those of a proxy that is believed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: Ipv6Addr,
    /// So many leading bits are alike; those of an IPv4 address follow 96 others.
    bits: u32,
}

impl Network {
    /// Reads `192.0.2.0/24`, `2001:db8::/32` or a single address; the text says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected an address or a network, such as \"10.0.0.0/8\" or \"2001:db8::1\"".to_owned();
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().map_err(|_| expected())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let (whole, before) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
        match bits.unwrap_or(whole) {
            bits if bits > whole => Err(expected()),
            bits => {
                let network = Self { address: wide(address), bits: bits + before };
                if Self::are_everybody(&[network]) { Err(Self::EVERYBODY.to_owned()) } else { Ok(network) }
            }
        }
    }

    /// What is wrong with trusting half of all addresses.
    pub const EVERYBODY: &str = "this trusts half of all addresses or more, so that clients could name any address; name the proxies' own networks";

    /// Whether these together are half of all addresses of a family, or more: then any client could name any address. So could it
    /// with all that is routed of IPv6.
    pub fn are_everybody(networks: &[Self]) -> bool {
        const MAPPED: Network = Network { address: Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), bits: 96 };
        const ROUTED: Network = Network { address: Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), bits: 3 };
        const ALL: Network = Network { address: Ipv6Addr::UNSPECIFIED, bits: 0 };
        [MAPPED, ROUTED, ALL].into_iter().any(|family| {
            let (first, last) = family.range();
            let mut inside: Vec<(u128, u128)> = networks.iter().map(Self::range).collect();
            inside.retain(|(from, to)| *from <= last && *to >= first);
            inside.sort_unstable();
            let (mut behind, mut sum) = (Some(first), 0_u128);
            for (from, to) in inside {
                let Some(from) = behind.map(|behind| from.max(behind)) else { break };
                let to = to.min(last);
                if from <= to {
                    // One is left out, so that the sum of all has room.
                    sum += to - from;
                    behind = to.checked_add(1);
                }
            }
            sum >= (last - first) / 2 - networks.len() as u128
        })
    }

    /// The first and the last of them.
    fn range(&self) -> (u128, u128) {
        let others = u128::MAX.checked_shr(self.bits).unwrap_or_default();
        let first = u128::from(self.address) & !others;
        (first, first | others)
    }

    /// Whether an address is one of them.
    pub fn has(&self, address: IpAddr) -> bool {
        let differing = u128::from(wide(address)) ^ u128::from(self.address);
        differing.leading_zeros() >= self.bits
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn wide(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The address of the client that a peer asks for: the peer's own, unless the peer is trusted; then the last address that it names
/// and that is no trusted proxy. `None` where a trusted proxy names none, or cannot be understood.
pub(crate) fn client(peer: IpAddr, trusted: &[Network], headers: &HeaderMap) -> Option<IpAddr> {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.has(address));
    if !is_trusted(peer) {
        return Some(peer.to_canonical());
    }
    let x = named(headers, &X_FORWARDED_FOR, b',').map(|hops| last(hops.iter().map(|hop| address(hop)), is_trusted));
    let standard = named(headers, &header::FORWARDED, b',');
    let standard = standard.map(|hops| last(hops.iter().map(|hop| forwarded_for(hop)), is_trusted));
    match (standard, x) {
        (Some(found), None) | (None, Some(found)) => found,
        // A proxy writes one of them and hands the other on as its client wrote it: where they differ, nothing is known.
        (Some(standard), Some(x)) => standard.filter(|_| standard == x),
        (None, None) => None,
    }
}

/// The hops that a header names, in all its lines, first to last; `None` without the header. A text that is too long, or that is no
/// text, names a hop that cannot be read.
fn named(headers: &HeaderMap, name: &HeaderName, separator: u8) -> Option<Vec<String>> {
    let mut lines = headers.get_all(name).iter().peekable();
    lines.peek()?;
    let mut joined = String::new();
    for line in lines {
        let Ok(line) = line.to_str() else { return Some(vec![String::new()]) };
        if !joined.is_empty() {
            joined.push(char::from(separator));
        }
        joined.push_str(line);
        if joined.len() > BYTES_MAX {
            return Some(vec![String::new()]);
        }
    }
    Some(split(&joined, char::from(separator)).map(|hop| hop.trim().to_owned()).collect())
}

/// Splits at a separator that stands outside of quotes.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |char| {
        let was_escaped = is_escaped;
        is_escaped = is_quoted && char == '\\' && !was_escaped;
        if char == '"' && !was_escaped {
            is_quoted = !is_quoted;
        }
        char == separator && !is_quoted
    })
}

/// The last hop that is not trusted; `None` where one behind it cannot be read, or all are trusted.
fn last(hops: impl DoubleEndedIterator<Item = Option<IpAddr>>, is_trusted: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    hops.rev().take(HOPS_MAX).find(|hop| hop.is_none_or(|address| !is_trusted(address))).flatten()
}

/// An address, with a port or without; IPv6 in brackets where it has a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => {
            let (inside, port) = rest.split_once(']')?;
            (port.is_empty() || is_port(port)).then_some(inside).filter(|inside| inside.contains(':'))?
        }
        None => match text.split_once(':') {
            Some((inside, port)) if !port.contains(':') => Some(inside).filter(|_| is_port(&text[inside.len()..]))?,
            _ => text,
        },
    };
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| {
        (1..=5).contains(&port.len()) && port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok()
    })
}

/// The address after `for=` in one hop of a `Forwarded` header.
fn forwarded_for(hop: &str) -> Option<IpAddr> {
    let mut found = None;
    for pair in split(hop, ';') {
        let (name, value) = pair.split_once('=')?;
        if !name.trim().eq_ignore_ascii_case("for") {
            continue;
        }
        let value = value.trim();
        let node = match value.strip_prefix('"') {
            Some(rest) => rest.strip_suffix('"').filter(|inside| !inside.contains(['"', '\\']))?,
            // A token has neither brackets nor colons.
            None => Some(value).filter(|value| !value.contains(['[', ']', ':']))?,
        };
        if found.replace(address(node)?).is_some() {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_for(peer: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let trusted: Vec<_> =
            ["127.0.0.1", "10.0.0.0/8", "fd00::/8"].iter().map(|text| Network::parse(text).unwrap()).collect();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        client(peer.parse().unwrap(), &trusted, &map).map(|address| address.to_string())
    }

    fn x(value: &str) -> Option<String> {
        asked_for("127.0.0.1", &[("x-forwarded-for", value)])
    }

    fn standard(value: &str) -> Option<String> {
        asked_for("127.0.0.1", &[("forwarded", value)])
    }

    fn is(address: &str) -> Option<String> {
        Some(address.to_owned())
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_and_its_own_address_is_nobodys() {
        assert_eq!(asked_for("192.0.2.1", &[("x-forwarded-for", "198.51.100.7")]), is("192.0.2.1"));
        assert_eq!(asked_for("::ffff:192.0.2.1", &[]), is("192.0.2.1"));
        assert_eq!(asked_for("127.0.0.1", &[]), None);
        assert_eq!(asked_for("::ffff:10.1.2.3", &[]), None);
        assert_eq!(asked_for("fd00::1", &[("x-forwarded-for", "2001:db8::7")]), is("2001:db8::7"));
    }

    #[test]
    fn the_last_address_that_is_no_proxys_counts_whatever_stands_before_it() {
        assert_eq!(x("198.51.100.7"), is("198.51.100.7"));
        assert_eq!(x("1.1.1.1, junk, 198.51.100.7,10.0.0.2 , 10.0.0.3"), is("198.51.100.7"));
        assert_eq!(x("10.0.0.2, 10.0.0.3"), None, "all are proxies");
        assert_eq!(
            asked_for("127.0.0.1", &[("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2")]),
            is("2.2.2.2")
        );
        assert_eq!(standard("for=1.1.1.1, For=\"198.51.100.7:80\";proto=https;by=10.0.0.1"), is("198.51.100.7"));
        assert_eq!(standard("for=\"[2001:db8::7]:4711\", for=10.0.0.2"), is("2001:db8::7"));
        assert_eq!(x(&vec!["10.0.0.2"; 17].join(",")), None);
    }

    #[test]
    fn what_cannot_be_read_names_nobody() {
        for odd in [
            "",
            "unknown",
            "198.51.100.7, ",
            "198.51.100.7:",
            "198.51.100.7:x",
            "[198.51.100.7]",
            "198.51.100.07",
            "[2001:db8::7",
            "2001:db8::7]",
            "198.51.100.7:99999",
            "a,b",
            "1.1.1.1 2.2.2.2",
        ] {
            assert_eq!(x(odd), None, "{odd}");
        }
        for odd in [
            "",
            "for=unknown",
            "for=_hidden",
            "proto=https",
            "for=1.1.1.1;for=2.2.2.2",
            "for=2001:db8::7",
            "for=\"1.1.1.1",
            "for=\"1.1.1.1\\\"",
            "1.1.1.1",
        ] {
            assert_eq!(standard(odd), None, "{odd}");
        }
        let two = |one, other| asked_for("127.0.0.1", &[("forwarded", one), ("x-forwarded-for", other)]);
        assert_eq!(two("for=1.1.1.1", "1.1.1.1"), is("1.1.1.1"));
        assert_eq!(two("for=1.1.1.1", "2.2.2.2"), None, "one of them is as the client wrote it");
        assert_eq!(two("junk", "2.2.2.2"), None);
    }

    #[test]
    fn networks_are_read_and_everybody_is_none() {
        for odd in ["", "10.0.0.0/33", "10.0.0", "::/129", "0.0.0.0/0", "::/0", "10.0.0.0/x", "host"] {
            assert!(Network::parse(odd).is_err(), "{odd}");
        }
        assert!(Network::parse("10.1.2.3/8").unwrap().has("10.255.0.1".parse().unwrap()));
        assert!(!Network::parse("10.0.0.0/8").unwrap().has("11.0.0.1".parse().unwrap()));
    }
}

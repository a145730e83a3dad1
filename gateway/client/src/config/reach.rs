//! Where a URL may lead: anywhere where a person wrote it, and not into a network of one's own where a server from outside named it.

use super::address::{gives_out_credentials, meant, numbers};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses the host of a URL may stand for; what a later one admits, it admits beside what the earlier ones do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// A server named the URL that is reached over the internet: addresses that are routed there.
    Internet,
    /// A server named it that is itself in a network of one's own.
    Network,
    /// A server named it that is itself on this machine.
    Machine,
    /// A person wrote it: all. A name may not lead where the credentials of a machine are given out; an address that is written may.
    Written,
}

impl Reach {
    /// Whether a connection may be opened to an address that the host, a name or an address itself, stands for.
    pub(crate) fn admits(self, host: &str, address: IpAddr) -> bool {
        let is_written = host.split('%').next().is_some_and(|host| host.parse::<IpAddr>().is_ok());
        match self {
            Self::Written => is_written || !gives_out_credentials(address),
            reach => !gives_out_credentials(address) && Self::needed(address) <= reach,
        }
    }

    /// Whether a host may be asked for at all: what its name or its numbers say by themselves, before anybody looks it up.
    pub fn admits_host(self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let address = host.split('%').next().and_then(|host| host.parse().ok());
        match address.or_else(|| numbers(&host).map(IpAddr::V4)) {
            Some(address) => self.admits(&host, address),
            None if is_this_machine(&host) => self >= Self::Machine,
            None => true,
        }
    }

    /// Whether a host is this machine, by its name or its address.
    pub fn is_machine(host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
        is_this_machine(&host) || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// What admits an address that a server named.
    fn needed(address: IpAddr) -> Self {
        let each = meant(address).into_iter().map(|address| match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        });
        each.max().unwrap_or(Self::Network)
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

fn of_v4(address: Ipv4Addr) -> Reach {
    let [first, second, third, _] = address.octets();
    match (first, second, third) {
        (0 | 127, ..) => Reach::Machine,
        // Shared, for benchmarks, for the protocol itself, and what is no host's.
        (100, 64..128, _) | (198, 18 | 19, _) | (192, 0, 0) | (224.., ..) => Reach::Network,
        _ if address.is_private() || address.is_link_local() => Reach::Network,
        _ => Reach::Internet,
    }
}

fn of_v6(address: Ipv6Addr) -> Reach {
    let [first, ..] = address.segments();
    match first {
        _ if address.is_loopback() || address.is_unspecified() => Reach::Machine,
        // Site-local, unique local, link-local, multicast.
        0xfec0..=0xffff | 0xfc00..=0xfdff | 0xfe80..=0xfebf => Reach::Network,
        _ => Reach::Internet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: [&str; 30] = [
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.0.8",
        "224.0.0.1",
        "255.255.255.255",
        "127.0.0.1",
        "127.255.0.9",
        "0.0.0.0",
        "0.1.2.3",
        "::1",
        "::",
        "fc00::1",
        "fd12::1",
        "fec0::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "::ffff:0:192.168.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::192.168.0.1",
        "2002:7f00:1::",
        "2002:0a00:1::1",
        "2001:0:1:2:3:4:80ff:fffe",
        "2001:db8::5efe:10.0.0.1",
        "2001:db8::200:5efe:127.0.0.1",
    ];
    const CREDENTIALS: [&str; 9] = [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
    ];

    #[test]
    fn what_a_server_from_the_internet_names_leads_to_no_network_of_ones_own_in_no_form() {
        for text in INSIDE.iter().chain(&CREDENTIALS) {
            let address = text.parse().unwrap();
            for host in ["rebound.example", text] {
                assert!(!Reach::Internet.admits(host, address), "{host} {text}");
            }
            assert!(!Reach::Internet.admits_host(text), "{text}");
        }
        for text in ["8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8", "2002:808:808::1"] {
            assert!(Reach::Internet.admits("as.example", text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn numbers_in_every_form_and_names_of_this_machine_are_known_before_they_are_looked_up() {
        for host in [
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "127.1",
            "0177.0.0.1",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "0",
            "10.1",
            "0xa000001",
        ] {
            assert!(!Reach::Internet.admits_host(host), "{host}");
            assert!(Reach::Machine.admits_host(host), "{host}");
        }
        assert!(!Reach::Machine.admits_host("2852039166"), "credentials are given out there");
        assert!(!Reach::Network.admits_host("localhost") && !Reach::Network.admits_host("127.0.0.1"));
        assert!(Reach::Network.admits_host("10.0.0.1") && Reach::Internet.admits_host("as.example"));
        for (host, is_machine) in
            [("localhost", true), ("[::1]", true), ("127.0.0.9", true), ("127.1", false), ("h", false)]
        {
            assert_eq!(Reach::is_machine(host), is_machine, "{host}");
        }
    }

    #[test]
    fn credentials_of_a_machine_are_given_out_to_no_url_that_a_server_named() {
        for text in CREDENTIALS {
            let address = text.parse().unwrap();
            for reach in [Reach::Internet, Reach::Network, Reach::Machine] {
                assert!(!reach.admits(text, address), "{text} {reach:?}");
            }
            assert!(!Reach::Written.admits("a.example", address) && Reach::Written.admits(text, address), "{text}");
        }
    }
}

//! Which addresses an upstream's host stands for, in every form that a resolver takes: what of them gives out credentials.

use crate::upstream::config::{gives_out_credentials, meant, numbers};
use std::net::IpAddr;

/// Where clouds keep the credentials of a machine, by name.
const METADATA: [&str; 4] = ["metadata", "metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"];

/// A host of an address, without brackets and without the dot at its end.
pub(super) struct Destination {
    host: String,
    addresses: Vec<IpAddr>,
}

impl Destination {
    pub(super) fn of(host: &str) -> Self {
        let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        // A zone belongs to the machine, not to the address.
        let bare = host.split('%').next().unwrap_or_default();
        let address = bare.parse().ok().or_else(|| numbers(bare).map(IpAddr::V4));
        let addresses = address.into_iter().flat_map(meant).collect();
        Self { host, addresses }
    }

    /// Whether it is link-local, or where a cloud gives out the credentials of a machine.
    pub(super) fn is_metadata(&self) -> bool {
        METADATA.contains(&&*self.host) || self.addresses.iter().copied().any(gives_out_credentials)
    }

    /// Whether it is this machine.
    pub(super) fn is_local(&self) -> bool {
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || self.addresses.iter().any(|ip| ip.is_loopback() || ip.is_unspecified())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metadata_address_is_known_in_every_form_that_a_resolver_takes() {
        for host in [
            "169.254.169.254",
            "169.254.169.254.",
            "2852039166",
            "0xa9fea9fe",
            "0XA9FEA9FE",
            "025177524776",
            "169.254.43518",
            "169.16689662",
            "0251.0376.0251.0376",
            "0xa9.0xfe.0xa9.0xfe",
            "169.0376.0xa9fe",
            "[::ffff:169.254.169.254]",
            "[::169.254.169.254]",
            "[::ffff:0:169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::a9fe:a9fe]",
            "[2002:a9fe:a9fe::]",
            "[2001:0:1:2:3:4:5601:5601]",
            "[fe80::5efe:a9fe:a9fe]",
            "[2001:db8::200:5efe:a9fe:a9fe]",
            "[fe80::1]",
            "[fe80::1%25eth0]",
            "[fd00:ec2::254]",
            "100.100.100.200",
            "1684301000",
            "METADATA.google.internal.",
        ] {
            assert!(Destination::of(host).is_metadata(), "{host}");
        }
        for host in
            ["example.com", "1.2.3", "08.1", "256.1.1.1", "4294967296", "0xg", "[::1]", "169.255.1.1", "", "1..2"]
        {
            assert!(!Destination::of(host).is_metadata(), "{host}");
        }
    }

    #[test]
    fn this_machine_is_known_in_every_form_too() {
        for host in
            ["localhost", "a.localhost.", "127.0.0.1", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "[::1]", "0"]
        {
            assert!(Destination::of(host).is_local(), "{host}");
        }
        assert!(Destination::of("[::ffff:127.0.0.1]").is_local());
        assert!(!Destination::of("h.example").is_local() && !Destination::of("128.0.0.1").is_local());
    }
}

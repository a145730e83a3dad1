//! Whose share of what all clients have in common a request takes.

use crate::caller::{Peer, Principal};
use crate::memory::account::{Owner, OwnerName};
use std::net::{IpAddr, Ipv6Addr};

/// The groups of an IPv6 address that name a network: a client has all addresses behind them.
const NETWORK_GROUPS: usize = 4;

/// Whose share of connections, sessions, instances and open questions a request takes. It decides nothing else: an address is no
/// credential.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Share {
    /// The share of a credential.
    Principal(Principal),
    /// Without credentials: the share of a client's address, of an IPv6 client that of its /64 network.
    Address(IpAddr),
    /// The share of all whom nothing tells apart: they came through a trusted proxy that does not say for whom it asks.
    Unknown,
}

impl Share {
    /// The share of an address.
    pub fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let mut groups = address.segments();
                groups[NETWORK_GROUPS..].fill(0);
                IpAddr::V6(Ipv6Addr::from(groups))
            }
            address => address,
        })
    }

    /// The share of whoever is at the other end of a connection.
    pub fn of_peer(peer: Peer) -> Self {
        match peer {
            Peer::Address(address) => Self::of_address(address),
            Peer::User(number) => Self::Principal(Principal::of_user(number)),
        }
    }

    /// What all that it makes the gateway keep is weighed by.
    pub fn owner(&self) -> Owner {
        let name = match self {
            Self::Principal(principal) => OwnerName::Principal(principal.shared_name()),
            Self::Address(address) => OwnerName::Address(*address),
            Self::Unknown => OwnerName::Unknown,
        };
        Owner::of(self, name)
    }

    /// The share of a principal; of the anonymous one, that of the address.
    pub fn of(principal: &Principal, address: Option<IpAddr>) -> Self {
        match address {
            _ if !principal.is_anonymous() => Self::Principal(principal.clone()),
            Some(address) => Self::of_address(address),
            None => Self::Unknown,
        }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Principal(principal) => write!(f, "principal `{}`", principal.name()),
            Self::Address(address @ IpAddr::V6(_)) => write!(f, "{address}/64"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Unknown => f.write_str("clients of no known address"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_principals_else_an_addresss_else_of_all_who_cannot_be_told_apart() {
        let of = |text: &str| Share::of(&Principal::anonymous(), text.parse().ok());
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8:1:2:3::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("2001:db8:1:2:3::1").to_string(), "2001:db8:1:2::/64");
        assert_eq!(of(""), Share::Unknown);
        let user = Principal::of_user(7);
        assert_eq!(Share::of_peer(Peer::User(7)), Share::of(&user, None));
        assert_eq!(Share::of_peer(Peer::Address([192, 0, 2, 1].into())), of("192.0.2.1"));
        let ann = Principal::named("ann");
        assert_eq!(Share::of(&ann, "192.0.2.1".parse().ok()), Share::of(&ann, None));
    }
}

//! Who is at the other end of a connection.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// An address, which may be a proxy's.
    Address(IpAddr),
    /// A user of this machine, by number, as the system says.
    User(u32),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::User(number) => write!(f, "user {number}"),
        }
    }
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address.ip())
    }
}

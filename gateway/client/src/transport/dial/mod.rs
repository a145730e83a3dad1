//! Where upstreams on the network are: their addresses found, connections opened to them.

// Finds the addresses of a host.
mod dns;
// A connection by way of an HTTP proxy, which is told where it is to lead.
mod proxy;
// Opens connections to a host, or to a socket of this machine.
mod connect;

pub(crate) use connect::{Host, to_socket};

//! The door with TLS beside the plain one: its address, its certificate, and two ways to it for clients that speak plain HTTP/1.1.

use std::net::SocketAddr;

use crate::certificates::Authority;
use crate::client::{Reach, over_tls};
use crate::gateway::free_port;
use crate::scratch::Scratch;

/// A listener with TLS.
pub(crate) struct Door {
    /// Where it is.
    pub(crate) address: SocketAddr,
    authority: Authority,
}

impl Door {
    /// At a port that is free, with a certificate of an authority of its own.
    pub(crate) fn new() -> Door {
        Door { address: SocketAddr::from(([127, 0, 0, 1], free_port())), authority: Authority::new() }
    }

    /// Its entry in the list of listeners.
    pub(crate) fn section(&self, scratch: &Scratch) -> String {
        let (cert, key) = self.authority.certify("127.0.0.1", 2999).pem();
        let file = |name: &str, text: &str| scratch.file(name, text).display().to_string();
        format!(
            "[[server.listeners]]\naddress = \"{}\"\ntls = {{ cert = \"{}\", key = \"{}\" }}",
            self.address,
            file("cert.pem", &cert),
            file("key.pem", &key)
        )
    }

    /// A way to it over one connection of HTTP/2.
    pub(crate) async fn by_http2(&self) -> Reach {
        Reach::Url(format!("http://{}/mcp", over_tls::before(&self.authority, self.address).await))
    }

    /// A way to it over as many connections of HTTP/1.1 as are asked for.
    pub(crate) async fn by_http1(&self) -> Reach {
        Reach::Url(format!("http://{}/mcp", over_tls::plain(&self.authority, self.address).await))
    }
}

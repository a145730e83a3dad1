//! Where clients are served, as bound and as it is shown.

use crate::downstream::config::{Address, Faces, PublicUrl};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where clients are served, as bound.
#[derive(Debug, Clone)]
pub struct Place {
    /// The address, as bound.
    pub address: Address,
    /// Whether it is reached by TLS.
    pub is_tls: bool,
    /// What is served there.
    pub faces: Faces,
    /// Whether a token is asked for.
    pub asks_token: bool,
}

impl Place {
    /// The same behind what stands before it.
    pub fn public_url(&self, public: &PublicUrl, path: &str) -> String {
        let (scheme, path) = self.first(path);
        let url = format!("{public}{path}");
        match url.strip_prefix("http") {
            Some(rest) if scheme == "ws" => format!("ws{rest}"),
            _ => url,
        }
    }

    /// The scheme and the path of the first of its faces.
    fn first<'a>(&self, path: &'a str) -> (&'static str, &'a str) {
        match self.faces {
            Faces { mcp: true, .. } => ("http", path),
            Faces { sse: true, .. } => ("http", Faces::SSE_PATH),
            Faces { .. } => ("ws", Faces::WEBSOCKET_PATH),
        }
    }

    /// Where clients of the first of its faces find it, if `path` is that of the endpoint.
    pub fn url(&self, path: &str) -> String {
        let secure = if self.is_tls { "s" } else { "" };
        let (scheme, path) = self.first(path);
        match &self.address {
            Address::Tcp(address) => format!("{scheme}{secure}://{}{path}", reachable(*address)),
            // As the address of an upstream is written.
            Address::Unix(socket) => format!("unix://{}#{path}", socket.display()),
            Address::Handed(_) => self.address.to_string(),
        }
    }
}

/// "Every address" is none that a client could connect to.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port()),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_that_of_the_first_face_and_can_be_reached() {
        let [mcp, sse, websocket] = [(true, true, true), (false, true, true), (false, false, true)];
        let url = |address: &str, is_tls, (mcp, sse, websocket)| {
            let faces = Faces { mcp, sse, websocket };
            let address = match address.strip_prefix("unix:") {
                Some(path) => Address::Unix(path.into()),
                None => Address::Tcp(address.parse().unwrap()),
            };
            Place { address, is_tls, faces, asks_token: false }
        };
        let public = PublicUrl { origin: "https://mcp.example.com".to_owned(), prefix: "/gw".to_owned() };
        let behind = |faces| url("0.0.0.0:8808", false, faces).public_url(&public, "/mcp");
        assert_eq!(behind(mcp), "https://mcp.example.com/gw/mcp");
        assert_eq!(behind(sse), "https://mcp.example.com/gw/sse");
        assert_eq!(behind(websocket), "wss://mcp.example.com/gw/ws");
        let url = |address: &str, is_tls, faces| url(address, is_tls, faces).url("/mcp");
        assert_eq!(url("0.0.0.0:8808", false, mcp), "http://127.0.0.1:8808/mcp");
        assert_eq!(url("[::1]:1", true, mcp), "https://[::1]:1/mcp");
        assert_eq!(url("[::1]:1", true, sse), "https://[::1]:1/sse");
        assert_eq!(url("127.0.0.1:1", false, websocket), "ws://127.0.0.1:1/ws");
        assert_eq!(url("127.0.0.1:1", true, websocket), "wss://127.0.0.1:1/ws");
        assert_eq!(url("unix:/run/mcp.sock", false, mcp), "unix:///run/mcp.sock#/mcp");
        assert_eq!(url("unix:/run/mcp.sock", false, websocket), "unix:///run/mcp.sock#/ws");
    }
}

//! Between cleartext and TLS: who speaks plain HTTP/1.1 reaches a server behind TLS, over HTTP/1.1 or over a single connection of HTTP/2.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri, Version, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificates::Authority;

/// What is sent.
pub type Body = BoxBody<Bytes, hyper::Error>;

/// How TLS is spoken with a server of this authority, to which these protocols are offered.
fn trusting(authority: &Authority, offered: &[&[u8]]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let known = CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("it is PEM");
    roots.add(known).expect("it is an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.expect("ring has them").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn shaken(connector: &TlsConnector, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    connector.connect(ServerName::try_from("127.0.0.1").expect("a name"), stream).await
}

/// A connection with TLS, on which these protocols are offered. None where the other side has none of them.
pub async fn secured(authority: &Authority, address: SocketAddr, offered: &[&[u8]]) -> Option<TlsStream<TcpStream>> {
    shaken(&trusting(authority, offered), address).await.ok()
}

/// A client of HTTP/2.
pub async fn client(authority: &Authority, address: SocketAddr) -> SendRequest<Body> {
    opened(&trusting(authority, &[b"h2"]), address).await.expect("it speaks HTTP/2")
}

async fn opened(connector: &TlsConnector, address: SocketAddr) -> Option<SendRequest<Body>> {
    let stream = shaken(connector, address).await.ok()?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(send)
}

/// Somewhere to reach a server behind TLS without it: each connection goes on as one of its own, with HTTP/1.1.
pub async fn plain(authority: &Authority, address: SocketAddr) -> SocketAddr {
    let (listener, here) = listening().await;
    let connector = trusting(authority, &[b"http/1.1"]);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let connector = connector.clone();
            tokio::spawn(async move {
                let mut far = shaken(&connector, address).await.ok()?;
                // A connection that breaks is the affair of who holds its ends.
                tokio::io::copy_bidirectional(&mut near, &mut far).await.ok()
            });
        }
    });
    here
}

/// So often a request is sent that was not looked at.
const TRIES: usize = 5;

/// Whether a request was not looked at, as any client of HTTP/2 knows: it is made again, on a new connection where that one is over.
fn is_unseen(error: &hyper::Error) -> bool {
    let fault = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>());
    let is_refused = |fault: &h2::Error| match fault.reason() {
        Some(h2::Reason::NO_ERROR) => fault.is_go_away(),
        reason => reason == Some(h2::Reason::REFUSED_STREAM),
    };
    error.is_canceled() || fault.is_some_and(is_refused)
}

/// The one connection of HTTP/2 to a server, opened anew once it is over.
struct One {
    connector: TlsConnector,
    address: SocketAddr,
    send: Mutex<SendRequest<Body>>,
}

/// Somewhere to reach a server of HTTP/2 with HTTP/1.1: all that comes goes on over one connection.
pub async fn before(authority: &Authority, address: SocketAddr) -> SocketAddr {
    let send = Mutex::new(client(authority, address).await);
    let one = Arc::new(One { connector: trusting(authority, &[b"h2"]), address, send });
    let (listener, here) = listening().await;
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let one = one.clone();
            let service = hyper::service::service_fn(move |request| one.clone().pass(request));
            let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            tokio::spawn(async move { served.await.ok() });
        }
    });
    here
}

async fn listening() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let here = listener.local_addr().expect("a bound socket has an address");
    (listener, here)
}

impl One {
    async fn pass(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Incoming>, hyper::Error> {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = format!("https://{}{path}", self.address).parse::<Uri>().expect("a path");
        head.version = Version::HTTP_2;
        [header::HOST, header::CONNECTION].iter().for_each(|name| _ = head.headers.remove(name));
        let mut tries = 0;
        loop {
            let whole = Full::new(body.clone()).map_err(|never| match never {});
            let answer = self.sender().await.send_request(Request::from_parts(head.clone(), BoxBody::new(whole))).await;
            tries += 1;
            match answer {
                Err(error) if is_unseen(&error) && tries < TRIES => {}
                answer => {
                    return answer.map(|mut answer| {
                        *answer.version_mut() = Version::HTTP_11;
                        answer
                    });
                }
            }
        }
    }

    async fn sender(&self) -> SendRequest<Body> {
        let mut send = self.send.lock().await;
        if send.is_closed()
            && let Some(next) = opened(&self.connector, self.address).await
        {
            *send = next;
        }
        send.clone()
    }
}

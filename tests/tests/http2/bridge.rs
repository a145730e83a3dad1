//! Between HTTP/1.1 and HTTP/2: who speaks the one comes over a single connection of the other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Uri, Version, header};
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::manner::Manner;
use trunkline_tests::certificates::{Authority, Credentials, offering};

/// What is sent.
pub(crate) type Body = BoxBody<Bytes, hyper::Error>;

/// A connection with TLS, on which these protocols are offered. None where the other side has none of them.
pub(crate) async fn secured(
    authority: &Authority,
    address: SocketAddr,
    offered: &[&[u8]],
) -> Option<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let known = CertificateDer::from_pem_slice(authority.pem.as_bytes()).expect("it is PEM");
    roots.add(known).expect("it is an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder.expect("ring has them").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(address).await.expect("somebody listens");
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()
}

/// A client of HTTP/2.
pub(crate) async fn client(authority: &Authority, address: SocketAddr) -> SendRequest<Body> {
    let stream = secured(authority, address, &[b"h2"]).await.expect("it speaks HTTP/2");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("it begins");
    tokio::spawn(connection);
    send
}

/// Somewhere to reach a server of HTTP/2 with HTTP/1.1: all that comes goes on over one connection.
pub(crate) async fn before(authority: &Authority, address: SocketAddr) -> SocketAddr {
    let send = client(authority, address).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let here = listener.local_addr().expect("a bound socket has an address");
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let send = send.clone();
            let service = hyper::service::service_fn(move |request| pass(send.clone(), request, address));
            let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            tokio::spawn(async move { served.await.ok() });
        }
    });
    here
}

async fn pass(
    mut send: SendRequest<Body>,
    request: Request<Incoming>,
    address: SocketAddr,
) -> Result<http::Response<Incoming>, hyper::Error> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = format!("https://{address}{path}").parse::<Uri>().expect("a path");
    head.version = Version::HTTP_2;
    [header::HOST, header::CONNECTION].iter().for_each(|name| _ = head.headers.remove(name));
    let answer = send.send_request(Request::from_parts(head, BoxBody::new(body))).await;
    answer.map(|mut answer| {
        *answer.version_mut() = Version::HTTP_11;
        answer
    })
}

/// Somewhere to reach a server of HTTP/1.1 with HTTP/2; and how many connections have come.
pub(crate) async fn behind(credentials: &Credentials, inner: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let manner = Arc::<Manner>::default();
    let (address, counted) = (behind_with(credentials, inner, &manner).await, manner.clone());
    (address, counted.connections.clone())
}

/// The same, by whoever behaves in this manner.
pub(crate) async fn behind_with(credentials: &Credentials, inner: SocketAddr, manner: &Arc<Manner>) -> SocketAddr {
    let acceptor = offering(credentials, &[b"h2", b"http/1.1"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let here = listener.local_addr().expect("a bound socket has an address");
    let manner = manner.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (acceptor, manner) = (acceptor.clone(), manner.clone());
            tokio::spawn(async move {
                let stream = acceptor.accept(socket).await.ok()?;
                manner.connections.fetch_add(1, Ordering::SeqCst);
                let is_shared = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                let served = manner.clone();
                let service = hyper::service::service_fn(move |request| answer(served.clone(), request, inner));
                if !is_shared {
                    let builder = hyper::server::conn::http1::Builder::new();
                    return builder.serve_connection(TokioIo::new(stream), service).await.ok();
                }
                manner.multiplexed.fetch_add(1, Ordering::SeqCst);
                let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                builder.initial_stream_window_size(16 * 1024);
                let stream = manner.before(stream);
                builder.serve_connection(TokioIo::new(stream), service).await.ok()
            });
        }
    });
    here
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn answer(
    manner: Arc<Manner>,
    request: Request<Incoming>,
    inner: SocketAddr,
) -> Result<http::Response<Incoming>, Failure> {
    let request = manner.takes(request).await?;
    Ok(hand_on(request, inner).await?)
}

async fn hand_on(request: Request<Incoming>, inner: SocketAddr) -> Result<http::Response<Incoming>, hyper::Error> {
    let stream = TcpStream::connect(inner).await.expect("the upstream listens");
    let (mut send, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse().expect("a path");
    head.version = Version::HTTP_11;
    head.headers.insert(header::HOST, inner.to_string().parse().expect("an address"));
    let mut answer = send.send_request(Request::from_parts(head, body)).await?;
    *answer.version_mut() = Version::HTTP_2;
    Ok(answer)
}

//! Between HTTP/2 and HTTP/1.1: who speaks the one reaches a server that speaks the other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Version, header};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

use super::manner::Manner;
use trunkline_tests::certificates::{Credentials, offering};

pub(crate) use trunkline_tests::client::over_tls::{Body, before, client, secured};

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

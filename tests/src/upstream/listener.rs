//! The doors of a scripted upstream: a free port of loopback, and a socket beside it.

use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

/// A connection, through whichever door it came.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Duplex for S {}

/// Opens both doors; each connection is served beside the others. The address is that of the port, which is open alone where `has_port`.
pub(crate) async fn open<F>(
    socket: &Path,
    has_port: bool,
    stop: CancellationToken,
    serve: impl Fn(Box<dyn Duplex>) -> F + Send + 'static,
) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let beside = UnixListener::bind(socket).expect("a socket can be made");
    tokio::spawn(async move {
        loop {
            let stream: Box<dyn Duplex> = tokio::select! {
                accepted = listener.accept(), if has_port => {
                    let stream = accepted.expect("the socket accepts").0;
                    stream.set_nodelay(true).expect("a socket takes options");
                    Box::new(stream)
                }
                accepted = beside.accept() => Box::new(accepted.expect("the socket accepts").0),
                () = stop.cancelled() => return,
            };
            tokio::spawn(serve(stream));
        }
    });
    address
}

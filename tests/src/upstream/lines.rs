//! An upstream that is reached by lines over a connection: each one is a client of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, BufReader, split};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::Outlet;
use crate::journal::What;
use crate::upstream::http::Host;
use crate::upstream::{Way, child};

/// Opens the door on a socket, or on a free port of loopback, whose address is given.
pub(crate) async fn open(way: Way, socket: &Path, host: Arc<Host>, stop: CancellationToken) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound socket has an address");
    let beside = UnixListener::bind(socket).expect("a socket can be made");
    tokio::spawn(async move {
        loop {
            tokio::select! {
                accepted = listener.accept(), if way == Way::Tcp => {
                    let stream = accepted.expect("the socket accepts").0;
                    stream.set_nodelay(true).expect("a socket takes options");
                    tokio::spawn(serve(host.clone(), stream, stop.clone()));
                }
                accepted = beside.accept() => {
                    let stream = accepted.expect("the socket accepts").0;
                    tokio::spawn(serve(host.clone(), stream, stop.clone()));
                }
                () = stop.cancelled() => return,
            }
        }
    });
    address
}

async fn serve(host: Arc<Host>, stream: impl AsyncRead + AsyncWrite + Send + 'static, stop: CancellationToken) {
    let engine = &host.engine;
    engine.journal.tell(What::Visit { method: "CONNECT".into(), headers: Vec::new() }).await;
    let (input, output) = split(stream);
    let (sender, receiver) = mpsc::channel(1024);
    let outlet = Outlet::onto(sender);
    let reading = child::read_lines(engine, BufReader::with_capacity(1 << 16, input), &outlet);
    tokio::select! {
        () = reading => {}
        () = child::write_lines(receiver, output, true) => {}
        () = stop.cancelled() => {}
    }
    engine.journal.tell(What::Eof).await;
}

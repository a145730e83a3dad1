//! An upstream that is reached by lines over a connection: each one is a client of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{BufReader, split};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::Outlet;
use crate::journal::What;
use crate::upstream::http::Host;
use crate::upstream::listener::{self, Duplex};
use crate::upstream::{Way, child};

/// Opens the door on a socket, or on a free port of loopback, whose address is given.
pub(crate) async fn open(way: Way, socket: &Path, host: Arc<Host>, stop: CancellationToken) -> SocketAddr {
    let ends = stop.clone();
    listener::open(socket, way == Way::Tcp, stop, move |stream| serve(host.clone(), stream, ends.clone())).await
}

async fn serve(host: Arc<Host>, stream: Box<dyn Duplex>, stop: CancellationToken) {
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

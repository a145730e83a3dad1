//! What connections come from.

use crate::call::caller::Peer;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// Where connections come from.
pub trait Accept: Send + Sync + Sized {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;
    /// What is known of its other end.
    type End: Into<Peer> + Send;

    /// The next connection. Dropped before it is there, it loses none.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Self::End)>> + Send;

    /// Closes it; the connections that the system has established by now, one after the other. Others would be reset.
    fn latecomers(self) -> impl Iterator<Item = (Self::Stream, Self::End)>;

    /// Small answers must not wait for more of them.
    fn unhurried(stream: &Self::Stream);

    /// Writes what there is room for, without waiting.
    fn tell(stream: &Self::Stream, text: &[u8]);
}

impl Accept for TcpListener {
    type Stream = TcpStream;
    type End = SocketAddr;

    fn next(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        self.accept()
    }

    fn latecomers(self) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
        // Of the runtime's listener it is not known whether somebody waits: that is looked at later.
        let listener = self.into_std().ok();
        std::iter::from_fn(move || {
            let (stream, peer) = listener.as_ref()?.accept().ok()?;
            stream.set_nonblocking(true).ok()?;
            Some((TcpStream::from_std(stream).ok()?, peer))
        })
    }

    fn unhurried(stream: &TcpStream) {
        // A socket that refuses this is about to fail anyway.
        let _unset = stream.set_nodelay(true);
    }

    fn tell(stream: &TcpStream, text: &[u8]) {
        drop(stream.try_write(text));
    }
}

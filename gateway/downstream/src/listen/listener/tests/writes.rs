//! How responses are written to a connection.

use super::super::http;
use ::http::Response;
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};

/// Counts the writes to a stream: those of one buffer, and those of several.
struct Written(DuplexStream, Arc<[AtomicUsize; 2]>);

impl AsyncRead for Written {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Written {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.1[0].fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.1[1].fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn head_and_body_of_a_response_are_written_at_once_from_one_buffer() {
    let (mut peer, stream) = tokio::io::duplex(1 << 16);
    let writes = Arc::<[AtomicUsize; 2]>::default();
    let service =
        hyper::service::service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("the body")))));
    let served = http().serve_connection(TokioIo::new(Written(stream, writes.clone())), service);
    peer.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    served.await.unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nthe body"), "{answer}");
    assert_eq!(writes.each_ref().map(|count| count.load(Ordering::Relaxed)), [1, 0]);
}

//! How an upstream of HTTP/2 behaves: it refuses a call, leaves in the middle of one, or takes nothing of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::Request;
use http::header::CONTENT_LENGTH;
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{Mutex, Notify};

const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;
/// A call with a body of so many bytes is one that nobody reads.
const LONG: u64 = 64 * 1024;

/// See above.
#[derive(Default)]
pub(crate) struct Manner {
    /// How many connections have come, and how many of them are of HTTP/2.
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) multiplexed: AtomicUsize,
    /// So many calls are still refused.
    pub(crate) refuses: AtomicUsize,
    /// The next request is above the last number of a `GOAWAY`.
    pub(crate) leaves: AtomicBool,
    /// A long call has come, of which nothing is taken.
    pub(crate) unread: Notify,
}

impl Manner {
    /// What becomes of a request.
    pub(super) async fn takes(&self, request: Request<Incoming>) -> Result<Request<Incoming>, h2::Error> {
        if request.headers().get("mcp-method").is_none_or(|method| method != "tools/call") {
            return Ok(request);
        }
        let less = |left: usize| left.checked_sub(1);
        if self.refuses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            return Err(h2::Reason::REFUSED_STREAM.into());
        }
        let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length > LONG) {
            self.unread.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(request)
    }

    /// Between a client and its server: who leaves does so here.
    pub(super) fn before(
        self: &Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> DuplexStream {
        let (near, far) = duplex(1 << 16);
        let (from_client, to_client) = tokio::io::split(stream);
        let (mut from_server, to_server) = tokio::io::split(near);
        let to_client = Arc::new(Mutex::new(to_client));
        let (manner, answers) = (self.clone(), to_client.clone());
        tokio::spawn(async move { manner.passes(from_client, to_server, &answers).await });
        tokio::spawn(async move {
            while let Ok(frame) = frame(&mut from_server).await {
                if to_client.lock().await.write_all(&frame).await.is_err() {
                    break;
                }
            }
        });
        far
    }

    /// Hands on what a client sends, up to where it is told that nothing more is taken.
    async fn passes(
        &self,
        mut from_client: impl AsyncRead + Unpin,
        mut to_server: impl AsyncWrite + Unpin,
        to_client: &Mutex<impl AsyncWrite + Unpin>,
    ) -> std::io::Result<()> {
        let mut preface = [0; PREFACE];
        from_client.read_exact(&mut preface).await?;
        to_server.write_all(&preface).await?;
        let mut left_at = u32::MAX;
        loop {
            let frame = frame(&mut from_client).await?;
            let stream = u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]);
            if frame[3] == HEADERS && self.leaves.swap(false, Ordering::SeqCst) {
                left_at = stream;
                let goaway = [&[0, 0, 8, GOAWAY, 0, 0, 0, 0, 0][..], &(stream - 2).to_be_bytes(), &[0; 4]].concat();
                to_client.lock().await.write_all(&goaway).await?;
            }
            if stream < left_at {
                to_server.write_all(&frame).await?;
            }
        }
    }
}

async fn frame(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut frame = vec![0; 9];
    from.read_exact(&mut frame).await?;
    let length = usize::from(frame[0]) << 16 | usize::from(frame[1]) << 8 | usize::from(frame[2]);
    frame.resize(9 + length, 0);
    from.read_exact(&mut frame[9..]).await?;
    Ok(frame)
}

//! The one task that writes to stdout: all that is queued in one write.

use crate::metrics::messages;
use crate::runtime::Tasks;
use bytes::Bytes;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// How many frames may wait to be written; whoever has another one waits too.
const QUEUE: usize = 256;
/// So much is put together for one write.
const TOGETHER_BYTES: usize = 256 * 1024;

/// Where frames go to be written, each a line.
pub(super) type Outlet = mpsc::Sender<Bytes>;

/// The writing end of a connection.
pub(super) struct Writer {
    outlet: Outlet,
    tasks: Tasks,
    fault: Arc<OnceLock<io::Error>>,
}

impl Writer {
    /// Starts the task; it ends where it stands when `level` does.
    pub(super) fn start<W>(stdout: W, level: &Tasks) -> Self
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outlet, queue) = mpsc::channel(QUEUE);
        let tasks = level.child();
        let fault = Arc::new(OnceLock::new());
        let kept = fault.clone();
        tasks.spawn_until_end(async move {
            if let Err(error) = write(stdout, queue).await {
                kept.get_or_init(|| error);
            }
        });
        Self { outlet, tasks, fault }
    }

    pub(super) fn outlet(&self) -> Outlet {
        self.outlet.clone()
    }

    /// Why nothing can be written, where that is not because the client has gone: of that nothing has to be said.
    pub(super) fn fault(&self) -> impl Fn() -> io::Result<()> + use<> {
        let fault = self.fault.clone();
        move || match fault.get().map(|error| (error.kind(), error)) {
            None | Some((io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset, _)) => Ok(()),
            Some((kind, error)) => Err(io::Error::new(kind, format!("stdout cannot be written: {error}"))),
        }
    }

    /// Resolves when nothing can be written any more.
    pub(super) async fn broken(&self) {
        self.outlet.closed().await;
    }

    /// Resolves when all that was queued is written; every other outlet must be gone by then.
    pub(super) async fn finish(self) {
        drop(self.outlet);
        self.tasks.ended().await;
    }
}

async fn write<W: AsyncWrite + Unpin>(mut stdout: W, mut queue: mpsc::Receiver<Bytes>) -> io::Result<()> {
    let (mut frames, mut lines) = (Vec::with_capacity(QUEUE), Vec::new());
    while queue.recv_many(&mut frames, QUEUE).await > 0 {
        for frame in frames.drain(..) {
            messages::CLIENT.sent();
            // A large one is written as it is, and what waits before it first.
            if lines.len() + frame.len() > TOGETHER_BYTES {
                stdout.write_all(&lines).await?;
                lines.clear();
            }
            if frame.len() > TOGETHER_BYTES {
                stdout.write_all(&frame).await?;
            } else {
                lines.extend_from_slice(&frame);
            }
            lines.push(b'\n');
        }
        stdout.write_all(&lines).await?;
        stdout.flush().await?;
        lines.clear();
    }
    Ok(())
}

//! The one task that writes to stdout: all that is queued in one write.

use crate::runtime::Tasks;
use bytes::Bytes;
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
}

impl Writer {
    /// Starts the task; it ends where it stands when `level` does.
    pub(super) fn start<W>(stdout: W, level: &Tasks) -> Self
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outlet, queue) = mpsc::channel(QUEUE);
        let tasks = level.child();
        tasks.spawn_until_end(write(stdout, queue));
        Self { outlet, tasks }
    }

    pub(super) fn outlet(&self) -> Outlet {
        self.outlet.clone()
    }

    /// Resolves when nobody reads any more.
    pub(super) async fn broken(&self) {
        self.outlet.closed().await;
    }

    /// Resolves when all that was queued is written; every other outlet must be gone by then.
    pub(super) async fn finish(self) {
        drop(self.outlet);
        self.tasks.ended().await;
    }
}

async fn write<W: AsyncWrite + Unpin>(mut stdout: W, mut queue: mpsc::Receiver<Bytes>) {
    let (mut frames, mut lines) = (Vec::with_capacity(QUEUE), Vec::new());
    while queue.recv_many(&mut frames, QUEUE).await > 0 {
        for frame in frames.drain(..) {
            // A large one is written as it is, and what waits before it first.
            if lines.len() + frame.len() > TOGETHER_BYTES {
                if stdout.write_all(&lines).await.is_err() {
                    return;
                }
                lines.clear();
            }
            if frame.len() > TOGETHER_BYTES {
                if stdout.write_all(&frame).await.is_err() {
                    return;
                }
            } else {
                lines.extend_from_slice(&frame);
            }
            lines.push(b'\n');
        }
        if stdout.write_all(&lines).await.is_err() || stdout.flush().await.is_err() {
            return;
        }
        lines.clear();
    }
}

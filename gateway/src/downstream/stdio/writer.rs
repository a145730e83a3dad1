//! The one task that writes to stdout: all that is queued in one write.

use crate::lifecycle::Tasks;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// How many frames may wait to be written; whoever has another one waits too.
const QUEUE: usize = 256;
/// A buffer that grew larger than this for a large frame is given back.
const KEPT_BYTES: usize = 1 << 20;

/// Where frames go to be written, each a line.
pub(super) type Outlet = mpsc::Sender<Vec<u8>>;

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

async fn write<W: AsyncWrite + Unpin>(mut stdout: W, mut queue: mpsc::Receiver<Vec<u8>>) {
    let (mut frames, mut lines) = (Vec::with_capacity(QUEUE), Vec::new());
    while queue.recv_many(&mut frames, QUEUE).await > 0 {
        for frame in frames.drain(..) {
            lines.extend_from_slice(&frame);
            lines.push(b'\n');
        }
        if stdout.write_all(&lines).await.is_err() || stdout.flush().await.is_err() {
            return;
        }
        lines.clear();
        lines.shrink_to(KEPT_BYTES);
    }
}

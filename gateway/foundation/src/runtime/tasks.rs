//! The task tree: every task has an owner that waits for it and a token that ends it.

use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFuture, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// One level of the task tree. Cheap to clone; clones are the same level.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    token: CancellationToken,
}

impl Tasks {
    /// A root.
    pub fn new() -> Self {
        Self::default()
    }

    /// A level below: it ends when this one does, or by itself; its tasks are counted on its own.
    pub fn child(&self) -> Self {
        Self { tracker: TaskTracker::new(), token: self.token.child_token() }
    }

    /// Starts a task of this level. It is expected to end soon after [`Self::ending`] resolves.
    #[allow(clippy::disallowed_methods, reason = "the one place where tasks are born")]
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn(task);
    }

    /// Starts a task that is dropped where it stands when the level ends.
    pub fn spawn_until_end<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn(UntilEnd { ended: self.token.clone().cancelled_owned(), task });
    }

    /// Does what reads a disk in a thread of its own, and waits for it so long, and no longer than this level lasts: a file may lie on a
    /// machine that does not answer. `None` where it was not done by then; it is left alone, with its thread.
    pub async fn beside<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        tokio::select! {
            biased;
            done = tokio::task::spawn_blocking(work) => done.ok(),
            _ = tokio::time::timeout(limit, self.ending()) => None,
        }
    }

    /// Counts as a task of this level for as long as it is kept: for work that somebody else drives.
    pub fn hold(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    /// Ends this level when it is dropped.
    pub fn guard(&self) -> DropGuard {
        self.token.clone().drop_guard()
    }

    /// Tells this level and all below it to end.
    pub fn end(&self) {
        self.token.cancel();
    }

    /// Whether the level was told to end.
    pub fn is_ending(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Resolves when the level is told to end.
    pub fn ending(&self) -> WaitForCancellationFuture<'_> {
        self.token.cancelled()
    }

    /// Resolves when the level was told to end and all its tasks have.
    pub async fn ended(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// How many tasks of this level run.
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }
}

pin_project! {
    /// A task that is dropped where it stands when its level ends: a type of its own, since an `async` block holds what it is given twice.
    struct UntilEnd<F> {
        #[pin]
        ended: WaitForCancellationFutureOwned,
        #[pin]
        task: F,
    }
}

impl<F: Future<Output = ()>> Future for UntilEnd<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        match this.ended.poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => this.task.poll(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_level_ends_with_the_one_above() {
        let root = Tasks::new();
        let level = root.child();
        level.spawn_until_end(std::future::pending());
        assert_eq!(level.len(), 1);
        root.end();
        level.ended().await;
        assert!(level.is_empty() && level.is_ending());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_is_waited_for_and_a_guard_ends_its_level() {
        let level = Tasks::new();
        let held = level.hold();
        drop(level.guard());
        assert!(level.is_ending());
        let early = tokio::time::timeout(std::time::Duration::from_secs(1), level.ended()).await;
        assert!(early.is_err());
        drop(held);
        level.ended().await;
    }
}

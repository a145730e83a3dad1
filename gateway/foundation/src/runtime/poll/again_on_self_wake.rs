//! Polls a task again at once when it wakes itself, in place of a round through the scheduler.
//!
//! A connection that is read, served and written by one task wakes itself several times a request. Each time the scheduler
//! would queue it and call another thread to help: a system call and a context switch for nothing.

use super::bell::{ASLEEP, Bell, POLLING};
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

/// How often in a row: then it is another task's turn.
const TURNS_MAX: usize = 8;

/// The future, polled again at once where it wakes itself.
pub fn repoll_on_self_wake<F: Future>(future: F) -> RepollOnSelfWake<F> {
    let task = Waker::noop().clone();
    let bell = Arc::new(Bell::of(task.clone()));
    let waker = Waker::from(bell.clone());
    RepollOnSelfWake { future, task, bell, waker }
}

pin_project! {
    /// Made by [`repoll_on_self_wake`]: a type of its own, since an `async fn` holds the future of a connection twice.
    #[must_use = "a future does nothing unless polled"]
    pub struct RepollOnSelfWake<F> {
        #[pin]
        future: F,
        task: Waker,
        bell: Arc<Bell>,
        waker: Waker,
    }
}

impl<F: Future> Future for RepollOnSelfWake<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        // It is nearly always the same one: that is seen without the lock.
        if !this.task.will_wake(cx.waker()) {
            this.task.clone_from(cx.waker());
            this.bell.wakes(this.task);
        }
        for _ in 0..TURNS_MAX {
            this.bell.state.store(POLLING, Ordering::Release);
            if let Poll::Ready(output) = this.future.as_mut().poll(&mut Context::from_waker(this.waker)) {
                return Poll::Ready(output);
            }
            // Whoever rang meanwhile was not passed on.
            if this.bell.state.compare_exchange(POLLING, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Poll::Pending;
            }
        }
        this.bell.state.store(ASLEEP, Ordering::Release);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls once a future that wakes itself so often; returns how often it was polled and how often its task was woken.
    fn polled(wakes: usize) -> (usize, usize) {
        let (counter, polls) = (Arc::new(Counter(AtomicUsize::new(0))), AtomicUsize::new(0));
        let waker = Waker::from(counter.clone());
        let inner = poll_fn(|cx| {
            if polls.fetch_add(1, Ordering::Relaxed) < wakes {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        let mut task = pin!(repoll_on_self_wake(inner));
        assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        (polls.load(Ordering::Relaxed), counter.0.load(Ordering::Relaxed))
    }

    #[test]
    fn a_self_wake_costs_a_poll_and_no_wake() {
        assert_eq!(polled(0), (1, 0));
        assert_eq!(polled(3), (4, 0));
    }

    #[test]
    fn a_task_that_never_rests_gives_way() {
        assert_eq!(polled(usize::MAX), (TURNS_MAX, 1));
    }

    #[tokio::test]
    async fn a_wake_from_elsewhere_arrives() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let (woken, ()) = tokio::join!(repoll_on_self_wake(receiver), async {
            tokio::task::yield_now().await;
            sender.send(7).unwrap();
        });
        assert_eq!(woken, Ok(7));
    }
}

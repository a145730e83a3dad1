//! Polls a future only when it was woken: for what is watched beside something that is polled far more often.
//!
//! A `select!` polls every branch each time. The clock and the end of a level, which a connection watches beside its requests,
//! are due once in minutes, and asking them each time is a measurable part of a request.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Takes the wakes of one future.
struct Knock {
    /// Whether it is to be polled.
    is_due: AtomicBool,
    /// The task that polls it.
    task: Mutex<Waker>,
}

impl Wake for Knock {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

/// The future, not polled again before it was woken.
pub async fn poll_when_woken<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut task = Waker::noop().clone();
    let knock = Arc::new(Knock { is_due: AtomicBool::new(true), task: Mutex::new(task.clone()) });
    let waker = Waker::from(knock.clone());
    poll_fn(move |cx| {
        // It is nearly always the same one: that is seen without the lock.
        if !task.will_wake(cx.waker()) {
            task.clone_from(cx.waker());
            knock.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&task);
        }
        // Whoever knocks from here on wakes the task, which comes back here.
        if !knock.is_due.load(Ordering::Relaxed) || !knock.is_due.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        future.as_mut().poll(&mut Context::from_waker(&waker))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tasks::Tasks;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;
    use tokio::sync::Notify;

    #[tokio::test(start_paused = true)]
    async fn it_is_polled_at_first_and_when_woken_and_no_more() {
        let (polls, door, busy) = (AtomicUsize::new(0), Notify::new(), Notify::new());
        let watched = poll_when_woken(async {
            let mut door = pin!(door.notified());
            poll_fn(|cx| {
                polls.fetch_add(1, Ordering::Relaxed);
                door.as_mut().poll(cx)
            })
            .await;
        });
        let noise = async {
            for _ in 0..100 {
                busy.notify_one();
                tokio::task::yield_now().await;
            }
            door.notify_one();
            std::future::pending::<()>().await
        };
        let hearing = async {
            loop {
                busy.notified().await;
            }
        };
        tokio::select! {
            () = watched => {}
            () = noise => {}
            () = hearing => {}
        }
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_reaches_the_task_that_polled_last() {
        let mut watched = Box::pin(poll_when_woken(tokio::time::sleep(Duration::from_secs(1))));
        // Another task has begun to wait for it.
        assert!(watched.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let level = Tasks::new();
        level.spawn(watched);
        level.ended().await;
    }
}

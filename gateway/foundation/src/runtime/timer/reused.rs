//! Timers that are used again: each call has some, nearly none ever fires, and to make one and take it down costs a thousand
//! instructions.

use crate::runtime::poll::Door;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep, sleep_until};

/// So many wait for their next use.
const KEPT_MAX: usize = 128;

/// A timer of the runtime. Whoever waits for it asks in every turn, and it is asked only once it has fired. Boxed: it goes from hand to
/// hand with each use.
type Clock = Box<(Pin<Box<Sleep>>, Door)>;

/// Timers that wait for their next use. They stay wound up for the time of their last one, and are moved on once they fire.
#[derive(Debug, Default)]
pub struct Timers {
    kept: Mutex<Vec<Clock>>,
    /// Whether one task alone waits for them, which ends with them: each goes on to wake it.
    is_of_one_task: AtomicBool,
}

impl Timers {
    /// One for this time.
    pub fn take(self: &Arc<Self>, until: Instant) -> Timer {
        let kept = self.lock().pop();
        let mut timer = Timer { clock: kept, until, of: Some(self.clone()) };
        timer.reset(until);
        timer
    }

    /// Those of one task, which they end with: none is for another.
    pub fn of_one_task() -> Arc<Self> {
        Arc::new(Self { is_of_one_task: true.into(), ..Self::default() })
    }

    /// Others wait for them, too, from now on.
    pub fn of_many_tasks(&self) {
        self.is_of_one_task.store(false, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Clock>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A timer.
#[derive(Debug)]
pub struct Timer {
    /// Made when it is first asked, where none was kept.
    clock: Option<Clock>,
    until: Instant,
    /// Where it waits for its next use.
    of: Option<Arc<Timers>>,
}

impl Timer {
    /// One for this time, of its own.
    pub fn at(until: Instant) -> Self {
        Self { clock: None, until, of: None }
    }

    /// When it fires.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// Winds it up anew. Where that is later than before, it is moved on when it fires.
    pub fn reset(&mut self, until: Instant) {
        self.until = until;
        if let Some(clock) = &mut self.clock
            && clock.0.deadline() > until
        {
            clock.0.as_mut().reset(until);
        }
    }

    /// Resolves when its time is over.
    pub fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let until = self.until;
        let make = || Box::new((Box::pin(sleep_until(until)), Door::default()));
        let (sleep, door) = &mut **self.clock.get_or_insert_with(make);
        door.poll(cx, |cx| {
            loop {
                ready!(sleep.as_mut().poll(cx));
                if sleep.deadline() >= until {
                    return Poll::Ready(());
                }
                sleep.as_mut().reset(until);
            }
        })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let (Some(mut clock), Some(of)) = (self.clock.take(), &self.of) else { return };
        if !of.is_of_one_task.load(Ordering::Relaxed) {
            // It keeps nobody who had it.
            clock.1.leave();
        }
        let mut kept = of.lock();
        if kept.len() < KEPT_MAX {
            kept.push(clock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use std::time::Duration;
    use tokio::time::advance;

    /// How long a timer takes, in milliseconds.
    async fn takes(timer: &mut Timer) -> u128 {
        let begun = Instant::now();
        std::future::poll_fn(|cx| timer.poll(cx)).await;
        begun.elapsed().as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_used_again_fires_at_its_new_time_be_it_later_or_nearer() {
        let timers = Arc::<Timers>::default();
        let after = |ms| Instant::now() + Duration::from_millis(ms);
        drop(timers.take(after(1000)));
        advance(Duration::from_millis(500)).await;
        assert_eq!(takes(&mut timers.take(after(2000))).await, 2000, "later than the one before it");
        drop(timers.take(after(5000)));
        assert_eq!(takes(&mut timers.take(after(100))).await, 100, "nearer");
        advance(Duration::from_secs(60)).await;
        assert_eq!(takes(&mut timers.take(after(300))).await, 300, "long after it would have fired");
        assert_eq!(timers.lock().len(), 1);
        let mut timer = Timer::at(after(100));
        timer.reset(after(400));
        assert_eq!((takes(&mut timer).await, timers.lock().len()), (400, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_kept_and_no_more_and_none_keeps_who_had_it() {
        let timers = Arc::<Timers>::default();
        let until = Instant::now() + Duration::from_secs(1);
        let mut many: Vec<_> = (0..KEPT_MAX * 2).map(|_| timers.take(until)).collect();
        let whose = Arc::new(NoWake);
        let waker = Waker::from(whose.clone());
        assert!(many.iter_mut().all(|timer| timer.poll(&Context::from_waker(&waker)).is_pending()));
        assert!(Arc::strong_count(&whose) > KEPT_MAX);
        drop((many, waker));
        assert_eq!((timers.lock().len(), Arc::strong_count(&whose)), (KEPT_MAX, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_of_one_task_goes_on_to_wake_it_and_fires_at_its_new_time() {
        let timers = Timers::of_one_task();
        let after = |ms| Instant::now() + Duration::from_millis(ms);
        let mut first = timers.take(after(100));
        assert!(std::future::poll_fn(|cx| Poll::Ready(first.poll(cx))).await.is_pending());
        drop(first);
        assert_eq!(timers.lock().len(), 1);
        assert_eq!(takes(&mut timers.take(after(400))).await, 400);
        assert_eq!(takes(&mut timers.take(after(50))).await, 50, "nearer");
        assert_eq!(timers.lock().len(), 1);
    }

    struct NoWake;

    impl std::task::Wake for NoWake {
        fn wake(self: Arc<Self>) {}
    }
}

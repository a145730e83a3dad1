//! Work that may take longer than a millisecond: it waits for a thread beside the workers and never runs on one.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use tokio::sync::Semaphore;

/// Jobs that may wait. A job beyond them is refused.
const WAITING_MAX: usize = 4096;

/// One queue for the process: half of the cores are left to the workers.
static QUEUE: LazyLock<Queue> =
    LazyLock::new(|| Queue::new(available_parallelism().map_or(1, NonZero::get) / 2, WAITING_MAX));

/// Too many jobs wait.
#[derive(Debug, PartialEq)]
pub struct Overloaded;

/// Runs a job on a thread beside the workers, once there is one for it. Dropping the future takes a waiting job out of the queue and sets
/// the flag of a running one, which then returns early: its result goes nowhere.
pub async fn offload<T: Send + 'static>(job: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Result<T, Overloaded> {
    QUEUE.run(job).await
}

struct Queue {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
}

impl Queue {
    fn new(places: usize, waiting_max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places.max(1))), waiting: AtomicUsize::new(0), waiting_max }
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Overloaded> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.waiting_max {
            return Err(Overloaded);
        }
        let place = self.places.clone().acquire_owned().await.map_err(|_| Overloaded)?;
        drop(waiting);
        let flag = Arc::new(AtomicBool::new(false));
        let _cancels = CancelGuard(flag.clone());
        let done = tokio::task::spawn_blocking(move || {
            // It goes back when the job has ended, however long that takes.
            let _place = place;
            (!flag.load(Ordering::Relaxed)).then(|| job(&flag))
        });
        match done.await {
            Ok(Some(result)) => Ok(result),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime ends.
            Ok(None) | Err(_) => Err(Overloaded),
        }
    }
}

/// One job that waits.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sets the flag of a job whose result nobody waits for.
struct CancelGuard(Arc<AtomicBool>);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    /// A job that waits for its flag and then tells of it.
    fn until_cancelled(
        started: mpsc::Sender<()>,
        stopped: mpsc::Sender<()>,
    ) -> impl FnOnce(&AtomicBool) + Send + 'static {
        move |is_cancelled| {
            started.send(()).unwrap();
            while !is_cancelled.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            stopped.send(()).unwrap();
        }
    }

    #[tokio::test]
    async fn offloaded_job_stops_when_its_future_is_dropped() {
        let queue = Queue::new(1, 4);
        let ((start, started), (stop, stopped)) = (mpsc::channel(), mpsc::channel());
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut running = pin!(queue.run(until_cancelled(start, stop)));
            assert!(running.as_mut().poll(&mut context).is_pending());
            started.recv().unwrap();
            let mut waiting = pin!(queue.run::<()>(|_| panic!("it ran, and nobody waited for it")));
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            assert_eq!(queue.waiting.load(Ordering::Relaxed), 1);
        }
        stopped.recv().unwrap();
        assert_eq!(queue.run(|_| 7).await, Ok(7), "the place is free again");
        assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
    }

    /// The one worker goes on while both places are taken and a third job waits.
    #[tokio::test]
    async fn offload_queues_jobs_beyond_its_places() {
        let queue = Queue::new(2, 1);
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(std::sync::Mutex::new(released));
        let job = || {
            let released = released.clone();
            move |_: &AtomicBool| released.lock().unwrap().recv().unwrap()
        };
        let mut context = Context::from_waker(Waker::noop());
        let (mut first, mut second, mut third) =
            (Box::pin(queue.run(job())), Box::pin(queue.run(job())), Box::pin(queue.run(job())));
        for future in [&mut first, &mut second, &mut third] {
            assert!(future.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(queue.run(job()).await, Err(Overloaded), "the queue is full");
        for _ in 0..3 {
            release.send(()).unwrap();
        }
        assert_eq!((first.await, second.await, third.await), (Ok(()), Ok(()), Ok(())));
    }
}

//! Reports a worker that stands: one that has been at one task for longer than anything may take there.
//!
//! It looks at figures that the runtime keeps anyway, so that it costs a call nothing: a worker notes when it parks, and what it
//! did after every few tasks.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::RuntimeMetrics;

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A worker that looks the same so many times stands.
const LOOKS: u32 = 4;

/// What became of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// It has been at one task for longer than a second.
    Stands {
        /// Its number.
        worker: usize,
    },
    /// It goes on.
    Ended {
        /// Its number.
        worker: usize,
        /// How long it stood, as far as was seen.
        stood: Duration,
    },
}

/// Looks at all workers of a runtime until it is dropped.
#[derive(Debug)]
pub struct Watchdog {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A worker as it was seen last.
#[derive(Debug, Clone, Default)]
struct Seen {
    busy: Duration,
    parked: u64,
    /// How often it has looked the same, at work, since.
    unchanged: u32,
}

impl Watchdog {
    /// Watches in a thread of its own, which needs no worker.
    pub fn start(workers: RuntimeMetrics, report: impl FnMut(Stall) + Send + 'static) -> io::Result<Self> {
        Self::every(LOOK_EVERY, workers, report)
    }

    fn every(
        interval: Duration,
        workers: RuntimeMetrics,
        mut report: impl FnMut(Stall) + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = mpsc::channel::<()>();
        let mut seen = vec![Seen::default(); workers.num_workers()];
        let watch = move || {
            // A process that was frozen is not seen to stand: the looks are counted, not the time.
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                for (worker, seen) in seen.iter_mut().enumerate() {
                    look(&workers, worker, seen, interval).into_iter().for_each(&mut report);
                }
            }
        };
        let thread = std::thread::Builder::new().name("watchdog".into()).spawn(watch)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

/// Looks at a worker once more; what there is to say of it.
fn look(workers: &RuntimeMetrics, worker: usize, seen: &mut Seen, interval: Duration) -> Option<Stall> {
    let (busy, parked) = (workers.worker_total_busy_duration(worker), workers.worker_park_unpark_count(worker));
    // The count is odd while it is parked.
    if (busy, parked) == (seen.busy, seen.parked) && parked % 2 == 0 {
        seen.unchanged += 1;
        return (seen.unchanged == LOOKS).then_some(Stall::Stands { worker });
    }
    let unchanged = std::mem::replace(seen, Seen { busy, parked, unchanged: 0 }).unchanged;
    (unchanged >= LOOKS).then(|| Stall::Ended { worker, stood: interval * unchanged })
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tasks::Tasks;

    const WITHIN: Duration = Duration::from_secs(30);
    const EVERY: Duration = Duration::from_millis(20);

    /// A runtime of so many workers, what watches it, and what that reports.
    fn watched(workers: usize) -> (tokio::runtime::Runtime, Watchdog, mpsc::Receiver<Stall>) {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(workers).enable_all().build().unwrap();
        let (tell, told) = mpsc::channel();
        let watchdog = Watchdog::every(EVERY, runtime.metrics(), move |stall| tell.send(stall).unwrap()).unwrap();
        (runtime, watchdog, told)
    }

    #[test]
    fn a_worker_that_stands_is_reported_and_so_is_its_end() {
        let (runtime, watchdog, told) = watched(2);
        let (release, released) = mpsc::channel::<()>();
        let level = Tasks::new();
        let _entered = runtime.enter();
        level.spawn(async move { released.recv().unwrap() });
        let Ok(Stall::Stands { worker }) = told.recv_timeout(WITHIN) else { panic!("nobody stands") };
        // The other one goes on, and is not spoken of; neither is this one a second time.
        runtime.block_on(async { tokio::time::sleep(EVERY * 2 * LOOKS).await });
        assert!(told.try_recv().is_err());
        release.send(()).unwrap();
        let Ok(Stall::Ended { worker: other, stood }) = told.recv_timeout(WITHIN) else { panic!("it stands still") };
        assert!(other == worker && stood >= EVERY * LOOKS);
        runtime.block_on(level.ended());
        drop(watchdog);
    }

    #[test]
    fn workers_that_take_turns_and_work_beside_them_are_not_reported() {
        let (runtime, watchdog, told) = watched(1);
        let level = Tasks::new();
        let _entered = runtime.enter();
        let (release, released) = mpsc::channel::<()>();
        level.spawn_until_end(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
        level.spawn(async move { crate::runtime::aside::aside(usize::MAX, || released.recv().unwrap()) });
        runtime.block_on(async { tokio::time::sleep(EVERY * 4 * LOOKS).await });
        release.send(()).unwrap();
        level.end();
        runtime.block_on(level.ended());
        drop(watchdog);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), []);
    }
}

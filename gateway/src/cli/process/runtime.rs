//! The one place where a runtime is made.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use anyhow::Context;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::failure::Failure;
use crate::metrics;
use crate::runtime::complaints::{Complaints, left_unsaid};
use crate::runtime::watchdog::{Stall, Watchdog};

/// The most threads for what blocks; those that were started stay.
const BLOCKING_MAX: usize = 32;
/// As good as for ever.
const KEEP_ALIVE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// So many threads are started with the workers: one for what blocks, and the watchdog.
const BESIDE: usize = 2;

/// Runs `work` to its end on a runtime of several threads.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, anyhow::Error>>) -> Result<T, Failure> {
    try_threads(workers() + BESIDE).context("cannot start threads")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .thread_keep_alive(KEEP_ALIVE)
        .build()
        .context("cannot start threads")?;
    let heard = {
        let _inside = runtime.enter();
        // Heard, and so without effect: a write beyond the limit on the size of files fails, and ends nothing. Children do not inherit it.
        signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))
    };
    // Where the system gives no more threads, whatever blocks (a look-up of a name) waits for this one in place of failing.
    drop(runtime.spawn_blocking(|| ()));
    let watchdog =
        Watchdog::start(runtime.metrics(), Stalls::default().into_report()).context("cannot start a thread")?;
    let done = runtime.block_on(work);
    drop((watchdog, heard));
    // A blocking read of stdin cannot be cancelled; the process does not wait for it.
    runtime.shutdown_background();
    Ok(done?)
}

fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Whether so many threads can be had at once: the runtime takes it for granted, and panics where they cannot.
fn try_threads(count: usize) -> io::Result<()> {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let started: io::Result<Vec<_>> = (0..count)
        .map(|_| {
            let wait = wait.clone();
            // None ends before the last one was started.
            let hold = move || drop(wait.lock().map(|wait| wait.recv()));
            std::thread::Builder::new().spawn(hold)
        })
        .collect();
    drop(go);
    for thread in started? {
        // It does nothing that could fail.
        let _ = thread.join();
    }
    Ok(())
}

/// Shows those who run the gateway that a worker stands: that is a fault of the gateway, and calls of others wait for it. Each is
/// counted; a line is written now and then.
#[derive(Debug, Default)]
struct Stalls(Complaints);

impl Stalls {
    fn into_report(self) -> impl FnMut(Stall) {
        move |stall| {
            if matches!(stall, Stall::Stands { .. }) {
                metrics::worker_stalls().increment(1);
            }
            match (self.says(stall), stall) {
                (Some(more), Stall::Stands { worker }) => {
                    let more = left_unsaid(more);
                    tracing::warn!(
                        worker,
                        more,
                        "worker blocked for more than a second by one task; other calls may wait"
                    );
                }
                // What stood is not known to the end either.
                (_, Stall::Ended { worker, stood }) => tracing::debug!(worker, ?stood, "blocked worker goes on"),
                (None, _) => {}
            }
        }
    }

    /// Whether there is a line for it; if so, how many had none since the last one.
    fn says(&self, stall: Stall) -> Option<u64> {
        match stall {
            Stall::Stands { .. } => self.0.take("stands"),
            Stall::Ended { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::complaints::SAID_EVERY;

    #[tokio::test(start_paused = true)]
    async fn of_workers_that_stand_again_and_again_there_is_a_line_now_and_then() {
        let stalls = Stalls::default();
        let stands = |worker| Stall::Stands { worker };
        let ended = |worker| Stall::Ended { worker, stood: Duration::from_secs(1) };
        assert_eq!(
            [stands(0), stands(1), ended(1), ended(0)].map(|stall| stalls.says(stall)),
            [Some(0), None, None, None]
        );
        let again = (0..100).flat_map(|_| [stands(0), ended(0)]).filter(|stall| stalls.says(*stall).is_some()).count();
        assert_eq!(again, 0);
        tokio::time::advance(SAID_EVERY).await;
        assert_eq!([stands(1), ended(1), ended(1)].map(|stall| stalls.says(stall)), [Some(101), None, None]);
    }
}

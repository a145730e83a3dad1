//! The one place where a runtime is made.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context;
use rustix::process::Signal;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use super::failure::Failure;
use crate::memory::purge_when_told;
use crate::metrics;
use crate::runtime::complaints::{Complaints, left_unsaid};
use crate::runtime::system::{AddressSpace, workers};
use crate::runtime::watchdog::{Stall, Watchdog};

/// The most threads for work that blocks and for large work (`runtime/aside.rs`). Where all of them are taken, a worker that meets one
/// more piece of large work stands until another piece ends.
const BLOCKING_MAX: usize = 64;
/// A thread that has had nothing to do for so long ends. Large work moves the workers from thread to thread, and what a thread has
/// freed stays in its heap until it ends. Work is given to the thread that has waited longest, so as many threads stay as there are
/// pieces of work in this time: with five seconds, four looks at the metrics a second kept ten threads, and 8 MiB in their heaps.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// What is said where the system gives no more threads.
const NO_THREADS: &str = "cannot start threads";

/// Runs `work` to its end on a runtime of several threads.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, anyhow::Error>>) -> Result<T, Failure> {
    let runtime = started(threads(KEEP_ALIVE).worker_threads(workers())).context(NO_THREADS)?;
    let heard = {
        let _inside = runtime.enter();
        // Heard, and so without effect: a write beyond the limit on the size of files fails, and ends nothing. Children do not inherit it.
        signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))
    };
    let watchdog = Watchdog::start(runtime.metrics(), Stalls::default().into_report()).context(NO_THREADS)?;
    // Where it stands it stays: as a branch it would be moved, and be there twice.
    let mut work = pin!(work);
    let done = runtime.block_on(async {
        tokio::select! {
            done = &mut work => done,
            never = keep_a_spare(KEEP_ALIVE) => match never {},
        }
    });
    drop((watchdog, heard));
    // A blocking read of stdin cannot be cancelled; the process does not wait for it.
    runtime.shutdown_background();
    Ok(done?)
}

/// A runtime whose threads end that have had nothing to do for so long.
fn threads(keep_alive: Duration) -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all().max_blocking_threads(BLOCKING_MAX).thread_keep_alive(keep_alive);
    builder.on_thread_park(purge_when_told);
    builder
}

/// Has one thread stay beside the workers: where the system gives no more of them, whatever blocks (a look-up of a name) waits for this
/// one in place of failing. The thread that has had nothing to do for longest gets it each time, so that no other stays for it.
///
/// The thread of this loop is no worker: its own heap gives back here what is free in it.
async fn keep_a_spare(keep_alive: Duration) -> Infallible {
    loop {
        // It does nothing that could fail.
        let _done = tokio::task::spawn_blocking(|| ()).await;
        tokio::time::sleep(keep_alive * 3 / 5).await;
        purge_when_told();
    }
}

/// Fails if the limits of the process leave a gateway too little address space: it would abort under load.
pub(crate) fn check_address_space() -> Result<(), Failure> {
    let Some((limit, needed)) = AddressSpace::of_process(workers()).and_then(AddressSpace::lack) else { return Ok(()) };
    let error = anyhow::anyhow!(
        "the address space is limited to {limit} MiB (`ulimit -v` or `ulimit -d`), and trunkline needs at least {needed} MiB; raise the limit"
    );
    Err(error.into())
}

/// The runtime with its workers, and the first thread for what blocks. Where the system gives no more threads the runtime panics, and its
/// panic unwinds into a wait for workers that never end; so the process ends before, with the words of an error. Threads that are tried
/// beforehand prove nothing: others may take their places meanwhile.
fn started(builder: &mut Builder) -> io::Result<Runtime> {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|panic| {
        let refused = std::thread::Builder::new().spawn(|| ()).err();
        let why = refused.map_or_else(|| panic.to_string(), |error| error.to_string());
        Failure::Failed(anyhow::anyhow!("{NO_THREADS}: {why}")).end_at_once();
    }));
    let runtime = builder.build();
    if let Ok(runtime) = &runtime {
        runtime.spawn_blocking(|| ());
    }
    std::panic::set_hook(before);
    runtime
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
                (_, Stall::Ended { worker, stood }) => tracing::debug!(worker, ?stood, "blocked worker continues"),
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
    use crate::runtime::Tasks;
    use crate::runtime::complaints::SAID_EVERY;
    use crate::telemetry::Registry;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};

    const WORKERS: usize = 2;
    const AT_ONCE: usize = 8;

    /// How many threads there are, and were at most.
    #[derive(Clone, Default)]
    struct Counted {
        now: Arc<AtomicUsize>,
        most: Arc<AtomicUsize>,
    }

    impl Counted {
        /// A runtime whose threads are counted.
        fn runtime(&self, keep_alive: Duration) -> Runtime {
            let (started, stopped) = (self.clone(), self.clone());
            let start =
                move || _ = started.most.fetch_max(started.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let stop = move || _ = stopped.now.fetch_sub(1, Ordering::SeqCst);
            threads(keep_alive).worker_threads(WORKERS).on_thread_start(start).on_thread_stop(stop).build().unwrap()
        }

        fn now(&self) -> usize {
            self.now.load(Ordering::SeqCst)
        }
    }

    /// Each of many stands in a thread of its own at the same time.
    async fn many_stand() {
        let (level, meet) = (Tasks::new(), Arc::new(Barrier::new(AT_ONCE)));
        for _ in 0..AT_ONCE {
            let meet = meet.clone();
            level.spawn(async move { _ = tokio::task::block_in_place(|| meet.wait()) });
        }
        level.ended().await;
    }

    /// Afterwards there are the workers and one to spare.
    #[test]
    fn threads_end_that_have_nothing_to_do_and_one_stays_to_spare() {
        let keep_alive = Duration::from_millis(200);
        let count = Counted::default();
        let seen = count.runtime(keep_alive).block_on(async {
            let look = async {
                many_stand().await;
                // They are there, and then gone; and many times as long later the one that is to spare is still there.
                let (mut rounds, mut is_back) = (0, 0);
                while is_back < 20 && rounds < 300 {
                    tokio::time::sleep(keep_alive / 4).await;
                    rounds += 1;
                    is_back = if count.now() == WORKERS + 1 { is_back + 1 } else { 0 };
                }
                (count.most.load(Ordering::SeqCst), is_back)
            };
            tokio::select! {
                seen = look => seen,
                never = keep_a_spare(keep_alive) => match never {},
            }
        });
        assert!(seen.0 >= AT_ONCE && seen.1 == 20, "{seen:?}: at most, and how often the right number in a row");
    }

    /// Somebody who looks once a second has each look done beside the workers: that keeps few of the threads that a load has left.
    #[test]
    fn looks_once_a_second_do_not_keep_the_threads_that_a_load_has_left() {
        const FEW: usize = WORKERS + 3;
        let count = Counted::default();
        let left = count.runtime(KEEP_ALIVE).block_on(async {
            let look = async {
                many_stand().await;
                let level = Tasks::new();
                for _ in 0..30 {
                    level.spawn(async { tokio::task::block_in_place(|| ()) });
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    if count.now() <= FEW {
                        break;
                    }
                }
                count.now()
            };
            tokio::select! {
                left = look => left,
                never = keep_a_spare(KEEP_ALIVE) => match never {},
            }
        });
        assert!(count.most.load(Ordering::SeqCst) >= AT_ONCE && left <= FEW, "{left} threads stay");
    }

    #[test]
    fn each_worker_that_stands_is_counted_also_where_there_is_no_line_for_it() {
        let registry = Registry::default();
        ::metrics::with_local_recorder(&registry, || {
            let mut report = Stalls::default().into_report();
            for count in 1..=3 {
                report(Stall::Stands { worker: 0 });
                report(Stall::Ended { worker: 0, stood: Duration::from_secs(1) });
                assert_eq!(registry.counted("trunkline_worker_stalls_total"), count);
            }
        });
    }

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

//! The one place where a runtime is made.

use std::future::Future;
use std::time::Duration;

use anyhow::Context;

use super::failure::Failure;

/// The most threads for what blocks; those that were started stay.
const BLOCKING_MAX: usize = 32;
/// As good as for ever.
const KEEP_ALIVE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Runs `work` to its end on a runtime of several threads.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, anyhow::Error>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .thread_keep_alive(KEEP_ALIVE)
        .build()
        .context("cannot start threads")?;
    // Where the system gives no more threads, whatever blocks (a look-up of a name) waits for this one in place of failing.
    drop(runtime.spawn_blocking(|| ()));
    let done = runtime.block_on(work);
    // A blocking read of stdin cannot be cancelled; the process does not wait for it.
    runtime.shutdown_background();
    Ok(done?)
}

//! The one place where a runtime is made.

use std::future::Future;

use anyhow::Context;

use super::failure::Failure;

/// Runs `work` to its end on a runtime of several threads.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, anyhow::Error>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let done = runtime.block_on(work);
    // A blocking read of stdin cannot be cancelled; the process does not wait for it.
    runtime.shutdown_background();
    Ok(done?)
}

//! Work whose size a peer chooses: done beside the workers where it is large, so that others have their turn meanwhile.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Work on fewer bytes is done where it is met: it takes a worker a millisecond or less.
const LARGE: usize = 256 * 1024;

/// Runs work on `bytes` bytes. Another thread takes the place of a worker that runs large work, so the other tasks go on. If the runtime
/// has no thread left (`max_blocking_threads`), the worker has no substitute until another piece of large work ends. The work reads its
/// bytes once or a few times and cannot be cancelled; longer work belongs to [`super::offload`].
pub fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes >= LARGE && has_other_workers() { tokio::task::block_in_place(work) } else { work() }
}

fn has_other_workers() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tasks::Tasks;
    use std::sync::{Arc, Barrier};

    /// A hundred tasks of the one worker do large work that ends only when another task of the same worker has run.
    #[test]
    fn large_work_never_keeps_other_tasks_from_running() {
        const JOBS: usize = 100;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (level, gate) = (Tasks::new(), Arc::new(Barrier::new(JOBS + 1)));
        let _entered = runtime.enter();
        for _ in 0..JOBS {
            let gate = gate.clone();
            level.spawn(async move { aside(LARGE, || _ = gate.wait()) });
        }
        level.spawn(async move { _ = tokio::task::block_in_place(|| gate.wait()) });
        runtime.block_on(level.ended());
    }

    #[tokio::test]
    async fn small_work_and_a_runtime_of_one_thread_need_no_other() {
        assert_eq!((aside(1, || 1), aside(LARGE, || 2)), (1, 2));
    }
}

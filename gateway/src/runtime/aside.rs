//! Work whose size a peer chooses: done beside the workers where it is large, so that others have their turn meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Work on fewer bytes is done where it is met: it takes a worker a millisecond or less.
const LARGE: usize = 256 * 1024;
/// Jobs that have a thread of their own at once. One more would run on its worker, so this is as many as frames of this size arrive at
/// once; the threads that are left do what blocks. Work of more than about a nanosecond for each byte belongs to [`super::offload`].
const AT_ONCE_MAX: usize = 64;

static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Does work on so many bytes. The tasks of the worker that it is met on go on elsewhere while it is large.
pub fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    match Place::for_work(bytes) {
        Some(_place) => tokio::task::block_in_place(work),
        None => work(),
    }
}

/// One of the places for large work; dropping it gives it back.
struct Place;

impl Place {
    fn for_work(bytes: usize) -> Option<Self> {
        let has_others =
            || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
        if bytes < LARGE || !has_others() {
            return None;
        }
        let place = Self;
        // Where there is none left, the drop gives this one back.
        (UNDER_WAY.fetch_add(1, Ordering::Relaxed) < AT_ONCE_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        UNDER_WAY.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tasks::Tasks;
    use std::sync::mpsc;

    /// The one worker does large work that ends only when another task of the same worker has run.
    #[test]
    fn large_work_stands_in_nobodys_way() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (level, (go, gone)) = (Tasks::new(), mpsc::channel());
        let _entered = runtime.enter();
        level.spawn({
            let level = level.clone();
            async move {
                level.spawn(async move { go.send(()).unwrap() });
                aside(LARGE, || gone.recv().unwrap());
            }
        });
        runtime.block_on(level.ended());
        assert_eq!(UNDER_WAY.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn small_work_and_a_runtime_of_one_thread_need_no_other() {
        assert!(Place::for_work(LARGE).is_none());
        assert_eq!((aside(1, || 1), aside(LARGE, || 2)), (1, 2));
    }
}

//! Has the allocator give memory back to the system after large work: by itself it keeps what was freed until more is freed.
//!
//! Each thread has a heap of its own, and only that thread gives back what is free in it. So the workers are told, and each does it when it
//! has nothing else to do. Threads that are no workers end soon, and their heaps with them.

use super::budget::Budget;
use super::mapping::free_unused;
use crate::runtime::Tasks;
use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::sleep;

/// When the workers are told, after much was given up: at once, but for what is being freed just now, and once more for what was
/// freed meanwhile. Those who give up much all the time have their memory taken from under them no oftener.
const AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// So often they are told in any case: many small things are given up that are not counted, or not by themselves.
const EVERY: Duration = Duration::from_secs(30);
/// More than any system has.
const IMPOSSIBLE: usize = isize::MAX as usize / 2;

/// How often the threads were told.
#[derive(Debug)]
struct Told(AtomicUsize);

static TOLD: Told = Told(AtomicUsize::new(0));

thread_local! {
    /// What this thread has seen of it.
    static SEEN: Cell<usize> = const { Cell::new(0) };
}

impl Told {
    fn again(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a thread was told since it last asked.
    fn is_new(&self, seen: &Cell<usize>) -> bool {
        let now = self.0.load(Ordering::Relaxed);
        seen.replace(now) != now
    }
}

/// Tells the workers whenever much was given up, and has those give up that nobody polls, until the level ends.
pub fn keep_purging(budget: &Budget, tasks: &Tasks) {
    let deferring = budget.clone();
    tasks.spawn_until_end(async move {
        loop {
            deferring.defers().await;
            deferring.wake_deferred();
        }
    });
    let budget = budget.clone();
    tasks.spawn_until_end(async move {
        loop {
            let pauses = tokio::select! {
                () = budget.gave_up_much() => &AFTER[..],
                () = sleep(EVERY) => &[Duration::ZERO],
            };
            for pause in pauses {
                sleep(*pause).await;
                TOLD.again();
                free_unused();
            }
        }
    });
}

/// What a worker does that has nothing else to do: gives back what is free in its heap, where it was told to since it last did.
pub fn purge_when_told() {
    if SEEN.with(|seen| TOLD.is_new(seen)) {
        purge();
    }
}

/// An allocator that finds no memory gives back all that was freed, and looks once more. That is the one way to have it do so that
/// needs no foreign function; with nothing to give back it takes some ten microseconds.
fn purge() {
    let _refused = black_box(Vec::<u8>::new()).try_reserve_exact(black_box(IMPOSSIBLE));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_purges_once_each_time_that_it_is_told() {
        let (told, one, other) = (Told(AtomicUsize::new(0)), Cell::new(0), Cell::new(0));
        assert!(!told.is_new(&one));
        told.again();
        assert_eq!([told.is_new(&one), told.is_new(&one), told.is_new(&other)], [true, false, true]);
        (0..3).for_each(|_| told.again());
        assert_eq!([told.is_new(&one), told.is_new(&one)], [true, false]);
    }
}

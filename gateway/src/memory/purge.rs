//! Has the allocator give memory back to the system after large work: by itself it keeps what was freed until more is freed.

use super::budget::Budget;
use crate::runtime::{Tasks, aside};
use std::hint::black_box;
use std::time::Duration;
use tokio::time::sleep;

/// When the allocator is told, after much was given up: at once, but for what is being freed just now, and once more for what was
/// freed meanwhile. Those who give up much all the time have their memory taken from under them no oftener.
const AFTER: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// So much work it is, at most: it is done beside the workers.
const BYTES: usize = 1024 * 1024;
/// More than any system has.
const IMPOSSIBLE: usize = isize::MAX as usize / 2;

/// Tells the allocator whenever much was given up, and has those give up that nobody polls, until the level ends.
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
            budget.gave_up_much().await;
            for after in AFTER {
                sleep(after).await;
                aside(BYTES, purge);
            }
        }
    });
}

/// An allocator that finds no memory gives back all that was freed, and looks once more. That is the one way to have it do so that
/// needs no foreign function; with nothing to give back it takes some ten microseconds.
fn purge() {
    let _refused = black_box(Vec::<u8>::new()).try_reserve_exact(black_box(IMPOSSIBLE));
}

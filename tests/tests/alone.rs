//! Loads that want much of the machine, or all of it for themselves.

use tokio::sync::{Semaphore, SemaphorePermit};

mod leaving;
mod many_starts;
mod memory;
mod parked_load;
mod thousand_sessions;

/// So many loads run at once that look at the memory of their own gateway alone; each takes some hundred megabytes.
const PARTS: u32 = 3;
static MACHINE: Semaphore = Semaphore::const_new(PARTS as usize);

/// For a load beside which others may run.
async fn part() -> SemaphorePermit<'static> {
    MACHINE.acquire().await.expect("it is never closed")
}

/// For a load that is spoiled by others: they wait.
async fn whole() -> SemaphorePermit<'static> {
    MACHINE.acquire_many(PARTS).await.expect("it is never closed")
}

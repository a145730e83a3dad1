//! What this process has of the system that it runs on, and tells it.

// The limit of the address space.
mod address_space;
// How many files and connections this process may have open.
pub mod handles;
// Sockets that the service manager has bound before it started the process.
pub mod handed;
// What systemd is told of this process.
mod service_manager;

pub use address_space::AddressSpace;
pub use service_manager::ServiceManager;

use std::num::NonZero;
use std::sync::LazyLock;

/// How many threads this process may run at once. Asked once: the answer is read from several files.
pub fn cores() -> usize {
    static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZero::get));
    *CORES
}

/// The number of worker threads: the variable of tokio, or one for each core.
pub fn workers() -> usize {
    let configured = std::env::var("TOKIO_WORKER_THREADS").ok().and_then(|count| count.parse().ok());
    configured.filter(|count| *count > 0).unwrap_or_else(cores)
}

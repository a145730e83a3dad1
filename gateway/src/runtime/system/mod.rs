//! What this process has of the system that it runs on, and tells it.

// How many files and connections this process may have open.
pub mod handles;
// Sockets that the service manager has bound before it started the process.
pub mod handed;
// What systemd is told of this process.
mod service_manager;

pub use service_manager::ServiceManager;

use std::num::NonZero;
use std::sync::LazyLock;

/// How many threads this process may run at once. Asked once: the answer is read from several files.
pub fn cores() -> usize {
    static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZero::get));
    *CORES
}

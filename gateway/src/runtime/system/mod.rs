//! What this process has of the system that it runs on, and tells it.

// How many files and connections this process may have open.
pub mod handles;
// What systemd is told of this process.
mod service_manager;

pub use service_manager::ServiceManager;

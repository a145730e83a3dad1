//! Loads that want the machine for themselves, one after the other.

mod leaving;
mod many_starts;
mod memory;
mod parked_load;
mod thousand_sessions;

/// Whoever has it runs; the others wait.
static MACHINE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

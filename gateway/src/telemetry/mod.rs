//! What is recorded of the gateway's work, and where it can be looked at.

pub mod admin;
pub mod config;
pub mod logging;
pub mod metrics;
pub mod observe;

mod lines;
mod orders;
mod ration;
mod report;

//! What is recorded of the gateway's work, and where it can be looked at.

pub mod config;

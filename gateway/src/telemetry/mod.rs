//! Placeholder roof: only what this layer may be told.
pub mod config;

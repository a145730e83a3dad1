//! What requests must pass before they are read, as tower layers.

pub mod config;

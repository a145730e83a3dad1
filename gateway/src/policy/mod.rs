//! What requests must pass before they are read, as tower layers.

pub mod authenticate;
pub mod config;

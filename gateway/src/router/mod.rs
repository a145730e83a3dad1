//! A layer of the house.
pub mod config;

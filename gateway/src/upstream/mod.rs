//! The servers behind us: what the router may know of them.

pub mod config;
mod inventory;

pub use inventory::{Inventory, Item, Notice, Supports};

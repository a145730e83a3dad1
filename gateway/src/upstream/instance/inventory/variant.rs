//! What is offered to clients that declare something else than the gateway does for all.

use super::contents::Inventory;
use std::sync::Arc;

/// What the clients of one set of declared capabilities see of an upstream.
#[derive(Debug, Clone, Default)]
pub enum Variant {
    /// It is being read for the first time.
    #[default]
    Coming,
    /// What everyone of their era sees.
    Shared,
    /// What the upstream gives to those who declare it.
    Own(Arc<Inventory>),
}

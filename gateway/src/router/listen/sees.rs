//! What a listener sees: of that it is told.

use std::sync::Arc;

/// What a listener sees: of that it is told.
#[derive(Debug, Clone)]
pub(crate) enum Sees {
    /// What all of its era do.
    Era,
    /// What those do who declare the same.
    Declared(Arc<()>),
    /// What its session alone does.
    Session,
}

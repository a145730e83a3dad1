//! What one old revision has and no other.

// Batches.
pub(crate) mod batch;
// The dialect of 2024-10-07, spoken as 2024-11-05 with a tool's text beside its content.
pub(crate) mod dialect_2024_10_07;

pub(crate) use batch::Batch;

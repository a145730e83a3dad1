//! The instances of an upstream beside the primary one.

// Those of sessions and principals: started when first needed, ended with whom they belong to.
mod beside;
// The eras of an upstream: which instance serves a client, and the second one, of the era that the primary one does not speak.
mod eras;
// What an upstream offers to clients that declare something else than the gateway does for all.
mod variants;
// Somebody looks at what an upstream offers: what is old is read again behind the answer.
mod looked_at;

pub(crate) use beside::Instances;
pub(crate) use eras::{Eras, Way, follow_own};
pub(crate) use looked_at::looked_at;
pub(crate) use variants::Variants;

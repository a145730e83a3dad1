//! The instances of an upstream beside the primary one.

// Those of sessions and principals: started when first needed, ended with whom they belong to.
mod beside;
// The eras of an upstream: which instance serves a client, and the second one, of the era that the primary one does not speak.
mod eras;

pub(crate) use beside::Instances;
pub(crate) use eras::{Eras, Way, follow_own};

//! The instances of an upstream beside the primary one.

// Those of sessions and principals: started when first needed, ended with whom they belong to.
mod beside;
// The eras of an upstream: which instance serves a client, and the second one, of the era that the primary one does not speak.
mod eras;
// What an upstream offers to clients that declare something else than the gateway does for all.
mod variants;
// Logins of single principals: what each of them is offered, and the call of who has yet to log in.
mod personal;
// Somebody looks at what an upstream offers, or tells it something.
mod looked_at;

pub(crate) use beside::Instances;
pub(crate) use eras::{Eras, Way, follow_own};
pub(crate) use looked_at::{looked_at, told};
pub(crate) use personal::Seat;
pub(crate) use personal::log_in;
pub(crate) use variants::Variants;

//! What waits for a stateless client's retry, and the sealed state that leads back to it.

// What waits for a stateless client's retry.
pub(crate) mod parked;
// Seals what a stateless client carries for us: it can neither be read nor altered, and holds until a time.
pub(crate) mod seal;
// The secrets behind our seals: configured, or one that is made once and kept where only its owner can read it.
pub mod key;
// The state that stateless clients carry for us between two requests: given out sealed, and read again.
mod sealed_state;
// How many calls may wait for an answer of their client at once: in all, and for one client.
mod quota;

pub(crate) use quota::{FULL, ParkingQuota};
pub(crate) use sealed_state::{Origin, SealedStates};

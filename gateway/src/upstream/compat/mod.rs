//! What no revision of the protocol has, and some upstreams send.

// Results that come in chunks after their answer (`streamId`, `notifications/stream/chunk`): bounded, folded into one result.
pub(crate) mod chunks;

pub(crate) use chunks::{Chunks, Fold, Folding, SILENCE_MAX};

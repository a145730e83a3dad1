//! What a frame of a client means, by its era.

// Handshake clients: what a frame of a session means, whichever transport it came by.
pub(crate) mod legacy;
// Stateless clients: each request carries its own revision and capabilities, and is judged alone.
pub(crate) mod modern;
// Batches, which one old revision has and no other.
pub(crate) mod batch;

pub(crate) use batch::Batch;
pub(crate) use legacy::Stream;

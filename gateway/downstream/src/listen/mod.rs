//! The listener: connections of clients, bounded, timed and checked before a request is read.

// The accept loop: HTTP/1.1 connections, each in a task of its own, bounded in number and in patience.
pub mod listener;
// The connections of clients.
mod connections;
// Follows where each request on a connection begins and ends, and spoils a head of which two programs could think differently.
mod framing;
// After an answer that came before the end of its request: the body is read on, bounded, before the connection is closed.
mod lingering;
// TLS: a certificate and its key from files, read anew when they change.
mod tls;
// What is read of a certificate besides what the library checks.
mod certificate;
// A connection that goes over from HTTP to another protocol.
mod upgrade;
// Watches a connection: a head that never ends, an idle peer, a peer that does not read.
mod timeouts;
// Whether clients are asked to leave: from the first signal of a shutdown on.
mod leaving;
// Host and Origin, checked on every route before anything is read: against pages that a browser was lured to.
mod guard;
// Which hosts may be asked for, and whose pages may ask.
mod origin;
// For whom a trusted proxy asks.
mod forwarded;

pub use connections::Arrival;
pub use connections::Connections;
pub use forwarded::Network;
pub use guard::GuardLayer;
pub use leaving::Leaving;
pub(crate) use origin::Rules;
pub use tls::Certificates;
pub use tls::Tls;
pub(crate) use upgrade::Upgraded;

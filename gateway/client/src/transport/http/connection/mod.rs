//! Connections to an HTTP upstream: found, opened, kept for their next use.

// The connections to one HTTP upstream: taken, used for one exchange, put back when its body has ended.
pub(crate) mod pool;
// The headers of a plain request: made once a session, and copied whole with what differs put in its place.
mod head;
// The idle connections, and the limit of their idle time.
mod idle;
// Connections that bear many exchanges at once: HTTP/2.
mod shared;
// Which of these has a place for one more exchange, and when another one is opened.
mod sharing;
// Opens connections to an HTTP upstream: to its host or to a socket of this machine.
mod connect;
// TLS with an upstream: the authorities of the platform and of a file, a certificate of our own, and what a failure means.
mod secured;
// Epochs of the connections to an HTTP upstream: all requests of one end together, with its reason.
mod epoch;
// Where an upstream is: what it is called with goes nowhere else.
mod origin;
// A connection's bytes on their way out.
mod flow;
// A bounded number of places of one kind, such as connections to an HTTP upstream.
mod room;
// What waits to be sent beside the exchanges.
mod beside;

pub(crate) use beside::{Beside, BesideQueue};
pub(crate) use connect::Connector;
pub(crate) use epoch::ConnectionEpoch;
pub(crate) use flow::Unread;
pub(crate) use head::{Head, Named};
pub use origin::Origin;
pub(crate) use room::FairPermit;

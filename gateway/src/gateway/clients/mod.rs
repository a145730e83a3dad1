//! The doors towards clients: one for each listener.

// One door, from the outside in: who may be asked for and whose pages may ask, who calls, then frames.
mod door;
// Where clients are served, as bound and as it is shown.
mod place;
// The authorization servers of clients, asked over the connections that upstreams have, too.
mod identity;
// Logins that people make at pages of the gateway, as upstreams make them.
mod logins;
// All doors: bound, served, and told of what a reload changes.
mod doors;

pub use door::Error;
pub(super) use door::{Serving, bind, bounds};
pub(super) use doors::{Doors, Kept};
pub(super) use identity::issuers;
pub(super) use logins::PersonalLogins;
pub use place::{Place, reachable};

//! The doors towards clients: one for each listener.

// One door, from the outside in: who may be asked for and whose pages may ask, who calls, then frames.
mod door;
// Where clients are served, as bound and as it is shown.
mod place;
// All doors: bound, served, and told of what a reload changes.
mod doors;

pub use door::Error;
pub(super) use door::{Serving, bind, bounds};
pub(super) use doors::{Doors, Kept};
pub use place::{Place, reachable};

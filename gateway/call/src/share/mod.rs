//! Whose share of what all have in common a request takes.

// Whose share of what all clients have in common a request takes.
mod key;
// A bounded number of places, of which nobody takes so many that others find none.
mod places;
// So many in so much time.
mod rate;
// Calls for whose answers nobody waits at the moment: their places are given to calls for which somebody does.
mod abandoned;
// How many of something each share holds.
mod tally;

pub use abandoned::Abandoned;
pub use key::Share;
pub use places::{Part, SharePermit, Shares, may_have};
pub use rate::{Rate, RateCell};
pub use tally::Tally;

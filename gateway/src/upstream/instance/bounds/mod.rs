//! What keeps calls from an upstream, of all its instances together.

// How many calls it and its single tools may have in a time.
mod rates;
// A rate that clients have in common, of which nobody takes so much that others find none.
mod divided_rate;
// How many calls are sent a second time.
mod retries;
// What counts already as a failure of a child.
mod counted;

pub(crate) use counted::Counted;
pub(crate) use rates::CallRates;
pub(crate) use retries::RetryBudget;

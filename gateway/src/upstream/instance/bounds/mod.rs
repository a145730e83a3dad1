//! What keeps calls from an upstream, of all its instances together.

// How many calls it and its single tools may have in a time.
mod rates;
// How many calls are sent a second time.
mod retries;
// Which end of a child was counted last as a failure.
mod deaths;

pub(crate) use deaths::Deaths;
pub(crate) use rates::CallRates;
pub(crate) use retries::RetryBudget;

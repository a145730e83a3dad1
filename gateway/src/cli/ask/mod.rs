//! What a client would see and do, for a person: `trunkline tools`, `resources`, `prompts`, `call`.

// A client of one's own: it starts `trunkline stdio` and asks it.
mod session;
// The lists.
mod lists;
// One call.
mod call;

pub(crate) use call::run as call;
pub(crate) use lists::run as list;

//! What a client would see and do, for a person: `trunkline tools`, `resources`, `prompts`, `call`, `approve`.

// A question for the person, asked line by line.
mod form;
// The person at the terminal.
mod person;
// What a command waits for at a gateway of its own.
mod awaited;
// A client for one command, of the gateway that runs, or of one of its own.
mod session;
// The lists.
mod lists;
// The arguments of a call.
mod arguments;
// One call.
mod call;
// `trunkline approve`.
mod approve;
// What differs between two definitions.
mod difference;
// What not every reader takes, made readable.
mod readable;

pub(crate) use approve::run as approve;
pub(crate) use call::run as call;
pub(crate) use lists::run as list;

//! What comes back: events, then one outcome.

// What comes back: events, then one outcome. Dropping a reply before its outcome cancels the call.
mod stream;
// A reply that waits before it is known whose it is.
mod deferred;
// A reply whose steps are edited on the way, where needed beside the workers.
mod edited;
// What a reply tells before its outcome.
mod event;
// How a call ends: with a result, with a stateless upstream's question, or with an error.
mod outcome;
// A question that an upstream has put live, while its call goes on.
pub mod ask;

pub use edited::Edit;
pub use event::{Change, Event};
pub use outcome::{Failure, Outcome};
pub use stream::{Ending, Guard, Reply, Source, Step};

//! The narrow waist: every client request becomes one `Call`; whatever comes back is one `Reply`.

mod ask;
#[allow(clippy::module_inception)]
mod call;
mod caller;
mod event;
mod grants;
mod handler;
mod outcome;
mod refusal;
mod reply;
mod tenant;

pub use ask::{Answer, Answered, Ask, NoAnswer};
pub use call::{Call, ListenFilter, LogLevel};
pub use caller::{Caller, Can, Principal};
pub use event::{Change, Event};
pub use grants::Grants;
pub use handler::{Handle, Handler};
pub use outcome::{Failure, Outcome};
pub use refusal::{Blame, Reason, Refusal};
pub use reply::{Ending, Guard, Reply, Source, Step};
pub use tenant::Tenant;

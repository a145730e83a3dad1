//! Tasks of upstreams as clients see them.

// Requests about a task: its id leads back to its upstream, and is nobody else's.
pub(crate) mod routes;
// `tasks/list`: the tasks that a caller was given, each as its upstream says that it stands now.
mod list;
// Ids of tasks as clients see them: sealed for their owner alone, and the same text each time.
mod ids;
// Which tasks were given to whom.
mod granted;
// Who is told how a task stands: the handshake session that was given it, by the id that it was given.
mod notify;

pub(crate) use granted::GrantedTasks;
pub use ids::Secret;
pub(crate) use ids::TaskIds;
pub(crate) use list::list;
pub(crate) use notify::TaskNotifier;
pub(crate) use routes::{Named, Wrapped, one, untied};

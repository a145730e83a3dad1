//! Child processes, contained: each is started in a group of its own, known by a mark, and proven to have ended.

// Where children are started.
pub mod spawner;
// The guard.
mod guard;
// Starts a child's program from within its own process.
mod exec;
// The mark that every process of one child's tree inherits in its environment, whatever else it changes about itself.
mod mark;
// What may be left of children: who bears a mark, and who is in a process group that was started as ours.
mod remains;
// Ends what is left of children: asked first, then killed, and looked for until nobody is found twice.
pub mod sweep;
// What is particular to Linux: what a process is, adopting and reaping strangers, dying with a parent.
mod linux;
// Whether a command can be found and run, as the operating system would look for it.
pub mod program;

pub use exec::{ChildLimits, become_program};
pub use guard::guard;
pub use linux::own_program;
pub use linux::worked;
pub use mark::Mark;
pub use program::missing;

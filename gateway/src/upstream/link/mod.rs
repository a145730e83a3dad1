//! Live connections to upstreams: what is sent, what belongs to it, how it ends.

mod asker;
mod child;
mod desk;
mod exchange;
mod guard;
mod http;
mod inbox;
mod linux;
mod made;
mod mark;
mod noise;
mod nursery;
mod own_words;
mod pending;
mod pipe;
mod program;
mod pulse;
mod pump;
mod request;
mod slot;
mod starter;
mod stderr;
mod stdio;
mod sweep;

pub use guard::guard;
pub use nursery::{leave_guard, own_processes};
pub use program::missing;
pub use starter::become_program;

pub(crate) use asker::{Answer, Asker};
pub(crate) use desk::{Question, Whose};
pub(crate) use exchange::{Exchange, Link};
pub(crate) use http::{Http, Wire, advice, listen};
pub(crate) use inbox::{Asked, Inbox};
pub(crate) use linux::worked;
pub(crate) use own_words::without;
pub(crate) use pipe::Pipe;
pub(crate) use pulse::Pulse;
#[cfg(test)]
pub(crate) use pump::{read as read_pipe, write as write_pipe};
pub(crate) use request::Request;
#[cfg(test)]
pub(crate) use slot::HttpRefusal;
pub(crate) use slot::{Arrival, Kept, Lost, Slot};
pub(crate) use stderr::{Tail, printable};
pub(crate) use stdio::{Child, SpawnFault, Spec, start};

//! Live connections to upstreams: what is sent, what belongs to it, how it ends.

mod answer;
mod child;
mod dial;
mod exchange;
mod http;
mod inbox;
mod listener;
mod pending;
mod pipe;
mod pool;
mod pump;
mod refused;
mod request;
mod slot;
mod stderr;
mod stdio;
mod stream;

pub(crate) use exchange::{Exchange, Link};
pub(crate) use http::{Http, Wire};
pub(crate) use inbox::{Answer, Inbox};
pub(crate) use listener::listen;
#[cfg(test)]
pub(crate) use pipe::Pipe;
#[cfg(test)]
pub(crate) use pump::{read as read_pipe, write as write_pipe};
pub(crate) use request::Request;
#[cfg(test)]
pub(crate) use slot::HttpRefusal;
pub(crate) use slot::{Arrival, Lost};
pub(crate) use stderr::{Tail, printable};
pub(crate) use stdio::{Child, SpawnFault, Spec, start};

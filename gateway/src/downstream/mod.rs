//! The clients before us: both eras over Streamable HTTP and stdio, each request made into a `Call`.

pub mod config;
pub mod guard;
pub mod http;
pub mod key;
pub mod listener;
pub mod stdio;

mod asked;
mod asking;
mod batch;
mod dialect;
mod dialogue;
mod edge;
mod handshake;
mod label;
mod lasting;
mod legacy;
mod line;
mod modern;
mod notices;
mod open;
mod origin;
mod outgoing;
mod pages;
mod parked;
mod passing;
mod peer;
mod pulse;
mod quota;
mod replay;
mod retry;
mod rounds;
mod running;
#[cfg(test)]
mod scripted;
mod seal;
mod session;
mod sessions;
mod stateless;
mod states;
mod status;
mod streams;
mod subscribe;
mod task_tokens;
mod turns;

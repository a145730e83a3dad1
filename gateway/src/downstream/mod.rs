//! The clients before us: both eras over Streamable HTTP and stdio, each request made into a `Call`.

pub mod config;
pub mod guard;
pub mod http;
pub mod listener;
pub mod stdio;

mod asked;
mod asking;
mod batch;
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
mod peer;
mod pulse;
mod quota;
mod replay;
mod rounds;
mod running;
#[cfg(test)]
mod scripted;
mod session;
mod sessions;
mod status;
mod streams;
mod subscribe;
mod turns;

//! The clients before us: both eras over Streamable HTTP and stdio, each request made into a `Call`.

pub mod config;
pub mod guard;
pub mod http;
pub mod listener;
pub mod stdio;

mod asked;
mod batch;
#[allow(dead_code, reason = "used once clients are asked")]
mod dialogue;
mod edge;
mod handshake;
#[allow(dead_code, reason = "used once clients are asked")]
mod label;
mod lasting;
mod legacy;
mod modern;
mod notices;
mod open;
mod origin;
mod peer;
mod pulse;
#[allow(dead_code, reason = "read once calls wait for answers")]
mod quota;
mod replay;
mod running;
#[cfg(test)]
mod scripted;
mod session;
mod sessions;
mod status;
mod streams;
mod subscribe;
mod turns;

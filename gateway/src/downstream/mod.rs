//! The clients before us: both eras over Streamable HTTP and stdio, each request made into a `Call`.

pub mod config;
pub mod http;

mod asked;
mod batch;
mod edge;
mod handshake;
mod lasting;
mod legacy;
mod modern;
mod notices;
mod open;
mod peer;
mod replay;
mod running;
mod session;
mod sessions;
mod status;
mod streams;
mod subscribe;

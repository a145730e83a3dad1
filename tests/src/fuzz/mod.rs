//! Fuzzing: what reads the bytes of peers, fed with nonsense; and what they cost when they grow. The bodies are plain functions, run
//! by a runner of our own (`cargo run -p trunkline-tests --bin fuzz`) and over the corpus by a test; the one door into the gateway
//! is `trunkline::fuzzing`.

mod bytes;
mod files;
mod foreign;
pub mod growth;
mod multiplexed;
mod mutate;
mod parts;
mod routes;
mod runner;
mod sealed;
mod target;
mod values;
mod websocket;

pub use runner::{Finding, Run, corpus, replay, run};
pub use target::{Shape, Target, all, named};

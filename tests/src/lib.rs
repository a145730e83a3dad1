//! The harness: scripted upstreams, scripted clients, the gateway under test between them, and the judge.
//!
//! Everything here is black-box: raw JSON over pipes and loopback HTTP, no module of the gateway ([`fuzz`] alone reads with its parsers).
//! Reading order: what is said ([`revision`], [`frame`], [`sse`]), who plays the upstream ([`script`], [`engine`],
//! [`upstream`]), who plays the client ([`client`]), what stands between ([`gateway`]), and what must hold
//! ([`scenario`], [`judge`]). What breaks on purpose: [`seed`], [`cable`], [`machine`]; what must be told to nobody: [`canary`].

#![allow(clippy::disallowed_methods)] // a test's tasks end with its runtime, its clock is the real one

pub mod authority;
pub mod cable;
pub mod canary;
pub mod certificates;
pub mod client;
pub mod collector;
pub mod confine;
pub mod conformance;
pub mod engine;
pub mod extent;
pub mod frame;
pub mod fuzz;
pub mod gateway;
pub mod golden;
pub mod identity;
pub mod issuer;
pub mod journal;
pub mod judge;
pub mod log;
pub mod machine;
pub mod network;
pub mod peers;
pub mod process;
pub mod revision;
pub mod scenario;
pub mod schema;
pub mod scratch;
pub mod script;
pub mod seed;
pub mod sentinel;
pub mod shell;
pub mod sse;
pub mod tape;
pub mod terminal;
pub mod tokens;
pub mod upstream;
pub mod within;

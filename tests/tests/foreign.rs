//! The gateway between other people's programs: official clients and servers, and the official suite.

mod by_eye;
mod conformance;
mod day;
mod editors;
mod everything;
mod identity;
mod idle_servers;
mod monitored;
mod page;
mod peers;
mod questions;
mod readers;

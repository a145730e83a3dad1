//! Files with syntax faults: what can be read beside those is judged as well.

// What of the sources was not read.
mod gaps;
// What there is of a text with syntax faults.
mod rest;
// Of TOML: the lines or tables with the fault are left out.
mod toml;
// Of a host's JSON: the servers with the fault are left out.
mod json;
// Of a host's YAML, too.
mod yaml;

pub(crate) use gaps::Gaps;
pub(crate) use json::read as of_json;
pub(crate) use rest::Torn;
pub(crate) use toml::read as of_toml;
pub(crate) use yaml::read as of_yaml;

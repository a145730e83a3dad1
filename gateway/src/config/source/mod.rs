//! Sources of configuration: files, the environment and flags as trees of values with their places.

// Which files are read, and how: regular ones, of a bounded size.
pub mod file;
// The text of JSON with comments: what is left without those, and where its keys stand.
mod comments;
// A host's JSON file as a tree of values with their places; comments and trailing commas are taken.
pub(crate) mod json;
// A host's YAML file as a tree of values with their places.
pub(crate) mod yaml;
// Hosts' files: which dialect one is written in, and its servers in the keys of `[upstreams.NAME]`.
pub(crate) mod host;
// A TOML file as a tree of values with their places.
pub(crate) mod toml;
// Files with syntax faults: what can be read beside those is judged as well.
pub(crate) mod torn;
// The environment of the process: a snapshot, what children inherit of it, and the overrides in it.
mod environment;
// One source of configuration: a tree of values, each with where it stands; a figment provider.
pub(crate) mod node;
// Names in a text that is not well written: those that an excerpt may show.
pub(crate) mod names;
// `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:/path}` and `$$` in texts: one pass, pure.
pub(crate) mod expand;

pub use environment::Environment;

//! Files, environment and flags become one checked `Config`, or a list of all that is wrong with them.

// All that the gateway may be told, checked.
mod checked;
// Reads all sources, merges them, reads every section.
mod load;
// A file as a source; the servers of a host's file are upstreams.
pub(crate) mod import;
// What there is of a file, also where it has syntax faults.
mod judged;
// Sources of configuration: files, the environment and flags as trees of values with their places.
pub mod source;
// The merged configuration while it is read: sections, units, and the words that a person most likely meant.
mod read;
// Descriptions of tables and keys.
mod doc;
// The page of all keys, and descriptions by path.
mod reference;
// The JSON Schema of the configuration, for editors.
mod schema;
// The sections of the configuration, one file each.
mod sections;
// Which values of a configuration are secret.
mod secret;
// What is wrong with a configuration, for a person to read.
pub mod fault;
// For the fuzzer.
#[doc(hidden)]
pub mod fuzzing;

pub use checked::Config;
pub(crate) use load::Part;
pub use load::{Inputs, Loaded, load};
pub(crate) use read::shell;
#[doc(hidden)]
pub use reference::reference_page;

#[cfg(test)]
mod tests;

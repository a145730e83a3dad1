//! Values of raw JSON: the members that the gateway acts on, one form to compare by, the spellings of keys.

// The raw params or result of a frame: its bytes, and where the members that the gateway acts on stand.
mod object;
// Patterns of names: `*` and `?` as in file names.
mod glob;
// How a task stands: the words of its `status`, and which of them end it.
mod task;
// One form of a JSON value, whatever the order of its keys and its spacing: what requests are compared by.
pub mod canonical;
// The keys that the protocol has at each level, and every spelling that some program takes for one of them.
pub mod spelling;
// Changes values deep inside raw JSON without decoding the rest.
pub mod splice;

pub use glob::Glob;
pub use object::{Edit, Key, Object};
pub use task::TaskStatus;

//! What `serve` shows a person.

// The lines that `serve` shows a person: pure, so that they can be read in the tests.
mod lines;
// Shows a person what becomes of each upstream, as it happens.
pub(crate) mod announce;

pub(crate) use lines::{endpoint, listener, look_at, paste_http, paste_stdio, public};

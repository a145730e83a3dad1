//! In which session with an HTTP upstream a call goes out: its client's own, that of all who declare the same, or the primary one.

// How a session beside the primary one is opened, and how calls that waited for it go out.
pub(crate) mod opening;
// The sessions that clients have to themselves: found for a call, opened, kept, ended with their clients.
pub(crate) mod own;
// Sends each call in the session it belongs to; opens sessions for sets of capabilities, and keeps them while they are needed.
mod of_sets;

pub(crate) use of_sets::{Route, keep_places, open_gate, session_of};

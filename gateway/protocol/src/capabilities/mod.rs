//! What a peer has declared, and what that allows.

// What a client can be asked: its declared capabilities, as far as the gateway acts on them.
pub mod declared;
// What a client declares beyond the protocol, and all that a handshake declares on its behalf.
pub mod beyond;
// What a client must have declared before it may be asked a question, and how that is said to a person.
pub mod need;
// What an upstream can be asked, as its declared capabilities have it.
mod supports;

pub use declared::{Capabilities, EXTENSION_APPS, EXTENSION_TASKS, unknown_extensions};
pub use supports::Supports;

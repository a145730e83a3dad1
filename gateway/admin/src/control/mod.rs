//! The control socket: where whoever runs the gateway looks at it and orders it about, without a token and without its configuration.

// Where control sockets are: in a folder of this user alone, one for each gateway, named by its configuration, its mode and its process.
mod folder;
// Serves the control socket: short connections of this user and of root, few at once.
mod served;
// A client that joins by the control socket: its connection goes over from HTTP to lines of frames.
pub mod join;

pub use folder::{Bound, Mode, Running, StartLock, bind, running, start_log};
pub use served::serve;

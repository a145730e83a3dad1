//! The sessions with a handshake upstream over HTTP that clients have to themselves: found for a call, ended with their clients. They have
//! no lists before a change of lists was announced in them, no pings and no supervisor: how the upstream fares shows in the instance.

// What is known of one: whose it is, what it declares, and when it is given up.
mod session;
// What is kept up in one life of it: log level, stream, subscriptions, lists.
mod upkeep;
// That it outlives a restart of the gateway: kept on disk, gone on with, or said to be lost.
mod kept;
// From its first call to its end: opened, opened anew where it is lost, ended with its client.
mod life;
// As calls find them.
mod find;

pub(crate) use find::{home, of};
pub(crate) use kept::end_left_over;
pub(crate) use session::{Own, existing, gate, gives_sessions, is_hopeless, retire_if_gone};

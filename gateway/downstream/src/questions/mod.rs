//! Questions of upstreams on their way to clients of both eras.

// What becomes of the questions that come up while a call goes on: by the era of the client.
mod dialogue;
// The questions of a handshake client's call: put to the client on the call's own stream, and withdrawn there.
mod live;
// How a stateless client is asked.
pub(crate) mod park;
// A stateless upstream that asks a handshake client.
mod rounds;
// A stateless upstream's questions on their way to a stateless client.
mod passing;
// Pages that a person must visit before a call can be made, as 2025-11-25 says it (-32042), for stateless clients.
pub(crate) mod pages;

pub(crate) use dialogue::Dialogue;
pub(crate) use live::LiveQuestions;
pub(crate) use pages::Said;
pub(crate) use park::ParkQuestions;

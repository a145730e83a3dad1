//! Whether a call may go out now, or waits, or is refused.

// How calls get at the peer that is live now.
pub(crate) mod gate;
// The calls that wait for one upstream: bounded, those of one session in their order, shares and their sessions by turns.
mod queue;
// What a call that waits is told: what it waits for, as that changes, and at last its turn.
pub(crate) mod waiter;
// Whether an upstream is needed: by whom it is awakened, by what it is kept awake, and since when by nothing.
mod demand;
// The table of sessions with a handshake upstream over HTTP beside its primary one.
pub(crate) mod sessions;
// The table of sessions with such an upstream that clients have to themselves.
pub(crate) mod own;
// The ids that upstreams gave the sessions of clients, kept on disk: after a restart a client session finds its own ones again.
pub(crate) mod kept;
// The part of an instance that decides whether a call may go out now.
mod control;

pub(crate) use control::Admission;
pub(crate) use demand::Demand;
pub(crate) use queue::Entry;

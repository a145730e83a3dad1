//! One call to an upstream: admitted, sent, answered within its deadlines.

// Whether a call goes out now: judged, then sent, or waiting for its turn, or refused.
pub(crate) mod admit;
// In which session with an HTTP upstream a call goes out; the sessions beside the primary one.
pub(crate) mod sessions;
// What a call's reply is read from: the frames of its exchange, within its time limits.
mod call;
// How far a call has come with its requests, and what is counted of each.
mod attempts;
// The breaker of a child: whether a call may go there now, and what its end says.
mod child_breaker;
// A call that runs as it is: those that a task needs for itself.
pub(crate) mod plain;
// A listen call's reply.
mod listen;
// The time limits of a call: when they run, stand still, and are passed.
mod deadlines;
// What an upstream's answer means for its call.
pub(crate) mod outcome;
// How a call fails by the doing of its upstream: counted, kept, logged, and told to its caller.
pub(crate) mod failure;
// What a caller is told when an upstream fails: what happened, to which upstream, what to do next.
pub(crate) mod messages;
// Tasks of an upstream, driven for callers that know none.
pub(crate) mod tasks;

pub(crate) use call::CallSource;
pub(crate) use deadlines::Deadlines;
pub(crate) use listen::ListenSource;

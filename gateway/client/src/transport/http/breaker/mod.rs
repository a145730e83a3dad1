//! When nothing is sent to an HTTP upstream: after failures in a row, or while it asked for a pause.

// When nothing is sent to an HTTP upstream: it failed again and again, or it asked to be left alone.
mod verdict;
// One attempt of a request, from the breaker's verdict to its outcome; and what outcomes say of the upstream.
mod attempt;

pub(crate) use attempt::pause;
pub(crate) use attempt::{Attempt, admitted, denied};
pub use verdict::Breaker;

//! How long a connection is waited for, at its beginning and at its end.

use crate::listen::leaving::Leaving;
use crate::runtime::Tasks;
use std::time::Duration;

/// How long an idle connection is kept for a request that its client sent before it could see the end. More than the way round the
/// earth, and little for somebody who waits for the end.
const LINGER: Duration = Duration::from_secs(1);
/// How long the answers of what was cut off have to be written.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(500);

/// What a listener may be told.
#[derive(Debug, Clone)]
pub struct Patience {
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// How long an idle connection stays open once the listener was told to end: a request may be on its way on it.
    pub linger: Duration,
    /// Set when responses are to close their connections.
    pub leaving: Leaving,
    /// Told to end when responses may go on no longer, after the listener was told to end.
    pub cut: Tasks,
}

impl Patience {
    /// So long a head may take; at the end, idle connections are kept for no longer than the grace.
    pub fn new(head: Duration, grace: Duration, leaving: Leaving, cut: Tasks) -> Self {
        Self { head, linger: LINGER.min(grace), leaving, cut }
    }

    /// The same, but that idle connections are closed at once at the end.
    pub fn without_linger(self) -> Self {
        Self { linger: Duration::ZERO, ..self }
    }
}

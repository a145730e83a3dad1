//! A token as it was given out, or the reason why none was.

use crate::health::Cause;
use std::time::Duration;

/// A token as it was given out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Issued {
    pub(super) token: String,
    /// How long it can be used from now on, where that is known.
    pub(super) lasts: Option<Duration>,
}

/// Why none was given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unissued {
    pub(crate) why: Cause,
    /// So long nobody is to ask again, where that was asked for.
    pub(crate) pause: Option<Duration>,
}

impl From<Cause> for Unissued {
    fn from(why: Cause) -> Self {
        Self { why, pause: None }
    }
}

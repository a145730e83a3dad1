//! Whether an upstream takes the credentials that it is called with, as the statuses of its answers show.

use http::StatusCode;
use std::sync::atomic::{AtomicU32, Ordering};

/// One thing may be forbidden to a caller that is welcome otherwise: so many refusals without a yes between are more than that.
const FORBIDDEN_MIN: u32 = 2;

/// How often it refused them in a row.
#[derive(Debug, Default)]
pub(super) struct Credentials(AtomicU32);

impl Credentials {
    /// It has taken a request; whether it had refused one before.
    pub(super) fn taken(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0 && self.0.swap(0, Ordering::Relaxed) > 0
    }

    /// It has refused a request; whether it is to be shown that it takes none with these credentials.
    pub(super) fn refused(&self, status: StatusCode) -> bool {
        let enough = match status.as_u16() {
            401 | 407 => 1,
            403 => FORBIDDEN_MIN,
            _ => return false,
        };
        self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= enough
    }
}

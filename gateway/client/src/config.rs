//! Configuration of connections to upstreams: checked values that `config` makes from the files.

// What an address stands for.
mod address;
// How it is spoken to.
mod dialect;
// How an upstream is reached.
mod transport;
// Where a URL may lead.
mod reach;
// How an upstream is told whose call it is.
mod told_identity;
// What an upstream is secured with besides the authorities of the platform.
mod trust;

use crate::protocol::revision::Era;
pub use address::{gives_out_credentials, meant, numbers};
pub use dialect::{Definitions, Dialect};
pub use reach::Reach;
use std::time::Duration;
pub use told_identity::ToldIdentity;
pub use transport::{ChildCommand, Place, Proxy, Remote, Transport};
pub use trust::{Stamp, Trust, TrustFault, TrustRead};

/// Whether the era of an upstream is probed or given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraChoice {
    /// Probed once per link, and remembered.
    #[default]
    Auto,
    /// Handshake at once.
    Legacy,
    /// Never a handshake.
    Modern,
}

impl From<Era> for EraChoice {
    fn from(era: Era) -> Self {
        match era {
            Era::Legacy => Self::Legacy,
            Era::Modern => Self::Modern,
        }
    }
}

impl EraChoice {
    /// The word for it in the configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// When a remote upstream that fails is left alone.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerConfig {
    /// After so many failures in a row.
    pub failures: u32,
    /// For so long; then one call tries.
    pub open_for: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self { failures: 5, open_for: Duration::from_secs(15) }
    }
}

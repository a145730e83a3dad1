//! How names are merged and lists are served: checked values, made from the files by `config`.

// The tools that somebody has approved, by their definitions.
mod pins;

pub use pins::{Approval, Approved, Pin, Pins, shown};

use std::time::Duration;

/// How the names of many upstreams become one set.
#[derive(Clone, Debug, PartialEq)]
pub struct Naming {
    /// When a name gets its upstream's prefix.
    pub strategy: Strategy,
    /// What stands between prefix and name.
    pub separator: String,
    /// Longer names are cut and end in a stable hash.
    pub max_length: usize,
}

impl Naming {
    /// Whether names and URIs pass as they are: one upstream, and nothing to tell it apart from.
    pub fn is_transparent(&self, upstreams: usize) -> bool {
        upstreams == 1 && self.strategy == Strategy::Flat
    }
}

impl Default for Naming {
    fn default() -> Self {
        Self { strategy: Strategy::Prefix, separator: "__".to_owned(), max_length: 50 }
    }
}

/// When a name gets its upstream's prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Always: names never change because another upstream was added.
    #[default]
    Prefix,
    /// Only where two upstreams have the same name.
    PrefixOnConflict,
    /// Never: a contested name belongs to the first upstream in the order of configuration.
    Flat,
}

/// What becomes of extensions that the gateway does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// They pass, where one upstream has them.
    #[default]
    Pass,
    /// Nobody is told of them.
    Strip,
    /// Who declares one is refused.
    Refuse,
}

/// How lists are served.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    /// How long the first list waits for inventories that were never known; `None` means the
    /// command's own: 2 s for `serve`, 8 s for `stdio`.
    pub first_list_wait: Option<Duration>,
    /// Items on one page of a list.
    pub page_size: usize,
    /// What is asked of tools before clients are offered them.
    pub pins: Pins,
}

impl Default for Catalog {
    fn default() -> Self {
        Self { first_list_wait: None, page_size: 1_000, pins: Pins::default() }
    }
}

/// How long first lists wait where the configuration does not say: a host asks once and remembers, so it waits longer.
const FIRST_LIST_WAIT_SERVE: Duration = Duration::from_secs(2);
const FIRST_LIST_WAIT_STDIO: Duration = Duration::from_secs(8);

impl Catalog {
    /// How long the first list waits; the client may be the one on stdin and stdout.
    pub fn first_wait(&self, is_of_one_client: bool) -> Duration {
        let own = if is_of_one_client { FIRST_LIST_WAIT_STDIO } else { FIRST_LIST_WAIT_SERVE };
        self.first_list_wait.unwrap_or(own)
    }
}

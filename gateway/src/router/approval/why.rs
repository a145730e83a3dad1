//! Tools that nobody has approved as they are: which these are, and why.

use crate::router::config::Pins;
use crate::router::names::MemberId;
use crate::upstream::inventory::Item;
use std::sync::Arc;

/// A tool that nobody has approved as it is.
pub(crate) struct Unapproved {
    /// Whose it is.
    pub(crate) member: MemberId,
    /// What its upstream calls it.
    pub(crate) own: Arc<str>,
    /// What clients call it, or would.
    pub(crate) public: Option<Arc<str>>,
    pub(crate) why: Why,
}

/// Why nobody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Why {
    /// No tool of its name was approved.
    New,
    /// It was approved as something else.
    Changed,
}

impl Why {
    /// Why a tool is not approved as it is; `None` where it is.
    pub(crate) fn of(pins: &Pins, upstream: &str, tool: &Item) -> Option<Self> {
        if tool.is_of_gateway() {
            return None;
        }
        match pins.approved.of(upstream, &tool.key) {
            [] => Some(Self::New),
            all => (!all.iter().any(|one| one.digest == *tool.digest())).then_some(Self::Changed),
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
        }
    }

    /// Why clients are not offered it.
    pub(crate) fn hidden(self) -> &'static str {
        match self {
            Self::New => "held: nobody has approved it yet (`trunkline approve`)",
            Self::Changed => "held: its definition has changed since it was approved (`trunkline approve`)",
        }
    }
}

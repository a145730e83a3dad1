//! What a question's and an answer's `_meta` says of one hop alone.

use super::edit;
use super::edit::Fate;
use crate::meta;
use crate::revision::{Features, Gap};

/// The `_meta` of what crosses between a question of its own and an embedded one: what belongs to the hop is left out.
pub(super) fn meta(raw: &[u8], gap: Gap) -> Fate {
    if !gap.differs(Features::STATELESS) {
        return Fate::Stays;
    }
    let is_of_the_hop = |key: &str| key == "progressToken" || key.starts_with(meta::PREFIX);
    match edit::members(raw, |key, _| Fate::gone_if(is_of_the_hop(key))) {
        None if raw == b"{}" => Fate::Goes,
        None => Fate::Stays,
        Some(rest) if rest == b"{}" => Fate::Goes,
        Some(rest) => Fate::Becomes(rest),
    }
}

//! What the gateway says it can do, in the words of one revision.

use super::edit;
use super::edit::Fate;
use crate::capabilities::EXTENSION_TASKS;
use crate::revision::{Features, Revision};
use std::borrow::Cow;

/// Capabilities without what a peer of revision `to` does not know.
pub fn capabilities(offered: &[u8], to: Revision) -> Cow<'_, [u8]> {
    let told = edit::members(offered, |key, value| match key {
        "completions" => Fate::gone_if(to < Revision::V2025_03_26),
        "tasks" => Fate::gone_if(!Features::of(to).has(Features::TASKS)),
        "extensions" if to.is_modern() => Fate::Stays,
        // Hosts of that revision read there who serves pages; its tasks have another form.
        "extensions" if to == Revision::NEWEST_LEGACY => {
            match edit::members(value, |key, _| Fate::gone_if(key == EXTENSION_TASKS)) {
                Some(rest) if rest == b"{}" => Fate::Goes,
                rest => Fate::of(rest),
            }
        }
        "extensions" => Fate::Goes,
        _ => Fate::Stays,
    });
    told.map_or(Cow::Borrowed(offered), Cow::Owned)
}

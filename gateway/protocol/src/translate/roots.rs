//! The question for the client's roots, and the answer.

use super::edit::Fate;
use super::{edit, hop};
use crate::revision::{Features, Gap};
use crate::value::Object;

/// The question, which says nothing but its `_meta`.
pub(super) fn question(params: &Object, gap: Gap) -> Vec<u8> {
    written(params, gap)
}

/// The answer.
pub(super) fn answer(result: &Object, gap: Gap) -> Vec<u8> {
    written(result, gap)
}

fn written(object: &Object, gap: Gap) -> Vec<u8> {
    let told = edit::members(object.raw(), |key, value| match key {
        "_meta" => hop::meta(value, gap),
        "roots" if gap.lost.has(Features::PART_META) => {
            Fate::of(edit::elements(value, |root| edit::members(root, |key, _| Fate::gone_if(key == "_meta"))))
        }
        _ => Fate::Stays,
    });
    told.unwrap_or_else(|| object.raw().to_vec())
}

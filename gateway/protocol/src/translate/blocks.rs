//! Content blocks, and where results hold them: sound, links, icons and `_meta` for receivers that have none.

use super::edit;
use super::edit::{Fate, Word};
use crate::json;
use crate::revision::Features;

/// The name of sound that a receiver without sound is given as a resource.
const SOUND_URI: &str = "urn:trunkline:audio";

static AUDIO: Word = Word::new("\"audio\"");
static LINK: Word = Word::new("\"resource_link\"");
static PART_META: Word = Word::new("\"_meta\"");
static ICONS: Word = Word::new("\"icons\"");

/// The blocks of an array, for a receiver that lacks some features; `None` where nothing changes.
pub(super) fn list(raw: &[u8], lost: Features) -> Option<Vec<u8>> {
    if !may_change(raw, lost) {
        return None;
    }
    edit::elements(raw, |block| Some(one(block, lost)?.join(&b',')))
}

/// The messages of a prompt: each holds one block.
pub(super) fn messages(raw: &[u8], lost: Features) -> Option<Vec<u8>> {
    if !may_change(raw, lost) {
        return None;
    }
    edit::elements(raw, |message| {
        let told = one(json::get(message, "content")?, lost)?;
        let each = told.into_iter().map(|block| with_content(message, block));
        Some(each.collect::<Vec<_>>().join(&b','))
    })
}

/// The contents of a resource that was read.
pub(super) fn contents(raw: &[u8], lost: Features) -> Option<Vec<u8>> {
    if !lost.has(Features::PART_META) || !edit::may_hold(raw, &PART_META) {
        return None;
    }
    edit::elements(raw, bare)
}

/// One block as one block; `None` where nothing changes.
pub(super) fn single(raw: &[u8], lost: Features) -> Option<Vec<u8>> {
    one(raw, lost).and_then(|told| told.into_iter().next())
}

/// Whether a block is sound.
pub(super) fn is_sound(block: &[u8]) -> bool {
    edit::text(block, "type").is_some_and(|kind| kind == "audio")
}

/// A text block.
pub(super) fn words(text: &str) -> Vec<u8> {
    format!("{{\"type\":\"text\",\"text\":{}}}", json::quote(text)).into()
}

/// Whether something in the array may be another thing for the receiver.
pub(super) fn may_change(raw: &[u8], lost: Features) -> bool {
    let signs = [
        (Features::AUDIO, &AUDIO),
        (Features::LINKS, &LINK),
        (Features::PART_META, &PART_META),
        (Features::ICONS, &ICONS),
    ];
    signs.into_iter().any(|(feature, sign)| lost.has(feature) && edit::may_hold(raw, sign))
}

/// What a block becomes: one block, or the two that sound becomes; `None` where nothing changes.
fn one(raw: &[u8], lost: Features) -> Option<Vec<Vec<u8>>> {
    let told = match &*edit::text(raw, "type")? {
        "audio" if lost.has(Features::AUDIO) => return Some(sound(raw)),
        "resource_link" if lost.has(Features::LINKS) => link(raw),
        "resource_link" if lost.has(Features::ICONS) => edit::members(raw, |key, _| Fate::gone_if(key == "icons"))?,
        _ if !lost.has(Features::PART_META) => return None,
        "resource" => edit::members(raw, |key, value| match key {
            "_meta" => Fate::Goes,
            "resource" => Fate::of(bare(value)),
            _ => Fate::Stays,
        })?,
        _ => bare(raw)?,
    };
    Some(vec![told])
}

/// Without `_meta`.
fn bare(raw: &[u8]) -> Option<Vec<u8>> {
    edit::members(raw, |key, _| Fate::gone_if(key == "_meta"))
}

fn with_content(message: &[u8], block: Vec<u8>) -> Vec<u8> {
    let mut block = Some(block);
    let told = edit::members(message, |key, _| match key {
        "content" => block.take().map_or(Fate::Goes, Fate::Becomes),
        _ => Fate::Stays,
    });
    told.unwrap_or_else(|| message.to_vec())
}

/// Sound in words, and its bytes as a resource.
fn sound(raw: &[u8]) -> Vec<Vec<u8>> {
    let kind = edit::text(raw, "mimeType").unwrap_or_else(|| "audio".to_owned());
    let mut told = vec![words(&format!("[Sound of type {kind}, which this client's protocol revision does not have]"))];
    if let Some(data) = json::get(raw, "data").filter(|data| data.starts_with(b"\"")) {
        let head = format!(
            "{{\"type\":\"resource\",\"resource\":{{\"uri\":\"{SOUND_URI}\",\"mimeType\":{},\"blob\":",
            json::quote(&kind)
        );
        told.push([head.as_bytes(), data, b"}", &annotations(raw), b"}"].concat());
    }
    told
}

/// A link in words: what it is called, and its URI.
fn link(raw: &[u8]) -> Vec<u8> {
    let uri = edit::text(raw, "uri").unwrap_or_default();
    let name = edit::text(raw, "title").or_else(|| edit::text(raw, "name")).filter(|name| *name != uri);
    let text = name.map_or_else(|| uri.clone(), |name| format!("{name}: {uri}"));
    let head = format!("{{\"type\":\"text\",\"text\":{}", json::quote(&text));
    [head.as_bytes(), &annotations(raw), b"}"].concat()
}

/// The block's annotations as a further member.
fn annotations(raw: &[u8]) -> Vec<u8> {
    json::get(raw, "annotations").map(|value| [b",\"annotations\":", value].concat()).unwrap_or_default()
}

//! An inventory as the text of a file, and back: a line that says what it is, then everything as the upstream wrote it.

use super::key;
use crate::memory::budget::{Budget, Spent};
use crate::protocol::capabilities::Supports;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::secrets::mask;
use crate::secrets::mask::Kept;
use crate::upstream::config::Config;
use crate::upstream::instance::inventory::contents::{Announced, Inventory};
use crate::upstream::instance::inventory::fetch::ITEMS_MAX;
use crate::upstream::instance::inventory::item::{DEFINITION_BYTES_MAX, Item};
use crate::upstream::instance::inventory::listing::{LeftOut, Listing, NewListing};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The form of what is written. What another version wrote may mean something else.
const VERSION: u32 = 2;
const TOOLS: &str = "tools";
/// The lists: the member that holds one, and what names its items.
const LISTS: [(&str, &str); 4] =
    [(TOOLS, "name"), ("resources", "uri"), ("resourceTemplates", "uriTemplate"), ("prompts", "name")];

/// Why a text is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    /// Another version wrote it.
    #[error("another version of Trunkline wrote it")]
    Version,
    /// It is not what was written under this name.
    #[error("damaged; written again when the upstream has been read")]
    Damaged,
    /// It does not fit.
    #[error("no room for it within `server.memory_limit`")]
    Full,
}

/// How long the text of an inventory is, but for what is the same in all.
pub(super) fn length(inventory: &Inventory) -> usize {
    let lists = [&inventory.tools, &inventory.resources, &inventory.templates, &inventory.prompts];
    let items = lists.into_iter().flat_map(|list| list.iter()).map(|item| item.definition.raw().len() + 2);
    items.sum::<usize>() + inventory.capabilities.raw().len() + inventory.instructions.as_ref().map_or(0, Bytes::len)
}

/// The text of the file with this name.
pub(super) fn write(inventory: &Inventory, name: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(length(inventory) + 512);
    body.extend_from_slice(format!("{{\"revision\":{},\"capabilities\":", inventory.revision.quoted()).as_bytes());
    body.extend_from_slice(inventory.capabilities.raw());
    if let Some(instructions) = &inventory.instructions {
        body.extend_from_slice(b",\"instructions\":");
        body.extend_from_slice(instructions);
    }
    let lists = [&inventory.tools, &inventory.resources, &inventory.templates, &inventory.prompts];
    for ((member, _), items) in LISTS.into_iter().zip(lists) {
        body.extend_from_slice(format!(",\"{member}\":[").as_bytes());
        for (at, item) in items.iter().enumerate() {
            body.extend_from_slice(if at > 0 { b",\n" } else { b"\n" });
            body.extend_from_slice(item.definition.raw());
        }
        body.push(b']');
    }
    body.push(b'}');
    let head = head(name, &body);
    body.splice(..0, head.bytes());
    body
}

/// The inventory in a text, as far as the configuration admits it.
pub(super) fn read(text: Bytes, name: &str, config: &Config, budget: &Budget) -> Result<Inventory, Unfit> {
    let end = memchr::memchr(b'\n', &text).ok_or(Unfit::Damaged)? + 1;
    let (first, body) = (text.slice(..end), text.slice(end..));
    if first != head(name, &body) {
        let version = json::get(&first, "version").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
        return Err(if version.is_some_and(|version: u32| version != VERSION) {
            Unfit::Version
        } else {
            Unfit::Damaged
        });
    }
    inventory(&body, config, budget)
}

/// The first line: what it is, whose, and the digest of all that follows.
fn head(name: &str, body: &[u8]) -> String {
    let digest = key::hex(&Sha256::digest(body));
    format!("{{\"trunkline\":\"inventory\",\"version\":{VERSION},\"name\":\"{name}\",\"digest\":\"{digest}\"}}\n")
}

fn inventory(body: &Bytes, config: &Config, budget: &Budget) -> Result<Inventory, Unfit> {
    let whole = Object::parse(body.clone()).map_err(|_| Unfit::Damaged)?;
    let revision = whole.find("revision").and_then(json::unquote).and_then(|date| Revision::parse(&date));
    let revision = revision.ok_or(Unfit::Damaged)?;
    // What is a secret now may have been none when it was written. Nothing keeps the text of the file.
    let own = |raw: &[u8]| mask::masked_json(raw, Kept::Names).unwrap_or_else(|| Bytes::copy_from_slice(raw));
    let capabilities = whole.find("capabilities").and_then(|raw| Object::parse(own(raw)).ok()).ok_or(Unfit::Damaged)?;
    let mut lists = LISTS.into_iter().map(|(member, key)| {
        let array = body.slice_ref(whole.find(member).ok_or(Unfit::Damaged)?);
        list(&array, member, key, config, budget)
    });
    let mut next = || lists.next().unwrap_or(Err(Unfit::Damaged));
    let (tools, resources, templates, prompts) = (next()?, next()?, next()?, next()?);
    Ok(Inventory {
        revision,
        tools,
        resources,
        templates,
        prompts,
        supports: Supports::of(&capabilities, revision),
        capabilities,
        instructions: whole.find("instructions").map(own),
        fresh: Arc::default(),
        announced: Announced::default(),
    })
}

/// One list, within the limits of a list that is read from an upstream; of tools what the configuration admits.
fn list(array: &Bytes, member: &str, key: &str, config: &Config, budget: &Budget) -> Result<Listing, Unfit> {
    let mut list = NewListing::after(&Listing::default(), budget);
    let places = json::elements(array).map_err(|_| Unfit::Damaged)?;
    for place in places.into_iter().filter(|place| place.len() <= DEFINITION_BYTES_MAX).take(ITEMS_MAX) {
        let mut item = Item::parse(array.slice(place), key).ok_or(Unfit::Damaged)?;
        if member == TOOLS {
            if LeftOut::by(config, &item.key).is_some() {
                continue;
            }
            // A tool whose annotations are wrong was left out when it was read, where they mean anything.
            let _is_right = item.compile_headers();
        }
        list.push(item).map_err(|_: Spent| Unfit::Full)?;
    }
    list.finish().map_err(|_: Spent| Unfit::Full)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::config::{Filter, Glob};
    use crate::upstream::tests::rig::config;

    fn sample() -> Inventory {
        let items = |texts: &[&str], key: &str| {
            texts.iter().map(|text| Item::parse(Bytes::from((*text).to_owned()), key).unwrap()).collect()
        };
        let capabilities = Object::parse(r#"{ "tools":{},"resources":{"subscribe":true}}"#.into()).unwrap();
        Inventory {
            revision: Revision::V2025_11_25,
            tools: items(&[r#"{"name":"b" ,"x":1.50}"#, "{\"name\":\"a\",\n\"inputSchema\":{}}"], "name"),
            resources: items(&[r#"{"uri":"a:1"}"#], "uri"),
            templates: Listing::default(),
            prompts: items(&[r#"{"name":"\u00e9"}"#], "name"),
            supports: Supports::of(&capabilities, Revision::V2025_11_25),
            capabilities,
            instructions: Some(r#""say \n \"it\"""#.into()),
            fresh: Arc::default(),
            announced: Announced::default(),
        }
    }

    #[test]
    fn an_inventory_comes_back_byte_for_byte() {
        let (before, text) = (sample(), write(&sample(), "n"));
        let back = read(text.clone().into(), "n", &config(), &Budget::default()).unwrap();
        assert!(back.is_same(&before), "{back:?}");
        assert_eq!(back.counts(), [2, 1, 0, 1]);
        let deny = Filter { allow: Vec::new(), deny: vec![Glob::new("b")] };
        let filtered = read(text.into(), "n", &Config { tools: deny, ..config() }, &Budget::default()).unwrap();
        assert_eq!(filtered.tools.iter().map(|tool| &*tool.key).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn what_is_cut_altered_renamed_or_foreign_is_not_used() {
        let text = write(&sample(), "n");
        for end in 0..text.len() {
            assert_eq!(
                read(text[..end].to_vec().into(), "n", &config(), &Budget::default()).unwrap_err(),
                Unfit::Damaged,
                "{end}"
            );
        }
        for at in 0..text.len() {
            let mut altered = text.clone();
            altered[at] ^= 1;
            assert!(read(altered.into(), "n", &config(), &Budget::default()).is_err(), "{at}");
        }
        assert_eq!(read(text.clone().into(), "m", &config(), &Budget::default()).unwrap_err(), Unfit::Damaged);
        let next = String::from_utf8(text).unwrap().replacen("\"version\":2", "\"version\":3", 1);
        assert_eq!(read(next.into(), "n", &config(), &Budget::default()).unwrap_err(), Unfit::Version);
    }

    #[test]
    fn a_kept_inventory_obeys_the_limits_of_one_that_is_read() {
        let tool = |name: &str, bytes: usize| {
            let text = format!("{{\"name\":\"{name}\",\"description\":\"{}\"}}", "x".repeat(bytes));
            Item::parse(text.into(), "name").unwrap()
        };
        let large = Inventory { tools: vec![tool("large", 1 << 20), tool("small", 0)].into(), ..sample() };
        let back = read(write(&large, "n").into(), "n", &config(), &Budget::default()).unwrap();
        assert_eq!(back.tools.iter().map(|tool| &*tool.key).collect::<Vec<_>>(), ["small"]);
        let many = Inventory { tools: (0..4).map(|at| tool(&at.to_string(), 1 << 19)).collect(), ..sample() };
        let text = Bytes::from(write(&many, "n"));
        let budget = Budget::new(16 << 20);
        let back = read(text.clone(), "n", &config(), &budget).unwrap_err();
        assert_eq!((back, budget.used()), (Unfit::Full, 0));
        let budget = Budget::new(32 << 20);
        let back = read(text.clone(), "n", &config(), &budget).unwrap();
        assert!(text.is_unique() && budget.used() > 2 << 20, "nothing keeps the text: {}", budget.used());
        drop(back);
        assert_eq!(budget.used(), 0);
    }
}

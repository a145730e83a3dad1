//! An inventory as the text of a file, and back: a line that says what it is, then everything as the upstream wrote it.

use super::key;
use crate::protocol::json;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::secrets::mask;
use crate::secrets::mask::Kept;
use crate::upstream::config::Config;
use crate::upstream::inventory::contents::{Inventory, Item, Supports};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The form of what is written. What another version wrote may mean something else.
const VERSION: u32 = 2;
/// The lists: the member that holds one, and what names its items.
const LISTS: [(&str, &str); 4] =
    [("tools", "name"), ("resources", "uri"), ("resourceTemplates", "uriTemplate"), ("prompts", "name")];

/// Why a text is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    /// Another version wrote it.
    #[error("another version of Trunkline wrote it")]
    Version,
    /// It is not what was written under this name.
    #[error("it is damaged; it is written anew when the upstream was read")]
    Damaged,
}

/// The text of the file with this name.
pub(super) fn write(inventory: &Inventory, name: &str) -> Vec<u8> {
    let mut body = format!("{{\"revision\":{},\"capabilities\":", inventory.revision.quoted()).into_bytes();
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
    let mut text = head(name, &body).into_bytes();
    text.extend_from_slice(&body);
    text
}

/// The inventory in a text, as far as the configuration admits it.
pub(super) fn read(text: Bytes, name: &str, config: &Config) -> Result<Inventory, Unfit> {
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
    inventory(&body, config).ok_or(Unfit::Damaged)
}

/// The first line: what it is, whose, and the digest of all that follows.
fn head(name: &str, body: &[u8]) -> String {
    let digest = key::hex(&Sha256::digest(body));
    format!("{{\"trunkline\":\"inventory\",\"version\":{VERSION},\"name\":\"{name}\",\"digest\":\"{digest}\"}}\n")
}

fn inventory(body: &Bytes, config: &Config) -> Option<Inventory> {
    let whole = Object::parse(body.clone()).ok()?;
    let revision = Revision::parse(&json::unquote(whole.find("revision")?)?)?;
    // What is a secret now may have been none when it was written.
    let share = |raw: &[u8]| mask::masked_json(raw, Kept::Names).unwrap_or_else(|| body.slice_ref(raw));
    let capabilities = Object::parse(share(whole.find("capabilities")?)).ok()?;
    let mut lists = LISTS.into_iter().map(|(member, key)| {
        let array = body.slice_ref(whole.find(member)?);
        let places = json::elements(&array).ok()?;
        places.into_iter().map(|place| Item::parse(array.slice(place), key)).collect::<Option<Vec<_>>>()
    });
    let mut next = || lists.next().flatten();
    let (mut tools, resources, templates, prompts) = (next()?, next()?, next()?, next()?);
    tools.retain(|tool| config.tools.admits(&tool.key));
    // A tool whose annotations are wrong was left out when it was read, where they mean anything.
    tools.iter_mut().for_each(|tool| _ = tool.compile_headers());
    Some(Inventory {
        revision,
        tools,
        resources,
        templates,
        prompts,
        supports: Supports::of(&capabilities, revision),
        capabilities,
        instructions: whole.find("instructions").map(share),
        fresh: Arc::default(),
    })
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
            templates: Vec::new(),
            prompts: items(&[r#"{"name":"\u00e9"}"#], "name"),
            supports: Supports::of(&capabilities, Revision::V2025_11_25),
            capabilities,
            instructions: Some(r#""say \n \"it\"""#.into()),
            fresh: Arc::default(),
        }
    }

    #[test]
    fn an_inventory_comes_back_byte_for_byte() {
        let (before, text) = (sample(), write(&sample(), "n"));
        let back = read(text.clone().into(), "n", &config()).unwrap();
        assert!(back.is_same(&before), "{back:?}");
        assert_eq!(back.counts(), [2, 1, 0, 1]);
        let deny = Filter { allow: Vec::new(), deny: vec![Glob::new("b")] };
        let filtered = read(text.into(), "n", &Config { tools: deny, ..config() }).unwrap();
        assert_eq!(filtered.tools.iter().map(|tool| &*tool.key).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn what_is_cut_altered_renamed_or_foreign_is_not_used() {
        let text = write(&sample(), "n");
        for end in 0..text.len() {
            assert_eq!(read(text[..end].to_vec().into(), "n", &config()).unwrap_err(), Unfit::Damaged, "{end}");
        }
        for at in 0..text.len() {
            let mut altered = text.clone();
            altered[at] ^= 1;
            assert!(read(altered.into(), "n", &config()).is_err(), "{at}");
        }
        assert_eq!(read(text.clone().into(), "m", &config()).unwrap_err(), Unfit::Damaged);
        let next = String::from_utf8(text).unwrap().replacen("\"version\":2", "\"version\":3", 1);
        assert_eq!(read(next.into(), "n", &config()).unwrap_err(), Unfit::Version);
    }
}

//! What the gateway says of itself: the union of what its upstreams can, and their instructions.

use super::extensions;
use crate::call::caller::Grants;
use crate::protocol::capabilities::Supports;
use crate::protocol::json;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::value::Object;
use crate::router::catalog::snapshot::Catalog;
use crate::router::names::MemberId;

/// So much of one upstream's instructions is passed on; more would crowd out the others.
const INSTRUCTIONS_CHARS_MAX: usize = 16 * 1024;
/// What an upstream counts as having that was never seen, or where the caller has yet to log in: it may turn out to.
const ALL: Supports = Supports {
    tools: true,
    resources: true,
    subscribe: true,
    prompts: true,
    completions: true,
    logging: true,
    tasks: false,
};

/// The result of `server/discover`, in the words of the newest revision; for handshake clients with what only theirs have. It tells of
/// the upstreams that the caller may see.
pub(crate) fn result(catalog: &Catalog, era: Era, grants: &Grants) -> Object {
    let mut members = vec![
        format!("\"supportedVersions\":{}", Revision::list(Some(Revision::NEWEST_MODERN.era()))),
        format!("\"capabilities\":{}", capabilities(catalog, era, grants)),
    ];
    members.extend(instructions(catalog, grants).map(|raw| format!("\"instructions\":{raw}")));
    let text = format!("{{\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\",{}}}", members.join(","));
    Object::parse(text.into()).unwrap_or_else(|fault| {
        debug_assert!(false, "what we write is JSON: {fault}");
        Object::empty()
    })
}

fn capabilities(catalog: &Catalog, era: Era, grants: &Grants) -> String {
    let seen = catalog.known_to(grants).map(|(_, known)| known.filter(|inventory| !inventory.offers_login()));
    let each = seen.map(|known| known.map_or(ALL, |inventory| inventory.supports));
    let has = |what: fn(&Supports) -> bool| each.clone().any(|supports| what(&supports));
    let mut parts = Vec::new();
    if has(|supports| supports.tools) {
        parts.push("\"tools\":{\"listChanged\":true}".to_owned());
    }
    if has(|supports| supports.resources) {
        let subscribe = if has(|supports| supports.subscribe) { "\"subscribe\":true," } else { "" };
        parts.push(format!("\"resources\":{{{subscribe}\"listChanged\":true}}"));
    }
    if has(|supports| supports.prompts) {
        parts.push("\"prompts\":{\"listChanged\":true}".to_owned());
    }
    if has(|supports| supports.completions) {
        parts.push("\"completions\":{}".to_owned());
    }
    if has(|supports| supports.logging) {
        parts.push("\"logging\":{}".to_owned());
    }
    parts.extend(extensions::capabilities(catalog, era, grants));
    format!("{{{}}}", parts.join(","))
}

/// The merged instructions as a raw JSON string: the configured text first, then each upstream's under its heading.
fn instructions(catalog: &Catalog, grants: &Grants) -> Option<String> {
    let configured = &catalog.rules.instructions;
    let told = |id: MemberId| catalog.known[id].as_ref().and_then(|inventory| inventory.instructions.as_deref());
    let sees = |id: &MemberId| catalog.sees(*id, grants);
    if let Some(only) = catalog.transparent().filter(|id| sees(id) && configured.is_empty()) {
        return String::from_utf8(told(only)?.to_vec()).ok();
    }
    let mut text = configured.clone();
    for (id, member) in catalog.members.iter().filter(|(id, _)| sees(id)) {
        let Some(own) = told(id).and_then(json::unquote).filter(|own| !own.is_empty()) else { continue };
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        if !catalog.is_transparent() {
            let title = member.owner.title().unwrap_or(member.owner.name());
            text.push_str(&format!("# {title}\n\n"));
        }
        let end = own.char_indices().nth(INSTRUCTIONS_CHARS_MAX).map_or(own.len(), |(at, _)| at);
        text.push_str(&own[..end]);
    }
    (!text.is_empty()).then(|| json::quote(&text))
}

//! What upstreams and clients have beyond the protocol: passed on where one upstream owns it, unless that is forbidden.

use crate::call::Call;
use crate::call::caller::{Caller, Can, Grants};
use crate::call::refusal::{Reason, Refusal};
use crate::protocol::capabilities::{EXTENSION_APPS, EXTENSION_TASKS, declared};
use crate::protocol::frame::Method;
use crate::protocol::json;
use crate::protocol::revision::Era;
use crate::router::catalog::snapshot::Catalog;
use crate::router::config::Unknown;
use crate::router::names::MemberId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The members of a capability that exactly one upstream has of those that a caller may see, as `"key":value`, in the order of their names.
fn owned(catalog: &Catalog, capability: &str, grants: &Grants) -> Vec<(String, MemberId, String)> {
    let mut all: BTreeMap<String, Option<(MemberId, String)>> = BTreeMap::new();
    for (id, known) in catalog.known_to(grants) {
        let raw = known.and_then(|known| known.capabilities.find(capability)).unwrap_or(b"{}");
        for member in json::Members::of(raw).into_iter().flatten().flatten() {
            let Some(key) = json::unquote(&raw[member.start..member.key_end]) else { continue };
            let value = std::str::from_utf8(&raw[member.value..member.end]).unwrap_or("{}").to_owned();
            all.entry(key.into_owned()).and_modify(|only| *only = None).or_insert(Some((id, value)));
        }
    }
    all.into_iter().filter_map(|(key, only)| only.map(|(id, value)| (key, id, value))).collect()
}

/// The gateway's `extensions` and `experimental`, and for handshake clients its `tasks`: each a whole member of its capabilities. What
/// is beyond the protocol is there for who may use all of its upstream.
pub(crate) fn capabilities(catalog: &Catalog, era: Era, grants: &Grants) -> Vec<String> {
    let known = || catalog.known_to(grants).filter_map(|(_, known)| known);
    let has_whole = |id: &MemberId| grants.has_whole(catalog.members[*id].owner.name());
    let passes = catalog.rules.unknown == Unknown::Pass;
    let mut extensions = Vec::new();
    if known().any(|known| known.supports.tasks && known.revision.is_modern()) {
        extensions.push(format!("\"{EXTENSION_TASKS}\":{{}}"));
    }
    // Whoever has pages has them as everybody has them.
    let apps = known().find_map(|known| json::get(known.capabilities.find("extensions")?, EXTENSION_APPS));
    extensions.extend(apps.map(|apps| format!("\"{EXTENSION_APPS}\":{}", String::from_utf8_lossy(apps))));
    let unknown = owned(catalog, "extensions", grants)
        .into_iter()
        .filter(|(key, id, _)| passes && !declared::is_known(key) && has_whole(id));
    extensions.extend(unknown.map(|(key, _, value)| format!("{}:{value}", json::quote(&key))));
    let mut parts = Vec::new();
    if !extensions.is_empty() {
        parts.push(format!("\"extensions\":{{{}}}", extensions.join(",")));
    }
    let experimental = owned(catalog, "experimental", grants).into_iter().filter(|(_, id, _)| has_whole(id));
    let experimental: Vec<_> = experimental.map(|(key, _, value)| format!("{}:{value}", json::quote(&key))).collect();
    if !experimental.is_empty() {
        parts.push(format!("\"experimental\":{{{}}}", experimental.join(",")));
    }
    if era == Era::Legacy && known().any(|known| known.supports.tasks && !known.revision.is_modern()) {
        parts.push("\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}".to_owned());
    }
    parts
}

/// Who answers a method that the protocol does not have: the one upstream that says it has more than the protocol, of those that the
/// caller may see.
pub(crate) fn owner(catalog: &Catalog, method: &Method, grants: &Grants) -> Option<MemberId> {
    let capability = if method.as_str().starts_with("experimental/") { "experimental" } else { "extensions" };
    if capability == "extensions" && catalog.rules.unknown != Unknown::Pass {
        return None;
    }
    let mut owners: Vec<_> = owned(catalog, capability, grants)
        .into_iter()
        .filter(|(key, ..)| !declared::is_known(key))
        .map(|(_, id, _)| id)
        .collect();
    owners.sort_unstable();
    owners.dedup();
    match owners[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// The call as upstreams may see it: without the extensions that are not passed, or not at all.
pub(crate) fn admit(call: Call, unknown: Unknown) -> Result<Call, Refusal> {
    if unknown == Unknown::Pass || declared::unknown_extensions(&call.caller.capabilities).next().is_none() {
        return Ok(call);
    }
    if unknown == Unknown::Refuse {
        let names = declared::unknown_extensions(&call.caller.capabilities).collect::<Vec<_>>().join("`, `");
        let why = format!(
            "this gateway refuses extensions that it does not know ([extensions] unknown = \"refuse\"): `{names}`"
        );
        return Err(Refusal::new(Reason::InvalidParams, why));
    }
    let capabilities = declared::without_unknown_extensions(&call.caller.capabilities);
    let caller = Caller { capabilities, can: Can::default(), ..(*call.caller).clone() };
    Ok(Call { caller: Arc::new(caller), ..call })
}

//! How an upstream is spoken to: `sessions` and `dialect`, and `tools.define` for one that has no list of tools.

use crate::config::doc::KeyDoc;
use crate::config::fault::Fault;
use crate::config::read::{Part, Section};
use crate::upstream::config::{Definitions, Dialect, Transport};

/// Keys that are about what such an upstream does not know.
const OF_SESSIONS: [(&str, &str); 6] = [
    ("era", "it makes no handshake"),
    ("eras", "it makes no handshake"),
    ("health", "it is sent no pings"),
    ("hang_restart", "it is sent no pings"),
    ("offer", "it asks nothing"),
    ("roots", "it asks nothing"),
];

/// Keys of `[upstreams.NAME]` for its dialect.
pub(crate) const DIALECT_KEYS: &[KeyDoc] = &[
    KeyDoc {
        key: "sessions",
        kind: "`\"auto\"`, `\"off\"`",
        default: "`\"auto\"`",
        description: "`\"off\"`: an HTTP server that knows [calls of tools \
            alone](../bridging.md#servers-that-know-tools-alone)",
    },
    KeyDoc {
        key: "dialect",
        kind: "`\"mcp\"`, `\"bare\"`",
        default: "`\"mcp\"`",
        description: "`\"bare\"`: a WebSocket that takes [`{id, name, \
            arguments}`](../bridging.md#servers-that-know-tools-alone)",
    },
];

/// Reads it.
pub(super) fn dialect(section: &mut Section<'_>, transport: Option<&Transport>) -> Dialect {
    let is_off = section.word("sessions", &[("auto", false), ("off", true)]).unwrap_or(false);
    let is_bare = section.word("dialect", &[("mcp", false), ("bare", true)]).unwrap_or(false);
    let useless = |key: &str, label: &str| {
        let fault = Fault::error("useless-key", format!("`{key}` has no meaning for this upstream"));
        section.reading.fault(fault.at(section.place(key)).label(label));
    };
    let dialect = match transport {
        Some(Transport::Http(_)) if is_off => Dialect::CallsOnly,
        Some(Transport::WebSocket(_)) if is_bare => Dialect::Bare,
        Some(Transport::Http(_)) if is_bare => {
            useless("dialect", "for a WebSocket; calls by plain HTTP are `sessions = \"off\"`");
            Dialect::Mcp
        }
        Some(_) if is_off => {
            useless("sessions", "only an upstream with transport `http` can do without; remove the key");
            Dialect::Mcp
        }
        Some(_) if is_bare => {
            useless("dialect", "only an upstream with transport `websocket` can have it; remove the key");
            Dialect::Mcp
        }
        _ => Dialect::Mcp,
    };
    if dialect != Dialect::Mcp {
        for (key, why) in OF_SESSIONS.iter().filter(|(key, _)| section.reading_is_real() && section.has(key)) {
            useless(key, &format!("{why}; remove the key"));
        }
    }
    dialect
}

/// Reads `tools.define`: what `tools/list` would answer.
pub(super) fn defined(tools: &mut Section<'_>, dialect: Dialect) -> Definitions {
    let has_any = tools.has("define");
    let mut defined = Definitions::default();
    let pairs = tools.pairs("define");
    let is_empty = pairs.is_empty();
    for (name, text) in pairs {
        if let Err(why) = defined.add(&name, text.trim()) {
            let path: Vec<String> = tools.at("define").into_iter().chain([name.clone()]).collect();
            let fault = Fault::error("bad-value", format!("invalid definition of the tool `{name}`"));
            tools.reading.fault(fault.at(tools.reading.place(&path, Part::Value)).label(why));
        }
    }
    match dialect {
        Dialect::Mcp if has_any && tools.reading_is_real() => {
            let fault = Fault::error("useless-key", "`tools.define` has no meaning for this upstream");
            let label = "tools are defined for `sessions = \"off\"` and `dialect = \"bare\"` alone; remove the key";
            tools.reading.fault(fault.at(tools.place("define")).label(label));
        }
        Dialect::Bare if is_empty => {
            let text = "an upstream with `dialect = \"bare\"` needs `tools.define`: it has no list of tools";
            let place = if has_any { tools.place("define") } else { tools.own_place() };
            let fault = Fault::error("missing-key", text).at(place);
            tools.reading.fault(if has_any { fault.label("no tool is defined here") } else { fault });
        }
        _ => {}
    }
    defined
}

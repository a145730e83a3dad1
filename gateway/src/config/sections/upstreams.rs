//! `[upstreams.NAME]` and imported `mcpServers`: every upstream, in the order of the files.

use std::collections::HashMap;
use std::sync::Arc;

use crate::upstream::config::{Config, Filter, Times, Transport};

use super::defaults::{Defaults, bound};
use super::transport::{globs, transport};
use crate::config::fault::{Fault, Severity};
use crate::config::read::{Part, Section, duration};

/// What both kinds of entry end in.
struct Entry {
    order: (usize, usize),
    enabled: bool,
    /// `None` where faults were found.
    config: Option<Config>,
}

/// Reads both tables. Entries that are switched off are checked and left out.
pub(crate) fn upstreams(own: Section<'_>, imported: Section<'_>, defaults: &Defaults) -> Vec<Config> {
    let reading = own.reading;
    let mut entries = Vec::new();
    let mut slugs: HashMap<String, String> = HashMap::new();
    let mut prefixes: HashMap<Arc<str>, String> = HashMap::new();
    let tables = own.tables().into_iter().map(|(name, section)| (name, section, false));
    let imports = imported.tables().into_iter().map(|(name, section)| (name, section, true));
    for (name, section, import) in tables.chain(imports) {
        let (path, before, order) = (section.path.clone(), reading.faults_so_far(), section.order());
        let place = || reading.place(&path, Part::Key);
        let slug = if import { slug(&name) } else { name.clone() };
        if !is_name(&slug) {
            let fault = Fault::error("bad-name", format!("invalid upstream name `{name}`")).at(place());
            reading.fault(fault.label("use 1 to 32 of a-z, 0-9 and `-`, not first or last"));
        }
        if let Some(other) = slugs.insert(slug.clone(), name.clone()) {
            let text = format!("the upstreams `{other}` and `{name}` would have the same name, `{slug}`");
            reading.fault(Fault::error("duplicate-name", text).at(place()));
        }
        let Some(entry) =
            (if import { host_entry(section, &name, &slug, defaults) } else { own_entry(section, &slug, defaults) })
        else {
            continue;
        };
        let prefix = entry.config.as_ref().map(|config| config.prefix.clone()).filter(|prefix| !prefix.is_empty());
        if !entry.enabled {
            // A switched off upstream often lacks its secrets; nothing of it is started.
            reading.revise(before, |fault| {
                if fault.kind == "unset-variable" {
                    fault.severity = Severity::Warning;
                }
            });
        } else if let Some((prefix, other)) =
            prefix.and_then(|prefix| Some((prefix.clone(), prefixes.insert(prefix, name.clone())?)))
        {
            let text = format!("the upstreams `{other}` and `{name}` have the same prefix, `{prefix}`");
            reading.fault(Fault::error("duplicate-name", text).at(place()));
        }
        entries.push(Entry { order, ..entry });
    }
    entries.sort_by_key(|entry| entry.order);
    entries.into_iter().filter(|entry| entry.enabled).filter_map(|entry| entry.config).collect()
}

/// Keys of hosts' files, and what they are called here.
const OF_HOSTS: [(&str, &str); 5] = [
    (
        "type",
        "`transport`, which may be left out: `command` means stdio and `url` means http (streamable HTTP; `sse` is not built yet)",
    ),
    ("serverUrl", "`url`"),
    ("httpUrl", "`url`"),
    ("disabled", "`enabled`, with the opposite value"),
    ("timeout", "`call_timeout`, such as \"60s\""),
];

/// `[upstreams.NAME]`: strict.
fn own_entry(mut section: Section<'_>, name: &str, defaults: &Defaults) -> Option<Entry> {
    let enabled = section.flag("enabled").unwrap_or(true);
    let prefix = section.parse("prefix", |text| {
        let plain = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
        if text.len() <= 32 && text.chars().all(plain) {
            Ok(Arc::from(text))
        } else {
            Err("expected up to 32 of A-Z a-z 0-9 _ - .".to_owned())
        }
    });
    for (host, own) in OF_HOSTS {
        section.foreign(host, own);
    }
    let transport = transport(&mut section, "transport", &["url"], &defaults.env_inherit);
    if matches!(transport, Some(Transport::Http { .. })) && section.has("offer") {
        let text = "`offer` has no meaning for an upstream of this transport";
        let fault = Fault::error("useless-key", text).at(section.place("offer"));
        section.reading.fault(fault.label("over HTTP each caller's own capabilities are told; remove the key"));
    }
    let foreign: &[(&str, &str)] = match &transport {
        Some(Transport::Http { .. }) => &[
            ("hang_restart", "only a child can be started again; remove the key"),
            ("no_new_privs", "only a child can be kept from it; remove the key"),
        ],
        Some(Transport::Stdio { .. }) => &[("breaker", "a child that fails is started again; remove the key")],
        None => &[],
    };
    for (key, label) in foreign.iter().copied().filter(|(key, _)| section.has(key)) {
        let text = format!("`{key}` has no meaning for an upstream of this transport");
        let fault = Fault::error("useless-key", text).at(section.place(key));
        section.reading.fault(fault.label(label));
    }
    let settings = defaults.over(&mut section);
    let mut tools = section.table("tools");
    let filter = Filter {
        allow: globs(&mut tools, "allow").unwrap_or_default(),
        deny: globs(&mut tools, "deny").unwrap_or_default(),
    };
    let tool_times =
        tools.table("override").tables().into_iter().map(|(name, section)| (name.into(), times(section))).collect();
    tools.end("a `tools` table");
    section.end("an upstream");
    let config = transport.map(|transport| config(name, None, prefix, transport, settings, filter));
    let config = config.map(|config| Config { tool_times, ..config });
    Some(Entry { order: (0, 0), enabled, config })
}

/// `[upstreams.NAME.tools.override.TOOL]`.
fn times(mut section: Section<'_>) -> Times {
    let times = Times {
        call_timeout: section.number("call_timeout", duration).map(bound),
        max_call_time: section.number("max_call_time", duration).map(bound),
    };
    section.end("what is said of one tool");
    times
}

/// An entry of a host's file: taken as it is, what is the host's own is only named.
fn host_entry(mut section: Section<'_>, name: &str, slug: &str, defaults: &Defaults) -> Option<Entry> {
    let disabled = section.flag("disabled").unwrap_or(false);
    let enabled = section.flag("enabled").unwrap_or(true) && !disabled;
    let word_key = if section.has("transport") && !section.has("type") { "transport" } else { "type" };
    let transport = transport(&mut section, word_key, &["url", "serverUrl", "httpUrl"], &defaults.env_inherit);
    let mut settings = defaults.clone();
    // Hosts write milliseconds.
    if let Some(timeout) = section.count("timeout", 0, 30 * 24 * 3600 * 1000) {
        settings.call_timeout = bound(std::time::Duration::from_millis(timeout as u64));
    }
    if transport.as_ref().is_some_and(is_ourselves) {
        let text = format!("`{name}` starts Trunkline itself and is left out");
        section.reading.fault(Fault::warning("own-entry", text).at(section.own_place()));
        return None;
    }
    section.end_tolerant(&format!("`{name}`"));
    let title = (name != slug).then(|| Arc::from(name));
    let config = transport.map(|transport| config(slug, title, None, transport, settings, Filter::default()));
    Some(Entry { order: (0, 0), enabled, config })
}

fn config(
    name: &str,
    title: Option<Arc<str>>,
    prefix: Option<Arc<str>>,
    transport: Transport,
    settings: Defaults,
    tools: Filter,
) -> Config {
    let name: Arc<str> = Arc::from(name);
    Config {
        prefix: prefix.unwrap_or_else(|| name.clone()),
        name,
        title,
        transport,
        start: settings.start,
        idle_stop: settings.idle_stop,
        era: settings.era,
        startup_timeout: settings.startup_timeout,
        request_timeout: settings.request_timeout,
        call_timeout: settings.call_timeout,
        max_call_time: settings.max_call_time,
        tool_times: HashMap::new(),
        max_concurrency: settings.max_concurrency,
        queue: settings.queue,
        question_timeout: settings.question_timeout,
        sharing: settings.sharing,
        max_instances: settings.max_instances,
        instance_idle: settings.instance_idle,
        offer: settings.offer,
        principals: 1,
        roots: settings.roots,
        restart: settings.restart,
        health: settings.health,
        hang_restart: settings.hang_restart,
        no_new_privs: settings.no_new_privs,
        breaker: settings.breaker,
        tools,
        max_message: settings.max_response,
    }
}

/// A host's file that is imported often holds the entry by which the host starts us: an upstream
/// that is ourselves would start itself without end.
fn is_ourselves(transport: &Transport) -> bool {
    let Transport::Stdio { command, args, .. } = transport else { return false };
    let stem = std::path::Path::new(command).file_stem();
    stem.is_some_and(|stem| stem == "trunkline") && args.iter().any(|arg| arg == "stdio")
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if plain(*first) && plain(*last))
        && bytes.len() <= 32
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
}

/// A name made of what may stand in a name: lower case, everything else one hyphen.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for char in name.chars().flat_map(char::to_lowercase) {
        if char.is_ascii_alphanumeric() {
            slug.push(char);
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').chars().take(32).collect::<String>().trim_end_matches('-').to_owned()
}

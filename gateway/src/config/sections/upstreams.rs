//! `[upstreams.NAME]` and imported `mcpServers`: every upstream, in the order of the files.

use std::collections::HashMap;
use std::sync::Arc;

use crate::upstream::config::{Config, Filter, Times, Transport};

use super::defaults::{Defaults, bound};
use super::transport::{globs, transport};
use crate::config::fault::{Fault, Place, Severity};
use crate::config::read::{Part, Section, duration};

/// What both kinds of entry end in.
struct Entry {
    order: (usize, usize),
    enabled: bool,
    /// What stands before its names, also where faults were found in the rest.
    prefix: Arc<str>,
    /// `None` where faults were found.
    config: Option<Config>,
}

/// Reads both tables. Entries that are switched off are checked and left out.
pub(crate) fn upstreams(own: Section<'_>, imported: Section<'_>, defaults: &Defaults) -> Vec<Config> {
    let reading = own.reading;
    let mut entries = Vec::new();
    let mut slugs: HashMap<String, (String, Option<Place>)> = HashMap::new();
    let mut prefixes: HashMap<Arc<str>, String> = HashMap::new();
    let tables = own.tables().into_iter().map(|(name, section)| (name, section, false));
    let imports = imported.tables().into_iter().map(|(name, section)| (name, section, true));
    for (name, section, import) in tables.chain(imports) {
        let (path, before, order) = (section.path.clone(), reading.faults_so_far(), section.order());
        let place = || reading.place(&path, Part::Key);
        let slug = if import { slug(&name) } else { name.clone() };
        if !is_name(&slug) {
            let fault = Fault::error("bad-name", format!("invalid upstream name `{name}`")).at(place());
            let like = self::slug(&name);
            let like = if is_name(&like) { like } else { "my-server".to_owned() };
            let text = format!("use 1 to 32 of a-z, 0-9 and `-`, not first or last; try `{like}`");
            reading.fault(fault.label(text));
        }
        let other = slugs.insert(slug.clone(), (name.clone(), place()));
        let is_double = other.is_some();
        if let Some((other, first)) = other {
            let what = match other == name {
                true => format!("`{name}` is defined twice"),
                false => format!("`{other}` and `{name}` are both named `{slug}`"),
            };
            let places = first.zip(place()).map(|(first, second)| format!(": {first} and {second}"));
            let text = format!("{what}{}", places.unwrap_or_default());
            reading.fault(Fault::error("duplicate-name", text).at(place()));
        }
        let Some(entry) =
            (if import { host_entry(section, &name, &slug, defaults) } else { own_entry(section, &slug, defaults) })
        else {
            continue;
        };
        let prefix = Some(entry.prefix.clone()).filter(|prefix| !prefix.is_empty() && !is_double);
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
        "`transport`, which may be left out: `command` means stdio and `url` means http (Streamable HTTP, or HTTP+SSE where the server has only that)",
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
        section.reading.fault(fault.label("an HTTP upstream is told the capabilities of each caller; remove the key"));
    }
    let foreign: &[(&str, &str)] = match &transport {
        Some(Transport::Http { .. }) => &[
            ("hang_restart", "only a child can be restarted; remove the key"),
            ("no_new_privs", "only for children; remove the key"),
            ("overlap", "the new connection is always ready before the old one ends; remove the key"),
            ("eras", "an HTTP upstream serves each client in its own era wherever it speaks it; remove the key"),
        ],
        Some(Transport::Sse { .. } | Transport::WebSocket { .. }) => &[
            ("no_new_privs", "only for children; remove the key"),
            ("overlap", "the new connection is always ready before the old one ends; remove the key"),
            ("breaker", "a connection that fails is opened anew; remove the key"),
        ],
        Some(Transport::Stdio { .. }) => &[("breaker", "a child that fails is restarted; remove the key")],
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
    let prefix: Arc<str> = prefix.unwrap_or_else(|| Arc::from(name));
    let config = transport.map(|transport| config(name, None, prefix.clone(), transport, settings, filter));
    let config = config.map(|config| Config { tool_times, ..config });
    Some(Entry { order: (0, 0), enabled, prefix, config })
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
    let prefix: Arc<str> = Arc::from(slug);
    let config = transport.map(|transport| config(slug, title, prefix.clone(), transport, settings, Filter::default()));
    Some(Entry { order: (0, 0), enabled, prefix, config })
}

fn config(
    name: &str,
    title: Option<Arc<str>>,
    prefix: Arc<str>,
    transport: Transport,
    settings: Defaults,
    tools: Filter,
) -> Config {
    let name: Arc<str> = Arc::from(name);
    let is_child = transport.child().is_some();
    Config {
        prefix,
        name,
        title,
        transport,
        start: settings.start,
        idle_stop: settings.idle_stop,
        era: settings.era,
        has_both_eras: settings.has_both_eras,
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
        overlap: !is_child || settings.overlap,
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

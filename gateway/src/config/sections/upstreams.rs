//! `[upstreams.NAME]` and the servers of hosts' files: every upstream, in the order of the files.

// How an upstream is spoken to, and what its tools are where it does not say so.
mod dialect;
// How an upstream is told whose call it is.
mod told;
// Where access tokens of clients are exchanged.
mod exchange;

pub(crate) use exchange::needs_issuers;
pub(super) use told::IDENTITY_DOC;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::telemetry::config::LeftOut;
use crate::upstream::config::{Checks, Config, Dialect, EraChoice, Filter, Sharing, Times, Transport};

use super::credentials::{CLEARTEXT_KEYS, cleartext, credentials, found};
use super::defaults::{Defaults, bound};
use super::limits::rate;
use super::proxy::PROXY_KEYS;
use super::transport::{TRANSPORT_KEYS, globs, transport};
use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::{Fault, Place, Severity};
use crate::config::read::{ANY, Part, Reading, Section, duration};
use crate::config::source::host::{slug, starts_us};
use crate::config::source::node::Unusable;

/// What an entry ends in.
struct Entry {
    order: (usize, usize),
    enabled: bool,
    /// Whether it is left out where a variable or a file of it is not there.
    optional: bool,
    /// What stands before its names, also where faults were found in the rest.
    prefix: Arc<str>,
    /// `None` where faults were found.
    config: Option<Config>,
}

/// The upstreams of a configuration.
#[derive(Default)]
pub(crate) struct Upstreams {
    /// Those that are switched on, in the order of the files.
    pub(crate) on: Vec<Config>,
    /// The names of those that are switched off.
    pub(crate) off: Vec<Arc<str>>,
    /// Those that are switched on, and lack something.
    pub(crate) left_out: Vec<LeftOut>,
    /// What is known of them.
    pub(crate) lacking: Vec<Config>,
}

/// What to do about an upstream that is left out for what is written.
const MEND: &str = "mend that, and run `trunkline reload`; `trunkline check` shows where it stands";
/// Faults of references whose variable or file is not there.
const UNFILLED: [&str; 2] = ["unset-variable", "unreadable-file"];

/// Reads the table. Entries that are switched off are checked.
pub(crate) fn upstreams(own: Section<'_>, defaults: &Defaults) -> Upstreams {
    let reading = own.reading;
    let mut entries = Vec::new();
    let Upstreams { mut off, mut left_out, mut lacking, .. } = Upstreams::default();
    let mut prefixes: HashMap<Arc<str>, String> = HashMap::new();
    let tables = own.tables();
    let named_here: HashSet<String> = tables.iter().map(|(name, _)| name.clone()).collect();
    for (name, section) in tables {
        let (path, before, order) = (section.path.clone(), reading.faults_so_far(), section.order());
        let place = || reading.place(&path, Part::Key);
        named(reading, &name, place());
        let title = reading.imported(&path).map(str::to_owned);
        let entry = entry(section, &name, title.as_deref(), defaults);
        if reading.gaps.has_section() {
            // What it has not itself is that of `[defaults]`.
            reading.keep(before, |fault| fault.kind != Fault::ORDER);
        }
        if reading.gaps.has_upstream(&name) {
            // It may be switched off, or have what seems to be missing, where nothing could be read.
            reading.keep(before, |fault| !fault.may_follow() && !UNFILLED.contains(&fault.kind));
            continue;
        }
        let Some(entry) = entry else { continue };
        if let Some(title) = &title
            && let Some(why) = unusable(reading, before, title, entry.enabled)
        {
            left_out.push(LeftOut { name, ..why });
            lacking.extend(entry.config);
            continue;
        }
        if entry.enabled
            && entry.optional
            && let Some(why) = unfilled(reading, before, &name)
        {
            left_out.push(why);
            lacking.extend(entry.config);
            continue;
        }
        let prefix = Some(entry.prefix.clone()).filter(|prefix| !prefix.is_empty());
        if !entry.enabled {
            off.push(Arc::from(name.as_str()));
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
    for Unusable { slug, why, .. } in reading.left_out().filter(|one| !named_here.contains(&one.slug)) {
        left_out.push(LeftOut { name: slug.clone(), why: why.clone(), advice: MEND.to_owned() });
    }
    entries.sort_by_key(|entry| entry.order);
    let on = entries.into_iter().filter(|entry| entry.enabled).filter_map(|entry| entry.config).collect();
    Upstreams { on, off, left_out, lacking }
}

/// Whether the upstream may have this name.
fn named(reading: &Reading, name: &str, place: Option<Place>) {
    if !is_name(name) {
        let like = slug(name);
        // Of a name in another script a letter or two may be left, which say nothing.
        let letters = like.bytes().filter(u8::is_ascii_alphabetic).count();
        let like = if is_name(&like) && letters > 1 { like } else { "my-server".to_owned() };
        let text = format!("use 1 to 32 of a-z, 0-9 and `-`, not first or last; try `{like}`");
        reading.fault(Fault::error("bad-name", format!("invalid upstream name `{name}`")).at(place).label(text));
    }
}

/// What is wrong with a host's server is no fault of the configuration: it is left out, with a warning. One that is switched off is not
/// judged at all. `None` where it stays.
fn unusable(reading: &Reading, before: usize, title: &str, enabled: bool) -> Option<LeftOut> {
    if !enabled {
        reading.forget(before);
        return None;
    }
    if !reading.any(before, |fault| fault.severity == Severity::Error) {
        return None;
    }
    let is_own = |fault: &Fault| fault.severity == Severity::Error && !reading.is_of_host(fault.place.as_ref());
    if reading.any(before, is_own) {
        // What is written over it in a file of ours is judged as such.
        return None;
    }
    let why = reading.seen(before, |faults| left_out(title, faults));
    reading.revise(before, |fault| {
        if fault.severity == Severity::Error {
            fault.severity = Severity::Warning;
            fault.text.push_str(&format!("; `{title}` is left out"));
        }
    });
    Some(why)
}

/// Where all that keeps an optional upstream from starting is a variable or a file that is not there: it is left out, with a warning.
fn unfilled(reading: &Reading, before: usize, name: &str) -> Option<LeftOut> {
    let is_error = |fault: &Fault| fault.severity == Severity::Error;
    let is_other = |fault: &Fault| is_error(fault) && !UNFILLED.contains(&fault.kind);
    if !reading.any(before, is_error) || reading.any(before, is_other) {
        return None;
    }
    let why = reading.seen(before, |faults| left_out(name, faults));
    reading.revise(before, |fault| {
        if fault.severity == Severity::Error {
            fault.severity = Severity::Warning;
            fault.text.push_str(&format!("; `{name}` is left out, since it is `optional`"));
            fault.upstream = Some(name.to_owned());
        }
    });
    Some(why)
}

/// What is said of an upstream that is left out for the errors among these faults.
fn left_out(name: &str, faults: &[Fault]) -> LeftOut {
    let errors = || faults.iter().filter(|fault| fault.severity == Severity::Error);
    let mut texts: Vec<&str> = errors().map(|fault| &*fault.text).collect();
    let mut unset: Vec<&str> = errors().filter_map(|fault| fault.unset.as_deref()).collect();
    [&mut texts, &mut unset].into_iter().for_each(|list| {
        let mut seen = HashSet::new();
        list.retain(|text| seen.insert(*text));
    });
    let exports = unset.iter().map(|name| format!("{name}=…")).collect::<Vec<_>>().join(" ");
    let advice = match (unset.is_empty(), errors().any(|fault| fault.unset.is_none())) {
        // A process that runs is given no other environment.
        (false, false) => format!("export {exports} where the gateway is started, and start it anew"),
        (false, true) => format!("export {exports}, mend the rest, and start the gateway anew"),
        (true, _) => MEND.to_owned(),
    };
    LeftOut { name: name.to_owned(), why: texts.join("; "), advice }
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

/// Keys of `[upstreams.NAME]` without a table or file of their own.
pub(crate) const ENTRY_KEYS: &[KeyDoc] = &[
    KeyDoc {
        key: "call_rate",
        kind: "text, as `\"100/s\"`, `\"30/m\"`, `\"1000/h\"`",
        default: "no limit",
        description: "[calls, prompts and reads](../sharing.md#limits) that the upstream may have from all clients \
            together",
    },
    KeyDoc {
        key: "prefix",
        kind: "text",
        default: "the name",
        description: "put before names; `\"\"`: names stay bare",
    },
    KeyDoc { key: "enabled", kind: "bool", default: "`true`", description: "`false`: checked, not started" },
    KeyDoc {
        key: "optional",
        kind: "bool",
        default: "`false`",
        description: "`true`: left out, with a warning, while a variable without a default or a file that it \
            refers to is not there, and the others are served; all else that is wrong with it stays an error. \
            [`import`](../hosts.md#import) writes it",
    },
];

/// Keys of `[upstreams.NAME]`.
pub(crate) const UPSTREAM_DOC: TableDoc = TableDoc {
    heading: "[upstreams.NAME]",
    path: &["upstreams", ANY],
    intro: "One server. A name has 1 to 32 of `a-z`, `0-9` and `-`, not first or last. Lists follow the order of \
        the file. An upstream has either\n\
        `command` or `url`. Every key of [`[defaults]`](#defaults) may stand here, too.",
    keys: &[TRANSPORT_KEYS, PROXY_KEYS, CLEARTEXT_KEYS, dialect::DIALECT_KEYS, ENTRY_KEYS],
    notes: r#"
```toml
[upstreams.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "${HOME}/projects"]
start = "lazy"
idle_stop = "10m"

[upstreams.tickets]
url = "https://tickets.example.com/mcp"
headers = { Authorization = "Bearer ${TICKETS_TOKEN}" }
max_concurrency = 8
```
"#,
};

/// Keys of `[upstreams.NAME.tools]`.
pub(crate) const TOOLS_DOC: TableDoc = TableDoc {
    heading: "[upstreams.NAME.tools]",
    path: &["upstreams", ANY, "tools"],
    intro: "",
    keys: &[&[
        KeyDoc { key: "allow", kind: "patterns", default: "all", description: "tools that are offered" },
        KeyDoc {
            key: "deny",
            kind: "patterns",
            default: "none",
            description: "tools that are not offered; wins over `allow`",
        },
        KeyDoc {
            key: "define",
            kind: "table",
            default: "",
            description: "tools by name, each as JSON without `name`, in place of `tools/list`; for [servers that \
                know tools alone](../bridging.md#servers-that-know-tools-alone)",
        },
    ]],
    notes: "A pattern that matches no tool is a warning in the log, and a remark in `ls` and `status`, once the \
        list of tools is known; so is a name\n\
        under `override`.",
};

/// `[upstreams.NAME]`, or a host's server, whose own name is its title.
fn entry(mut section: Section<'_>, name: &str, title: Option<&str>, defaults: &Defaults) -> Option<Entry> {
    let enabled = section.flag("enabled").unwrap_or(true);
    let optional = section.flag("optional").unwrap_or(false);
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
    let mut transport = transport(&mut section, &defaults.inherited);
    let has_auth = section.has("auth");
    let credentials = credentials(&mut section, name, transport.as_mut(), &defaults.inherited);
    cleartext(&mut section, transport.as_ref(), credentials.as_ref());
    if title.is_some() && transport.as_ref().is_some_and(is_ourselves) {
        let text = format!("`{}` starts Trunkline itself and is left out", title.unwrap_or(name));
        section.reading.fault(Fault::warning("own-entry", text).at(section.own_place()));
        return None;
    }
    useless(&section, transport.as_ref());
    let dialect = dialect::dialect(&mut section, transport.as_ref());
    let identity = told::identity(&mut section, transport.as_ref(), dialect);
    let settings = defaults.over(&mut section);
    let call_rate = section.parse("call_rate", rate);
    let is_apart = exchange::is_apart(&section, credentials.as_ref(), (transport.as_ref(), settings.sharing));
    let mut tools = section.table("tools");
    let filter = Filter {
        allow: globs(&mut tools, "allow").unwrap_or_default(),
        deny: globs(&mut tools, "deny").unwrap_or_default(),
    };
    let tool_times =
        tools.table("override").tables().into_iter().map(|(name, section)| (name.into(), times(section))).collect();
    let defined = dialect::defined(&mut tools, dialect);
    tools.end("a `tools` table");
    section.end("an upstream");
    let prefix: Arc<str> = prefix.unwrap_or_else(|| Arc::from(name));
    let title = title.filter(|title| *title != name).map(Arc::from);
    let config = transport.map(|transport| config(name, title, prefix.clone(), transport, settings, filter));
    let login = config.as_ref().filter(|_| !has_auth).and_then(|config| found(name, &config.transport)).map(Box::new);
    let config = config.map(|config| Config {
        tool_times,
        credentials,
        login,
        identity,
        call_rate,
        defined: defined.list(),
        ..spoken_to(config, dialect)
    });
    let sharing = |of: Sharing| if is_apart { Sharing::PerPrincipal } else { of };
    let config = config.map(|config| Config { sharing: sharing(config.sharing), ..config });
    Some(Entry { order: (0, 0), enabled, optional, prefix, config })
}

/// Keys that have no meaning for an upstream of this transport.
fn useless(section: &Section<'_>, transport: Option<&Transport>) {
    if matches!(transport, Some(Transport::Http(_))) && section.has("offer") {
        let text = "`offer` has no meaning for an upstream of this transport";
        let fault = Fault::error("useless-key", text).at(section.place("offer"));
        section.reading.fault(fault.label("an HTTP upstream is told the capabilities of each caller; remove the key"));
    }
    let foreign: &[(&str, &str)] = match transport {
        Some(Transport::Http(_)) => &[
            ("hang_restart", "only a child can be restarted; remove the key"),
            ("no_new_privs", "only for children; remove the key"),
            ("overlap", "the new connection is always ready before the old one ends; remove the key"),
            ("eras", "an HTTP upstream serves each client in its own era wherever it speaks it; remove the key"),
        ],
        Some(Transport::Stdio { .. }) => &[],
        Some(_) => &[
            ("no_new_privs", "only for children; remove the key"),
            ("overlap", "the new connection is always ready before the old one ends; remove the key"),
            ("breaker", "a connection that fails is opened anew; remove the key"),
        ],
        None => &[],
    };
    for (key, label) in foreign.iter().copied().filter(|(key, _)| section.has(key)) {
        let text = format!("`{key}` has no meaning for an upstream of this transport");
        let fault = Fault::error("useless-key", text).at(section.place(key));
        section.reading.fault(fault.label(label));
    }
}

/// Keys of `[upstreams.NAME.tools.override]`.
pub(crate) const OVERRIDE_DOC: TableDoc = TableDoc {
    heading: "[upstreams.NAME.tools.override]",
    path: &["upstreams", ANY, "tools", "override", ANY],
    intro: "One entry per tool, by the name that the upstream gives it: `read_archive = { call_timeout = \"2m\" \
        }`.",
    keys: &[&[
        KeyDoc {
            key: "call_timeout",
            kind: "duration",
            default: "that of the upstream",
            description: "as in `[defaults]`",
        },
        KeyDoc {
            key: "max_call_time",
            kind: "duration",
            default: "that of the upstream",
            description: "as in `[defaults]`",
        },
        KeyDoc {
            key: "call_rate",
            kind: "text, as `\"30/m\"`",
            default: "no limit",
            description: "[calls](../sharing.md#limits) that the tool may have from all clients together",
        },
    ]],
    notes: "",
};

/// `[upstreams.NAME.tools.override.TOOL]`.
fn times(mut section: Section<'_>) -> Times {
    let times = Times {
        call_timeout: section.number("call_timeout", duration).map(bound),
        max_call_time: section.number("max_call_time", duration).map(bound),
        call_rate: section.parse("call_rate", rate),
    };
    section.end("what is said of one tool");
    times
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
    let is_http = matches!(transport, Transport::Http(_));
    Config {
        prefix,
        name,
        title,
        transport,
        credentials: None,
        login: None,
        identity: None,
        start: settings.start,
        idle_stop: settings.idle_stop,
        era: settings.era,
        dialect: Dialect::Mcp,
        defined: None,
        has_both_eras: settings.has_both_eras,
        startup_timeout: settings.startup_timeout,
        start_wait: settings.start_wait,
        request_timeout: settings.request_timeout,
        call_timeout: settings.call_timeout,
        max_call_time: settings.max_call_time,
        tool_times: HashMap::new(),
        max_concurrency: settings.max_concurrency,
        call_rate: None,
        queue: settings.queue,
        question_timeout: settings.question_timeout,
        // What an upstream over HTTP keeps for a session is then kept for one client.
        sharing: settings.sharing.unwrap_or(if is_http { Sharing::OwnSessions } else { Sharing::Shared }),
        max_instances: settings.max_instances,
        max_sessions: settings.max_sessions,
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

/// One that is spoken to like this: what knows calls of tools alone has no eras, no sessions and no pings.
fn spoken_to(config: Config, dialect: Dialect) -> Config {
    if dialect == Dialect::Mcp {
        return config;
    }
    let sharing = if config.sharing == Sharing::OwnSessions { Sharing::Shared } else { config.sharing };
    let health = Checks { interval: None, ..config.health };
    Config { dialect, sharing, health, era: EraChoice::Legacy, has_both_eras: false, ..config }
}

/// A host's file often holds the entry by which the host starts us.
fn is_ourselves(transport: &Transport) -> bool {
    matches!(transport, Transport::Stdio { command, args, .. } if starts_us(command, args))
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if plain(*first) && plain(*last))
        && bytes.len() <= 32
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
}

//! The sections that say how the gateway itself is: server, admin, log, naming, catalog.

use std::path::Path;
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use super::listeners::{address, checked, host, listeners, origin};
use crate::downstream::config::{Config as Server, Network, PublicUrl, Questions, Session, SigningKey};
use crate::policy::config::Redaction;
use crate::policy::config::redaction::wrong;
use crate::router::config::{Approved, Catalog, Naming, Pin, Pins, Strategy, Unknown};
use crate::secrets::private;
use crate::telemetry::config::{Admin, AdminToken, Arguments, Audit, Format, Log, Metrics};
use crate::upstream::config::Cache;

use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::{Fault, Place};
use crate::config::read::{Section, duration, size};
use crate::config::source::file;
use crate::config::source::node::{Origin, Shape, Source};

/// The approved tools, in the state folder.
const APPROVED: &str = "approved.jsonl";

/// Keys of `[server]`.
pub(crate) const SERVER_DOC: TableDoc = TableDoc {
    heading: "[server]",
    path: &["server"],
    intro: "How clients reach the gateway.",
    keys: &[&[
        KeyDoc {
            key: "listen",
            kind: "address",
            default: "`\"127.0.0.1:8808\"`",
            description: "where clients are served; beyond loopback, `[[auth.tokens]]` are required. Or \
                [`\"unix:/PATH\"`](../operations.md#unix-socket), or [`\"systemd\"` or \
                `\"systemd:NAME\"`](../operations.md#socket-activation)",
        },
        KeyDoc {
            key: "path",
            kind: "path",
            default: "`\"/mcp\"`",
            description: "path of the Streamable HTTP endpoint",
        },
        KeyDoc {
            key: "keyring",
            kind: "bool",
            default: "`false`",
            description: "whether logins are sealed with [a key of the system's keyring](../security.md#logins) in \
                place of one in the state folder; a build with the feature `keyring` has it",
        },
        KeyDoc {
            key: "legacy_sse",
            kind: "bool",
            default: "`true`",
            description: "whether clients of HTTP+SSE (2024-11-05) are served too, at `/sse` and `/message`",
        },
        KeyDoc {
            key: "websocket",
            kind: "bool",
            default: "`true`",
            description: "whether clients are served over [WebSocket](../bridging.md#websocket) too, at `/ws`",
        },
        KeyDoc {
            key: "name",
            kind: "text",
            default: "`\"trunkline\"`",
            description: "shown to hosts; some put it before tool names, so keep it short",
        },
        KeyDoc {
            key: "instructions",
            kind: "text",
            default: "`\"\"`",
            description: "put before the instructions of the upstreams",
        },
        KeyDoc {
            key: "allowed_origins",
            kind: "list",
            default: "`[]`",
            description: "browser origins, as `\"https://app.example.com\"`; empty: derived from `listen`",
        },
        KeyDoc {
            key: "allowed_hosts",
            kind: "list",
            default: "`[]`",
            description: "host names, as `\"mcp.example.com\"`; empty: derived from `listen`",
        },
        KeyDoc {
            key: "public_url",
            kind: "address",
            default: "none",
            description: "[where clients reach the gateway](../operations.md#behind-a-proxy) behind a proxy, as \
                `\"https://mcp.example.com\"`, with the path that the proxy takes off",
        },
        KeyDoc {
            key: "trusted_proxies",
            kind: "list",
            default: "`[]`",
            description: "addresses or networks, as `\"10.0.0.0/8\"`, whose `Forwarded` and `X-Forwarded-For` are \
                believed for [shares](../sharing.md#shares); half of all addresses or more are refused",
        },
        KeyDoc { key: "max_body", kind: "size", default: "`\"16MiB\"`", description: "largest message from a client" },
        KeyDoc {
            key: "memory_limit",
            kind: "size, from 16 MiB",
            default: "half of the memory of the process, at most 1 GiB; less if its address space is limited",
            description: "[limits](../reliability.md#memory_limit) all bodies, lines, replies and queues together",
        },
        KeyDoc {
            key: "header_read_timeout",
            kind: "duration",
            default: "`\"10s\"`",
            description: "limit for the headers of a request, and for [a \
                pause](../reliability.md#header_read_timeout) within a body or a message",
        },
        KeyDoc {
            key: "sse_keepalive",
            kind: "duration",
            default: "`\"15s\"`",
            description: "longest pause before a comment is sent on an open stream, and [before a stream is \
                opened](../bridging.md#json-or-a-stream) for a silent call",
        },
    ]],
    notes: r#"
```toml
[server]
listen = "0.0.0.0:8808"
allowed_hosts = ["mcp.example.com"]
```
"#,
};

/// `[server]`, with its session and its end.
pub(crate) fn server(mut section: Section<'_>) -> Server {
    let default = Server::default();
    let [pre_stop_delay, grace, linger] = shutdown(section.table("shutdown"));
    let mut server = Server {
        path: section.parse("path", path).unwrap_or(default.path),
        legacy_sse: section.flag("legacy_sse").unwrap_or(default.legacy_sse),
        keyring: section.flag("keyring").unwrap_or_default(),
        websocket: section.flag("websocket").unwrap_or(default.websocket),
        allowed_origins: checked(&mut section, ("allowed_origins", "[\"https://app.example.com\"]"), origin),
        allowed_hosts: checked(&mut section, ("allowed_hosts", "[\"mcp.example.com\"]"), host),
        public_url: section.parse("public_url", public_url),
        trusted_proxies: trusted(&mut section),
        max_body: section.number("max_body", bounded_size).unwrap_or(default.max_body),
        memory_limit: section.number("memory_limit", memory),
        header_read_timeout: section.number("header_read_timeout", some_time).unwrap_or(default.header_read_timeout),
        sse_keepalive: section.number("sse_keepalive", some_time).unwrap_or(default.sse_keepalive),
        name: section.parse("name", line).unwrap_or(default.name),
        instructions: section.text("instructions").unwrap_or(default.instructions),
        session: session(section.table("session")),
        pre_stop_delay: pre_stop_delay.unwrap_or(default.pre_stop_delay),
        shutdown_grace: grace.unwrap_or(default.shutdown_grace),
        linger: linger.unwrap_or(default.linger),
        ..default
    };
    (server.listeners, server.lists_listeners) = listeners(&mut section, &server);
    if let Some(public) = &server.public_url {
        server.listeners.iter_mut().for_each(|listener| public.opens(listener));
    }
    section.end("[server]");
    server
}

/// Keys of `[questions]`.
pub(crate) const QUESTIONS_DOC: TableDoc = TableDoc {
    heading: "[questions]",
    path: &["questions"],
    intro: "Questions of upstreams to clients: elicitation, sampling, roots.",
    keys: &[&[
        KeyDoc { key: "timeout", kind: "duration", default: "`\"10m\"`", description: "limit for an answer" },
        KeyDoc {
            key: "max_open",
            kind: "number",
            default: "`1024`",
            description: "calls that wait for an answer at once",
        },
        KeyDoc {
            key: "max_per_principal",
            kind: "number",
            default: "`64`",
            description: "the same for one token; without tokens for one address",
        },
        KeyDoc {
            key: "max_rounds",
            kind: "number",
            default: "`10`",
            description: "how often a stateless upstream may ask a handshake client during one call",
        },
    ]],
    notes: "",
};

/// `[questions]`.
pub(crate) fn questions(mut section: Section<'_>) -> Questions {
    let default = Questions::default();
    let questions = Questions {
        max_open: section.count("max_open", 1, 1_000_000).unwrap_or(default.max_open),
        max_per_principal: section.count("max_per_principal", 1, 1_000_000).unwrap_or(default.max_per_principal),
        max_rounds: section.count("max_rounds", 1, 1_000).unwrap_or(default.max_rounds),
        timeout: section.number("timeout", some_time).unwrap_or(default.timeout),
        ..default
    };
    section.end("[questions]");
    questions
}

/// Keys of `[server.session]`.
pub(crate) const SESSION_DOC: TableDoc = TableDoc {
    heading: "[server.session]",
    path: &["server", "session"],
    intro: "Sessions of clients of revisions before 2026-07-28, and the key that seals their ids and the state of \
        later clients.",
    keys: &[&[
        KeyDoc {
            key: "required",
            kind: "bool",
            default: "`true`",
            description: "`false`: no session ids; each request is served alone",
        },
        KeyDoc {
            key: "idle_timeout",
            kind: "duration",
            default: "`\"30m\"`",
            description: "a session without call and stream ends after this",
        },
        KeyDoc {
            key: "max",
            kind: "number",
            default: "`10000`",
            description: "sessions at once; [beyond it](../sharing.md#shares) one makes room",
        },
        KeyDoc {
            key: "resume_buffer",
            kind: "size",
            default: "`\"1MiB\"`",
            description: "kept per stream for `Last-Event-ID`",
        },
        KeyDoc {
            key: "resume_upstream",
            kind: "bool",
            default: "`true`",
            description: "clients' sessions with HTTP upstreams [outlive a \
                restart](../reliability.md#sessions-across-a-restart); `false`: they end with the gateway",
        },
        KeyDoc {
            key: "signing_key",
            kind: "text or list, from 32 characters",
            default: "made once and kept",
            description: "[seals](../security.md#signing-key) what stateless clients carry and the ids of \
                [sessions](../reliability.md#sessions-across-a-restart); the same for all gateways that serve the \
                same clients",
        },
    ]],
    notes: "",
};

fn session(mut section: Section<'_>) -> Session {
    let default = Session::default();
    let session = Session {
        required: section.flag("required").unwrap_or(default.required),
        idle_timeout: section.number("idle_timeout", some_time).unwrap_or(default.idle_timeout),
        max: section.count("max", 1, 1_000_000).unwrap_or(default.max),
        resume_buffer: section.number("resume_buffer", size).unwrap_or(default.resume_buffer),
        resume_upstream: section.flag("resume_upstream").unwrap_or(default.resume_upstream),
        signing_keys: signing_keys(&mut section),
    };
    section.end("[server.session]");
    session
}

/// The proxies that are believed: no large part of all addresses, be it in pieces.
fn trusted(section: &mut Section<'_>) -> Vec<Network> {
    let networks = checked(section, ("trusted_proxies", "[\"10.0.0.0/8\"]"), Network::parse);
    if Network::are_everybody(&networks) {
        section.wrong("trusted_proxies", Network::EVERYBODY);
    }
    networks
}

/// One key, or a list: the first seals, all open.
fn signing_keys(section: &mut Section<'_>) -> Vec<SigningKey> {
    let expected = format!("expected at least {} characters", SigningKey::BYTES_MIN);
    let mut keys = Vec::new();
    for (index, text) in section.one_or_list("signing_key").into_iter().enumerate() {
        match SigningKey::new(text.trim()) {
            Some(key) => keys.push(key),
            None => section.wrong_item("signing_key", index, &expected),
        }
    }
    keys
}

/// Keys of `[server.shutdown]`.
pub(crate) const SHUTDOWN_DOC: TableDoc = TableDoc {
    heading: "[server.shutdown]",
    path: &["server", "shutdown"],
    intro: "",
    keys: &[&[
        KeyDoc {
            key: "pre_stop_delay",
            kind: "duration",
            default: "`\"0s\"`",
            description: "how long requests are still taken at the start of a [drain](../operations.md#drain), \
                while `/readyz` says 503",
        },
        KeyDoc {
            key: "grace",
            kind: "duration",
            default: "`\"25s\"`",
            description: "how long calls may go on in a [drain](../operations.md#drain)",
        },
        KeyDoc {
            key: "linger",
            kind: "duration",
            default: "`\"30s\"`",
            description: "how long a gateway that [`trunkline stdio \
                --shared`](../sharing.md#one-gateway-for-several-hosts) started waits for the next client once \
                the last has gone",
        },
    ]],
    notes: "",
};

/// How long calls are still taken, how long they may go on after that, and how long a gateway without clients stays.
fn shutdown(mut section: Section<'_>) -> [Option<Duration>; 3] {
    let times = ["pre_stop_delay", "grace", "linger"].map(|key| section.number(key, duration));
    section.end("[server.shutdown]");
    times
}

/// Keys of `[admin]`.
pub(crate) const ADMIN_DOC: TableDoc = TableDoc {
    heading: "[admin]",
    path: &["admin"],
    intro: "The [admin address](../operations.md#admin-address) of `serve`.",
    keys: &[&[
        KeyDoc {
            key: "listen",
            kind: "address or `\"off\"`",
            default: "`\"127.0.0.1:9808\"`",
            description: "probes, metrics and the [page](../operations.md#page)",
        },
        KeyDoc {
            key: "token",
            kind: "text, from 16 characters",
            default: "none",
            description: "required for `/readyz?verbose` and orders at this address; unset, they are available at \
                the control socket and, by a link of `trunkline ui`, on the page",
        },
        KeyDoc {
            key: "allowed_hosts",
            kind: "list",
            default: "derived from `listen`",
            description: "host names for all pages but probes and metrics",
        },
    ]],
    notes: "",
};

/// `[admin]`.
pub(crate) fn admin(mut section: Section<'_>) -> Admin {
    let default = Admin::default();
    let listen = section.parse("listen", |text| match text {
        "" | "off" => Ok(None),
        text => address(text).map(Some),
    });
    let admin = Admin {
        listen: listen.unwrap_or(default.listen),
        allowed_hosts: checked(&mut section, ("allowed_hosts", "[\"gateway.example.com\"]"), host),
        token: section.parse("token", |text| {
            let least = AdminToken::CHARACTERS_MIN;
            let expected = format!("expected at least {least} characters that may stand in a header, without spaces");
            AdminToken::new(text.trim()).ok_or(expected)
        }),
        control: default.control,
    };
    section.end("[admin]");
    admin
}

/// Keys of `[log]`.
pub(crate) const LOG_DOC: TableDoc = TableDoc {
    heading: "[log]",
    path: &["log"],
    intro: "",
    keys: &[&[
        KeyDoc {
            key: "level",
            kind: "level or directives",
            default: "`\"info\"`",
            description: "[what is logged](../observability.md#log); `RUST_LOG` wins",
        },
        KeyDoc {
            key: "format",
            kind: "`\"auto\"`, `\"text\"`, `\"json\"`",
            default: "`\"auto\"`",
            description: "`\"auto\"`: text on a terminal and under `stdio`, else JSON \
                ([log](../observability.md#log))",
        },
        KeyDoc {
            key: "upstream_stderr",
            kind: "level or `\"off\"`",
            default: "`\"info\"`",
            description: "level of lines that children write to stderr",
        },
        KeyDoc {
            key: "calls",
            kind: "bool",
            default: "`false`",
            description: "a [line for each call](../observability.md#a-line-for-each-call)",
        },
    ]],
    notes: "",
};

/// `[log]`.
pub(crate) fn log(mut section: Section<'_>) -> Log {
    let default = Log::default();
    let formats = [("auto", Format::Auto), ("text", Format::Text), ("json", Format::Json)];
    let levels = [
        ("off", None),
        ("error", Some(tracing::Level::ERROR)),
        ("warn", Some(tracing::Level::WARN)),
        ("info", Some(tracing::Level::INFO)),
        ("debug", Some(tracing::Level::DEBUG)),
        ("trace", Some(tracing::Level::TRACE)),
    ];
    let log = Log {
        level: section.parse("level", filter).unwrap_or(default.level),
        format: section.word("format", &formats).unwrap_or(default.format),
        upstream_stderr: section.word("upstream_stderr", &levels).unwrap_or(default.upstream_stderr),
        calls: section.flag("calls").unwrap_or(default.calls),
    };
    section.end("[log]");
    log
}

/// Keys of `[redact]`.
pub(crate) const REDACT_DOC: TableDoc = TableDoc {
    heading: "[redact]",
    path: &["redact"],
    intro: "[Secrets in texts](../security.md#secrets-in-texts) of calls and results. Nothing is taken out by \
        default.",
    keys: &[&[
        KeyDoc {
            key: "keys",
            kind: "bool",
            default: "`false`",
            description: "keys and tokens that are known by their form",
        },
        KeyDoc {
            key: "patterns",
            kind: "list of regular expressions",
            default: "`[]`",
            description: "what these find, as `['ACME-[0-9]{6}']`; a match is at most [4 \
                KiB](../security.md#secrets-in-texts)",
        },
    ]],
    notes: "",
};

/// `[redact]`.
pub(crate) fn redact(mut section: Section<'_>) -> Redaction {
    let redaction = Redaction {
        keys: section.flag("keys").unwrap_or_default(),
        patterns: section.list("patterns", "[\"ACME-[0-9]{6}\"]").unwrap_or_default(),
    };
    match wrong(&redaction.patterns) {
        Some((Some(index), why)) => section.wrong_item("patterns", index, &why),
        Some((None, why)) => section.wrong("patterns", &why),
        None => {}
    }
    section.end("[redact]");
    redaction
}

/// Keys of `[audit]`.
pub(crate) const AUDIT_DOC: TableDoc = TableDoc {
    heading: "[audit]",
    path: &["audit"],
    intro: "",
    keys: &[&[
        KeyDoc {
            key: "file",
            kind: "absolute path",
            default: "none",
            description: "the file of the [audit](../observability.md#audit); without it there is none",
        },
        KeyDoc {
            key: "arguments",
            kind: "`\"hash\"`, `\"none\"`, `\"full\"`",
            default: "`\"hash\"`",
            description: "what a line has of the arguments of a call",
        },
        KeyDoc {
            key: "max_size",
            kind: "size",
            default: "`\"100MiB\"`",
            description: "a longer file gets the suffix `.1`, and a new one begins",
        },
        KeyDoc { key: "keep", kind: "number", default: "`10`", description: "how many files with a suffix are kept" },
    ]],
    notes: "",
};

/// `[audit]`.
pub(crate) fn audit(mut section: Section<'_>) -> Audit {
    let default = Audit::default();
    let arguments = [("none", Arguments::None), ("hash", Arguments::Hash), ("full", Arguments::Full)];
    let audit = Audit {
        file: section.parse("file", |text| match Path::new(text) {
            path if path.is_absolute() && path.file_name().is_some() => Ok(path.to_owned()),
            _ => Err("expected an absolute path, such as \"/var/log/trunkline/audit.jsonl\"".to_owned()),
        }),
        arguments: section.word("arguments", &arguments).unwrap_or(default.arguments),
        max_size: section.number("max_size", audit_size).unwrap_or(default.max_size),
        keep: section.count("keep", 1, 1000).unwrap_or(default.keep),
    };
    section.end("[audit]");
    audit
}

/// A file that is put aside after each line is none.
fn audit_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        bytes if bytes >= 64 << 10 => Ok(bytes),
        _ => Err("expected 64KiB or more".to_owned()),
    }
}

/// Keys of `[metrics]`.
pub(crate) const METRICS_DOC: TableDoc = TableDoc {
    heading: "[metrics]",
    path: &["metrics"],
    intro: "",
    keys: &[&[
        KeyDoc {
            key: "per_tool",
            kind: "bool",
            default: "`false`",
            description: "whether calls are counted by tool, too",
        },
        KeyDoc {
            key: "tool_durations",
            kind: "bool",
            default: "`false`",
            description: "whether they are timed by tool as well: seventeen series a tool",
        },
    ]],
    notes: "",
};

/// `[metrics]`.
pub(crate) fn metrics(mut section: Section<'_>) -> Metrics {
    let tool_durations = section.flag("tool_durations").unwrap_or_default();
    // What is timed is counted.
    let per_tool = section.flag("per_tool").unwrap_or_default() || tool_durations;
    let metrics = Metrics { per_tool, tool_durations };
    section.end("[metrics]");
    metrics
}

/// Where `RUST_LOG` is no filter: that, as a warning. What it has would lie over `[log] level`.
pub(crate) fn misunderstood(source: &Source) -> Option<Fault> {
    let place = match &source.origin {
        Origin::Variable(name) if name == "RUST_LOG" => Place::Variable(name.clone()),
        _ => return None,
    };
    let Shape::Text(text) = &source.node(&["log".to_owned(), "level".to_owned()])?.shape else { return None };
    let expected = filter(text).err()?;
    let fault = Fault::warning("bad-value", "RUST_LOG is not valid and is ignored");
    Some(fault.at(Some(place)).label(expected))
}

/// Keys of `[naming]`.
pub(crate) const NAMING_DOC: TableDoc = TableDoc {
    heading: "[naming]",
    path: &["naming"],
    intro: "How names of tools and prompts are made unique.",
    keys: &[&[
        KeyDoc {
            key: "strategy",
            kind: "`\"prefix\"`, `\"prefix_on_conflict\"`, `\"flat\"`",
            default: "`\"prefix\"`",
            description: "`\"prefix\"` names never change; `\"prefix_on_conflict\"` prefixes only names that two \
                upstreams have; with `\"flat\"` the first upstream wins",
        },
        KeyDoc { key: "separator", kind: "text", default: "`\"__\"`", description: "between prefix and name" },
        KeyDoc {
            key: "max_length",
            kind: "number, 16 to 128",
            default: "`50`",
            description: "longer names are cut and end in a stable hash",
        },
    ]],
    notes: "",
};

/// `[naming]`.
pub(crate) fn naming(mut section: Section<'_>) -> Naming {
    let default = Naming::default();
    let strategies =
        [("prefix", Strategy::Prefix), ("prefix_on_conflict", Strategy::PrefixOnConflict), ("flat", Strategy::Flat)];
    let naming = Naming {
        strategy: section.word("strategy", &strategies).unwrap_or(default.strategy),
        separator: section.parse("separator", separator).unwrap_or(default.separator),
        // Room for a prefix, a hash and something to recognise; tool names end at 128.
        max_length: section.count("max_length", 16, 128).unwrap_or(default.max_length),
    };
    section.end("[naming]");
    naming
}

/// Keys of `[extensions]`.
pub(crate) const EXTENSIONS_DOC: TableDoc = TableDoc {
    heading: "[extensions]",
    path: &["extensions"],
    intro: "",
    keys: &[&[KeyDoc {
        key: "unknown",
        kind: "`\"pass\"`, `\"strip\"`, `\"refuse\"`",
        default: "`\"pass\"`",
        description: "what happens to unknown extensions: they pass where one upstream has them, are hidden, \
                or their client is refused. Tasks and Apps always pass",
    }]],
    notes: "",
};

/// `[extensions]`.
pub(crate) fn extensions(mut section: Section<'_>) -> Unknown {
    let words = [("pass", Unknown::Pass), ("strip", Unknown::Strip), ("refuse", Unknown::Refuse)];
    let unknown = section.word("unknown", &words).unwrap_or_default();
    section.end("[extensions]");
    unknown
}

/// Keys of `[catalog]`.
pub(crate) const CATALOG_DOC: TableDoc = TableDoc {
    heading: "[catalog]",
    path: &["catalog"],
    intro: "",
    keys: &[&[
        KeyDoc {
            key: "first_list_wait",
            kind: "duration",
            default: "2 s for `serve`, 8 s for `stdio`, shared or not",
            description: "[how long](../reliability.md#first_list_wait) a list waits for upstreams that were never \
                seen",
        },
        KeyDoc { key: "page_size", kind: "number", default: "`1000`", description: "items on one page of a list" },
        KeyDoc {
            key: "cache",
            kind: "bool",
            default: "`true`",
            description: "[keep the lists](../reliability.md#cache) of upstreams on disk",
        },
        KeyDoc {
            key: "pin",
            kind: "`\"off\"`, `\"warn\"`, `\"hold\"`",
            default: "`\"off\"`",
            description: "what happens to tools that nobody has [approved](../security.md#approved-tools) as they \
                are: nothing, a warning, or they are not offered",
        },
        KeyDoc {
            key: "approved",
            kind: "absolute path",
            default: "`approved.jsonl` in the state folder",
            description: "the tools that were approved",
        },
        KeyDoc {
            key: "cache_dir",
            kind: "absolute path",
            default: "`$XDG_CACHE_HOME/trunkline`, or `~/.cache/trunkline`",
            description: "folder of the cache",
        },
    ]],
    notes: "",
};

/// `[catalog]`.
pub(crate) fn catalog(mut section: Section<'_>) -> (Catalog, Cache) {
    let default = Catalog::default();
    let is_kept = section.flag("cache").unwrap_or(true);
    let own = section.parse("cache_dir", |text| match Path::new(text) {
        path if path.is_absolute() => Ok(path.to_owned()),
        _ => Err("expected an absolute path, such as \"/var/cache/trunkline\"".to_owned()),
    });
    let cache = match own.or_else(|| section.reading.environment.cache_folder()) {
        _ if !is_kept => Cache::Off,
        Some(folder) => Cache::Folder(folder),
        None => Cache::Nowhere,
    };
    let catalog = Catalog {
        first_list_wait: section.number("first_list_wait", duration).or(default.first_list_wait),
        page_size: section.count("page_size", 1, 1_000_000).unwrap_or(default.page_size),
        pins: pins(&mut section),
    };
    section.end("[catalog]");
    (catalog, cache)
}

/// What is asked of tools, and which have been approved.
fn pins(section: &mut Section<'_>) -> Pins {
    let pin = section.word("pin", &[("off", Pin::Off), ("warn", Pin::Warn), ("hold", Pin::Hold)]).unwrap_or_default();
    let own = section.parse("approved", |text| match Path::new(text) {
        path if path.is_absolute() => Ok(path.to_owned()),
        _ => Err("expected an absolute path, such as \"/etc/trunkline/approved.jsonl\"".to_owned()),
    });
    let file = own.or_else(|| Some(section.reading.environment.state_folder()?.join(APPROVED)));
    let mut pins = Pins { pin, file, approved: Approved::default() };
    if pin == Pin::Off {
        return pins;
    }
    let unusable = |why: String| {
        let name = pins.file.as_deref().map(file::shown).unwrap_or_default();
        let fault = Fault::error("approved-tools", format!("{name} {why}"));
        section.reading.fault(fault.hint("mend it, or move it away and run `trunkline approve`"));
    };
    let Some(place) = &pins.file else {
        section.wrong("approved", "expected a path: there is no state folder (neither XDG_STATE_HOME nor HOME is set)");
        return pins;
    };
    // Who can write it approves tools.
    file::writers(place).into_iter().for_each(|doubt| section.reading.doubt_file(&file::shown(place), doubt));
    match private::off_the_workers(|| file::read(place)) {
        Ok(text) => match Approved::parse(&text) {
            Ok(approved) => pins.approved = approved,
            Err((line, why)) => unusable(format!("cannot be used: line {line}: {why}")),
        },
        // Nobody has approved anything yet.
        Err(file::Unreadable::Missing) => {}
        Err(why) => unusable(format!("cannot be read: {why}")),
    }
    pins
}

/// Where clients reach the gateway: an origin, and what a proxy takes off the paths.
fn public_url(text: &str) -> Result<PublicUrl, String> {
    const EXPECTED: &str =
        "expected an address such as \"https://mcp.example.com\" or \"https://example.com/mcp-gateway\"";
    let (scheme, rest) = text.split_once("://").ok_or(EXPECTED)?;
    let (host, prefix) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let prefix = prefix.trim_end_matches('/');
    let (scheme, host) = (scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
    // Clients leave out the port that goes without saying.
    let usual = match scheme.as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => return Err(EXPECTED.to_owned()),
    };
    let host = host.strip_suffix(usual).unwrap_or(&host);
    let is_host =
        |host: &str| !host.is_empty() && host.chars().all(|char| char.is_ascii_alphanumeric() || "-._".contains(char));
    let is_whole = host.parse::<http::uri::Authority>().is_ok_and(|authority| {
        let name = authority.host();
        let is_address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let is_port = authority.port().is_none_or(|port| port.as_str().parse::<u16>().is_ok());
        // A port that is none is left out by the parser.
        is_port
            && host.len() == name.len() + authority.port().map_or(0, |port| port.as_str().len() + 1)
            && is_address.map_or(is_host(name), |address| address.parse::<std::net::Ipv6Addr>().is_ok())
    });
    let is_path =
        prefix.is_empty() || (path(prefix).is_ok() && prefix.split('/').all(|part| part != ".." && part != "."));
    if !is_whole || !is_path || prefix.len() > 1024 {
        return Err(EXPECTED.to_owned());
    }
    Ok(PublicUrl { origin: format!("{scheme}://{host}"), prefix: prefix.to_owned() })
}

fn path(text: &str) -> Result<String, String> {
    let plain = |char: char| char.is_ascii_alphanumeric() || "/-_.~".contains(char);
    if text.starts_with('/') && !text.contains("//") && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("expected a path such as \"/mcp\"".to_owned())
    }
}

fn separator(text: &str) -> Result<String, String> {
    let plain = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
    if (1..=8).contains(&text.len()) && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("expected one to eight of A-Z a-z 0-9 _ - .".to_owned())
    }
}

fn filter(text: &str) -> Result<String, String> {
    // A lone word that is no level would be the name of a part of the program, and everything else silent.
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let is_misspelt = |word: &&str| !word.is_empty() && !word.contains(['=', '[', ':']) && !is_level(word);
    if let Some(word) = text.split(',').map(str::trim).find(is_misspelt) {
        return Err(format!(
            "`{word}` is not a level (off, error, warn, info, debug, trace); for one part of the program write `{word}=debug`"
        ));
    }
    match EnvFilter::builder().parse(text) {
        Ok(_) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("expected a level such as \"info\", or directives such as \"info,trunkline=debug\"".to_owned()),
    }
}

fn line(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 64 || text.chars().any(char::is_control) {
        return Err("expected one to 64 characters on one line".to_owned());
    }
    Ok(text.to_owned())
}

/// A time-out that cannot be switched off.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected more than 0".to_owned()),
        duration => Ok(duration),
    }
}

/// What all peers together may make the gateway keep.
fn memory(text: &str) -> Result<usize, String> {
    match size(text)? {
        bytes if bytes >= 16 << 20 => Ok(bytes),
        _ => Err("expected 16MiB or more".to_owned()),
    }
}

/// A message size: too small and nothing works, too large and one message is all the memory.
pub(crate) fn bounded_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        bytes if (1 << 10..=1 << 30).contains(&bytes) => Ok(bytes),
        _ => Err("expected from 1KiB to 1GiB".to_owned()),
    }
}

//! How an upstream is reached: from `command` or `url` to a checked transport.

use std::ffi::OsString;
use std::path::PathBuf;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::upstream::config::{Glob, Place, Remote, Transport, Trust};

use super::address::{Address, address};
use super::proxy::proxy;
use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::Fault;
use crate::config::read::shell::{is_shell, takes_commands};
use crate::config::read::{ANY, Kind, Part, Section};
use crate::config::source::Environment;
use crate::config::source::expand::Lookup;

/// What the file asks for; some are known words without anything behind them.
#[derive(Clone, Copy, PartialEq)]
enum Word {
    Stdio,
    Http,
    Sse,
    WebSocket,
    Unix,
    Tcp,
    NotBuilt(&'static str),
}

/// The words that a file may use, our own and those of hosts.
/// The words that are told to who writes a configuration; others are understood.
const KNOWN: [&str; 6] = ["stdio", "http", "sse", "websocket", "unix", "tcp"];
const WORDS: [(&str, Word); 12] = [
    ("stdio", Word::Stdio),
    ("http", Word::Http),
    ("streamable-http", Word::Http),
    ("streamableHttp", Word::Http),
    ("streamable_http", Word::Http),
    ("local", Word::Stdio),
    ("sse", Word::Sse),
    ("websocket", Word::WebSocket),
    ("ws", Word::WebSocket),
    ("unix", Word::Unix),
    ("tcp", Word::Tcp),
    ("auto", Word::NotBuilt("auto")),
];

/// A shorter value of a file of variables, such as `1` or `true`, stands in many texts.
const SECRET_BYTES_MIN: usize = 6;

/// What the value of a header with credentials begins with.
pub(super) const SCHEMES: [&str; 3] = ["basic ", "bearer ", "token "];
/// Headers that the gateway sets itself: a configured one would contradict the message.
pub(super) const OWN: [&str; 13] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Keys of `[upstreams.NAME]` for its transport.
pub(crate) const TRANSPORT_KEYS: &[KeyDoc] = &[
    KeyDoc {
        key: "transport",
        kind: "`\"stdio\"`, `\"http\"`, `\"sse\"`, `\"websocket\"`, `\"unix\"`, `\"tcp\"`",
        default: "by `command` or `url`",
        description: "how the upstream is reached; `ws` URLs mean `\"websocket\"`, `unix:` and `tcp:` what they \
            say; `\"http\"` finds [HTTP+SSE](../bridging.md#servers-over-httpsse) by itself",
    },
    KeyDoc {
        key: "command",
        kind: "text",
        default: "",
        description: "program of a child, a path or a name on its `PATH`; no shell",
    },
    KeyDoc { key: "args", kind: "list", default: "`[]`", description: "its arguments" },
    KeyDoc { key: "cwd", kind: "path", default: "that of the gateway", description: "its working directory" },
    KeyDoc {
        key: "env",
        kind: "table",
        default: "`{}`",
        description: "its variables beside those of `env_inherit`; `1.0` is the text `1.0`",
    },
    KeyDoc {
        key: "env_file",
        kind: "path",
        default: "",
        description: "file of its variables, an absolute path: lines of `NAME=value`; those of `env` win",
    },
    KeyDoc {
        key: "env_inherit",
        kind: "patterns",
        default: "that of `[defaults]`",
        description: "variables that it inherits",
    },
    KeyDoc {
        key: "url",
        kind: "URL",
        default: "",
        description: "endpoint of a Streamable HTTP server, or the stream of an HTTP+SSE server, `http` or \
            `https`; or a WebSocket, `ws` or `wss`; no name and password in it. Or a [socket or a \
            port](../bridging.md#servers-on-a-socket-or-a-port), `unix:` or `tcp:`",
    },
    KeyDoc { key: "headers", kind: "table", default: "`{}`", description: "sent with every request" },
];

/// Reads all keys that say how the upstream is reached.
pub(crate) fn transport(section: &mut Section<'_>, inherited: &[(OsString, OsString)]) -> Option<Transport> {
    let (word_key, url_key) = ("transport", "url");
    section.takes(word_key, || Kind::Word(KNOWN.to_vec()));
    let word = section.parse(word_key, |text| {
        let known = WORDS.iter().find(|(word, _)| *word == text);
        known.map(|(_, word)| *word).ok_or_else(|| {
            let (last, first) = KNOWN.split_last().unwrap_or((&"", &[]));
            format!("expected \"{}\" or \"{last}\"", first.join("\", \""))
        })
    });
    let (has_command, has_url) = (section.has("command"), section.has(url_key));
    let (stdio_only, http_only) = (
        present(section, &["args", "env", "env_file", "cwd", "env_inherit"]),
        present(section, &["headers", "auth", "tls", "proxy", "cleartext_credentials"]),
    );
    let of_network = present(section, &["tls", "proxy", "cleartext_credentials"]);
    let stdio = stdio(section, inherited);
    let remote = remote(section);
    let url = remote.as_ref().and_then(|(address, _)| address.url());
    let (trust, proxy) = (trust(section, true), proxy(section, url));
    let (kind, said) = match word {
        Some(Word::NotBuilt(name)) => {
            let text = format!("transport `{name}` is not supported");
            let fault = Fault::error("unknown-transport", text)
                .at(section.place(word_key))
                .label("known: stdio, http, sse, websocket, unix, tcp");
            section.reading.fault(fault.hint(
                    "remove the key: `command` means stdio, and `url` http or what its scheme says: ws:// and wss:// websocket, unix: unix, tcp: tcp",
                ));
            return None;
        }
        Some(Word::Stdio) => (Word::Stdio, true),
        Some(word) => (word, true),
        None if has_command || !has_url => (Word::Stdio, false),
        None => (remote.as_ref().map_or(Word::Http, |(address, _)| of(address)), false),
    };
    missing(section, (kind, said), (has_command, has_url));
    if let Some(expected) = remote.as_ref().and_then(|(address, _)| unfit(kind, address)) {
        section.wrong(url_key, &format!("the URL of this transport begins with {expected}"));
    }
    let foreign = match kind {
        Word::Stdio => http_only,
        Word::Unix | Word::Tcp => [stdio_only, http_only].concat(),
        _ => stdio_only,
    };
    for key in foreign {
        let text = format!("`{key}` has no meaning for an upstream of this transport");
        section.reading.fault(Fault::error("useless-key", text).at(section.place(key)));
    }
    if kind == Word::Stdio {
        return stdio;
    }
    if let Some((address, _)) = &remote {
        useless(section, address, &of_network);
    }
    match remote? {
        (Address::Lines(place), _) => Some(Transport::Lines(place)),
        (Address::Http(url, socket), headers) => {
            let remote = Remote { socket, trust, proxy, ..Remote::new(url, headers) };
            Some(match kind {
                Word::WebSocket => Transport::WebSocket(remote),
                Word::Sse => Transport::Sse(remote),
                _ => Transport::Http(remote),
            })
        }
    }
}

/// Reports keys that have no meaning at this address.
fn useless(section: &Section<'_>, address: &Address, keys_there: &[&str]) {
    let Address::Http(url, socket) = address else { return };
    let is_plain = matches!(url.scheme_str(), Some("http" | "ws"));
    let (of_socket, of_plain) = (
        "a socket of this machine is reached without; remove the key",
        "what begins with http:// or ws:// is not secured: begin `url` with https:// or wss://, or remove the key",
    );
    let keys: &[(&str, &str)] = match socket {
        Some(_) => &[("tls", of_socket), ("proxy", of_socket), ("cleartext_credentials", of_socket)],
        None if is_plain => &[("tls", of_plain)],
        None => &[],
    };
    for (key, label) in keys.iter().filter(|(key, _)| keys_there.contains(key)) {
        let fault = Fault::error("useless-key", format!("`{key}` has no meaning for an upstream at this address"));
        section.reading.fault(fault.at(section.place(key)).label(*label));
    }
}

/// Reports what is not there, or there twice.
fn missing(section: &Section<'_>, (kind, said): (Word, bool), (has_command, has_url): (bool, bool)) {
    let fault = |kind, text: &str| section.reading.fault(Fault::error(kind, text).at(section.own_place()));
    let missing = |text: &str| fault("missing-key", text);
    match (kind, has_command, has_url) {
        (_, true, true) => fault("two-forms", "an upstream has either `command` or `url`, and this one has both"),
        (Word::Stdio, false, _) if said => missing("an upstream with transport `stdio` needs `command`"),
        (Word::Http, _, false) => missing("an upstream with transport `http` needs `url`"),
        (Word::WebSocket, _, false) => missing("an upstream with transport `websocket` needs `url`"),
        (Word::Unix, _, false) => {
            missing("an upstream with transport `unix` needs `url`, such as \"unix:/run/mcp.sock\"")
        }
        (Word::Tcp, _, false) => {
            missing("an upstream with transport `tcp` needs `url`, such as \"tcp://127.0.0.1:9000\"")
        }
        (Word::Sse, _, false) => missing("an upstream with transport `sse` needs `url`"),
        (Word::Stdio, false, _) => missing("an upstream needs `command` or `url`"),
        _ => {}
    }
}

/// The transport that an address says by itself.
fn of(address: &Address) -> Word {
    match address {
        Address::Lines(Place::Socket(_)) => Word::Unix,
        Address::Lines(Place::Host(..)) => Word::Tcp,
        address if address.is_websocket() => Word::WebSocket,
        Address::Http(..) => Word::Http,
    }
}

/// What an address of this transport begins with, where this one does not.
fn unfit(kind: Word, address: &Address) -> Option<&'static str> {
    let is_fit = match kind {
        Word::Stdio | Word::NotBuilt(_) => true,
        Word::Unix | Word::Tcp => of(address) == kind,
        // Behind a socket the scheme says nothing.
        Word::WebSocket => address.is_websocket() || address.is_socket(),
        Word::Http | Word::Sse => of(address) == Word::Http,
    };
    let begins = match kind {
        Word::Unix => "unix: and has no `#`",
        Word::Tcp => "tcp:",
        Word::WebSocket => "ws:// or wss://, or is unix: with the path of the endpoint behind `#`",
        _ => "http:// or https://, or is unix: with the path of the endpoint behind `#`",
    };
    (!is_fit).then_some(begins)
}

fn present(section: &Section<'_>, keys: &[&'static str]) -> Vec<&'static str> {
    keys.iter().copied().filter(|key| section.has(key)).collect()
}

fn stdio(section: &mut Section<'_>, inherited: &[(OsString, OsString)]) -> Option<Transport> {
    let no_nul = |text: &str| if text.contains('\0') { Err("a NUL byte is not allowed") } else { Ok(text.to_owned()) };
    let command = section.parse("command", |text| match text.trim() {
        "" => Err("expected a program".to_owned()),
        _ => no_nul(text).map_err(str::to_owned),
    });
    let reads_reference = section.refers("args");
    let args = section.list("args", "[\"--verbose\"]").unwrap_or_default();
    if reads_reference
        && command.iter().chain(&args).any(|word| is_shell(word))
        && args.iter().any(|arg| takes_commands(arg))
    {
        let text = "`args` of a shell with `-c` holds a reference: its value is read as commands";
        let fault = Fault::warning("shell-variable", text).at(section.place("args"));
        section.reading.doubt(fault.hint("pass the value in `env`, and write \"$NAME\" in the text of the shell"));
    }
    if args.iter().any(|arg| arg.contains('\0')) {
        section.wrong("args", "a NUL byte is not allowed");
    }
    let cwd = section.parse("cwd", |text| match text {
        "" => Err("expected a folder".to_owned()),
        text => no_nul(text).map(PathBuf::from).map_err(str::to_owned),
    });
    let mut declared = env_file(section);
    for (name, value) in section.pairs("env") {
        declared.retain(|(known, _)| *known != name);
        declared.push((name, value));
    }
    for (name, value) in &declared {
        let why = match () {
            () if name.is_empty() => "the name of a variable is empty",
            () if name.contains('=') => "the name of a variable must not contain `=`",
            () if name.contains('\0') || value.contains('\0') => "a NUL byte is not allowed",
            () => continue,
        };
        wrong_name(section, "env", name, why);
    }
    let own = globs(section, "env_inherit").map(|patterns| section.reading.environment.fitting(&patterns));
    let env = Environment::child(own.as_deref().unwrap_or(inherited), declared);
    Some(Transport::Stdio { command: command?, args, env, cwd })
}

/// The variables of `env_file`: lines of `NAME=value`, as shells and editors write them. Each value is a secret.
fn env_file(section: &mut Section<'_>) -> Vec<(String, String)> {
    let Some(path) = section.parse("env_file", |text| match text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err("expected an absolute path".to_owned()),
    }) else {
        return Vec::new();
    };
    let text = match section.reading.file(&path) {
        Ok(text) => text,
        Err(why) => {
            let text = format!("invalid value for `{}`", section.reading.spelled(&section.at("env_file")));
            let fault = Fault::error("unreadable-file", text).at(section.place("env_file"));
            section.reading.fault(fault.label(format!("cannot read {path}: {why}")));
            return Vec::new();
        }
    };
    let pairs: Vec<_> = text.lines().filter_map(variable).collect();
    let is_long = |value: &&String| value.len() >= SECRET_BYTES_MIN;
    pairs.iter().map(|(_, value)| value).filter(is_long).for_each(|value| section.reading.secret(value));
    pairs
}

/// One line of such a file; none where it is empty, or a comment.
fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    Some((name.trim().to_owned(), quoted.unwrap_or(value).to_owned()))
}

fn remote(section: &mut Section<'_>) -> Option<(Address, HeaderMap)> {
    let address = section.parse("url", address);
    let mut headers = HeaderMap::new();
    for (name, value) in section.pairs("headers") {
        let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
            wrong_name(section, "headers", &name, "use letters, digits, `-` and `_` in header names");
            continue;
        };
        if OWN.contains(&header.as_str()) || header.as_str().starts_with("mcp-param-") {
            wrong_name(section, "headers", &name, &format!("`{header}` is set by the gateway itself"));
        }
        match HeaderValue::from_str(&value) {
            Ok(mut value) => {
                value.set_sensitive(true);
                headers.insert(header, value);
            }
            Err(_) => wrong_name(
                section,
                "headers",
                &name,
                &format!("the value of `{header}` has characters that are not allowed in a header"),
            ),
        }
    }
    Some((address?, headers))
}

/// The key `ca` of each table about TLS towards another server.
pub(crate) const TLS_CA: KeyDoc = KeyDoc {
    key: "ca",
    kind: "absolute path",
    default: "",
    description: "authorities that are trusted besides those of the platform",
};

/// The key `key` of each table about TLS towards another server.
pub(crate) const TLS_KEY: KeyDoc =
    KeyDoc { key: "key", kind: "absolute path", default: "", description: "its private key, not encrypted" };

/// Keys of `[upstreams.NAME.tls]`.
pub(crate) const UPSTREAM_TLS_DOC: TableDoc = TableDoc {
    heading: "[upstreams.NAME.tls]",
    path: &["upstreams", ANY, "tls"],
    intro: "Files in PEM form for an upstream behind `https` or `wss`. A file that has changed is read anew for \
        the next connection. Where the files\n\
        cannot be used then, as between two steps of a renewal, what they held before is, and the log says so.\n\
        Nothing turns the verification of names and authorities off.",
    keys: &[&[
        TLS_CA,
        KeyDoc {
            key: "cert",
            kind: "absolute path",
            default: "",
            description: "certificate that the upstream is shown, and those that lead from it to a known authority",
        },
        TLS_KEY,
        KeyDoc {
            key: "http2",
            kind: "bool",
            default: "`true`",
            description: "`false`: HTTP/1.1 alone is offered; else the upstream may choose \
                [HTTP/2](../operations.md#http2)",
        },
    ]],
    notes: "",
};

/// `tls`: what a connection is secured with besides the authorities of the platform.
pub(super) fn trust(section: &mut Section<'_>, is_for_calls: bool) -> Trust {
    let mut tls = section.table("tls");
    let file = |text: &str| match text.starts_with('/') {
        true => Ok(PathBuf::from(text)),
        false => Err("expected an absolute path, such as \"/etc/trunkline/ca.pem\"".to_owned()),
    };
    let (has_cert, has_key) = (tls.has("cert"), tls.has("key"));
    let (ca, cert, key) = (tls.parse("ca", file), tls.parse("cert", file), tls.parse("key", file));
    if has_cert != has_key {
        let fault = Fault::error("missing-key", "a certificate needs both `tls.cert` and `tls.key`");
        tls.reading.fault(fault.at(tls.own_place()));
    }
    let http1_alone = is_for_calls && tls.flag("http2") == Some(false);
    let trust = Trust { ca, own: cert.zip(key), http1_alone };
    if let Err(fault) = trust.read() {
        tls.wrong(fault.key, &fault.text);
    }
    tls.end("a `tls` table");
    trust
}

/// Reports a member of the table at `key` by its name, which is shown, and never with its value.
fn wrong_name(section: &Section<'_>, key: &str, name: &str, why: &str) {
    let mut path = section.at(key);
    path.push(name.to_owned());
    // Whoever has the two mixed up, or wrote both into one, has a secret in the name.
    let holds_value = name.len() > 64 || name.contains(['=', ':']) || SCHEMES.iter().any(|scheme| begins(name, scheme));
    let (place, shown) = match holds_value {
        false => (section.reading.place(&path, Part::Key), format!(" `{name}`")),
        true => (section.place(key), String::new()),
    };
    let text = format!("invalid name{shown} in `{}`", section.at(key).join("."));
    section.reading.fault(Fault::error("bad-value", text).at(place).label(why));
}

/// Whether a text begins so, in small letters or capitals.
pub(super) fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with))
}

/// A list of patterns.
pub(crate) fn globs(section: &mut Section<'_>, key: &'static str) -> Option<Vec<Glob>> {
    let patterns = section.list(key, "[\"NAME\", \"PREFIX_*\"]")?;
    for (index, pattern) in patterns.iter().enumerate() {
        if pattern.is_empty() || pattern.contains(['[', ']', '{', '}', '\\']) || pattern.contains(char::is_whitespace) {
            section.wrong_item(key, index, "a pattern is made of names, `*` and `?`");
        }
    }
    Some(patterns.iter().map(|pattern| Glob::new(pattern)).collect())
}

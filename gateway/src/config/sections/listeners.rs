//! `[[server.listeners]]`: where clients are served, and what is served there to whom. `[server] listen` and `[server.tls]` are the short
//! form for one.

// `[auth] generate_token`: the token that the gateway makes for itself.
mod generated;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::address::SOCKET_PATH_MAX;
use crate::downstream::config::{Address, Config as Server, Faces, Listener, Tls};
use crate::policy::config::client_token;
use crate::policy::config::{Auth, Generated};
use crate::telemetry::config::Admin;

use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::Fault;
use crate::config::read::{ANY, Part, Reading, Section};

/// What the faces are called.
const FACES: [&str; 3] = ["mcp", "sse", "ws"];

/// Where clients are served, and whether that is written listener by listener. What an entry does not say, `server` does.
pub(crate) fn listeners(section: &mut Section<'_>, server: &Server) -> (Vec<Listener>, bool) {
    // The variable of an image, switched off.
    section.forget_empty("listen");
    let short = ["listen", "tls"].into_iter().find(|key| section.has(key));
    let (listed, place) = (section.has("listeners"), short.and_then(|key| section.place(key)));
    let one = Listener {
        tls: None,
        faces: server.faces(),
        allowed_origins: server.allowed_origins.clone(),
        allowed_hosts: server.allowed_hosts.clone(),
        ..server.listeners[0].clone()
    };
    let address = section.parse("listen", place_of);
    let tls = tls(section.table("tls"), "[server.tls]");
    meaningless(section, address.as_ref(), tls.is_some());
    let entries = section.list_of_tables("listeners");
    if !listed {
        return (vec![Listener { address: address.unwrap_or(one.address), tls, ..one }], false);
    }
    if let Some(key) = short {
        let text = format!("both `server.{key}` and [[server.listeners]] are written");
        let hint = "`listen` and [server.tls] are the short form for one listener: write them into its entry, as `address` and `tls`; an empty \
                    TRUNKLINE_SERVER__LISTEN unsets the variable";
        section.reading.fault(Fault::error("two-forms", text).at(place).hint(hint));
    }
    if entries.is_empty() {
        section.wrong("listeners", "expected at least one entry");
    }
    // Every entry is looked at, so that all faults are found.
    let listeners: Vec<Option<Listener>> = entries.into_iter().map(|entry| listener(entry, one.clone())).collect();
    (listeners.into_iter().collect::<Option<_>>().unwrap_or_default(), true)
}

/// Keys of `[[server.listeners]]`.
pub(crate) const LISTENERS_DOC: TableDoc = TableDoc {
    heading: "[[server.listeners]]",
    path: &["server", "listeners", ANY],
    intro: "Several addresses where clients are served, each with what is served there to whom. `[server] listen` \
        and `[server.tls]` are the short form\n\
        for one; both forms at once are refused. [What a reload changes](../operations.md#several-listeners).",
    keys: &[&[
        KeyDoc {
            key: "address",
            kind: "address",
            default: "",
            description: "where clients are served, as `[server] listen`; beyond loopback, tokens or certificates \
                of clients are required",
        },
        KeyDoc {
            key: "faces",
            kind: "list",
            default: "what `legacy_sse` and `websocket` say",
            description: "which transports: `\"mcp\"` (Streamable HTTP), `\"sse\"`, `\"ws\"`",
        },
        KeyDoc {
            key: "tokens",
            kind: "list",
            default: "all",
            description: "names of the `[[auth.tokens]]` that count there; `[]`: no token is asked for",
        },
        KeyDoc { key: "tls", kind: "table", default: "none", description: "as [`[server.tls]`](#servertls)" },
        KeyDoc { key: "allowed_origins", kind: "list", default: "those of `[server]`", description: "browser origins" },
        KeyDoc { key: "allowed_hosts", kind: "list", default: "those of `[server]`", description: "host names" },
    ]],
    notes: r#"
```toml
[[server.listeners]]
address = "127.0.0.1:8808"
tokens = []                        # whoever is on this machine

[[server.listeners]]
address = "unix:/run/user/1000/trunkline/mcp.sock"

[[server.listeners]]
address = "0.0.0.0:8443"
faces = ["mcp"]
tokens = ["laptop"]
tls = { cert = "/etc/trunkline/tls.crt", key = "/etc/trunkline/tls.key" }
```
"#,
};

fn listener(mut section: Section<'_>, default: Listener) -> Option<Listener> {
    let place = section.own_place();
    if !section.has("address") {
        section.reading.fault(Fault::error("missing-key", "a listener has no `address`").at(place));
    }
    let address = section.parse("address", place_of);
    let tls = tls(section.table("tls"), "`tls` of [[server.listeners]]");
    meaningless(&section, address.as_ref(), tls.is_some());
    let faces = faces(&mut section);
    let tokens = section.list("tokens", "[\"laptop\"]");
    let [has_origins, has_hosts] = ["allowed_origins", "allowed_hosts"].map(|key| section.has(key));
    let origins = checked(&mut section, ("allowed_origins", "[\"https://app.example.com\"]"), origin);
    let hosts = checked(&mut section, ("allowed_hosts", "[\"mcp.example.com\"]"), host);
    section.end("[[server.listeners]]");
    Some(Listener {
        address: address?,
        tls,
        faces: faces.unwrap_or(default.faces),
        tokens: tokens.map(|names| names.into_iter().map(Arc::from).collect()),
        allowed_origins: if has_origins { origins } else { default.allowed_origins },
        allowed_hosts: if has_hosts { hosts } else { default.allowed_hosts },
    })
}

/// Nobody listens in on a socket of this machine.
fn meaningless(section: &Section<'_>, address: Option<&Address>, has_tls: bool) {
    if has_tls && matches!(address, Some(Address::Unix(_))) {
        let place = section.reading.place(&section.at("tls"), Part::Key);
        let fault = Fault::error("useless-key", "`tls` has no meaning at a Unix socket").at(place);
        section.reading.fault(fault.hint("remove it: the socket is of its user alone"));
    }
}

fn faces(section: &mut Section<'_>) -> Option<Faces> {
    let expected = format!("expected one or more of \"{}\"", FACES.join("\", \""));
    let names = section.list("faces", "[\"mcp\", \"sse\", \"ws\"]")?;
    if names.is_empty() {
        section.wrong("faces", &expected);
    }
    let unknown = names.iter().enumerate().filter(|(_, name)| !FACES.contains(&name.as_str()));
    unknown.for_each(|(index, _)| section.wrong_item("faces", index, &expected));
    let [mcp, sse, websocket] = FACES.map(|face| names.iter().any(|name| name == face));
    Some(Faces { mcp, sse, websocket })
}

/// Keys of `[server.tls]`.
pub(crate) const TLS_DOC: TableDoc = TableDoc {
    heading: "[server.tls]",
    path: &["server", "tls"],
    intro: "The certificate that clients are shown. Without this section they are served without TLS. [What \
        happens when the files\n\
        change](../operations.md#tls).",
    keys: &[&[
        KeyDoc {
            key: "cert",
            kind: "absolute path",
            default: "",
            description: "the certificate, and those that lead from it to a known authority, in PEM form",
        },
        KeyDoc {
            key: "key",
            kind: "absolute path",
            default: "",
            description: "its private key, in PEM form, not encrypted",
        },
        KeyDoc {
            key: "client_ca",
            kind: "absolute path",
            default: "",
            description: "authorities in PEM form; a client may show a certificate of theirs, and must where there \
                are no `[[auth.tokens]]`",
        },
        KeyDoc {
            key: "http2",
            kind: "bool",
            default: "`true`",
            description: "`false`: HTTP/1.1 alone; else a client may choose [HTTP/2](../operations.md#http2) in \
                the handshake",
        },
    ]],
    notes: "",
};

/// The certificate that clients are shown. Its files are read here, so that what is wrong with them is told with their place.
fn tls(mut section: Section<'_>, what: &str) -> Option<Tls> {
    let is_there = ["cert", "key", "client_ca", "http2"].iter().any(|key| section.has(key));
    let place = section.own_place();
    let (cert, key) = (section.parse("cert", file), section.parse("key", file));
    let client_ca = section.parse("client_ca", file);
    let http2 = section.flag("http2").unwrap_or(true);
    let tls = match (cert, key) {
        (Some(cert), Some(key)) => Some(Tls { cert, key, client_ca, http2 }),
        _ => None,
    };
    match tls.as_ref().map(Tls::check) {
        Some(Err(fault)) => {
            let text = format!("invalid value for `{}`", section.at(fault.key).join("."));
            let fault = Fault::error(Fault::CERTIFICATE, text).at(section.place(fault.key)).label(fault.text);
            section.reading.fault(fault);
        }
        None if is_there => {
            section.reading.fault(Fault::error("missing-key", format!("{what} needs both `cert` and `key`")).at(place));
        }
        _ => {}
    }
    section.end(what);
    tls
}

fn file(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if path.is_absolute() {
        Ok(path.to_owned())
    } else {
        Err("expected an absolute path, such as \"/etc/trunkline/tls.crt\"".to_owned())
    }
}

/// What of the listeners does not go together: with one another, with the admin address, and with the tokens.
pub(crate) fn judge(reading: &Reading, server: &Server, auth: &mut Auth, admin: &Admin) {
    let is_needed = match auth.generated {
        Generated::Demanded => true,
        // Whoever names the address by which others come, or gives a token, has others in mind, wherever it listens.
        Generated::Wanted if server.public_url.is_some() || generated::is_given(reading) => !auth.allow_unauthenticated,
        Generated::Wanted => server.listeners.iter().any(|listener| is_open(listener, auth)),
        _ => false,
    };
    if is_needed && !auth.asks_token() {
        generated::add(reading, auth);
    }
    if !auth.issuers.is_empty() && server.public_url.is_none() {
        let text = "access tokens are for a resource, and `public_url` under [server] does not say which one this is";
        let place = reading.place(&["auth".to_owned(), "issuers".to_owned()], Part::Key);
        let fault = Fault::error("missing-key", text).at(place);
        reading.fault(fault.hint("write where clients reach it, such as public_url = \"https://mcp.example.com\""));
    }
    let path = |index: usize, key: &str| match server.lists_listeners {
        true => ["server", "listeners", &index.to_string(), key].map(str::to_owned).to_vec(),
        false => vec!["server".to_owned(), if key == "address" { "listen" } else { key }.to_owned()],
    };
    let place = |index: usize, key: &str| reading.place(&path(index, key), Part::Value);
    for (index, listener) in server.listeners.iter().enumerate() {
        for (item, name) in listener.tokens.iter().flatten().enumerate() {
            if !auth.tokens.iter().any(|token| token.name == *name) {
                let at = [path(index, "tokens"), vec![item.to_string()]].concat();
                let place = reading.place(&at, Part::Value).or_else(|| place(index, "tokens"));
                reading.fault(Fault::no_token(name).at(place));
            }
        }
        if is_open(listener, auth) && auth.generated != Generated::Lacking {
            reading.fault(open_door(listener, auth).at(place(index, "address")));
        }
        if server.listeners[..index].iter().any(|other| is_same(&other.address, &listener.address)) {
            let text = format!("two listeners have the address {}", listener.address);
            let fault = Fault::error("bad-value", text).at(place(index, "address"));
            reading.fault(fault.hint("use another address for one of them"));
        }
        if let Some(admin) = admin.listen.filter(|admin| is_same(&listener.address, &Address::Tcp(*admin))) {
            let key = if server.lists_listeners { "[[server.listeners]]" } else { "`server.listen`" };
            let text = format!("{admin} is also the address for clients ({key})");
            let place = reading.place(&["admin".to_owned(), "listen".to_owned()], Part::Value);
            reading.fault(Fault::error("bad-value", text).at(place).hint("use another port for one of them"));
        }
    }
}

/// Beyond loopback nobody gets in unasked, unless that was asked for.
fn is_open(listener: &Listener, auth: &Auth) -> bool {
    let is_asked = listener.asks_certificate() || !auth.only(listener.tokens.as_deref()).is_open();
    !is_asked && !listener.address.is_local()
}

/// Who runs already makes no other token than the one that its clients have.
pub(crate) fn lost_token(state: Option<&Path>) -> Fault {
    let file = state.map(client_token::file).unwrap_or_default();
    let text = format!("no token of clients is configured, and the one in {} is gone", file.display());
    Fault::error("open-door", text).hint("restart the gateway to have a new one made, or add [[auth.tokens]]")
}

fn open_door(listener: &Listener, auth: &Auth) -> Fault {
    let address = &listener.address;
    let (why, first) = match auth.tokens.is_empty() {
        true => ("no tokens are configured", "add [[auth.tokens]] or server.tls.client_ca"),
        false => ("none of the tokens counts there", "name some in `tokens` of the listener, ask for certificates"),
    };
    Fault::error("open-door", format!("{address} can be reached from other machines, and {why}"))
        .hint(format!("{first}, listen on 127.0.0.1, or set auth.allow_unauthenticated = true"))
}

/// Two cannot listen at one address: the second would be told that it is in use, by this gateway itself.
fn is_same(one: &Address, other: &Address) -> bool {
    let (Some(one), Some(other)) = (one.port(), other.port()) else { return one == other };
    let is_every = |address: SocketAddr| address.ip().is_unspecified();
    let is_one = one.ip() == other.ip() || is_every(one) || is_every(other);
    one.port() == other.port() && other.port() != 0 && is_one
}

/// The items of a list, each checked.
pub(crate) fn checked<T>(
    section: &mut Section<'_>,
    (key, example): (&'static str, &str),
    check: fn(&str) -> Result<T, String>,
) -> Vec<T> {
    let mut found = Vec::new();
    for (index, text) in section.list(key, example).unwrap_or_default().into_iter().enumerate() {
        match check(&text) {
            Ok(value) => found.push(value),
            Err(expected) => section.wrong_item(key, index, &expected),
        }
    }
    found
}

/// A port, or a socket of this machine.
fn place_of(text: &str) -> Result<Address, String> {
    if let Some(rest) = text.strip_prefix("systemd") {
        return match rest.strip_prefix(':') {
            None if rest.is_empty() => Ok(Address::Handed(None)),
            Some(name) if !name.is_empty() && !name.contains(':') && !name.chars().any(char::is_control) => {
                Ok(Address::Handed(Some(name.into())))
            }
            _ => {
                Err("expected \"systemd\", or \"systemd:NAME\" with the FileDescriptorName= of a .socket unit"
                    .to_owned())
            }
        };
    }
    let Some(path) = text.strip_prefix("unix:") else {
        let socket = "a socket, such as \"unix:/run/user/1000/mcp.sock\", or \"systemd\"";
        return address(text).map(Address::Tcp).map_err(|expected| format!("{expected}, {socket}"));
    };
    let path = if path.starts_with("///") { &path[2..] } else { path };
    let is_plain = !path.contains('#') && !path.chars().any(char::is_control);
    match Path::new(path) {
        place if !place.is_absolute() || place.file_name().is_none() || path.ends_with('/') || !is_plain => {
            Err("expected an absolute path, without `#`, such as \"unix:/run/user/1000/mcp.sock\"".to_owned())
        }
        _ if path.len() > SOCKET_PATH_MAX => {
            Err(format!("the path has {} bytes; that of a socket has at most {SOCKET_PATH_MAX}", path.len()))
        }
        place => Ok(Address::Unix(place.to_owned())),
    }
}

pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text.replace("localhost:", "127.0.0.1:");
    text.parse().map_err(|_| "expected an address with a port, such as \"127.0.0.1:8808\" or \"[::1]:8808\"".to_owned())
}

pub(crate) fn origin(text: &str) -> Result<String, String> {
    let expected = || "expected an origin such as \"https://app.example.com\" or \"http://localhost:3000\"".to_owned();
    let (scheme, rest) = text.split_once("://").ok_or_else(expected)?;
    let plain = !scheme.is_empty() && !rest.is_empty() && !rest.contains(['/', '?', '#', '@', '*', ' ']);
    if plain { Ok(text.to_ascii_lowercase()) } else { Err(expected()) }
}

pub(crate) fn host(text: &str) -> Result<String, String> {
    let plain = !text.is_empty() && !text.contains(['/', '?', '#', '@', '*', ' ']);
    if plain {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("expected a host name such as \"mcp.example.com\", with a port or without".to_owned())
    }
}

//! `auth` of an upstream: what it is shown, written there or fetched while the gateway runs; and that no credentials go where everybody
//! could read them.

// Clients of authorization servers: of type `client_credentials`, and of type `oauth`, whose users log in.
mod client;

use std::ffi::OsString;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use crate::upstream::config::{Credentials, Remote, TokenCommand, Transport};

use super::address::{is_public, is_short_service};
use super::transport::{SCHEMES, TLS_CA, TLS_KEY, begins};
use crate::config::doc::{KeyDoc, TableDoc};
use crate::config::fault::Fault;
use crate::config::read::{ANY, Section, duration};
use crate::config::secret::looks::{is_plain, looks_secret};
use crate::config::source::Environment;

pub(super) use client::found;

/// How long a command has for a token, where nothing is said, and at most.
const COMMAND_TIME: Duration = Duration::from_secs(10);
const COMMAND_TIME_MAX: Duration = Duration::from_secs(300);

/// Where the credentials come from.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bearer,
    Basic,
    Exec,
    Client,
    Exchange,
    Login,
}

/// What may be said of a token end point.
const OF_END_POINT: &[&str] = &["client_secret", "client_auth", "scopes", "resource", "params", "tls", "proxy"];

/// The kinds, as a file names them, with the keys that each needs and those that it may have.
const KINDS: [(&str, Kind, &[&str], &[&str]); 6] = [
    ("bearer", Kind::Bearer, &["token"], &[]),
    ("basic", Kind::Basic, &["username", "password"], &[]),
    ("exec", Kind::Exec, &["command"], &["args", "env", "timeout"]),
    ("client_credentials", Kind::Client, &["token_url", "client_id"], OF_END_POINT),
    ("token_exchange", Kind::Exchange, &["token_url", "client_id"], OF_END_POINT),
    (
        "oauth",
        Kind::Login,
        &[],
        &["client_id", "client_secret", "client_auth", "scopes", "resource", "issuer", "logins", "client_document"],
    ),
];

/// Keys of `[upstreams.NAME.auth]`.
pub(crate) const CREDENTIALS_DOC: TableDoc = TableDoc {
    heading: "[upstreams.NAME.auth]",
    path: &["upstreams", ANY, "auth"],
    intro: "What an upstream over HTTP or WebSocket is shown in `Authorization`, in place of one in `headers`: \
        written here, or [fetched](../security.md#tokens-for-upstreams) while the\n\
        gateway runs. `type` decides which of the other keys there are.",
    keys: &[&[
        KeyDoc {
            key: "type",
            kind: "`\"bearer\"`, `\"basic\"`, `\"exec\"`, `\"client_credentials\"`, `\"token_exchange\"`, \
                `\"oauth\"`",
            default: "",
            description: "`bearer` and `basic` are written here, `exec` and `client_credentials` are fetched, for \
                `token_exchange` [tokens of clients are exchanged](../security.md#tokens-in-exchange), and to \
                `oauth` a person [logs in](../security.md#logins), as may be to an upstream over HTTP without \
                `auth`",
        },
        KeyDoc { key: "token", kind: "text", default: "", description: "`bearer`: the token" },
        KeyDoc { key: "username", kind: "text", default: "", description: "`basic`: the name" },
        KeyDoc { key: "password", kind: "text", default: "", description: "`basic`: the password" },
        KeyDoc {
            key: "command",
            kind: "text",
            default: "",
            description: "`exec`: a program that writes a token to its stdout; no shell",
        },
        KeyDoc { key: "args", kind: "list", default: "`[]`", description: "its arguments" },
        KeyDoc {
            key: "env",
            kind: "table",
            default: "`{}`",
            description: "its variables beside `env_inherit` of `[defaults]`",
        },
        KeyDoc {
            key: "timeout",
            kind: "duration",
            default: "`\"10s\"`",
            description: "limit for the command, at most five minutes",
        },
        KeyDoc {
            key: "token_url",
            kind: "URL",
            default: "",
            description: "`client_credentials`, `token_exchange`: the token end point of the authorization server",
        },
        KeyDoc {
            key: "client_id",
            kind: "text",
            default: "",
            description: "who the gateway is there; `oauth`: without it the gateway registers itself, and an \
                `https://` URL is that of a client metadata document",
        },
        KeyDoc {
            key: "client_secret",
            kind: "text",
            default: "",
            description: "its secret there; `oauth`: with `issuer` only",
        },
        KeyDoc {
            key: "client_auth",
            kind: "`\"basic\"`, `\"post\"`",
            default: "`\"basic\"`",
            description: "whether the secret is sent in a header or in the body",
        },
        KeyDoc {
            key: "client_document",
            kind: "bool",
            default: "`true`",
            description: "`oauth`: whether a login by a page of the gateway may show its [own client metadata \
                document](../security.md#a-page-to-log-in-at) in place of a registration",
        },
        KeyDoc {
            key: "issuer",
            kind: "URL",
            default: "what the upstream names",
            description: "`oauth`: the only authorization server that is taken; it may be in a network of your own",
        },
        KeyDoc {
            key: "scopes",
            kind: "list",
            default: "`[]`",
            description: "what the token is to allow; `oauth`: without it what the upstream asks for",
        },
        KeyDoc {
            key: "logins",
            kind: "`\"shared\"`, `\"per-principal\"`",
            default: "`\"shared\"`",
            description: "`oauth`: whether all principals use one login, or [each logs in for \
                itself](../security.md#logins-of-each-principal), over HTTP alone",
        },
        KeyDoc {
            key: "resource",
            kind: "URL",
            default: "that of `url`",
            description: "server for which the token is (RFC 8707); `\"\"`: left out",
        },
        KeyDoc { key: "params", kind: "table", default: "`{}`", description: "further parameters, such as `audience`" },
        KeyDoc {
            key: "proxy",
            kind: "text",
            default: "`\"env\"`",
            description: "proxy that leads to the token end point, as for an upstream",
        },
    ]],
    notes: r#"
```toml
[upstreams.warehouse]
url = "https://warehouse.example.com/mcp"
auth = { type = "exec", command = "gcloud", args = ["auth", "print-access-token"] }
```
"#,
};

/// Keys of `[upstreams.NAME.auth.tls]`.
pub(crate) const CREDENTIALS_TLS_DOC: TableDoc = TableDoc {
    heading: "[upstreams.NAME.auth.tls]",
    path: &["upstreams", ANY, "auth", "tls"],
    intro: "Files for a token end point behind `https`, as those of [an upstream](#upstreamsnametls).",
    keys: &[&[
        TLS_CA,
        KeyDoc {
            key: "cert",
            kind: "absolute path",
            default: "",
            description: "certificate that the token end point is shown",
        },
        TLS_KEY,
    ]],
    notes: "",
};

/// Reads `auth`. What is written there becomes a header of the upstream; what is to be fetched is returned.
pub(super) fn credentials(
    section: &mut Section<'_>,
    name: &str,
    transport: Option<&mut Transport>,
    inherited: &[(OsString, OsString)],
) -> Option<Credentials> {
    let is_given = section.has("auth");
    let mut auth = section.table("auth");
    if !is_given {
        return None;
    }
    let kind = kind(&mut auth);
    let (token, basic) = (client::secret(&mut auth, "token"), basic(&mut auth));
    let command = command(&mut auth, inherited);
    let remote = transport.as_ref().and_then(|transport| transport.remote());
    let url = remote.filter(|remote| remote.socket.is_none()).map(|remote| remote.url.clone());
    let known = client::known(&mut auth);
    let (client, issuer) = (client::of_its_own(&mut auth, &known, url.as_ref()), client::issuer(&mut auth));
    let is_personal = auth.word("logins", &[("shared", false), ("per-principal", true)]).unwrap_or(false);
    let has_document = auth.flag("client_document").unwrap_or(true);
    let to_log_in = remote.filter(|_| kind == Some(Kind::Login));
    let login = to_log_in.and_then(|at| client::login(&auth, (name, at), known, (issuer, is_personal, has_document)));
    let header = match kind {
        Some(Kind::Bearer) => token.and_then(|token| bearer(&auth, &token)),
        Some(Kind::Basic) => basic,
        _ => None,
    };
    let place = auth.own_place();
    let reading = auth.reading;
    auth.end("an `auth` table");
    let headers = transport.and_then(|transport| Some(&mut transport.remote_mut()?.headers));
    if headers.as_ref().is_some_and(|headers| headers.contains_key(AUTHORIZATION)) {
        let text = "`auth` and `headers.Authorization` both say what the upstream is shown";
        reading.fault(Fault::error("bad-value", text).at(place).hint("remove one of them"));
    }
    if let (Some(headers), Some(header)) = (headers, header) {
        headers.insert(AUTHORIZATION, header);
    }
    match kind {
        Some(Kind::Exec) => command.map(Credentials::Command),
        Some(Kind::Client) => client.map(|client| Credentials::Client(Box::new(client))),
        Some(Kind::Exchange) => client.map(|client| Credentials::Exchange(Box::new(client))),
        Some(Kind::Login) => login.map(|login| Credentials::Login(Box::new(login))),
        _ => None,
    }
}

/// Which kind it is, whether it has the keys that it needs, and no others.
fn kind(auth: &mut Section<'_>) -> Option<Kind> {
    let key = "type";
    let is_said = auth.has(key);
    let kind = auth.word(key, &KINDS.map(|(word, kind, ..)| (word, kind)));
    let Some((word, _, needed, others)) = KINDS.into_iter().find(|(_, known, ..)| Some(*known) == kind) else {
        if !is_said {
            let words = KINDS.map(|(word, ..)| word).join("\", \"");
            let fault = Fault::error("missing-key", "`auth` does not say what it is: `type` is missing");
            auth.reading.fault(fault.at(auth.own_place()).label(format!("known types: \"{words}\"")));
        }
        return None;
    };
    for key in needed.iter().filter(|key| !auth.has(key)) {
        let fault = Fault::error("missing-key", format!("`auth` of type `{word}` needs `{key}`"));
        auth.reading.fault(fault.at(auth.own_place()));
    }
    for key in KINDS.iter().flat_map(|(_, _, needed, others)| needed.iter().chain(*others)) {
        if auth.has(key) && !needed.contains(key) && !others.contains(key) {
            let fault = Fault::error("useless-key", format!("`{key}` has no meaning in `auth` of type `{word}`"));
            auth.reading.fault(fault.at(auth.place(key)));
        }
    }
    kind
}

fn bearer(auth: &Section<'_>, token: &str) -> Option<HeaderValue> {
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let value = value.ok().filter(|_| token.bytes().all(|byte| byte.is_ascii_graphic()));
    if value.is_none() {
        auth.wrong("token", "a token has no spaces, no line breaks and no characters beyond ASCII");
    }
    value.map(sensitive)
}

fn basic(auth: &mut Section<'_>) -> Option<HeaderValue> {
    let name = auth.parse("username", |text| match text.contains(':') {
        true => Err("a name has no `:` in it".to_owned()),
        false => Ok(text.to_owned()),
    });
    let password = auth.text("password");
    let (name, password) = name.zip(password)?;
    auth.reading.secret(&password);
    let coded = STANDARD.encode(format!("{name}:{password}"));
    auth.reading.secret(&coded);
    HeaderValue::from_str(&format!("Basic {coded}")).ok().map(sensitive)
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

/// A command whose stdout is a token.
fn command(auth: &mut Section<'_>, inherited: &[(OsString, OsString)]) -> Option<TokenCommand> {
    let no_nul = |text: &str| if text.contains('\0') { Err("a NUL byte is not allowed") } else { Ok(text.to_owned()) };
    let command = auth.parse("command", |text| match text.trim() {
        "" => Err("expected a program".to_owned()),
        _ => no_nul(text).map_err(str::to_owned),
    });
    let args = auth.list("args", "[\"print-access-token\"]").unwrap_or_default();
    let declared = auth.pairs("env");
    if args.iter().any(|arg| arg.contains('\0')) {
        auth.wrong("args", "a NUL byte is not allowed");
    }
    if declared.iter().any(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')) {
        auth.wrong("env", "the name of a variable is empty or has a `=`, or there is a NUL byte");
    }
    let expected = || "expected a time of at most 5 minutes, such as \"10s\"".to_owned();
    let timeout = auth.number("timeout", |text| {
        duration(text).ok().filter(|time| !time.is_zero() && *time <= COMMAND_TIME_MAX).ok_or_else(expected)
    });
    // What a command is told for its token is as secret as that: it may say so where it fails.
    for (_, value) in declared.iter().filter(|(name, value)| !is_plain(name, value) && !value.contains("://")) {
        auth.reading.secret(value);
    }
    let env = Environment::child(inherited, declared);
    Some(TokenCommand { command: command?, args, env, timeout: timeout.unwrap_or(COMMAND_TIME) })
}

/// The key `cleartext_credentials` of `[upstreams.NAME]`.
pub(crate) const CLEARTEXT_KEYS: &[KeyDoc] = &[KeyDoc {
    key: "cleartext_credentials",
    kind: "bool",
    default: "`false`",
    description: "whether [credentials](../security.md#where-upstreams-are) may go to a public address without \
            encryption",
}];

/// Credentials that everybody on the way could read are sent to a public address only where the file says so.
pub(super) fn cleartext(section: &mut Section<'_>, transport: Option<&Transport>, fetched: Option<&Credentials>) {
    let is_allowed = section.flag("cleartext_credentials").unwrap_or(false);
    let Some(remote) = transport.and_then(Transport::remote).filter(|_| !is_allowed) else { return };
    if let Some(Credentials::Client(client) | Credentials::Exchange(client)) = fetched {
        fetched_in_the_clear(section, &client.endpoint);
    }
    let Remote { url, headers, socket: None, .. } = remote else { return };
    let proxy = remote.proxy.as_ref().filter(|proxy| is_public(&proxy.host));
    // The variables of the environment are for all programs: of those `check` warns.
    if proxy.is_some_and(|proxy| proxy.credentials.is_some() && !proxy.is_of_environment) {
        let text = "the password of the proxy would be sent without encryption to a public address";
        let fault = Fault::error("cleartext-credentials", text).at(section.place("proxy"));
        section
            .reading
            .fault(fault.hint("name the proxy by an address of your own network, or set cleartext_credentials = true"));
    }
    let (is_plain, host) = (matches!(url.scheme_str(), Some("http" | "ws")), url.host().unwrap_or_default());
    if !is_plain || proxy.is_none() && !is_public(host) {
        return;
    }
    let is_secret = |(name, value): &(&HeaderName, &HeaderValue)| {
        let is_scheme = |scheme: &str| value.to_str().is_ok_and(|value| begins(value, scheme));
        *name == http::header::AUTHORIZATION
            || looks_secret(name.as_str())
            || SCHEMES.iter().any(|scheme| is_scheme(scheme))
    };
    let secret = headers.iter().find(is_secret).map(|(name, _)| name.as_str());
    let of_query =
        || url.query()?.split('&').map(|pair| pair.split('=').next().unwrap_or(pair)).find(|name| looks_secret(name));
    let Some(secret) = secret.or_else(of_query).or(fetched.map(|_| "auth")) else { return };
    let to = if is_public(host) { "to a public address" } else { "by way of a proxy at a public address" };
    let text = format!("`{secret}` would be sent without encryption {to}");
    let fault = Fault::error("cleartext-credentials", text).at(section.place("url"));
    let service = match is_short_service(host) {
        true => format!("write `{host}.svc` if that is a service of a cluster and its namespace, "),
        false => String::new(),
    };
    let hint = format!("begin `url` with https:// or wss://, {service}or set cleartext_credentials = true");
    section.reading.fault(fault.hint(hint));
}

/// What a token is fetched with is not sent to a public address in the clear either, nor by way of one.
fn fetched_in_the_clear(section: &Section<'_>, endpoint: &Remote) {
    let fault = |text: &str, hint: &str| {
        let fault = Fault::error("cleartext-credentials", text).at(section.place("auth"));
        section.reading.fault(fault.hint(format!("{hint}, or set cleartext_credentials = true")));
    };
    let proxy = endpoint.proxy.as_ref().filter(|proxy| is_public(&proxy.host));
    if proxy.is_some_and(|proxy| proxy.credentials.is_some() && !proxy.is_of_environment) {
        let text = "the password of the proxy of `auth` would be sent without encryption to a public address";
        fault(text, "name the proxy by an address of your own network");
    }
    if endpoint.url.scheme_str() != Some("http") {
        return;
    }
    let hint = "begin `token_url` with https://";
    if is_public(endpoint.url.host().unwrap_or_default()) {
        fault("the credentials of `auth` would be sent without encryption to a public address", hint);
    } else if proxy.is_some() {
        fault("the credentials of `auth` would be sent without encryption by way of a proxy at a public address", hint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::Environment;
    use crate::config::{Inputs, load};
    use crate::runtime::Scratch;
    use crate::upstream::config::Config;

    /// The upstream of a file that has these lines in its table.
    fn read(lines: &str) -> Result<Config, String> {
        let scratch = Scratch::new();
        let path = scratch.write("auth.toml", &format!("[upstreams.a]\n{lines}\n"));
        let environment = Environment::of(&[("PATH", "/bin"), ("SECRET", "canary-secret")]);
        let loaded = load(Inputs { files: vec![path], environment, ..Inputs::default() });
        let config = loaded.map_err(|faults| faults.to_string())?.config;
        assert!(config.secrets.has("canary-secret") == lines.contains("SECRET"), "{lines}");
        Ok(config.upstreams.into_iter().next().unwrap())
    }

    fn at(auth: &str) -> Result<Config, String> {
        read(&format!("url = \"https://H.example:8443/mcp?x=1\"\nauth = {{ {auth} }}"))
    }

    fn header(auth: &str) -> String {
        let config = at(auth).unwrap();
        assert_eq!(config.credentials, None, "nothing is fetched");
        config.transport.remote().unwrap().headers[AUTHORIZATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn what_is_written_is_a_header_and_what_is_fetched_has_its_defaults() {
        assert_eq!(header(r#"type = "bearer", token = "${SECRET}""#), "Bearer canary-secret");
        let basic = header(r#"type = "basic", username = "me", password = "${SECRET}""#);
        assert_eq!(basic, format!("Basic {}", STANDARD.encode("me:canary-secret")));
        let exec = at(r#"type = "exec", command = "gcloud", args = ["x"], env = { A = "1" }"#).unwrap();
        let Some(Credentials::Command(exec)) = exec.credentials else { panic!("{exec:?}") };
        let env = vec![("A".into(), "1".into()), ("PATH".into(), "/bin".into())];
        let args = vec!["x".to_owned()];
        assert!(exec == TokenCommand { command: "gcloud".into(), args, env, timeout: COMMAND_TIME });
        let given = r#"type = "client_credentials", token_url = "https://as.example/t", client_id = "me", client_secret = "${SECRET}""#;
        let client = |more: &str| match at(&format!("{given}{more}")).unwrap().credentials {
            Some(Credentials::Client(client)) => *client,
            other => panic!("{other:?}"),
        };
        let plain = client("");
        assert_eq!(plain.resource.as_deref(), Some("https://h.example:8443/mcp"));
        assert_eq!((&*plain.id, plain.secret.as_deref(), plain.is_in_body), ("me", Some("canary-secret"), false));
        assert!(!format!("{plain:?}", plain = Credentials::Client(Box::new(plain))).contains("canary"));
        let more = client(r#", scopes = ["a", "b"], resource = "", client_auth = "post", params = { audience = "x" }"#);
        assert_eq!((more.scopes, more.resource, more.is_in_body), (vec!["a".to_owned(), "b".to_owned()], None, true));
        assert_eq!(more.params, [("audience".to_owned(), "x".to_owned())]);
    }

    #[test]
    fn a_login_can_be_made_where_nothing_says_what_is_shown_and_nobody_could_read_it() {
        for lines in
            ["url = \"https://h.example/mcp\"", "url = \"http://127.0.0.1:1/mcp\"", "url = \"http://10.0.0.1/mcp\""]
        {
            let config = read(lines).unwrap();
            let login = config.may_log_in().unwrap();
            assert!(login.is_found && config.credentials.is_none() && *login.upstream == *"a", "{lines}");
        }
        for lines in [
            "url = \"http://h.example/mcp\"",
            "url = \"https://h.example/mcp?key=x\"",
            "url = \"https://h.example/mcp\"\nheaders = { x-region = \"eu\" }",
            "url = \"https://h.example/mcp\"\nauth = { type = \"bearer\", token = \"x\" }",
            "url = \"https://h.example/mcp\"\nauth = { type = \"exec\", command = \"x\" }",
            "url = \"wss://h.example/mcp\"",
            "url = \"https://h.example/sse\"\ntransport = \"sse\"",
            "command = \"x\"",
        ] {
            assert!(read(lines).unwrap().may_log_in().is_none(), "{lines}");
        }
        assert!(!at(r#"type = "oauth""#).unwrap().may_log_in().unwrap().is_found);
    }

    #[test]
    fn what_is_wrong_in_auth_is_said_where_it_stands_and_no_secret_is_repeated() {
        let client = |more: &str| {
            format!(r#"type = "client_credentials", token_url = "https://as.example/t", client_id = "me"{more}"#)
        };
        for (auth, words) in [
            ("", "known types: \"bearer\", \"basic\", \"exec\", \"client_credentials\""),
            (r#"type = "bearr", token = "x""#, "did you mean \"bearer\"?"),
            (r#"type = "bearer""#, "`auth` of type `bearer` needs `token`"),
            (r#"type = "bearer", token = "canary x""#, "a token has no spaces"),
            (r#"type = "bearer", token = "x", username = "y""#, "`username` has no meaning in `auth` of type `bearer`"),
            (r#"type = "basic", username = "a:b", password = "canary""#, "a name has no `:` in it"),
            (r#"type = "exec", command = "x", timeout = "0s""#, "at most 5 minutes"),
            (r#"type = "exec", command = "x", tokn = "y""#, "`tokn` is not a key of an `auth` table"),
            (&client(r#", scopes = ["a b"]"#), "one scope an item"),
            (&client(r#", resource = "x#y""#), "expected a URL without `#`"),
            (&client(r#", client_auth = "jwt""#), "expected \"basic\", \"post\""),
            (
                r#"type = "client_credentials", token_url = "canary:x", client_id = "me""#,
                "the URL of a token end point",
            ),
        ] {
            let why = at(auth).unwrap_err();
            assert!(why.contains(words), "{auth}: {why}");
        }
        let both = read(
            "url = \"https://h.example\"\nheaders = { Authorization = \"Bearer canary\" }\nauth = { type = \"bearer\", token = \"x\" }",
        );
        assert!(both.unwrap_err().contains("both say what the upstream is shown"));
        let child = read("command = \"x\"\nauth = { type = \"bearer\", token = \"x\" }").unwrap_err();
        assert!(child.contains("`auth` has no meaning for an upstream of this transport"), "{child}");
    }

    #[test]
    fn no_fetched_token_and_no_client_secret_goes_to_a_public_address_in_the_clear() {
        let of = |url: &str, auth: &str, more: &str| read(&format!("url = \"{url}\"\nauth = {{ {auth} }}\n{more}"));
        let exec = r#"type = "exec", command = "x""#;
        let client = |url: &str| format!(r#"type = "client_credentials", token_url = "{url}", client_id = "me""#);
        let why = of("http://h.example", exec, "").unwrap_err();
        assert!(why.contains("`auth` would be sent without encryption to a public address"), "{why}");
        let why = of("https://h.example", &client("http://as.example/t"), "").unwrap_err();
        assert!(why.contains("begin `token_url` with https://"), "{why}");
        let by_proxy = |url: &str, proxy: &str| format!("{}, proxy = \"{proxy}\"", client(url));
        let (public, own) = ("http://u:canary@proxy.example:3128", "http://u:canary@10.0.0.2:3128");
        let why = of("https://h.example", &by_proxy("https://as.example/t", public), "").unwrap_err();
        assert!(why.contains("the password of the proxy of `auth`") && !why.contains("canary"), "{why}");
        let why = of("https://h.example", &by_proxy("http://10.0.0.1/t", "http://proxy.example:3128"), "").unwrap_err();
        assert!(why.contains("by way of a proxy at a public address"), "{why}");
        of("https://h.example", &by_proxy("http://10.0.0.1/t", own), "").unwrap();
        for (url, auth) in [
            ("https://h.example", exec),
            ("http://127.0.0.1:1", exec),
            ("https://h.example", &client("https://as.example/t")),
            ("https://h.example", &client("http://10.0.0.1/t")),
        ] {
            of(url, auth, "").unwrap();
        }
        of("http://h.example", exec, "cleartext_credentials = true").unwrap();
    }
}

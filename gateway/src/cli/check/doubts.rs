//! What may well be meant so in a configuration, and may well not: for `trunkline check`.

// Which addresses a host stands for.
mod destination;
// Variables that decide which code a program runs.
mod loaders;
// Roles that let nobody see anything.
mod roles;
// The text of a shell.
mod script;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::cli::args::settings::is_demo;
use crate::config::Config;
use crate::config::fault::Fault;
use crate::config::shell::{is_shell, takes_commands};
use crate::config::source::Environment;
use crate::config::source::file::{quoted, shown};
use crate::gateway;
use crate::policy::config::Token;
use crate::process::missing;
use crate::router::config::Strategy;
use crate::secrets::mask;
use crate::telemetry::audit::unusable;
use crate::upstream::config::{ChildCommand, Credentials, Login, Remote, TokenCommand};
use crate::upstream::logins::logged_in;

use super::personal;
use destination::Destination;
use loaders::loads_code;

/// All of them.
pub(crate) fn all(files: &[PathBuf], config: &Config, environment: &Environment) -> Vec<Fault> {
    let whole = general(files, config).into_iter().chain(roles::all(config));
    let whole = whole.map(|doubt| doubt.masked(&config.secrets));
    whole.chain(of_upstreams(config, environment)).collect()
}

/// Those that are about one upstream each: they hold, too, where something else is wrong, or a variable has no value.
pub(super) fn of_upstreams(config: &Config, environment: &Environment) -> Vec<Fault> {
    let mut doubts = Vec::new();
    for upstream in config.upstreams.iter().chain(&config.lacking) {
        let name = &upstream.name;
        doubts.extend(upstream.doubt().map(|doubt| Fault::of_upstream("shared-questions", name, doubt)));
        if let Some(ChildCommand { command, args, env, cwd }) = upstream.transport.child() {
            doubts.extend(place(name, command, env, cwd));
            doubts.extend(loader(name, env, environment));
            doubts.extend(arguments(name, command, args, config));
        }
        if let Some(remote) = upstream.transport.remote() {
            doubts.extend(address(name, remote, upstream.credentials.is_some(), config));
        }
        match upstream.may_log_in() {
            Some(login) if personal::is_of_each(login, config) => doubts.extend(personal::ended(login, config)),
            login => doubts.extend(login.and_then(|login| no_login(name, login))),
        }
        match &upstream.credentials {
            Some(Credentials::Command(TokenCommand { command, args, env, .. })) => {
                doubts.extend(place(name, command, env, None));
                doubts.extend(loader(name, env, environment));
                doubts.extend(arguments(name, command, args, config));
            }
            Some(Credentials::Client(client) | Credentials::Exchange(client)) => {
                doubts.extend(address(name, &client.endpoint, true, config));
            }
            Some(Credentials::Login(_)) | None => {}
        }
    }
    doubts.into_iter().map(|doubt| doubt.masked(&config.secrets)).collect()
}

fn general(files: &[PathBuf], config: &Config) -> Vec<Fault> {
    let mut doubts = Vec::new();
    if files.is_empty() && is_demo(config) {
        doubts.push(Fault::warning("demo", "no configuration file: the built-in demo is served"));
    }
    // Of each that is left out it is told why.
    if config.upstreams.is_empty() && config.left_out.is_empty() {
        doubts.push(Fault::no_upstreams(files.last().map(PathBuf::as_path)));
    }
    if config.naming.strategy == Strategy::PrefixOnConflict && config.upstreams.len() > 1 {
        let text = "with `prefix_on_conflict` a name may change when another upstream has the same one";
        doubts.push(Fault::warning("names-may-change", text));
    }
    doubts.extend(too_long(config));
    if let Some((file, why)) = config.audit.file.as_deref().and_then(|file| Some((file, unusable(file)?))) {
        let text = format!("cannot write the audit to {} (`[audit] file`): {why}", file.display());
        let hint = "the gateway does not start without it: name a file that this user may write to";
        doubts.push(Fault { hint: Some(hint.to_owned()), ..Fault::warning("no-audit", text) });
    }
    let admin = config.admin.token.as_ref().map(|token| <[u8; 32]>::from(Sha256::digest(token.as_str())));
    if let Some(client) = config.auth.tokens.iter().find(|client| Some(client.digest) == admin) {
        let text =
            format!("client `{}` has the same token as `[admin]`, so it can stop and start upstreams", client.name);
        doubts.push(Fault { hint: Some(another_token(client)), ..Fault::warning("admin-token", text) });
    }
    let now = SystemTime::now();
    for token in config.auth.tokens.iter().filter(|token| token.is_over(now)) {
        let text = format!("the token `{}` has expired, so that its bearer is refused", token.name);
        doubts.push(Fault { hint: Some(another_token(token)), ..Fault::warning("expired-token", text) });
    }
    if let Some(listen) = config.admin.listen.filter(|listen| !listen.ip().is_loopback()) {
        let text = format!("probes and metrics at {listen} can be read from other machines");
        doubts.push(Fault::warning("open-admin", text));
    }
    doubts
}

/// How another token takes the place of one. The last one is not revoked, so that the other comes first.
fn another_token(token: &Token) -> String {
    let roles = token.roles.iter().flatten().map(|role| format!(" --role {}", quoted(role))).collect::<String>();
    let (old, new) = (quoted(&token.name), format!("{}-2", token.name));
    let new = quoted(&new);
    format!("run `trunkline token new {new}{roles}`, give it to the client, then run `trunkline token revoke {old}`")
}

/// A person has yet to log in, or to do so anew.
fn no_login(name: &str, login: &Login) -> Option<Fault> {
    let why = logged_in(login).err()?;
    let hint = Some(why.advice().to_owned()).filter(|advice| !advice.is_empty());
    Some(Fault { hint, ..Fault::of_upstream("no-login", name, why.advise_instead("").full()) })
}

/// Messages that are allowed and for which there is never any memory.
fn too_long(config: &Config) -> Vec<Fault> {
    let budget = gateway::budget(config);
    let (Some(limit), longest) = (budget.limit(), budget.longest()) else { return Vec::new() };
    let of_clients = [("`server.max_body`".to_owned(), config.server.max_body)];
    let of_upstreams =
        config.upstreams.iter().map(|one| (format!("upstream `{}`: `max_response`", one.name), one.max_message));
    let over = of_clients.into_iter().chain(of_upstreams).filter(|(_, most)| *most > longest);
    let said = |(key, most): (String, usize)| {
        let text = format!(
            "{key} allows messages of {}, and a message of more than {} is always dropped: `server.memory_limit` is {}",
            in_units(most),
            in_units(longest),
            in_units(limit)
        );
        let hint = "raise `memory_limit`, or lower the other key";
        Fault { hint: Some(hint.to_owned()), ..Fault::warning("over-memory-limit", text) }
    };
    over.map(said).collect()
}

/// A size as it is written in a configuration.
fn in_units(bytes: usize) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(size, _)| bytes >= *size && bytes.is_multiple_of(*size));
    unit.map_or_else(|| format!("{bytes} bytes"), |(size, name)| format!("{} {name}", bytes / size))
}

/// Whether the program and its folder are there.
fn place(name: &str, command: &str, env: &[(OsString, OsString)], cwd: Option<&Path>) -> Vec<Fault> {
    let folder = cwd.filter(|cwd| !cwd.is_dir()).map(|cwd| {
        // Masked before: a secret that is quoted is not found any more.
        let folder = mask::masked(&shown(cwd)).into_owned();
        let hint = format!("run `mkdir -p {}`, or write another `cwd` under [upstreams.{name}]", quoted(&folder));
        let text = format!("working directory `{}` does not exist", cwd.display());
        Fault { hint: Some(hint), ..Fault::of_upstream("no-folder", name, text) }
    });
    let program = missing(command, env, cwd).map(|why| Fault::of_upstream("no-command", name, why));
    folder.into_iter().chain(program).collect()
}

/// Variables that decide which code its program runs.
fn loader(name: &str, env: &[(OsString, OsString)], environment: &Environment) -> Vec<Fault> {
    let is_given = |variable: &OsStr, value: &OsStr| match variable.to_str() {
        // The one of this process is what every program has.
        Some("PATH") => environment.get("PATH").is_some_and(|own| own != value),
        Some(variable) => loads_code(variable),
        None => false,
    };
    let given = env.iter().filter(|(variable, value)| is_given(variable, value));
    let said = |variable: &str| {
        let text = format!(
            "the variable {variable} decides which code its program runs; whoever can write its files can run code"
        );
        Fault::of_upstream("loader-variable", name, text)
    };
    given.map(|(variable, _)| said(&variable.to_string_lossy())).collect()
}

/// What stands in its arguments.
fn arguments(name: &str, command: &str, args: &[String], config: &Config) -> Vec<Fault> {
    let mut doubts = Vec::new();
    // Also where another program starts the shell: `env sh -c …`.
    let mut words = std::iter::once(command).chain(args.iter().map(String::as_str));
    if words.any(is_shell) {
        let script = words.skip_while(|arg| !takes_commands(arg)).nth(1);
        if let Some(doubt) = script.and_then(script::doubt) {
            doubts.push(Fault::of_upstream("shell-variable", name, doubt.text()));
        }
    }
    if args.iter().any(|arg| config.secrets.has(arg)) {
        let text = "`args` holds a secret, and every user of this machine can read arguments; pass it in `env`";
        doubts.push(Fault::of_upstream("secret-in-arguments", name, text));
    }
    doubts
}

/// Where it is, and what is sent there.
fn address(name: &str, remote: &Remote, is_shown_a_token: bool, config: &Config) -> Vec<Fault> {
    let Remote { url, headers, proxy, .. } = remote;
    let mut doubts = Vec::new();
    let destination = Destination::of(url.host().unwrap_or_default());
    let by = proxy.as_ref().map(|proxy| (Destination::of(&proxy.host), proxy.credentials.is_some()));
    for (address, is_it) in [
        ("the address", destination.is_metadata()),
        ("the address of its proxy", by.as_ref().is_some_and(|(by, _)| by.is_metadata())),
    ] {
        let text = format!(
            "{address} is link-local or that of a cloud metadata service, which gives out credentials of this machine"
        );
        doubts.extend(is_it.then(|| Fault::of_upstream("metadata-address", name, text)));
    }
    if by.is_some_and(|(by, has_password)| has_password && !by.is_local()) {
        let text = "the password of its proxy is sent without encryption";
        doubts.push(Fault::of_upstream("plain-credentials", name, text));
    }
    let is_secret = |text: &str| config.secrets.has(text);
    let has_secret = is_shown_a_token
        || headers.contains_key("authorization")
        || headers.values().any(|value| is_secret(&String::from_utf8_lossy(value.as_bytes())))
        || is_secret(&url.to_string());
    if matches!(url.scheme_str(), Some("http" | "ws")) && !destination.is_local() && has_secret {
        let text = "credentials are sent without encryption";
        doubts.push(Fault::of_upstream("plain-credentials", name, text));
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Inputs, load};

    fn kinds(pairs: &[(&str, &str)]) -> Vec<&'static str> {
        let environment = Environment::of(pairs);
        let loaded = load(Inputs { environment: environment.clone(), ..Inputs::default() }).unwrap();
        all(&[], &loaded.config, &environment).iter().map(|doubt| doubt.kind).collect()
    }

    #[test]
    fn what_is_doubtful_is_said() {
        assert_eq!(kinds(&[]), ["no-upstreams"]);
        let path = ("PATH", "/bin");
        assert_eq!(kinds(&[path, ("TRUNKLINE_UPSTREAMS__A__COMMAND", "sh")]), [""; 0]);
        assert_eq!(kinds(&[path, ("TRUNKLINE_UPSTREAMS__A__COMMAND", "no-such-program")]), ["no-command"]);
        let cwd = ("TRUNKLINE_UPSTREAMS__A__CWD", "/no/such/folder");
        assert_eq!(kinds(&[path, cwd, ("TRUNKLINE_UPSTREAMS__A__COMMAND", "sh")]), ["no-folder"]);
        let url = ("TRUNKLINE_UPSTREAMS__A__URL", "http://h.example/");
        assert_eq!(kinds(&[url, ("TRUNKLINE_ADMIN__LISTEN", "0.0.0.0:1")]), ["open-admin"]);
        let audit = |file| kinds(&[url, ("TRUNKLINE_AUDIT__FILE", file)]);
        assert_eq!((audit("/no/such/folder/audit"), audit("/dev/null")), (vec!["no-audit"], vec!["no-audit"]));
        let flat = ("TRUNKLINE_NAMING__STRATEGY", "prefix_on_conflict");
        assert_eq!(kinds(&[url, flat]), [""; 0]);
        assert_eq!(kinds(&[url, flat, ("TRUNKLINE_UPSTREAMS__B__URL", "http://h.example/")]), ["names-may-change"]);
    }

    #[test]
    fn a_message_that_may_be_sent_and_never_fits_is_said_with_the_figures() {
        let said = |pairs: &[(&str, &str)]| {
            let environment =
                Environment::of(&[&[("TRUNKLINE_UPSTREAMS__A__URL", "http://h.example/")], pairs].concat());
            let loaded = load(Inputs { environment: environment.clone(), ..Inputs::default() }).unwrap();
            all(&[], &loaded.config, &environment).into_iter().map(|doubt| doubt.text).collect::<Vec<_>>()
        };
        let limit = |text| ("TRUNKLINE_SERVER__MEMORY_LIMIT", text);
        let (body, reply) = (("TRUNKLINE_SERVER__MAX_BODY", "12MiB"), ("TRUNKLINE_DEFAULTS__MAX_RESPONSE", "48MiB"));
        assert_eq!(said(&[limit("96MiB"), body, reply]), [""; 0]);
        let tells = |key, most, longest, limit| {
            format!(
                "{key} allows messages of {most}, and a message of more than {longest} is always dropped: `server.memory_limit` is {limit}"
            )
        };
        let reply_too_long = |longest, limit| tells("upstream `a`: `max_response`", "48 MiB", longest, limit);
        assert_eq!(said(&[limit("60MiB"), body, reply]), [reply_too_long("30 MiB", "60 MiB")]);
        assert_eq!(
            said(&[limit("17MiB"), body, reply]),
            [tells("`server.max_body`", "12 MiB", "8704 KiB", "17 MiB"), reply_too_long("8704 KiB", "17 MiB")]
        );
    }

    #[test]
    fn credentials_in_the_clear_and_addresses_of_machines_are_said() {
        let of = |url: &str, header: Option<&str>| {
            let mut pairs = vec![("TRUNKLINE_UPSTREAMS__A__URL", url)];
            pairs.extend(header.map(|value| ("TRUNKLINE_UPSTREAMS__A__HEADERS__X_API_KEY", value)));
            kinds(&pairs)
        };
        assert_eq!(of("http://h.ns.svc/", Some("canary-value")), ["plain-credentials"]);
        assert_eq!(of("http://h.ns.svc/?token=canary-value", None), ["plain-credentials"]);
        for url in
            ["https://h.example/", "http://127.1.2.3/", "http://[::1]/", "http://localhost:7/", "http://a.localhost/"]
        {
            assert_eq!(of(url, Some("canary-value")), [""; 0], "{url}");
        }
        assert_eq!(of("http://h.example/", None), [""; 0]);
        let by = |proxy: &str| kinds(&[("TRUNKLINE_UPSTREAMS__A__URL", "https://h.example/"), ("HTTPS_PROXY", proxy)]);
        assert_eq!(by("http://u:canary@proxy.lan:1"), ["plain-credentials"]);
        assert_eq!(by("http://u:canary@proxy.example:1"), ["plain-credentials"], "the environment is not this file's");
        assert_eq!((by("http://u:canary@127.0.0.1:1"), by("http://proxy.lan:1")), (vec![], vec![]));
        assert_eq!(by("http://169.254.169.254:1"), ["metadata-address"]);
        let configured = ("TRUNKLINE_UPSTREAMS__A__PROXY", "http://[fe80::1]:1");
        assert_eq!(kinds(&[("TRUNKLINE_UPSTREAMS__A__URL", "https://h.example/"), configured]), ["metadata-address"]);
        for host in [
            "169.254.169.254",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "[::ffff:169.254.169.254]",
            "metadata.google.internal",
            "100.100.100.200",
            "2852039166",
            "0251.0376.0251.0376",
            "[64:ff9b::a9fe:a9fe]",
        ] {
            assert_eq!(of(&format!("http://{host}/latest"), None), ["metadata-address"], "{host}");
        }
    }

    #[test]
    fn what_decides_which_code_runs_and_secrets_that_all_can_read_are_said() {
        let with = |more: &[(&str, &str)]| {
            let child = [("PATH", "/bin"), ("TRUNKLINE_UPSTREAMS__A__COMMAND", "/bin/sh")];
            kinds(&[&child, more].concat())
        };
        for variable in ["LD_PRELOAD", "NODE_OPTIONS", "PYTHONPATH", "NODE_PATH", "GIT_SSH_COMMAND"] {
            let key = format!("TRUNKLINE_UPSTREAMS__A__ENV__{variable}");
            assert_eq!(with(&[(&key, "x")]), ["loader-variable"], "{variable}");
        }
        assert_eq!(with(&[("TRUNKLINE_UPSTREAMS__A__ENV__PATH", "/tmp/x:/bin")]), ["loader-variable"]);
        // The command of a token is a program as well.
        let of_token = |variable, value| {
            let exec = [("URL", "https://h.example/mcp"), ("AUTH__TYPE", "exec"), ("AUTH__COMMAND", "/bin/sh")];
            let exec = [&exec[..], &[(variable, value)]].concat();
            let exec: Vec<_> =
                exec.into_iter().map(|(key, value)| (format!("TRUNKLINE_UPSTREAMS__A__{key}"), value)).collect();
            let pairs = exec.iter().map(|(key, value)| (key.as_str(), *value));
            kinds(&pairs.chain([("PATH", "/bin")]).collect::<Vec<_>>())
        };
        for (variable, value) in
            [("AUTH__ENV__LD_PRELOAD", "x"), ("AUTH__ENV__NODE_OPTIONS", "x"), ("AUTH__ENV__PATH", "/tmp/x:/bin")]
        {
            assert_eq!(of_token(variable, value), ["loader-variable"], "{variable}");
        }
        assert_eq!(of_token("AUTH__ENV__TZ", "UTC"), [""; 0]);
        let args = |args| with(&[("TRUNKLINE_UPSTREAMS__A__ARGS", args)]);
        assert_eq!(args(r#"["-c", "exec run $1", "x"]"#), ["shell-variable"]);
        assert_eq!(args(r#"["-ec", "exec run `x`"]"#), ["shell-variable"]);
        assert_eq!(args(r#"["-c", "exec run"]"#), [""; 0]);
        assert_eq!(args(r#"["-c", "exec run \"$1\"", "x"]"#), [""; 0]);
        assert_eq!(args(r#"["script", "$1"]"#), [""; 0]);
        assert_eq!(args(r#"["run", "--token", "canary-value"]"#), ["secret-in-arguments"]);
    }
}

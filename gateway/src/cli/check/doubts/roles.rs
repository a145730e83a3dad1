//! Roles that let nobody see anything: patterns that no upstream fits, and roles that nobody has.

use crate::call::caller::rights::Role;
use crate::config::Config;
use crate::config::fault::Fault;
use crate::downstream::config::Listener;
use crate::protocol::value::Glob;
use crate::router::config::Strategy;

/// All of them.
pub(super) fn all(config: &Config) -> Vec<Fault> {
    let auth = &config.auth;
    let given = || {
        let tokens = auth.tokens.iter().flat_map(|token| token.roles.iter().flatten());
        tokens.chain(auth.certificates.iter().flat_map(|one| &one.roles))
    };
    let mut doubts = Vec::new();
    for role in &auth.roles {
        if !given().any(|name| *name == role.name) {
            let name = &role.name;
            let hint =
                format!("write `roles = [\"{name}\"]` under one of [[auth.tokens]], or remove [auth.roles.{name}]");
            let text = format!("nobody has the role `{name}`");
            doubts.push(Fault { hint: Some(hint), ..Fault::warning("unused-role", text) });
        }
        doubts.extend(fruitless(role, config));
    }
    doubts.extend(beside(config));
    doubts
}

/// Listeners where roles say nothing of those who show no token.
fn beside(config: &Config) -> Vec<Fault> {
    let auth = &config.auth;
    let is_open = |listener: &&Listener| {
        let asks_certificate = listener.asks_certificate() && !auth.allow_unauthenticated;
        auth.only(listener.tokens.as_deref()).tokens.is_empty() && !asks_certificate
    };
    let open = config.server.listeners.iter().filter(is_open).filter(|_| !auth.roles.is_empty());
    let text = |listener: &Listener| {
        format!(
            "no token is asked for at {}: whoever comes there sees everything, and no role limits that",
            listener.address
        )
    };
    open.map(|listener| Fault::warning("open-beside-roles", text(listener))).collect()
}

/// Patterns that can fit nothing that the upstreams offer.
fn fruitless(role: &Role, config: &Config) -> Vec<Fault> {
    let warning = |key: &str, glob: &Glob, why: &str| {
        let text = format!("role `{}`: \"{glob}\" in `{key}` matches nothing: {why}", role.name);
        Fault::warning("matches-nothing", text)
    };
    let names = config.upstreams.iter().map(|one| &one.name).chain(&config.disabled);
    let is_known = |glob: &&Glob| names.clone().any(|name| glob.matches(name));
    let unknown = role.upstreams.iter().filter(|glob| !is_known(glob));
    let mut doubts: Vec<_> = unknown.map(|glob| warning("upstreams", glob, "no upstream has such a name")).collect();
    let seen = config.upstreams.iter().filter(|one| role.upstreams.iter().any(|glob| glob.matches(&one.name)));
    let prefixes: Vec<String> = match config.naming.strategy {
        Strategy::Prefix => seen.map(|one| begin(&one.prefix, &config.naming.separator)).collect(),
        Strategy::PrefixOnConflict | Strategy::Flat => Vec::new(),
    };
    if prefixes.is_empty() || prefixes.iter().any(String::is_empty) {
        return doubts;
    }
    let fits = |glob: &Glob, prefix: &String| {
        let begins = glob.begins();
        begins.starts_with(prefix) || (prefix.starts_with(begins) && begins != glob.to_string())
    };
    for (key, globs) in [("tools", &role.tools), ("prompts", &role.prompts)] {
        for glob in globs.iter().flatten().filter(|glob| !prefixes.iter().any(|prefix| fits(glob, prefix))) {
            let why = format!("public names of its upstreams begin with `{}`", prefixes.join("`, `"));
            doubts.push(warning(key, glob, &why));
        }
    }
    doubts
}

fn begin(prefix: &str, separator: &str) -> String {
    if prefix.is_empty() { String::new() } else { format!("{prefix}{separator}") }
}

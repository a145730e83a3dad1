//! `trunkline check --as NAME`: what one who calls would see.

use anyhow::anyhow;

use crate::call::caller::Principal;
use crate::cli::process::{Failure, runtime};
use crate::config::Config;
use crate::config::fault::printable;
use crate::gateway::{self, Seen};

/// What the bearer of a token or a certificate sees.
pub(super) fn of(config: &Config, name: &str) -> Result<Seen, Failure> {
    let token = name.strip_prefix("token:").unwrap_or(name);
    let principal = match name.strip_prefix("cert:") {
        Some(subject) => Principal::of_certificate(subject),
        None if config.auth.tokens.iter().any(|known| *known.name == *token) => Principal::of_token(token),
        None => {
            let known: Vec<_> = config.auth.tokens.iter().map(|known| printable(&known.name).to_string()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(anyhow!("no token is named `{}`. Known: {known}", printable(token)).into());
        }
    };
    runtime::block_on(async { Ok(gateway::seen_by(config, &principal)) })
}

/// The same for a person.
pub(super) fn shown(seen: &Seen) -> String {
    let roles = match &seen.roles {
        None => "none: it sees everything".to_owned(),
        Some(roles) if roles.is_empty() => "of no roles: it sees nothing".to_owned(),
        Some(roles) => listed(roles),
    };
    let mut out = format!("{}\n  roles      {roles}\n", printable(&seen.principal));
    for (what, names) in [
        ("upstreams", &seen.upstreams),
        ("tools", &seen.tools),
        ("prompts", &seen.prompts),
        ("resources", &seen.resources),
        ("templates", &seen.templates),
    ] {
        let names = if names.is_empty() { "-".to_owned() } else { listed(names) };
        out.push_str(&format!("  {what:9}  {names}\n"));
    }
    if !seen.unknown.is_empty() {
        out.push_str(&format!(
            "  not known  what {} offers: its lists were never read, or are not kept\n",
            listed(&seen.unknown)
        ));
    }
    out
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| printable(name).to_string()).collect::<Vec<_>>().join(", ")
}

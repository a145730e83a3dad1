//! `trunkline login`: a person logs in to an upstream.

use std::io::{IsTerminal, Write};
use std::time::SystemTime;

use anyhow::anyhow;
use serde_json::json;

use crate::cli::args::settings;
use crate::cli::args::setup;
use crate::cli::process::{Failure, answer, browser, runtime};
use crate::config::Config;
use crate::config::fault::printable;
use crate::policy::config::moment::in_words;
use crate::runtime::Tasks;
use crate::telemetry::logging::say;
use crate::upstream::config::{Credentials, Login};
use crate::upstream::remote::{LoggedIn, Page, log_in};

/// The file that the browser is given, and how long the page is good for.
const FILE: &str = "trunkline-login-link.html";
const SECONDS: u64 = 600;

/// Has the person log in, and keeps what comes of it.
pub(crate) fn run(login: &setup::Login) -> Result<(), Failure> {
    let settings = settings::read(&login.shared, Vec::new())?;
    let to = meant(&settings.loaded.config, &login.name)?;
    let name = &*to.upstream;
    let done = runtime::block_on(async {
        let tasks = Tasks::new();
        let done = log_in(to, &tasks, |page| show(login, name, page)).await;
        done.map_err(|why| anyhow!("cannot log in to `{name}`: {}", printable(&why.full())))
    })?;
    let LoggedIn { issuer, scopes, lasts, is_refreshed } = done;
    let ends = lasts.map(|lasts| in_words(SystemTime::now() + lasts));
    let mut out = answer();
    if login.json {
        let said =
            json!({ "name": name, "issuer": issuer, "scopes": scopes, "expires": ends, "refreshed": is_refreshed });
        return Ok(out.json(&format!("{said:#}"))?);
    }
    let until = match (is_refreshed, ends) {
        (true, _) => "its tokens are refreshed without you".to_owned(),
        (false, Some(at)) => format!("it ends at {at}, since there is no refresh token"),
        (false, None) => "it lasts until the upstream refuses it, since there is no refresh token".to_owned(),
    };
    writeln!(out, "logged in to `{name}` at {}; {until}", printable(&issuer))?;
    say("a running gateway connects by itself");
    Ok(())
}

/// What is logged in to under a name.
pub(super) fn meant<'a>(config: &'a Config, name: &str) -> Result<&'a Login, Failure> {
    let Some(upstream) = config.upstreams.iter().find(|one| *one.name == *name) else {
        if config.disabled.iter().any(|off| **off == *name) {
            return Err(anyhow!("`{name}` is disabled: set `enabled = true` in [upstreams.{name}] first").into());
        }
        let known: Vec<_> = config.upstreams.iter().map(|one| &*one.name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(anyhow!("no upstream is named `{}`. Known: {known}", printable(name)).into());
    };
    match &upstream.credentials {
        Some(Credentials::Login(login)) => Ok(login),
        _ => Err(anyhow!(
            "nobody logs in to `{name}`: for that, write auth = {{ type = \"oauth\" }} in [upstreams.{name}]"
        )
        .into()),
    }
}

/// Brings the page to the person: no browser opens where nobody sits at a terminal, and none where the page is that of another server.
fn show(login: &setup::Login, name: &str, Page { url, elsewhere }: &Page) {
    if let Some((page, issuer)) = elsewhere {
        let (page, issuer) = (printable(page), printable(issuer));
        say(&format!(
            "the page to log in at is on {page}, and its code goes to {issuer}: follow the link only if you trust {issuer} with a login at {page}"
        ));
    }
    let is_person = std::io::stderr().is_terminal() && browser::is_there();
    if is_person && !login.no_browser && elsewhere.is_none() {
        match browser::opens(FILE, url, SECONDS) {
            Ok(()) => say(&format!("opening the browser to log in to `{name}`; if nothing opens, follow this link:")),
            Err(error) => say(&format!("cannot open a browser ({error}); to log in to `{name}`, follow this link:")),
        }
    } else {
        say(&format!("to log in to `{name}`, follow this link in a browser on this machine:"));
    }
    say(&printable(url));
}

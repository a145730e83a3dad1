//! `trunkline login`: a person logs in to an upstream.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::time::SystemTime;

use anyhow::anyhow;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::sync::mpsc::Sender;

use super::whose::{doubt, login_of, shown};
use crate::cli::args::settings;
use crate::cli::args::setup;
use crate::cli::process::failure::note;
use crate::cli::process::{Failure, answer, browser, runtime};
use crate::config::Config;
use crate::config::fault::printable;
use crate::config::import::told;
use crate::policy::config::moment::in_words;
use crate::runtime::Tasks;
use crate::upstream::config::Login;
use crate::upstream::logins::{LoggedIn, Page, log_in};

/// The file that the browser is given, and how long the page is good for.
const FILE: &str = "trunkline-login-link.html";
const SECONDS: u64 = 600;

/// The longest address that is pasted.
const LINE_MAX: u64 = 16 * 1024;

/// Has the person log in, and keeps what comes of it.
pub(crate) fn run(login: &setup::Login) -> Result<(), Failure> {
    let settings = settings::read(&login.shared, Vec::new())?;
    let config = &settings.loaded.config;
    let to = &login_of(config, meant(config, &login.name)?, login.by.as_deref())?;
    let (name, where_to) = (&*to.upstream, &*shown(to));
    if let Some(doubt) = to.principal.as_deref().and_then(|principal| doubt(config, principal)) {
        note(&doubt);
    }
    let done = runtime::block_on(async {
        let tasks = Tasks::new();
        let (paste, pasted) = mpsc::channel(1);
        let seat = (has_browser(login), pasted);
        let done = log_in(to, &tasks, seat, |page| show(login, where_to, page, &paste)).await;
        done.map_err(|why| anyhow!("cannot log in to {where_to}: {}", printable(&why.full())))
    })?;
    let LoggedIn { issuer, scopes, lasts, is_refreshed } = done;
    let ends = lasts.map(|lasts| in_words(SystemTime::now() + lasts));
    let mut out = answer();
    if login.json {
        let said = json!({ "name": name, "principal": to.principal.as_deref(), "issuer": issuer, "scopes": scopes, "expires": ends,
            "refreshed": is_refreshed });
        return Ok(out.json(&format!("{said:#}"))?);
    }
    let until = match (is_refreshed, ends) {
        (true, _) => "its tokens are refreshed without you".to_owned(),
        (false, Some(at)) => format!("it ends at {at}, since there is no refresh token"),
        (false, None) => "it lasts until the upstream refuses it, since there is no refresh token".to_owned(),
    };
    writeln!(out, "logged in to {where_to} at {}; {until}", printable(&issuer))?;
    note("a running gateway connects by itself");
    Ok(())
}

/// What is logged in to under a name.
pub(super) fn meant<'a>(config: &'a Config, name: &str) -> Result<&'a Login, Failure> {
    let Some(upstream) = config.upstreams.iter().find(|one| *one.name == *name) else {
        if config.disabled.iter().any(|off| **off == *name) {
            return Err(anyhow!("`{name}` is disabled: set `enabled = true` in [upstreams.{name}] first").into());
        }
        if let Some(one) = config.left_out.iter().find(|one| one.name == name) {
            return Err(anyhow!("`{name}` is left out: {}; {}", one.why, one.advice).into());
        }
        let known: Vec<_> = config.upstreams.iter().map(|one| &*one.name).collect();
        return Err(anyhow!("no upstream `{}`{}", printable(name), told(name, &known)).into());
    };
    if upstream.is_child() {
        let said =
            "is a child process, which logs in by itself, or by variables in its `env`: there is nothing to do here";
        return Err(anyhow!("`{name}` {said}").into());
    }
    let said =
        || anyhow!("nobody logs in to `{name}`: for that, write auth = {{ type = \"oauth\" }} in [upstreams.{name}]");
    upstream.may_log_in().ok_or_else(|| said().into())
}

/// Takes the lines of stdin from now on, where the browser may be on another machine. Nobody waits for the thread: the process ends with the
/// login.
fn takes_lines(found: Sender<String>) {
    let read = move || {
        let mut input = std::io::stdin().lock();
        loop {
            // A byte that is no text ends no reading.
            let mut line = Vec::new();
            match input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
                Ok(1..) if found.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_ok() => {}
                _ => return,
            }
        }
    };
    // Without it nothing can be pasted.
    let _started = std::thread::Builder::new().name("pasted".into()).spawn(read);
}

/// Whether a browser opens here: where somebody sits at a terminal with a screen, and wants one.
fn has_browser(login: &setup::Login) -> bool {
    !login.no_browser && std::io::stderr().is_terminal() && browser::is_there()
}

/// Brings the page to the person: no browser opens where nobody sits at a terminal, and none where the page is that of another server.
fn show(login: &setup::Login, where_to: &str, page: &Page, paste: &Sender<String>) {
    let (url, elsewhere, code, known) = match page {
        Page::At { url, elsewhere, known } => (url, elsewhere, None, known.as_ref()),
        Page::Code { url, elsewhere, code } => (url, elsewhere, Some(code), None),
        Page::Asking(who) => return note(&format!("waiting for {}", printable(who))),
        Page::NotPasted(why) => {
            return note(&format!("that is not the address that the browser was sent back to: {why}"));
        }
    };
    if let Some((page, issuer)) = elsewhere {
        let (page, issuer) = (printable(page), printable(issuer));
        note(&format!(
            "the page to log in at is on {page}, and its code goes to {issuer}: follow the link only if you trust {issuer} with a login at {page}"
        ));
    }
    if let Some(code) = code {
        let code = printable(code);
        note(&format!("to log in to {where_to}, open this page on any device, and enter the code {code} there:"));
        note(&printable(url));
        return waits();
    }
    let may_open = has_browser(login) && elsewhere.is_none();
    match may_open.then(|| browser::opens(FILE, url, SECONDS)) {
        Some(Ok(())) => note(&format!(
            "opening the browser to log in to {where_to}; if nothing opens, follow this link on this machine, or run it with --no-browser:"
        )),
        failed => {
            let failed = failed.and_then(Result::err).map(|error| format!("cannot open a browser ({error}); "));
            let failed = failed.unwrap_or_default();
            note(&format!(
                "{failed}to log in to {where_to}, follow this link in a browser on this machine, or on another one and paste the address here \
                 that the browser comes to in the end, though it shows no page:"
            ));
            takes_lines(paste.clone());
        }
    }
    note(&printable(url));
    if let Some(client) = known {
        note(&format!(
            "if the page refuses the redirect URI: register http://127.0.0.1/callback for the client `{}` there, which is to be good for any port \
             (RFC 8252)",
            printable(client)
        ));
    }
    waits();
}

/// The page may be closed, and then nothing ever comes.
fn waits() {
    note(&format!("waiting for that, {} min at most; Ctrl-C gives up, and what was kept before stays", SECONDS / 60));
}

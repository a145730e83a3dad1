//! `trunkline logout`: logins are revoked and kept no more.

use std::io::Write;

use anyhow::anyhow;
use serde_json::{Value, json};

use super::login::meant;
use super::named::each;
use crate::cli::args::settings;
use crate::cli::args::setup;
use crate::cli::process::failure::tell;
use crate::cli::process::{Failure, answer, runtime};
use crate::config;
use crate::config::fault::printable;
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::telemetry::logging::say;
use crate::upstream::config::{Config, Login};
use crate::upstream::remote::logins::{LoggedOut, StoredLogins};

/// Ends the logins that are meant. Each outcome is told, whatever becomes of the others.
pub(crate) fn run(logout: &setup::Logout) -> Result<(), Failure> {
    let settings = settings::read(&logout.shared, Vec::new())?;
    let config = &settings.loaded.config;
    let kept = kept(config)?;
    let (logins, unknown) = match logout.all {
        true => (all(config, kept.logins), Vec::new()),
        false => named(config, &logout.names, kept.logins)?,
    };
    if logins.is_empty() && !unknown.is_empty() {
        return each(unknown);
    }
    let ended = runtime::block_on(async { Ok(LoggedOut::end(&logins, &Tasks::new()).await) })?;
    let (mut rows, mut is_well, mut is_news, mut out) = (Vec::new(), true, false, answer());
    for (login, ended) in logins.iter().zip(ended) {
        let name = &*login.upstream;
        is_well &= ended.is_ok();
        is_news |= matches!(ended, Ok(Some(_)));
        // Of all only those are told of that somebody had logged in to.
        if logout.all && matches!(ended, Ok(None)) {
            continue;
        }
        match logout.json {
            true => rows.push(row(login, ended)),
            false => match ended {
                Ok(ended) => writeln!(out, "{}", line(login, ended))?,
                Err(why) => tell(&format!("cannot log out of `{name}`: {}", printable(&why.full())), 1),
            },
        }
    }
    // Those that are known by their upstream are removed whether they can be read or not.
    for (path, why) in kept.unreadable.iter().filter(|(path, _)| logout.all && path.exists()) {
        is_well = false;
        tell(
            &format!("{} is left as it is, since it may be a login of another configuration: {why}", path.display()),
            1,
        );
    }
    match (logout.json, is_news) {
        (true, _) => out.json(&format!("{:#}", Value::Array(rows)))?,
        (false, true) => say("a running gateway notices by itself"),
        (false, false) if logout.all && is_well => writeln!(out, "nobody was logged in to any upstream")?,
        (false, false) => {}
    }
    each(unknown)?;
    if is_well { Ok(()) } else { Err(Failure::Found) }
}

/// What is kept, for whatever upstream.
fn kept(config: &config::Config) -> Result<StoredLogins, Failure> {
    let Some(state) = &config.server.state_folder else { return Ok(StoredLogins::default()) };
    let keys: Vec<_> = config.server.session.signing_keys.iter().map(|key| key.as_bytes().to_vec()).collect();
    Ok(StoredLogins::read(state, &keys)
        .map_err(|error| anyhow!("the logins in {} cannot be read: {error}", state.display()))?)
}

/// The logins of all upstreams, and those that are kept for others.
fn all(config: &config::Config, kept: Vec<Login>) -> Vec<Login> {
    let mut logins: Vec<Login> = config.upstreams.iter().filter_map(Config::may_log_in).cloned().collect();
    for login in kept {
        add(&mut logins, login);
    }
    logins
}

/// The logins of upstreams of these names: as they are configured, and as they were. The second part says why others have none.
fn named(
    config: &config::Config,
    names: &[String],
    kept: Vec<Login>,
) -> Result<(Vec<Login>, Vec<anyhow::Error>), Failure> {
    let (mut logins, mut unknown): (Vec<Login>, Vec<_>) = (Vec::new(), Vec::new());
    for name in names {
        let before = logins.len();
        let configured = meant(config, name);
        if let Ok(login) = &configured {
            add(&mut logins, (*login).clone());
        }
        let is_meant = |login: &&Login| *login.upstream == **name;
        kept.iter().filter(is_meant).for_each(|login| add(&mut logins, login.clone()));
        // One that nobody could log in to now may have been another one when somebody did.
        if logins.len() == before && !logins.iter().any(|login| *login.upstream == **name) {
            match configured {
                Ok(_) => {}
                Err(Failure::Failed(why)) => unknown.push(why),
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok((logins, unknown))
}

/// Another one, unless it is there: a configured one knows more than what is kept.
fn add(logins: &mut Vec<Login>, login: Login) {
    if !logins.iter().any(|known| (&known.upstream, &known.resource) == (&login.upstream, &login.resource)) {
        logins.push(login);
    }
}

/// What became of a login, as JSON.
fn row(login: &Login, ended: Result<Option<LoggedOut>, Cause>) -> Value {
    let (name, url) = (&*login.upstream, &*login.resource);
    match ended {
        Err(why) => json!({ "name": name, "url": url, "error": why.full() }),
        Ok(None) => json!({ "name": name, "url": url, "was_logged_in": false }),
        Ok(Some(LoggedOut { issuer, revoked })) => {
            let why = revoked.err().map(|why| why.full().into_owned());
            json!({ "name": name, "url": url, "was_logged_in": true, "issuer": issuer, "revoked": why.is_none(), "why": why })
        }
    }
}

/// The same for a person.
fn line(login: &Login, ended: Option<LoggedOut>) -> String {
    let name = &*login.upstream;
    let Some(LoggedOut { issuer, revoked }) = ended else { return format!("nobody was logged in to `{name}`") };
    let at = issuer.map(|issuer| format!(" at {}", printable(&issuer))).unwrap_or_default();
    let what = match revoked {
        Ok(()) => "its tokens are revoked".to_owned(),
        Err(why) => format!("its tokens may be good until they end: {}", printable(&why.full())),
    };
    format!("logged out of `{name}`{at}; {what}")
}

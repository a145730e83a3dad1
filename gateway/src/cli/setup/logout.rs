//! `trunkline logout`: logins are revoked and kept no more.

use std::io::Write;

use anyhow::anyhow;
use serde_json::{Value, json};

use super::login::meant;
use super::named::each;
use super::whose;
use super::whose::shown;
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
use crate::upstream::logins::{LoggedOut, StoredLogins};

/// Ends the logins that are meant. Each outcome is told, whatever becomes of the others.
pub(crate) fn run(logout: &setup::Logout) -> Result<(), Failure> {
    let settings = settings::read(&logout.shared, Vec::new())?;
    let config = &settings.loaded.config;
    let kept = kept(config)?;
    let by = logout.by.as_deref().map(|by| whose::principal(config, by)).transpose()?;
    let (logins, unknown) = match logout.all {
        true => (all(config, &kept.logins, by.as_deref()), Vec::new()),
        false => named(config, &logout.names, &kept.logins, by.as_deref())?,
    };
    if logins.is_empty() && !unknown.is_empty() {
        return each(unknown);
    }
    let ended = runtime::block_on(async { Ok(LoggedOut::end(&logins, &Tasks::new()).await) })?;
    let (mut rows, mut is_well, mut is_news, mut out) = (Vec::new(), true, false, answer());
    let untold = needless(&logins, &ended, logout.all);
    for ((login, ended), is_untold) in logins.iter().zip(ended).zip(untold) {
        is_well &= ended.is_ok();
        is_news |= matches!(ended, Ok(Some(_)));
        if is_untold {
            continue;
        }
        match logout.json {
            true => rows.push(row(login, ended)),
            false => match ended {
                Ok(ended) => writeln!(out, "{}", line(login, ended))?,
                Err(why) => tell(&format!("cannot log out of {}: {}", shown(login), printable(&why.full())), 1),
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
        (false, false) if logout.all && is_well => {
            let who = by.as_deref().map_or_else(|| "nobody".to_owned(), |by| format!("`{}`", printable(by)));
            writeln!(out, "{who} was {}logged in to any upstream", if by.is_some() { "not " } else { "" })?;
        }
        (false, false) => {}
    }
    each(unknown)?;
    if is_well { Ok(()) } else { Err(Failure::Found) }
}

/// Of which nothing is told: where nobody was logged in, unless that is all there is to tell of an upstream that is named.
fn needless(logins: &[Login], ended: &[Result<Option<LoggedOut>, Cause>], is_all: bool) -> Vec<bool> {
    let is_none = |at: usize| matches!(ended[at], Ok(None));
    let is_told =
        |at: usize, before: usize| logins[before].upstream == logins[at].upstream && (before < at || !is_none(before));
    let is_needless =
        |at: usize| is_none(at) && (is_all || (0..logins.len()).any(|other| other != at && is_told(at, other)));
    (0..logins.len()).map(is_needless).collect()
}

/// What is kept, for whatever upstream.
fn kept(config: &config::Config) -> Result<StoredLogins, Failure> {
    let Some(state) = &config.server.state_folder else { return Ok(StoredLogins::default()) };
    Ok(StoredLogins::read(state, &config.login_keys)
        .map_err(|error| anyhow!("the logins in {} cannot be read: {error}", state.display()))?)
}

/// The logins of all upstreams, and those that are kept for others; with `by` only those of this principal.
fn all(config: &config::Config, kept: &[Login], by: Option<&str>) -> Vec<Login> {
    let configured: Vec<&Login> = config.upstreams.iter().filter_map(Config::may_log_in).collect();
    let mut logins: Vec<Login> = configured.iter().flat_map(|login| as_configured(config, login, by)).collect();
    kept.iter().filter(|login| is_of(login, by)).for_each(|login| add(&mut logins, login, &configured));
    logins
}

/// The logins of upstreams of these names: as they are configured, and as they were, of whichever principal or of this one. The second part
/// says why others have none.
fn named(
    config: &config::Config,
    names: &[String],
    kept: &[Login],
    by: Option<&str>,
) -> Result<(Vec<Login>, Vec<anyhow::Error>), Failure> {
    let (mut logins, mut unknown): (Vec<Login>, Vec<_>) = (Vec::new(), Vec::new());
    let mut each: Vec<&String> = Vec::new();
    names.iter().for_each(|name| each.extend((!each.contains(&name)).then_some(name)));
    for name in each {
        let before = logins.len();
        let configured = meant(config, name);
        let known: Vec<&Login> = configured.iter().copied().collect();
        logins.extend(known.iter().flat_map(|login| as_configured(config, login, by)));
        let is_shared = known.iter().any(|login| !login.is_personal);
        let is_meant = |login: &&Login| {
            // Where all share a login it is that of nobody in particular.
            let is_hidden = by.is_some() && is_shared && login.principal.is_none();
            *login.upstream == **name && is_of(login, by) && !is_hidden
        };
        kept.iter().filter(is_meant).for_each(|login| add(&mut logins, login, &known));
        // One that nobody could log in to now may have been another one when somebody did.
        if logins.len() == before {
            match configured {
                Ok(login) => unknown.push(whose::shared(login)),
                Err(Failure::Failed(why)) => unknown.push(why),
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok((logins, unknown))
}

/// The logins that there may be at an upstream as it is configured, whether they can be read or not: none where `by` has none of its own.
fn as_configured(config: &config::Config, login: &Login, by: Option<&str>) -> Vec<Login> {
    match by {
        None if login.is_personal => {
            let tokens = config.auth.tokens.iter().map(|token| login.of(&format!("token:{}", token.name)));
            std::iter::once(login.of("")).chain(tokens).collect()
        }
        None => vec![login.clone()],
        Some(by) if login.is_personal => vec![login.of(by)],
        Some(_) => Vec::new(),
    }
}

/// Whether a login is that of a principal, where one is named.
fn is_of(login: &Login, by: Option<&str>) -> bool {
    by.is_none_or(|by| login.principal.as_deref().unwrap_or_default() == by)
}

/// Another one that is kept, unless it is there. A configured one knows more than what is kept.
fn add(logins: &mut Vec<Login>, kept: &Login, configured: &[&Login]) {
    let place = |login: &Login| (login.upstream.clone(), login.resource.clone());
    if !logins.iter().any(|known| place(known) == place(kept) && known.principal == kept.principal) {
        let known = configured.iter().find(|known| place(known) == place(kept)).copied().unwrap_or(kept);
        logins.push(Login { principal: kept.principal.clone(), ..known.clone() });
    }
}

/// What became of a login, as JSON.
fn row(login: &Login, ended: Result<Option<LoggedOut>, Cause>) -> Value {
    let mut row = json!({ "name": &*login.upstream, "url": login.resource, "principal": login.principal.as_deref() });
    match ended {
        Err(why) => row["error"] = json!(why.full()),
        Ok(None) => row["was_logged_in"] = json!(false),
        Ok(Some(LoggedOut { issuer, revoked })) => {
            let why = revoked.err().map(|why| why.full().into_owned());
            let said = [
                ("was_logged_in", json!(true)),
                ("issuer", json!(issuer)),
                ("revoked", json!(why.is_none())),
                ("why", json!(why)),
            ];
            said.into_iter().for_each(|(key, value)| row[key] = value);
        }
    }
    row
}

/// The same for a person.
fn line(login: &Login, ended: Option<LoggedOut>) -> String {
    let whose = shown(login);
    let Some(LoggedOut { issuer, revoked }) = ended else { return format!("nobody was logged in to {whose}") };
    let at = issuer.map(|issuer| format!(" at {}", printable(&issuer))).unwrap_or_default();
    let what = match revoked {
        Ok(()) => "its tokens are revoked".to_owned(),
        Err(why) => format!("its tokens may be good until they end: {}", printable(&why.full())),
    };
    format!("logged out of {whose}{at}; {what}")
}

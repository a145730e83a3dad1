//! `trunkline logout`: logins are revoked and kept no more.

use std::io::Write;

use serde_json::{Value, json};

use super::login::meant;
use crate::cli::args::settings;
use crate::cli::args::setup;
use crate::cli::process::{Failure, answer, runtime};
use crate::config::fault::printable;
use crate::health::Cause;
use crate::runtime::Tasks;
use crate::telemetry::logging::{complain, say};
use crate::upstream::config::{Config, Login};
use crate::upstream::remote::{LoggedOut, log_out};

/// Ends the logins that are meant. Each outcome is told, whatever becomes of the others.
pub(crate) fn run(logout: &setup::Logout) -> Result<(), Failure> {
    let settings = settings::read(&logout.shared, Vec::new())?;
    let config = &settings.loaded.config;
    let meant: Vec<&Login> = match logout.all {
        true => config.upstreams.iter().filter_map(Config::may_log_in).collect(),
        false => logout.names.iter().map(|name| meant(config, name)).collect::<Result<_, _>>()?,
    };
    let ended = runtime::block_on(async {
        let (tasks, mut all) = (Tasks::new(), Vec::new());
        for login in &meant {
            all.push(log_out(login, &tasks).await);
        }
        Ok(all)
    })?;
    let (mut rows, mut is_well, mut out) = (Vec::new(), true, answer());
    for (login, ended) in meant.iter().zip(ended) {
        let name = &*login.upstream;
        is_well &= ended.is_ok();
        // Of all only those are told of that somebody had logged in to.
        if logout.all && matches!(ended, Ok(None)) {
            continue;
        }
        match logout.json {
            true => rows.push(row(name, ended)),
            false => match ended {
                Ok(ended) => writeln!(out, "{}", line(name, ended))?,
                Err(why) => complain(&format!("cannot log out of `{name}`: {}", printable(&why.full()))),
            },
        }
    }
    if logout.json {
        out.json(&format!("{:#}", Value::Array(rows)))?;
    } else {
        say("a running gateway notices by itself");
    }
    if is_well { Ok(()) } else { Err(Failure::Found) }
}

/// What became of a login, as JSON.
fn row(name: &str, ended: Result<Option<LoggedOut>, Cause>) -> Value {
    match ended {
        Err(why) => json!({ "name": name, "error": why.full() }),
        Ok(None) => json!({ "name": name, "was_logged_in": false }),
        Ok(Some(LoggedOut { issuer, revoked })) => {
            let why = revoked.err().map(|why| why.full().into_owned());
            json!({ "name": name, "was_logged_in": true, "issuer": issuer, "revoked": why.is_none(), "why": why })
        }
    }
}

/// The same for a person.
fn line(name: &str, ended: Option<LoggedOut>) -> String {
    let Some(LoggedOut { issuer, revoked }) = ended else { return format!("nobody was logged in to `{name}`") };
    let at = issuer.map(|issuer| format!(" at {}", printable(&issuer))).unwrap_or_default();
    let what = match revoked {
        Ok(()) => "its tokens are revoked".to_owned(),
        Err(why) => format!("its tokens may be good until they end: {}", printable(&why.full())),
    };
    format!("logged out of `{name}`{at}; {what}")
}

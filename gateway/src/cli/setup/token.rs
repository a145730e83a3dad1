//! `trunkline token new`, `ls` and `revoke`: the tokens of clients, of which the configuration keeps digests.

// A token taken out of a file: the comments above it stay, above what follows.
mod taken_out;

use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, SystemTime};

use anyhow::anyhow;
use serde_json::json;
use sha2::{Digest, Sha256};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

use super::add::{Target, taken};
use super::named::Named;
use crate::cli::args::settings;
use crate::cli::args::setup::tokens::{Listed, New, Revoke, Token};
use crate::cli::process::{Failure, answer};
use crate::config::fault::{Fault, Faults, printable};
use crate::policy::config;
use crate::policy::config::client_token;
use crate::policy::config::moment::{in_words, moment};
use crate::telemetry::logging::say;
use taken_out::take_out;

/// One of them.
pub(crate) fn run(token: &Token) -> Result<(), Failure> {
    match token {
        Token::New(new) => self::new(new),
        Token::Ls(listed) => ls(listed),
        Token::Revoke(revoked) => revoke(revoked),
    }
}

/// Makes a token, writes down its digest, and shows it this once.
fn new(new: &New) -> Result<(), Failure> {
    let expires = new.expires.as_deref().map(|text| expiry(text, SystemTime::now())).transpose()?;
    // A list of a later file would take the place of that one.
    let mut target = Target::that(&new.shared, true, has_tokens)?;
    if names(&target).iter().any(|name| name == &new.name) {
        let file = target.shown();
        return Err(anyhow!(
            "a token is named `{0}` in {file} already; run `trunkline token revoke {0}` first",
            new.name
        )
        .into());
    }
    let token = client_token::fresh().map_err(anyhow::Error::from)?;
    let digest = Sha256::digest(token.as_bytes());
    let mut hash = "sha256:".to_owned();
    digest.iter().for_each(|byte| _ = write!(hash, "{byte:02x}"));
    let roles = (!new.roles.is_empty()).then(|| new.roles.iter().collect::<Array>());
    let expires = expires.map(in_words);
    let keys = [
        ("name", Some(Value::from(new.name.as_str()))),
        ("hash", Some(Value::from(hash))),
        ("roles", roles.map(Value::from)),
        ("expires", expires.as_deref().map(Value::from)),
    ];
    put(&mut target, keys.into_iter().filter_map(|(key, value)| Some((key, value?))))?;
    let faults = target.write()?;
    let mut out = answer();
    let file = target.shown();
    if new.json {
        let said = json!({
            "name": new.name, "token": token, "roles": new.roles, "expires": expires, "configuration": file,
        });
        return Ok(out.json(&format!("{said:#}"))?);
    }
    writeln!(out, "{token}")?;
    let until = expires.map_or("it does not expire".to_owned(), |at| format!("it expires at {at}"));
    let (name, file, taken) = (printable(&new.name), target.shown(), taken(faults, "takes it"));
    say(&format!("added `{name}` to {file}, which keeps its digest: the token is shown this once; {until}; {taken}"));
    Ok(())
}

/// When a token expires, as a moment or from now on.
fn expiry(text: &str, now: SystemTime) -> Result<SystemTime, anyhow::Error> {
    let units = [('h', 3600), ('d', 24 * 3600), ('w', 7 * 24 * 3600)];
    let span = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)));
    let at = match span.and_then(|(number, seconds)| Some((number.parse::<u32>().ok()?, seconds))) {
        Some((number, seconds)) => now + Duration::from_secs(u64::from(number) * seconds),
        None => moment(text)
            .map_err(|expected| anyhow!("--expires {text}: {expected}, or a time from now, as 30d, 12h or 8w"))?,
    };
    match at > now {
        true => Ok(at),
        false => Err(anyhow!("--expires {text}: that has passed already")),
    }
}

/// The names of the tokens in the file that is edited.
fn names(target: &Target) -> Vec<String> {
    let name = |item: Option<&Item>| item.and_then(Item::as_str).unwrap_or_default().to_owned();
    match tokens(target) {
        Some(Item::ArrayOfTables(tables)) => tables.iter().map(|table| name(table.get("name"))).collect(),
        Some(Item::Value(Value::Array(tables))) => {
            let table = |table: &Value| Some(table.as_inline_table()?.get("name")?.as_str()?.to_owned());
            tables.iter().map(|one| table(one).unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    }
}

fn tokens(target: &Target) -> Option<&Item> {
    tokens_of(&target.document)
}

fn tokens_of(document: &DocumentMut) -> Option<&Item> {
    document.get("auth")?.as_table_like()?.get("tokens")
}

fn has_tokens(document: &DocumentMut) -> bool {
    tokens_of(document).is_some()
}

fn put(target: &mut Target, keys: impl Iterator<Item = (&'static str, Value)>) -> Result<(), anyhow::Error> {
    let mut fresh = Table::new();
    fresh.set_implicit(true);
    let auth = target.document.entry("auth").or_insert(Item::Table(fresh));
    let auth = auth.as_table_like_mut().ok_or_else(|| anyhow!("`auth` is no table"))?;
    match auth.entry("tokens").or_insert(Item::ArrayOfTables(ArrayOfTables::new())) {
        Item::ArrayOfTables(tables) => {
            let mut table = Table::new();
            keys.for_each(|(key, given)| _ = table.insert(key, value(given)));
            tables.push(table);
        }
        Item::Value(Value::Array(tables)) => {
            let mut table = InlineTable::new();
            keys.for_each(|(key, given)| _ = table.insert(key, given));
            tables.push(table);
        }
        _ => return Err(anyhow!("`auth.tokens` is no list")),
    }
    Ok(())
}

/// Takes tokens out: who has one is let in no more, and what is open ends. A name that is not known keeps no other in force.
fn revoke(revoke: &Revoke) -> Result<(), Failure> {
    let mut target = Target::that(&revoke.shared, false, has_tokens)?;
    let named = Named::of(&revoke.names, &names(&target));
    let revoked = &named.there;
    for name in revoked {
        let at = names(&target).iter().position(|known| known == name);
        at.into_iter().for_each(|at| take_out(&mut target.document, at));
    }
    let known = names(&target);
    if let (Some(last), true) = (revoked.last(), known.is_empty()) {
        // Nobody who takes a right away wants to give all of them to everybody.
        let (name, file) = (printable(last), target.shown());
        return Err(anyhow!(
            "`{name}` is the last token in {file}: without one, the gateway asks for none, or for those of an earlier file. \
             Make another first (`trunkline token new`), or take [[auth.tokens]] out of the file yourself"
        )
        .into());
    }
    if !revoked.is_empty() {
        let faults = target.write().map_err(|failure| still_named(failure, &revoke.names))?;
        let mut out = answer();
        match revoke.json {
            true => out.json(&format!("{:#}", json!({ "revoked": revoked, "configuration": target.shown() })))?,
            false => {
                let (names, file, taken) = (revoked.join("`, `"), target.shown(), taken(faults, "ends its sessions"));
                writeln!(out, "revoked `{}` in {file}; {taken}", printable(&names))?;
            }
        }
    }
    named.end("token", &target.shown(), &known)
}

/// Says of tokens that listeners name why they cannot be revoked: without its name, a listener could be one that asks for no token.
fn still_named(failure: Failure, names: &[String]) -> Failure {
    let Failure::Config(Faults(faults)) = failure else { return failure };
    let said = |fault: Fault| match names.iter().find(|name| fault.is_no_token(name)) {
        Some(name) => Fault {
            text: format!("`{}` is not revoked: a listener names it", printable(name)),
            hint: Some("take the name out of its `tokens` first; an empty list there lets everybody in".to_owned()),
            ..fault
        },
        None => fault,
    };
    Failure::Config(Faults(faults.into_iter().map(said).collect()))
}

/// Lists them, without what they are known by.
fn ls(listed: &Listed) -> Result<(), Failure> {
    let settings = settings::read(&listed.shared, Vec::new())?;
    let tokens = &settings.loaded.config.auth.tokens;
    let now = SystemTime::now();
    let mut out = answer();
    if listed.json {
        let one = |token: &config::Token| {
            let expires = token.expires.map(in_words);
            let roles = token.roles.as_ref().map(|roles| roles.iter().map(ToString::to_string).collect::<Vec<_>>());
            json!({ "name": token.name.to_string(), "roles": roles, "expires": expires, "expired": token.is_over(now) })
        };
        let all: Vec<_> = tokens.iter().map(one).collect();
        return Ok(out.json(&format!("{:#}", json!({ "tokens": all })))?);
    }
    let mut rows = vec![["NAME", "ROLES", "EXPIRES"].map(str::to_owned)];
    rows.extend(tokens.iter().map(|token| {
        let roles = token.roles.as_ref().map_or("everything".to_owned(), |roles| roles.join(", "));
        let roles = if roles.is_empty() { "nothing".to_owned() } else { roles };
        let expires = match token.expires.map(in_words) {
            Some(at) if token.is_over(now) => format!("{at} (expired)"),
            Some(at) => at,
            None => "never".to_owned(),
        };
        [printable(&token.name).to_string(), printable(&roles).to_string(), expires]
    }));
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (first, second) = (wide(0), wide(1));
    for [name, roles, expires] in &rows {
        writeln!(out, "{name:first$}  {roles:second$}  {expires}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_moment_or_a_time_from_now() {
        let now = moment("2026-11-25").unwrap();
        let said = |text: &str| expiry(text, now).map(in_words).map_err(|why| why.to_string());
        assert_eq!(said("30d").as_deref(), Ok("2026-12-25T00:00:00Z"));
        assert_eq!(said("12h").as_deref(), Ok("2026-11-25T12:00:00Z"));
        assert_eq!(said("1w").as_deref(), Ok("2026-12-02T00:00:00Z"));
        assert_eq!(said("2027-01-01").as_deref(), Ok("2027-01-01T00:00:00Z"));
        assert!(said("2026-01-01").unwrap_err().contains("has passed already") && said("0d").is_err());
        assert!(said("soon").unwrap_err().contains("as 30d, 12h or 8w"));
    }
}

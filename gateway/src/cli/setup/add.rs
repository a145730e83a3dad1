//! `trunkline add` and `remove`: one upstream into the configuration, and out of it; its comments stay.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use super::named::Named;
use super::save::{Edited, Turns, endings_kept};
use crate::cli::args::Shared;
use crate::cli::args::setup::{Add, Remove};
use crate::cli::process::{Failure, answer};
use crate::config::fault::{Fault, Faults, Place, Severity, printable};
use crate::config::source::{Environment, file};
use crate::config::{Inputs, load};

/// The configuration that is edited, and what else is read with it.
pub(super) struct Target {
    edited: Edited,
    files: Vec<PathBuf>,
    pub(super) document: DocumentMut,
    _turns: Turns,
}

impl Target {
    /// The last TOML file of those in force; `./trunkline.toml` where there is none, which `add` makes.
    pub(super) fn of(shared: &Shared, makes: bool) -> Result<Self, Failure> {
        Self::that(shared, makes, |_| false)
    }

    /// The same, but for the last file that has what is sought, where one has.
    pub(super) fn that(shared: &Shared, makes: bool, has: fn(&DocumentMut) -> bool) -> Result<Self, Failure> {
        let mut files = file::find(&shared.config, &Environment::of_process());
        let is_toml = |file: &&PathBuf| {
            let endings = ["json", "jsonc", "yaml", "yml"];
            file.extension().is_none_or(|ending| endings.iter().all(|other| ending != *other))
        };
        let is_it = |file: &&PathBuf| {
            let text = is_toml(file).then(|| file::read(file).ok()).flatten();
            text.and_then(|text| text.parse::<DocumentMut>().ok()).is_some_and(|document| has(&document))
        };
        let file = match (files.iter().rfind(is_it).or_else(|| files.iter().rfind(is_toml)), files.last()) {
            (Some(file), _) => file.clone(),
            (None, Some(host)) => return Err(of_a_host(host).into()),
            (None, None) => {
                let fresh = PathBuf::from("trunkline.toml");
                files.push(fresh.clone());
                fresh
            }
        };
        let turns = Turns::take(std::slice::from_ref(&file), makes)?;
        let edited = Edited::open(&file)?;
        let document = edited.toml()?;
        if document.contains_key("mcp_servers") && !document.contains_key("upstreams") {
            return Err(of_a_host(&file).into());
        }
        Ok(Self { edited, files, document, _turns: turns })
    }

    /// Writes it, unless it would have a fault that it has not now. So many faults stay that it had before: while it has any, no
    /// running gateway takes what was written.
    pub(super) fn write(&self) -> Result<usize, Failure> {
        let before = self.edited.text();
        let mut text = endings_kept(before, &self.document.to_string());
        if before.is_empty() {
            text = text.trim_start().to_owned();
        }
        let now = errors(&self.files, None);
        let mut then = errors(&self.files, Some((self.edited.path().to_owned(), text.clone())));
        let all = then.len();
        then.retain(|fault| !now.iter().any(|known| known.kind == fault.kind && known.text == fault.text));
        if then.is_empty() {
            self.edited.write(&text, None)?;
            return Ok(all);
        }
        let own = self.edited.path().display().to_string();
        then.iter_mut().for_each(|fault| unwritten(fault, &own, (before, &text)));
        Err(Failure::Config(Faults(then)))
    }

    pub(super) fn shown(&self) -> String {
        file::shown(self.edited.path())
    }
}

/// A fault of the second text, which is not written in place of the first: it is told at the line that it has in the file, if it has one.
fn unwritten(fault: &mut Fault, file: &str, (before, after): (&str, &str)) {
    let is_own = matches!(&fault.place, Some(Place::File { path, .. }) if path == file);
    match &mut fault.place {
        Some(Place::File { excerpt, .. }) if is_own => match line_before(excerpt.line, before, after) {
            Some(line) => excerpt.line = line,
            None => fault.place = None,
        },
        _ => {}
    }
    let unchanged = format!("{} is unchanged", printable(file));
    fault.hint = Some(fault.hint.take().map_or(unchanged.clone(), |hint| format!("{hint}; {unchanged}")));
}

/// Where a line of the text `after` stands in the text `before`: what was changed lies in one piece.
fn line_before(line: usize, before: &str, after: &str) -> Option<usize> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    match line {
        line if line <= head => Some(line),
        line if line + tail > new.len() => (line + old.len()).checked_sub(new.len()),
        _ => None,
    }
}

/// What is said where only the file of a host is in force: it is read, and `install` alone writes to it.
fn of_a_host(file: &Path) -> anyhow::Error {
    let file = file.display();
    anyhow!(
        "{file} is the file of a host, which is not edited; name a TOML file after it: --config {file} --config trunkline.toml"
    )
}

/// The errors of a configuration of these files, one of them with this text; a file that is not there yet has none.
fn errors(files: &[PathBuf], draft: Option<(PathBuf, String)>) -> Vec<Fault> {
    let is_draft = |file: &Path| draft.as_ref().is_some_and(|(draft, _)| draft == file);
    let files = files.iter().filter(|file| file.exists() || is_draft(file)).cloned().collect();
    let faults = load(Inputs {
        files,
        drafts: draft.into_iter().collect(),
        environment: Environment::of_process(),
        ..Inputs::default()
    });
    let faults = faults.err().map_or_else(Vec::new, |faults| faults.0);
    faults.into_iter().filter(|fault| fault.severity == Severity::Error).collect()
}

/// Adds an upstream.
pub(crate) fn add(add: &Add) -> Result<(), Failure> {
    let table = table(add)?;
    let mut target = Target::of(&add.shared, true)?;
    let fresh = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let upstreams = target.document.entry("upstreams").or_insert_with(fresh);
    let upstreams = upstreams.as_table_like_mut().ok_or_else(|| anyhow!("`upstreams` is no table"))?;
    if upstreams.contains_key(&add.name) {
        let file = target.shown();
        return Err(anyhow!("`{}` is in {file} already; run `trunkline remove {}` first", add.name, add.name).into());
    }
    upstreams.insert(&add.name, Item::Table(table));
    let faults = target.write()?;
    let text = format!("added `{}` to {}", add.name, target.shown());
    said((&text, faults), &[&add.name], target.edited.path(), add.json)
}

/// What is written of it.
fn table(add: &Add) -> Result<Table, anyhow::Error> {
    let mut table = Table::new();
    let pairs = |given: &[String], marks: &[char], example: &str| -> Result<InlineTable, anyhow::Error> {
        let mut table = InlineTable::new();
        for pair in given {
            let (name, value) = pair.split_once(marks).ok_or_else(|| anyhow!("expected {example}"))?;
            let name = name.trim();
            if name.is_empty() {
                return Err(anyhow!("expected {example}"));
            }
            if table.insert(name, value.trim_start().into()).is_some() {
                return Err(anyhow!("`{name}` is given twice"));
            }
        }
        Ok(table)
    };
    // A flag that says nothing of this kind of server would be lost.
    match (&add.url, &add.command[..]) {
        (Some(_), []) if !add.env.is_empty() => {
            return Err(anyhow!("--env is for a program; for a URL write --header \"Name: value\""));
        }
        (None, [_, ..]) if !add.header.is_empty() => {
            return Err(anyhow!("--header is for a URL; for a program write --env NAME=value"));
        }
        (Some(url), []) if url.contains("://") => {
            table.insert("url", value(url));
            if !add.header.is_empty() {
                let headers = pairs(&add.header, &[':'], "--header \"Name: value\"")?;
                table.insert("headers", Item::Value(Value::InlineTable(headers)));
            }
        }
        (None, [command, args @ ..]) => {
            table.insert("command", value(command));
            if !args.is_empty() {
                table.insert("args", Item::Value(args.iter().collect::<Array>().into()));
            }
            if !add.env.is_empty() {
                let env = pairs(&add.env, &['='], "--env NAME=value")?;
                table.insert("env", Item::Value(Value::InlineTable(env)));
            }
        }
        _ => {
            let name = &add.name;
            return Err(anyhow!(
                "expected `trunkline add {name} -- COMMAND ARGS…` or `trunkline add {name} https://…`"
            ));
        }
    }
    Ok(table)
}

/// Removes upstreams, each by itself: one that is not there keeps no other from it.
pub(crate) fn remove(remove: &Remove) -> Result<(), Failure> {
    let mut target = Target::of(&remove.shared, false)?;
    let upstreams = |document: &DocumentMut| {
        let table = document.get("upstreams").and_then(Item::as_table_like);
        table.iter().flat_map(|table| table.iter()).map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
    };
    let named = Named::of(&remove.names, &upstreams(&target.document));
    let there = &named.there;
    if !there.is_empty() {
        let table = target.document.get_mut("upstreams").and_then(Item::as_table_like_mut);
        table.into_iter().for_each(|table| there.iter().for_each(|name| drop(table.remove(name))));
        let faults = target.write()?;
        let text = format!("removed `{}` from {}", there.join("`, `"), target.shown());
        said((&text, faults), there, target.edited.path(), remove.json)?;
    }
    named.end("upstream", &target.shown(), &upstreams(&target.document))
}

/// When a running gateway does what was written, where the configuration had so many faults before.
pub(super) fn taken(faults: usize, what: &str) -> String {
    let still = match faults {
        0 => return format!("a running gateway {what} by itself"),
        1 => "1 fault of the configuration is mended".to_owned(),
        many => format!("{many} faults of the configuration are mended"),
    };
    format!("a running gateway {what} only once {still}: run `trunkline check`")
}

fn said((text, faults): (&str, usize), names: &[&str], file: &Path, as_json: bool) -> Result<(), Failure> {
    let mut out = answer();
    match as_json {
        true => out.json(&format!("{:#}", json!({ "upstreams": names, "configuration": file::shown(file) })))?,
        false => writeln!(out, "{}; {}", printable(text), taken(faults, "takes it over"))?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_where_it_stands_in_the_file_and_not_in_what_was_to_be_written() {
        let (before, after) = ("a\nb\nc\nd\n", "a\nx\ny\nd\n");
        assert_eq!([1, 2, 3, 4].map(|line| line_before(line, before, after)), [Some(1), None, None, Some(4)]);
        assert_eq!([1, 2].map(|line| line_before(line, "a\nb\nc\n", "a\nc\n")), [Some(1), Some(3)]);
        assert_eq!([1, 2, 3].map(|line| line_before(line, "a\n", "a\nb\nc\n")), [Some(1), None, None]);
        assert_eq!(line_before(1, "", "b\n"), None);
    }
}

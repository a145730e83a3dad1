//! `trunkline add` and `remove`: one upstream into the configuration, and out of it; its comments stay.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde_json::json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use super::save;
use crate::cli::args::Shared;
use crate::cli::args::setup::{Add, Remove};
use crate::cli::process::Failure;
use crate::config::fault::{Fault, Faults, Place, Severity, printable};
use crate::config::source::{Environment, file};
use crate::config::{Inputs, load};

/// The configuration that is edited, and what else is read with it.
struct Target {
    file: PathBuf,
    files: Vec<PathBuf>,
    before: String,
    document: DocumentMut,
}

impl Target {
    /// The last TOML file of those in force; `./trunkline.toml` where there is none.
    fn of(shared: &Shared) -> Result<Self, Failure> {
        let mut files = file::find(&shared.config, &Environment::of_process());
        let is_toml = |file: &&PathBuf| file.extension().is_none_or(|ending| ending != "json" && ending != "jsonc");
        let file = files.iter().rfind(is_toml).cloned().unwrap_or_else(|| {
            let fresh = PathBuf::from("trunkline.toml");
            files.push(fresh.clone());
            fresh
        });
        let before = match file.symlink_metadata().is_ok() {
            true => file::read(&file).map_err(|why| anyhow!("cannot read {}: {why}", file.display()))?,
            false => String::new(),
        };
        let document = before.parse();
        let document = document.map_err(|_| anyhow!("{} is not TOML; run `trunkline check` on it", file.display()))?;
        Ok(Self { file, files, before, document })
    }

    /// Writes it, unless it would have a fault that it has not now.
    fn write(&self) -> Result<(), Failure> {
        let mut text = self.document.to_string();
        if self.before.is_empty() {
            text = text.trim_start().to_owned();
        }
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let trial = folder.join(format!(".trunkline-{}.toml", std::process::id()));
        std::fs::write(&trial, &text).with_context(|| format!("cannot write to {}", folder.display()))?;
        let now = errors(&self.files);
        let files: Vec<_> =
            self.files.iter().map(|file| if *file == self.file { &trial } else { file }).cloned().collect();
        let mut then = errors(&files);
        std::fs::remove_file(&trial)?;
        then.retain(|fault| !now.iter().any(|known| known.kind == fault.kind && known.text == fault.text));
        if then.is_empty() {
            save::whole(&self.file, &self.before, &text, None)?;
            return Ok(());
        }
        for fault in &mut then {
            if let Some(Place::File { path, .. } | Place::Path(path)) = &mut fault.place {
                *path = self.file.display().to_string();
            }
        }
        Err(Failure::Config(Faults(then)))
    }
}

/// The errors of a configuration of these files; a file that is not there yet has none.
fn errors(files: &[PathBuf]) -> Vec<Fault> {
    let files = files.iter().filter(|file| file.exists()).cloned().collect();
    let faults = load(Inputs { files, environment: Environment::of_process(), ..Inputs::default() });
    let faults = faults.err().map_or_else(Vec::new, |faults| faults.0);
    faults.into_iter().filter(|fault| fault.severity == Severity::Error).collect()
}

/// Adds an upstream.
pub(crate) fn add(add: &Add) -> Result<(), Failure> {
    let mut target = Target::of(&add.shared)?;
    let fresh = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let upstreams = target.document.entry("upstreams").or_insert_with(fresh);
    let upstreams = upstreams.as_table_like_mut().ok_or_else(|| anyhow!("`upstreams` is no table"))?;
    if upstreams.contains_key(&add.name) {
        let file = target.file.display();
        return Err(anyhow!("`{}` is in {file} already; run `trunkline remove {}` first", add.name, add.name).into());
    }
    upstreams.insert(&add.name, Item::Table(table(add)?));
    target.write()?;
    said(&format!("added `{}` to {}", add.name, target.file.display()), &[&add.name], &target.file, add.json)
}

/// What is written of it.
fn table(add: &Add) -> Result<Table, anyhow::Error> {
    let mut table = Table::new();
    let pairs = |given: &[String], marks: &[char], example: &str| -> Result<InlineTable, anyhow::Error> {
        let mut table = InlineTable::new();
        for pair in given {
            let (name, value) = pair.split_once(marks).ok_or_else(|| anyhow!("expected {example}"))?;
            table.insert(name.trim(), value.trim_start().into());
        }
        Ok(table)
    };
    match (&add.url, &add.command[..]) {
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

/// Removes upstreams.
pub(crate) fn remove(remove: &Remove) -> Result<(), Failure> {
    let mut target = Target::of(&remove.shared)?;
    for name in &remove.names {
        let upstreams = target.document.get_mut("upstreams").and_then(Item::as_table_like_mut);
        let known: Vec<String> =
            upstreams.iter().flat_map(|table| table.iter()).map(|(name, _)| name.to_owned()).collect();
        if upstreams.and_then(|table| table.remove(name)).is_none() {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(anyhow!("no upstream `{name}` in {}. Known: {known}", target.file.display()).into());
        }
    }
    target.write()?;
    let names: Vec<&str> = remove.names.iter().map(String::as_str).collect();
    let text = format!("removed `{}` from {}", names.join("`, `"), target.file.display());
    said(&text, &names, &target.file, remove.json)
}

fn said(text: &str, names: &[&str], file: &Path, as_json: bool) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match as_json {
        true => writeln!(out, "{:#}", json!({ "upstreams": names, "configuration": file }))?,
        false => writeln!(out, "{}; a running gateway takes it over by itself", printable(text))?,
    }
    Ok(())
}

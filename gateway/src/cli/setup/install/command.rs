//! The commands: which file, what is written, what is said.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::json;

use super::diff;
use super::edit;
use super::entry::{Entry, NAME};
use crate::cli::args::setup::{Install, Scope, Uninstall};
use crate::cli::process::Failure;
use crate::cli::setup::hosts::Host;
use crate::cli::setup::{import, save};
use crate::config::fault::printable;
use crate::config::source::host::starts_us;
use crate::config::source::{Environment, file};

/// What a file becomes.
struct Change {
    host: &'static Host,
    file: PathBuf,
    before: String,
    /// `None`: it goes.
    after: Option<String>,
    /// What is kept beside it, or no longer kept.
    backup: Backup,
    ours: Vec<String>,
}

enum Backup {
    Made(PathBuf),
    Gone(PathBuf),
    None,
}

/// Puts the entry into each host.
pub(crate) fn install(install: &Install) -> Result<(), Failure> {
    let environment = Environment::of_process();
    let files = file::find(&install.shared.config, &environment);
    if files.is_empty() {
        return Err(anyhow!(
            "no configuration to start with: run `trunkline import` first, or name one with --config FILE"
        )
        .into());
    }
    let program = std::env::current_exe()?;
    let mut args = vec!["stdio".to_owned()];
    for file in &files {
        let file = std::path::absolute(file)?;
        if !file.is_file() {
            return Err(anyhow!("cannot read {}: no such file", file.display()).into());
        }
        args.extend(["--config".to_owned(), file.display().to_string()]);
    }
    let entry = Entry { command: program.display().to_string(), args };
    let mut changes = Vec::new();
    for id in &install.hosts {
        let (host, file) = place(id, install.scope, &environment)?;
        changes.push(added(host, file, &entry).map_err(|why| anyhow!(why))?);
    }
    carry_out(&changes, install.dry_run, install.json)
}

/// Takes the entry out of each host.
pub(crate) fn uninstall(uninstall: &Uninstall) -> Result<(), Failure> {
    let environment = Environment::of_process();
    let mut changes = Vec::new();
    for id in &uninstall.hosts {
        let (host, file) = place(id, uninstall.scope, &environment)?;
        match removed(host, file.clone()).map_err(|why| anyhow!(why))? {
            Some(change) => changes.push(change),
            None => {
                return Err(anyhow!("{} has no entry `{NAME}` in {}", host.title, file.display()).into());
            }
        }
    }
    carry_out(&changes, uninstall.dry_run, uninstall.json)
}

fn place(id: &str, scope: Scope, environment: &Environment) -> Result<(&'static Host, PathBuf), Failure> {
    let host = Host::named(id).map_err(|why| anyhow!(why))?;
    let file = match scope {
        Scope::User => host.user_file(environment).ok_or_else(|| anyhow!("HOME is not set"))?,
        Scope::Project => host.project_file().ok_or_else(|| anyhow!("{} has no file for a project", host.title))?,
    };
    Ok((host, file))
}

fn read(file: &Path) -> Result<String, String> {
    if !file.exists() {
        return Ok(String::new());
    }
    std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

fn backup(file: &Path) -> PathBuf {
    let mut path = file.to_owned().into_os_string();
    path.push(".trunkline-bak");
    path.into()
}

/// The file with the entry. One that has it already is first made what it was without it.
fn added(host: &'static Host, file: PathBuf, entry: &Entry) -> Result<Change, String> {
    let told = |why: String| format!("cannot change {}: {why}", file.display());
    let before = read(&file)?;
    let base = match removed(host, file.clone())? {
        Some(change) => change.after.unwrap_or_default(),
        None => before.clone(),
    };
    let after = edit::with(&base, host, entry).map_err(told)?;
    let ours = words(host, entry);
    // Where it was put in without a trace it can be taken out without one.
    let is_traceless = edit::without(&after, host).map_err(told)?.is_some_and(|back| back == base);
    let kept = backup(&file);
    let backup = if base.is_empty() || is_traceless || kept.exists() { Backup::None } else { Backup::Made(kept) };
    Ok(Change { host, file, before, after: Some(after), backup, ours })
}

/// The file without the entry: byte for byte what it was before, if nobody has changed it since.
fn removed(host: &'static Host, file: PathBuf) -> Result<Option<Change>, String> {
    let before = read(&file)?;
    let told = |why: String| format!("cannot change {}: {why}", file.display());
    let Some(without) = edit::without(&before, host).map_err(told)? else { return Ok(None) };
    let entry = import::entry_of(&file, NAME).map(|(command, args)| Entry { command, args });
    let entry = entry.filter(|entry| starts_us(&entry.command, &entry.args));
    let Some(entry) = entry else {
        return Err(format!(
            "the entry `{NAME}` in {} does not start Trunkline; remove or rename it yourself",
            file.display()
        ));
    };
    let kept = backup(&file);
    let original = std::fs::read_to_string(&kept).ok();
    let makes = |base: &str| edit::with(base, host, &entry).is_ok_and(|made| made == before);
    let (after, backup) = match original {
        Some(original) if makes(&original) => (Some(original), Backup::Gone(kept)),
        _ if makes("") => (None, Backup::None),
        _ => (Some(without), Backup::None),
    };
    let ours = words(host, &entry);
    Ok(Some(Change { host, file, before, after, backup, ours }))
}

/// The texts of an entry, which may be shown.
fn words(host: &Host, entry: &Entry) -> Vec<String> {
    let keys = [
        "startup_timeout_sec",
        "tool_timeout_sec",
        "command",
        "stdio",
        "--config",
        "args",
        "type",
        "local",
        "tools",
        "timeout",
    ];
    let values = ["600000", "600", "20", "*", "[", "]", NAME];
    let mut words: Vec<String> = entry.args.iter().cloned().chain([entry.command.clone()]).collect();
    words.extend(host.root.iter().chain(&keys).chain(&values).map(|word| (*word).to_owned()));
    // The longest first: a path may hold a shorter word.
    words.sort_by_key(|word| usize::MAX - word.len());
    words
}

fn carry_out(changes: &[Change], dry_run: bool, as_json: bool) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let mut reports = Vec::new();
    for change in changes {
        let after = change.after.as_deref().unwrap_or_default();
        let is_same = change.after.as_deref() == Some(&*change.before);
        let diff = diff::lines(&change.before, after, &change.ours);
        if !dry_run && !is_same {
            write_out(change)?;
        }
        let file = change.file.display().to_string();
        if as_json {
            reports
                .push(json!({ "host": change.host.id, "file": file, "changed": !is_same && !dry_run, "diff": diff }));
            continue;
        }
        let done = match (is_same, dry_run, &change.after) {
            (true, ..) => "is up to date",
            (_, true, _) => "would be changed",
            (_, _, None) => "is removed: nothing else was in it",
            _ => "is changed",
        };
        writeln!(out, "{}: {} {done}", change.host.title, printable(&file))?;
        write!(out, "{diff}")?;
        if !dry_run && !is_same {
            if let Backup::Made(path) = &change.backup {
                writeln!(out, "what it was is kept in {}", printable(&path.display().to_string()))?;
            }
            writeln!(out, "then: {}", change.host.after)?;
        }
    }
    if as_json {
        writeln!(out, "{:#}", json!({ "hosts": reports }))?;
    }
    Ok(())
}

fn write_out(change: &Change) -> Result<(), anyhow::Error> {
    let made = match &change.backup {
        Backup::Made(path) => Some(path.as_path()),
        _ => None,
    };
    match &change.after {
        Some(after) => save::whole(&change.file, &change.before, after, made)?,
        None => std::fs::remove_file(&change.file)?,
    }
    if let Backup::Gone(path) = &change.backup {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

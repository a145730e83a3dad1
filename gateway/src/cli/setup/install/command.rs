//! The commands: which file, what is written, what is said.

use std::io::Write;
use std::path::{Component, Path, PathBuf};

use anyhow::anyhow;
use serde_json::json;

use super::diff;
use super::edit;
use super::entry::{Entry, NAME};
use super::folders;
use super::needs;
use super::own_program::OwnProgram;
use crate::cli::args::setup::{Install, Scope, Uninstall};
use crate::cli::process::failure::note;
use crate::cli::process::{Failure, answer};
use crate::cli::setup::hosts::Host;
use crate::cli::setup::import;
use crate::cli::setup::named::each;
use crate::cli::setup::save::{Edited, Turns, has_way};
use crate::config::import::Format;
use crate::config::source::host::starts_us;
use crate::config::source::{Environment, file};
use crate::config::{Inputs, load};

/// What a file becomes.
struct Change {
    host: &'static Host,
    edited: Edited,
    /// `None`: it goes.
    after: Option<String>,
    /// What is kept beside it, or no longer kept.
    backup: Backup,
    /// What the person does next.
    then: &'static str,
    ours: Vec<String>,
    /// The host's own program, which is asked first.
    own: Option<OwnProgram>,
}

enum Backup {
    Made(PathBuf),
    Gone(PathBuf),
    /// The file has changed since, so that it is not put back.
    Stays(PathBuf),
    None,
}

impl Backup {
    /// What is to be known of it once the file is written, by the host's own program or by us.
    fn said(&self, is_by_host: bool) -> Option<String> {
        let shown = file::shown;
        match self {
            Self::Made(path) => (!is_by_host).then(|| format!("what it was is kept in {}", shown(path))),
            // Whether the host has put back every byte is not known.
            Self::Gone(path) if !is_by_host || !is_kept(path) => None,
            Self::Gone(path) | Self::Stays(path) => Some(format!(
                "{} stays: it has what the file was before `install`; remove it if you need it no more",
                shown(path)
            )),
            Self::None => None,
        }
    }
}

/// Puts the entry into each host.
pub(crate) fn install(install: &Install) -> Result<(), Failure> {
    let environment = Environment::of_process();
    let files = file::find(&install.shared.config, &environment);
    let (entry, texts) = match entry(install.is_shared, &files) {
        Ok(entry) => entry,
        Err(why) => {
            // Who has mistyped a host is told so first, and need not come back for it.
            let wrong = install.hosts.iter().filter_map(|id| place(id, install.scope, &environment).err());
            return each(wrong.chain([why]).collect());
        }
    };
    let asked = Asked {
        hosts: &install.hosts,
        scope: install.scope,
        makes: !install.dry_run,
        dry_run: install.dry_run,
        as_json: install.json,
    };
    let ended = asked.each(&environment, |host, edited| Ok(Some(added(host, edited, (&entry, install.scope))?)))?;
    if ended.done > 0 {
        let taken = needs::taken(&texts, &environment);
        let loaded = load(Inputs { files, environment, ..Inputs::default() });
        let faults = loaded.map_or_else(|faults| faults.0, |loaded| loaded.warnings);
        if let Some(said) = needs::note(&faults, &taken) {
            note(&said);
        }
    }
    ended.end()
}

/// The entry that leads to these files, and what they hold.
fn entry(is_shared: bool, files: &[PathBuf]) -> Result<(Entry, Vec<String>), anyhow::Error> {
    if files.is_empty() {
        return Err(anyhow!(
            "no configuration to start with: run `trunkline import` first, or name one with --config FILE"
        ));
    }
    let program = std::env::current_exe()?;
    let (mut args, mut texts) = (vec!["stdio".to_owned()], Vec::new());
    args.extend(is_shared.then(|| "--shared".to_owned()));
    for file in files {
        let file = cleaned(file)?;
        texts.push(file::read(&file).map_err(|why| anyhow!("cannot read {}: {why}", file::shown(&file)))?);
        args.extend(["--config".to_owned(), file::written(&file).map_err(|why| anyhow!(why))?.to_owned()]);
    }
    let command = file::written(&program).map_err(|why| anyhow!(why))?.to_owned();
    Ok((Entry { command, args }, texts))
}

/// An absolute path without `..`. The links on it stay as they were named, unless `..` depends on where one leads; the last part of it stays.
fn cleaned(file: &Path) -> std::io::Result<PathBuf> {
    let file = std::path::absolute(file)?;
    let climbs = file.components().any(|part| part == Component::ParentDir);
    match (file.parent(), file.file_name()) {
        (Some(folder), Some(name)) if climbs => Ok(folder.canonicalize()?.join(name)),
        _ => Ok(file),
    }
}

/// Takes the entry out of each host.
pub(crate) fn uninstall(uninstall: &Uninstall) -> Result<(), Failure> {
    let asked = Asked {
        hosts: &uninstall.hosts,
        scope: uninstall.scope,
        makes: false,
        dry_run: uninstall.dry_run,
        as_json: uninstall.json,
    };
    let change = |host: &'static Host, edited: Edited| {
        let Some((after, backup, ours)) = removed(host, &edited)? else { return Ok(None) };
        let own = OwnProgram::removing(host, uninstall.scope);
        Ok(Some(Change { host, edited, after, backup, then: host.after_removal(), ours, own }))
    };
    asked.each(&Environment::of_process(), change)?.end()
}

/// What a command is asked to do with hosts.
struct Asked<'a> {
    hosts: &'a [String],
    scope: Scope,
    /// Whether a folder that is missing is made.
    makes: bool,
    dry_run: bool,
    as_json: bool,
}

impl Asked<'_> {
    /// Does each host by itself, and prints what was done: one that cannot be done keeps no other from it.
    fn each(
        &self,
        environment: &Environment,
        change: impl Fn(&'static Host, Edited) -> Result<Option<Change>, anyhow::Error>,
    ) -> Result<Ended, Failure> {
        let mut ids: Vec<&String> = Vec::new();
        self.hosts.iter().for_each(|id| ids.extend((!ids.contains(&id)).then_some(id)));
        let mut ended = Ended { hosts: ids.len(), done: 0, failed: Vec::new() };
        let (mut told, mut reports) = (String::new(), Vec::new());
        for id in ids {
            let one = place(id, self.scope, environment).and_then(|(host, file)| {
                let missing = folders::missing(&file);
                let done = self.one(host, &file, environment, &change);
                match done {
                    // What it has made for nothing goes again.
                    Err(_) => drop(folders::remove(&missing)),
                    // A folder that is not known to be of `install` stays, which is no reason to fail.
                    Ok(_) if self.makes => drop(folders::keep(&file, &missing)),
                    Ok(_) => {}
                }
                done
            });
            match one {
                Ok((text, report)) => {
                    ended.done += 1;
                    told.push_str(&text);
                    reports.push(report);
                }
                Err(why) => {
                    let title = Host::named(id).map_or(id.as_str(), |host| host.title);
                    reports.push(json!({ "host": id, "changed": false, "error": format!("{why:#}") }));
                    ended.failed.push((title.to_owned(), why));
                }
            }
        }
        // All is done by now, whether or not that can be said.
        match self.as_json {
            true => answer().json(&format!("{:#}", json!({ "hosts": reports })))?,
            false => answer().write_all(told.as_bytes())?,
        }
        Ok(ended)
    }

    /// Does one host.
    fn one(
        &self,
        host: &'static Host,
        file: &Path,
        environment: &Environment,
        change: impl Fn(&'static Host, Edited) -> Result<Option<Change>, anyhow::Error>,
    ) -> Result<Told, anyhow::Error> {
        // No other command edits the file meanwhile.
        let _turn = Turns::take(std::slice::from_ref(&file.to_owned()), self.makes)?;
        let Some(change) = change(host, Edited::open(file)?)? else { return Ok(nothing(host, file)) };
        let (mut told, report) = self.carry_out(&change)?;
        if !self.makes && !self.dry_run {
            let mut folders = folders::made(file, environment);
            // A file that stays keeps its folders.
            folders.retain(|_| change.after.is_none());
            folders::remove(&folders).last().into_iter().for_each(|top| {
                told.push_str(&format!("{} is removed: it was empty\n", file::shown(top)));
            });
        }
        Ok((told, report))
    }

    /// Writes one file, and says what was done.
    fn carry_out(&self, change: &Change) -> Result<Told, anyhow::Error> {
        let after = change.after.as_deref().unwrap_or_default();
        let before = change.edited.text();
        let is_same = change.after.as_deref() == Some(before) && change.edited.is_there();
        let is_written = !self.dry_run && !is_same;
        if self.dry_run && change.after.is_some() {
            has_way(change.edited.path())?;
        }
        let diff = diff::lines(before, after, &change.ours);
        let by = if is_written { write_out(change)? } else { None };
        let file = file::shown(change.edited.path());
        let done = match (is_same, self.dry_run, &change.after) {
            (true, ..) => "is up to date",
            (_, true, _) => "would be changed",
            (_, _, None) => "is removed: nothing else was in it",
            _ => "is changed",
        };
        let by_whom = by.as_ref().map(|by| format!(", by `{by}`")).unwrap_or_default();
        let mut told = format!("{}: {} {done}{by_whom}\n{diff}", change.host.title, file);
        if is_written {
            let kept = change.backup.said(by.is_some()).map(|said| said + "\n").unwrap_or_default();
            told.push_str(&format!("{kept}then: {}\n", change.then));
        }
        Ok((told, json!({ "host": change.host.id, "file": file, "changed": is_written, "diff": diff })))
    }
}

/// What is said of a host: for a person, and as JSON.
type Told = (String, serde_json::Value);

/// What came of the hosts.
struct Ended {
    /// How many were named.
    hosts: usize,
    done: usize,
    /// Each with its reason.
    failed: Vec<(String, anyhow::Error)>,
}

impl Ended {
    /// A failure names each host that could not be done, with the reason.
    fn end(mut self) -> Result<(), Failure> {
        if self.hosts == 1 {
            return self.failed.pop().map_or(Ok(()), |(_, why)| Err(why.into()));
        }
        let were = if self.failed.len() == 1 { "was" } else { "were" };
        let mut said = format!("{} of {} hosts {were} not changed:", self.failed.len(), self.hosts);
        self.failed.iter().for_each(|(title, why)| said.push_str(&format!("\n  {title}: {why:#}")));
        if self.failed.is_empty() { Ok(()) } else { Err(anyhow!(said).into()) }
    }
}

/// What is said of a host that has no entry: that is what was wanted.
fn nothing(host: &Host, file: &Path) -> Told {
    let text = format!("{} has no entry `{NAME}` in {}\n", host.title, file::shown(file));
    (text, json!({ "host": host.id, "file": file::shown(file), "changed": false, "diff": "" }))
}

fn place(id: &str, scope: Scope, environment: &Environment) -> Result<(&'static Host, PathBuf), anyhow::Error> {
    let host = Host::named(id).map_err(|why| anyhow!(why))?;
    let file = match scope {
        Scope::User => host.user_file(environment).ok_or_else(|| anyhow!("HOME is not set"))?,
        Scope::Project => host.project_file().ok_or_else(|| anyhow!("{} has no file for a project", host.title))?,
    };
    Ok((host, file))
}

fn backup(file: &Path) -> PathBuf {
    let mut path = file.to_owned().into_os_string();
    path.push(".trunkline-bak");
    path.into()
}

/// The file with the entry. One that has it already is first made what it was without it.
fn added(host: &'static Host, edited: Edited, (entry, scope): (&Entry, Scope)) -> Result<Change, anyhow::Error> {
    let file = edited.path();
    let told = |why: String| anyhow!("cannot change {}: {why}", file::shown(file));
    let before = edited.text();
    let without = removed(host, &edited)?;
    let own = OwnProgram::adding(host, scope, entry, without.is_some());
    let base = match without {
        Some((after, ..)) => after.unwrap_or_default(),
        None => before.to_owned(),
    };
    // A fault is named where it stands now, not where it would stand in what is written.
    let judged = || import::entry_in(before, host, NAME).map_err(told);
    // In YAML the entry comes first.
    if host.form.format() == Format::Yaml {
        judged()?;
    }
    let after = edit::with(&base, host, entry).map_err(told)?;
    edited.takes(&after)?;
    // What is written must be read back as what it is: by the host, and by `uninstall`. A file without servers is no fault of itself.
    let read = import::entry_in(&after, host, NAME).or_else(|why| judged().and(Err(told(why))))?;
    if read.map(|(command, args)| Entry { command, args }).as_ref() != Some(entry) {
        return Err(told(format!("the entry `{NAME}` would not be read there")));
    }
    let ours = entry.words(host);
    // Where it was put in without a trace it can be taken out without one.
    // Unless nothing else is there: then it cannot be told from a file that was made for it, and that goes with it.
    let is_like_made = edited.is_there() && edit::with("", host, entry).is_ok_and(|made| made == after);
    let is_traceless = !is_like_made && edit::without(&after, host).map_err(told)?.is_some_and(|back| back == base);
    let kept = backup(file);
    let is_new = !edited.is_there() || base.is_empty() && !before.is_empty();
    let backup = match is_new || is_traceless {
        true => Backup::None,
        false if !is_kept(&kept) => Backup::Made(kept),
        // What `uninstall` puts back must be what was there: neither an older backup nor what a link leads to.
        false if is_backup_of(&kept, &edited, &base) => Backup::None,
        false => {
            let kept = file::shown(&kept);
            return Err(told(format!("{kept} is in the way: it is no backup of what is there now. Move it away")));
        }
    };
    Ok(Change { host, edited, after: Some(after), backup, then: host.after, ours, own })
}

fn is_kept(backup: &Path) -> bool {
    backup.symlink_metadata().is_ok()
}

fn is_backup_of(backup: &Path, edited: &Edited, base: &str) -> bool {
    let is_file = backup.symlink_metadata().is_ok_and(|found| found.is_file());
    let text = file::read_with_mark(backup, edited.path()).ok().filter(|_| is_file);
    text.is_some_and(|text| text.strip_prefix(file::MARK).unwrap_or(&text) == base)
}

/// What the file becomes without the entry: byte for byte what it was before, if nobody has changed it since.
type Removed = (Option<String>, Backup, Vec<String>);

fn removed(host: &'static Host, edited: &Edited) -> Result<Option<Removed>, anyhow::Error> {
    let (path, before) = (edited.path(), edited.text());
    let told = |why: String| anyhow!("cannot change {}: {why}", file::shown(path));
    let Some(without) = edit::without(before, host).map_err(told)? else { return Ok(None) };
    let entry = import::entry_in(before, host, NAME).map_err(told)?;
    let entry = entry.map(|(command, args)| Entry { command, args });
    let Some(entry) = entry.filter(|entry| starts_us(&entry.command, &entry.args)) else {
        let path = file::shown(path);
        return Err(anyhow!("the entry `{NAME}` in {path} does not start Trunkline; remove or rename it yourself"));
    };
    let kept = backup(path);
    let original = file::read_with_mark(&kept, path).ok();
    let original = original.map(|text| text.strip_prefix(file::MARK).map(str::to_owned).unwrap_or(text));
    let makes = |base: &str| edit::with(base, host, &entry).is_ok_and(|made| made == before);
    let ours = entry.words(host);
    Ok(Some(match original {
        Some(original) if makes(&original) => (Some(original), Backup::Gone(kept), ours),
        // A link and the file that it leads to were there before.
        _ if makes("") => (edited.is_linked().then(String::new), Backup::None, ours),
        _ if is_kept(&kept) => (Some(without), Backup::Stays(kept), ours),
        _ => (Some(without), Backup::None, ours),
    }))
}

/// Writes it, or has the host's own program write it, whose name is given then.
fn write_out(change: &Change) -> Result<Option<String>, anyhow::Error> {
    if let Some(own) = change.own.as_ref().filter(|own| own.does_it(change.host, change.edited.path())) {
        return Ok(Some(own.name()));
    }
    let made = match &change.backup {
        Backup::Made(path) => Some(path.as_path()),
        _ => None,
    };
    match &change.after {
        Some(after) => change.edited.write(after, made)?,
        None => change.edited.remove()?,
    }
    if let Backup::Gone(path) = &change.backup {
        std::fs::remove_file(path)?;
    }
    Ok(None)
}

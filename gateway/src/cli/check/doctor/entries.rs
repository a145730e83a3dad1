//! The entries of Trunkline in the files of hosts: what keeps each from starting.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::problem::Problem;
use crate::cli::setup::hosts::Host;
use crate::cli::setup::import::entry_of;
use crate::cli::setup::install::NAME;
use crate::config::fault::Fault;
use crate::config::source::file::{quoted, shown};
use crate::config::source::{Environment, file};

/// Whether a file of the host has one, or cannot be read: then it may.
pub(super) fn may_have_one(host: &Host, environment: &Environment) -> bool {
    own_files(host, environment).iter().any(|(_, entry)| !matches!(entry, Ok(None)))
}

/// What is wrong with the entries in a host's files; where none has one, that.
pub(super) fn all(host: &Host, environment: &Environment) -> Vec<Problem> {
    let files = own_files(host, environment);
    let mut problems = Vec::new();
    for (path, entry) in &files {
        match entry {
            Ok(Some(entry)) => problems.extend(startless(host, (path, entry), environment)),
            Ok(None) => {}
            Err(fault) => problems.push(unread(host, path, fault)),
        }
    }
    if let Some((path, _)) = files.first().filter(|_| files.iter().all(|(_, entry)| matches!(entry, Ok(None)))) {
        let text = format!("{} has no entry of Trunkline in {}", host.title, path.display());
        problems.push(Problem::new(text, install(host, path, environment)));
    }
    problems
}

/// A file of a host, and our entry in it.
type OwnFile = (PathBuf, Result<Option<(String, Vec<String>)>, Box<Fault>>);

/// The files in which a host may have our entry: that of the user, and those of the project in this folder.
fn own_files(host: &Host, environment: &Environment) -> Vec<OwnFile> {
    let mut files: Vec<PathBuf> = host.user_file(environment).into_iter().chain(host.project_files()).collect();
    // In the home folder the file of the user is that of the project.
    files.dedup();
    files.into_iter().map(|file| (file.clone(), entry_of(&file, NAME))).collect()
}

/// The command that writes our entry into a file of a host.
fn install(host: &Host, path: &Path, environment: &Environment) -> String {
    let is_of_user = host.user_file(environment).is_some_and(|file| file == path);
    let scope = if is_of_user { "" } else { " --scope project" };
    format!("run `trunkline install {}{scope}`", host.id)
}

/// The problem that a file of a host cannot be read. No configuration of ours is meant, so that it is named in what to do.
fn unread(host: &Host, path: &Path, fault: &Fault) -> Problem {
    let Problem { text, fix, .. } = Problem::from(fault);
    let named = quoted(&shown(path)).into_owned();
    let fix = match fault.kind {
        _ if fault.hint.is_some() || fault.label.is_some() => fix,
        "unreadable-file" => format!("see with `ls -l {named}` what stands there, and mend that or move it away"),
        _ => format!("correct the line; `trunkline check --config {named}` shows it"),
    };
    Problem::new(format!("{}: {text}", host.title), fix)
}

/// What keeps an entry from starting.
fn startless(
    host: &Host,
    (path, (command, args)): (&Path, &(String, Vec<String>)),
    environment: &Environment,
) -> Vec<Problem> {
    let install = install(host, path, environment);
    let mut problems = Vec::new();
    if command.starts_with('/')
        && let Some(why) = unusable(Path::new(command))
    {
        let text = format!("the entry in {} starts {command}, {why}", path.display());
        problems.push(Problem::new(text, install.clone()));
    }
    for pair in args.windows(2).filter(|pair| pair[0] == "--config") {
        if let Err(why) = file::read(Path::new(&pair[1])) {
            let text = format!("the entry in {} names the configuration {}: {why}", path.display(), pair[1]);
            problems.push(Problem::new(text, install.clone()));
        }
    }
    problems
}

/// Why a program cannot be started by this user.
fn unusable(program: &Path) -> Option<&'static str> {
    match program.metadata() {
        Ok(seen) if !seen.is_file() => Some("which is no program"),
        Ok(_) if access(program, Access::EXEC_OK).is_err() => Some("which this user may not start"),
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some("which this user may not look at"),
        Err(_) => Some("which is not there"),
    }
}

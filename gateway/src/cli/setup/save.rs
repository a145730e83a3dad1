//! A file that a command edits: one command at a time, written whole, beside it first and then in its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use toml_edit::{DocumentMut, TomlError};

use crate::config::import::{Format, line_number, unread};
use crate::config::source::file;

/// So long a command waits for others that edit a file of the same folder.
const WAIT: Duration = Duration::from_secs(60);
/// How often it looks whether they are done.
const LOOK: Duration = Duration::from_millis(10);

/// The right to edit files. It is held on their folders themselves: nothing is left beside the files.
#[derive(Debug)]
pub(crate) struct Turns {
    _folders: Vec<File>,
}

impl Turns {
    /// Waits until no other command edits a file in one of their folders. With `makes` a folder that is missing is made, else nothing
    /// is written there.
    pub(crate) fn take(files: &[PathBuf], makes: bool) -> Result<Self, anyhow::Error> {
        loop {
            let folders = folders(files, makes)?;
            let held = folders.iter().map(|folder| turn(folder)).collect::<Result<Vec<_>, _>>()?;
            // Another may stand there by now.
            if self::folders(files, makes)? == folders {
                return Ok(Self { _folders: held.into_iter().flatten().collect() });
            }
        }
    }
}

/// The folders of the files; in one order for all commands, so that none waits for another in a circle.
fn folders(files: &[PathBuf], makes: bool) -> Result<Vec<PathBuf>, anyhow::Error> {
    let mut folders = Vec::new();
    for file in files {
        let real = real(file)?;
        let Some(folder) = real.parent() else { continue };
        if makes {
            fs::create_dir_all(folder).map_err(|error| unmade(folder, error))?;
        }
        folders.extend(fs::canonicalize(folder));
    }
    folders.sort();
    folders.dedup();
    Ok(folders)
}

/// Says what stands in the way of the folder of a file, where it is not there and cannot be made.
pub(crate) fn has_way(file: &Path) -> Result<(), anyhow::Error> {
    let Some(folder) = file.parent() else { return Ok(()) };
    match folder.ancestors().find(|path| path.symlink_metadata().is_ok()) {
        Some(there) if !there.is_dir() => Err(unmade(folder, io::ErrorKind::NotADirectory.into())),
        _ => Ok(()),
    }
}

/// Why a folder cannot be made.
fn unmade(folder: &Path, error: io::Error) -> anyhow::Error {
    let in_place = match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            folder.ancestors().find(|path| path.symlink_metadata().is_ok())
        }
        _ => None,
    };
    let why = match in_place {
        Some(path) if is_link(path) => format!("{} is a link to a folder that is not there", file::shown(path)),
        Some(path) => format!("{} is a file and no folder", file::shown(path)),
        None => error.to_string(),
    };
    anyhow!("cannot create {}: {why}", file::shown(folder))
}

/// Holds a folder; `None` where the file system cannot, and the comparison before a file is replaced must do.
#[allow(clippy::disallowed_methods, reason = "a command that does nothing else")]
fn turn(folder: &Path) -> Result<Option<File>, anyhow::Error> {
    let Ok(held) = File::open(folder) else { return Ok(None) };
    let end = Instant::now() + WAIT;
    loop {
        match flock(&held, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(held)),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => std::thread::sleep(LOOK),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                bail!("another command edits a file in {}; run this one again when it is done", file::shown(folder))
            }
            Err(_) => return Ok(None),
        }
    }
}

/// The file that a path leads to, which need not be there; a link must lead to one.
fn real(path: &Path) -> Result<PathBuf, anyhow::Error> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            bail!("{} is a link that leads back to itself; remove it, or let it lead to a file", file::shown(path))
        }
        Err(_) if is_link(path) => {
            let shown = file::shown(path);
            bail!("{shown} is a link to a file that is not there; create that file, or remove the link")
        }
        Err(_) => Ok(std::path::absolute(path)?),
    }
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|seen| seen.is_symlink())
}

/// A file as it was when it was read.
#[derive(Debug)]
pub(crate) struct Edited {
    path: PathBuf,
    /// Where the link leads, if it is one.
    real: PathBuf,
    /// `None`: it is not there.
    held: Option<String>,
}

impl Edited {
    /// Reads it.
    pub(crate) fn open(path: &Path) -> Result<Self, anyhow::Error> {
        let (path, real) = (path.to_owned(), real(path)?);
        let held = Self::read(&path, &real)?;
        Ok(Self { path, real, held })
    }

    fn read(path: &Path, real: &Path) -> Result<Option<String>, anyhow::Error> {
        if real.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let text =
            file::read_with_mark(real, path).map_err(|why| anyhow!("cannot read {}: {why}", file::shown(path)))?;
        Ok(Some(text))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_there(&self) -> bool {
        self.held.is_some()
    }

    /// Whether the path is a link to it.
    pub(crate) fn is_linked(&self) -> bool {
        is_link(&self.path)
    }

    /// Its text, without a byte order mark; empty where there is none.
    pub(crate) fn text(&self) -> &str {
        let held = self.held.as_deref().unwrap_or_default();
        held.strip_prefix(file::MARK).unwrap_or(held)
    }

    /// Its text as TOML; an error says what in it is none, and where.
    pub(crate) fn toml(&self) -> Result<DocumentMut, anyhow::Error> {
        self.text().parse().map_err(|error: TomlError| {
            let at = error.span().map_or(0, |span| span.start);
            let said = unread(self.text(), Format::Toml);
            let (line, why) = said.unwrap_or_else(|| (line_number(self.text(), at), error.message().to_owned()));
            let shown = file::shown(&self.path);
            let named = file::quoted(&shown);
            anyhow!("{shown} is not TOML (line {line}): {why}; `trunkline check --config {named}` shows the line")
        })
    }

    /// Whether a text may stand in it: no larger than what is read back.
    pub(crate) fn takes(&self, text: &str) -> Result<(), anyhow::Error> {
        let most = file::bytes_max(&self.path);
        match text.len() as u64 + file::MARK.len_utf8() as u64 > most {
            true => bail!("cannot change {}: it would be {}", file::shown(&self.path), file::too_large(most)),
            false => Ok(()),
        }
    }

    /// Replaces it by `text`; a copy of what it was is kept at `backup`. A link stays a link, and a byte order mark stays.
    pub(crate) fn write(&self, text: &str, backup: Option<&Path>) -> Result<(), anyhow::Error> {
        self.takes(text)?;
        let seen = fs::metadata(&self.real).ok();
        let mode = seen.as_ref().map_or(0o600, |seen| seen.permissions().mode() & 0o777);
        if let Some((backup, held)) = backup.zip(self.held.as_deref()) {
            self.is_unchanged()?;
            put(backup, held.as_bytes(), mode).map_err(|error| unwritten(backup, error))?;
        }
        let has_mark = self.held.as_deref().is_some_and(|held| held.starts_with(file::MARK));
        let text = if has_mark { format!("{}{text}", file::MARK) } else { text.to_owned() };
        let beside = self.beside()?;
        // It stays its owner's: what root has changed for another is of use to that one.
        let owned = seen.filter(|_| rustix::process::geteuid().is_root());
        let written = put(&beside, text.as_bytes(), mode)
            .and_then(|()| owned.map_or(Ok(()), |seen| chown(&beside, Some(seen.uid()), Some(seen.gid()))))
            .map_err(|error| unwritten(&self.path, error));
        // Another program may have written it since it was read; what it wrote stays.
        let replaced = written.and_then(|()| self.is_unchanged()).and_then(|()| self.replace(&beside));
        if replaced.is_err() {
            // It may not have come to be.
            let _ = fs::remove_file(&beside);
        }
        replaced
    }

    /// Takes it away.
    pub(crate) fn remove(&self) -> Result<(), anyhow::Error> {
        self.is_unchanged()?;
        fs::remove_file(&self.real).with_context(|| format!("cannot remove {}", file::shown(&self.path)))
    }

    fn is_unchanged(&self) -> Result<(), anyhow::Error> {
        if Self::read(&self.path, &self.real)? != self.held {
            bail!("{} has changed meanwhile; run the command again", file::shown(&self.path));
        }
        Ok(())
    }

    /// A name beside it that nobody can have foreseen.
    fn beside(&self) -> Result<PathBuf, anyhow::Error> {
        let number = getrandom::u64().context("the system gives no random bytes")?;
        let mut beside = self.real.clone().into_os_string();
        beside.push(format!(".{number:016x}.new"));
        Ok(beside.into())
    }

    fn replace(&self, beside: &Path) -> Result<(), anyhow::Error> {
        let shown = file::shown(&self.path);
        let moved = match self.held {
            Some(_) => fs::rename(beside, &self.real),
            None => match renameat_with(CWD, beside, CWD, &self.real, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => bail!("{shown} has changed meanwhile; run the command again"),
                // Not every file system knows how.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::rename(beside, &self.real),
                moved => moved.map_err(io::Error::from),
            },
        };
        moved.with_context(|| format!("cannot write {shown}"))
    }
}

/// Why a file is not written: what is written is a new one, in its folder.
fn unwritten(path: &Path, error: io::Error) -> anyhow::Error {
    let is_kept_out = matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
    let why = if is_kept_out { ": no new file can be made in its folder" } else { "" };
    anyhow!(error).context(format!("cannot write {}{why}", file::shown(path)))
}

/// Makes a file that must not be there yet, so that no link is followed.
pub(super) fn put(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode & 0o600).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.set_permissions(PermissionsExt::from_mode(mode)));
    let written = written.and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a file is none.
        let _ = fs::remove_file(path);
    }
    written
}

/// A text that was changed, with the line endings that it had: lines that did not change keep their own, the others have those of
/// most. What writes TOML has line feeds alone.
pub(crate) fn endings_kept(before: &str, after: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let carriage = old.iter().filter(|line| line.ends_with("\r\n")).count();
    if carriage == 0 {
        return after.to_owned();
    }
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let bare = |line: &str| line.trim_end_matches(['\r', '\n']).to_owned();
    let is_same = |(old, new): &(&&str, &&str)| bare(old) == bare(new) && old.ends_with('\n') == new.ends_with('\n');
    let head = old.iter().zip(&new).take_while(is_same).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(is_same).count();
    let ending = if carriage * 2 >= old.len() { "\r\n" } else { "\n" };
    let changed = new[head..new.len() - tail].iter().map(|line| match line.strip_suffix('\n') {
        Some(_) => format!("{}{ending}", bare(line)),
        None => (*line).to_owned(),
    });
    let kept = |range: std::ops::Range<usize>| old[range].iter().map(|line| (*line).to_owned());
    kept(0..head).chain(changed).chain(kept(old.len() - tail..old.len())).collect()
}

#[cfg(test)]
mod tests;

//! The file of the audit: only ever added to, and put aside when it is long.

use std::fs::{File, Metadata, OpenOptions, rename};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// How often it is looked whether the file is still the one of its name, and whether it can be opened again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A file that lines are added to.
pub(super) struct AuditFile {
    path: PathBuf,
    /// Beyond it the file is put aside.
    size_max: u64,
    /// So many files that were put aside are kept.
    keep: usize,
    open: Option<Open>,
    looked: Instant,
}

struct Open {
    file: File,
    /// Which file it is.
    identity: (u64, u64),
    /// Whether its last line is a part of one, as a full disk leaves it: the next one begins after it.
    is_torn: bool,
}

impl AuditFile {
    /// Opens the file, or makes it; nobody else may read it.
    pub(super) fn open(path: &Path, size_max: u64, keep: usize) -> io::Result<Self> {
        let open = Some(Open::at(path)?);
        Ok(Self { path: path.to_owned(), size_max, keep, open, looked: Instant::now() })
    }

    /// Adds a line. After a failure the file is opened anew, at most once a second.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            // Others put it aside, too: a program for logs, or another gateway that writes to it.
            if !self.open.as_ref().is_some_and(|open| is_at(&self.path, open.identity)) {
                // What cannot be opened is not written to where nobody finds it.
                self.open = None;
                self.open = Some(Open::at(&self.path)?);
            }
        }
        let Some(open) = &mut self.open else { return Err(io::Error::other("the file could not be opened")) };
        // Whole in one piece, so that lines of several gateways do not mix.
        let written = match std::mem::take(&mut open.is_torn) {
            true => open.file.write_all(&[b"\n", line].concat()),
            false => open.file.write_all(line),
        };
        if let Err(error) = written {
            self.open = None;
            return Err(error);
        }
        if open.file.metadata().is_ok_and(|now| now.len() >= self.size_max) {
            self.put_aside();
        }
        Ok(())
    }

    /// The file gets a number in place of its name, and a new one begins. Where that fails the old one grows on.
    fn put_aside(&mut self) {
        let Some(open) = self.open.as_ref().filter(|open| is_at(&self.path, open.identity)) else { return };
        let numbered = |number: usize| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..self.keep).rev() {
            // There may be none of this number yet.
            let _ = rename(numbered(number), numbered(number + 1));
        }
        if rename(&self.path, numbered(1)).is_ok()
            && let Ok(file) = Open::at(&self.path)
            && file.identity != open.identity
        {
            self.open = Some(file);
        }
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        // A pipe that nobody reads must not be waited for; it is refused below.
        let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC).bits() as i32;
        let open = |reads| {
            let mut options = OpenOptions::new();
            options.append(true).create(true).read(reads).mode(0o600).custom_flags(flags).open(path)
        };
        // It may be one that may only be added to.
        let file = open(true).or_else(|_| open(false))?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let is_torn = metadata.len().checked_sub(1).is_some_and(|last| {
            let mut byte = [b'\n'];
            _ = file.read_at(&mut byte, last);
            byte != [b'\n']
        });
        Ok(Self { file, identity: identity(&metadata), is_torn })
    }
}

/// Why a file cannot be the one of the audit, without making it.
pub fn unusable(path: &Path) -> Option<String> {
    let refused = |place: &Path| rustix::fs::access(place, rustix::fs::Access::WRITE_OK).err();
    match path.metadata() {
        Ok(metadata) if !metadata.is_file() => Some("not a regular file".to_owned()),
        Ok(_) => refused(path).map(|error| error.to_string()),
        // It is made where its folder lets that be.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match folder.is_dir() {
                true => refused(folder).map(|error| format!("{}: {error}", folder.display())),
                false => Some(format!("folder {} does not exist", folder.display())),
            }
        }
        Err(error) => Some(error.to_string()),
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn is_at(path: &Path, of: (u64, u64)) -> bool {
    path.metadata().is_ok_and(|metadata| identity(&metadata) == of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;
    use std::fs::{read_to_string, remove_file};

    fn text(folder: &Scratch, name: &str) -> Option<String> {
        read_to_string(folder.0.join(name)).ok()
    }

    #[test]
    fn a_long_file_is_put_aside_and_so_many_are_kept() {
        let folder = Scratch::new();
        let path = folder.0.join("audit");
        let mut file = AuditFile::open(&path, 4, 2).unwrap();
        for line in ["one\n", "two\n", "three\n", "4\n"] {
            file.write(line.as_bytes()).unwrap();
        }
        assert_eq!(text(&folder, "audit").as_deref(), Some("4\n"));
        assert_eq!(text(&folder, "audit.1").as_deref(), Some("three\n"));
        assert_eq!(text(&folder, "audit.2").as_deref(), Some("two\n"));
        assert_eq!(text(&folder, "audit.3"), None);
        // What is there is added to, whoever wrote it.
        AuditFile::open(&path, 100, 2).unwrap().write(b"5\n").unwrap();
        assert_eq!(text(&folder, "audit").as_deref(), Some("4\n5\n"));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn whether_a_file_can_be_used_is_known_without_making_it() {
        let folder = Scratch::new();
        let path = folder.0.join("audit");
        assert_eq!((unusable(&path), path.exists()), (None, false));
        std::fs::write(&path, "").unwrap();
        assert_eq!(unusable(&path), None);
        assert_eq!(unusable(&folder.0).as_deref(), Some("not a regular file"));
        assert!(unusable(&folder.0.join("none/audit")).unwrap().ends_with("none does not exist"));
        assert!(unusable(&path.join("audit")).is_some());
    }

    #[test]
    fn a_file_that_was_taken_away_is_made_anew() {
        let folder = Scratch::new();
        let path = folder.0.join("audit");
        let mut file = AuditFile::open(&path, 100, 2).unwrap();
        remove_file(&path).unwrap();
        file.looked -= LOOK_EVERY;
        file.write(b"one\n").unwrap();
        assert_eq!(text(&folder, "audit").as_deref(), Some("one\n"));
        std::fs::remove_dir_all(&folder.0).unwrap();
        file.looked -= LOOK_EVERY;
        assert!(file.write(b"two\n").is_err());
        std::fs::create_dir(&folder.0).unwrap();
        file.looked -= LOOK_EVERY;
        file.write(b"three\n").unwrap();
        assert_eq!(text(&folder, "audit").as_deref(), Some("three\n"));
        assert!(AuditFile::open(Path::new("/dev/null"), 100, 2).is_err());
    }

    #[test]
    fn nothing_is_written_to_a_file_that_nobody_finds() {
        let folder = Scratch::new();
        let path = folder.0.join("audit");
        let mut file = AuditFile::open(&path, 100, 2).unwrap();
        remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        file.looked -= LOOK_EVERY;
        // Each is told to be lost, and not the first alone.
        assert!(file.write(b"one\n").is_err() && file.write(b"two\n").is_err());
        std::fs::remove_dir(&path).unwrap();
        file.looked -= LOOK_EVERY;
        file.write(b"three\n").unwrap();
        assert_eq!(text(&folder, "audit").as_deref(), Some("three\n"));
    }

    #[test]
    fn after_a_part_of_a_line_the_next_begins_anew() {
        let folder = Scratch::new();
        let path = folder.0.join("audit");
        std::fs::write(&path, "{\"time\":").unwrap();
        let mut file = AuditFile::open(&path, 100, 2).unwrap();
        file.write(b"one\n").unwrap();
        file.write(b"two\n").unwrap();
        assert_eq!(text(&folder, "audit").as_deref(), Some("{\"time\":\none\ntwo\n"));
    }
}

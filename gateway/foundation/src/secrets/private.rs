//! Files that are this user's alone: opened without following a link, never a pipe or a device, bounded when they are read.

use rustix::fs::OFlags;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Opens a file for reading; an error where its folder or the file itself is not ours alone.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    if let Some(folder) = path.parent() {
        is_private_folder(folder)?;
    }
    // Without a link at its end, and without the wait for a writer that a pipe would need.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(said)?;
    // What was opened is judged, not what bore the name before.
    let seen = file.metadata()?;
    if !seen.is_file() {
        return Err(io::Error::other("it is no file; delete it"));
    }
    is_private(&seen)?;
    Ok((file, seen))
}

/// The content of a file that is ours alone, where it has at most so many bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, seen) = open(path)?;
    if seen.len() > most {
        return Err(io::Error::other("it is too large"));
    }
    let mut text = Vec::with_capacity(seen.len() as usize);
    file.take(most).read_to_end(&mut text)?;
    Ok(text)
}

/// Opens a file that is ours alone to add to it, or makes it; a pipe that nobody reads is not waited for.
pub fn append(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    let file = options.open(path).map_err(said)?;
    let seen = file.metadata()?;
    if !seen.is_file() {
        return Err(io::Error::other("it is no file; delete it"));
    }
    is_private(&seen)?;
    Ok(file)
}

/// The content of a file that is ours alone; where it is not there yet, it is made first, and this says so. Whoever makes it first wins.
pub fn made_once(path: &Path, most: u64, make: impl FnOnce() -> String) -> io::Result<(Vec<u8>, bool)> {
    match read(path, most) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.map(|text| (text, false)),
    }
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut chance = [0; 8];
    getrandom::fill(&mut chance).map_err(io::Error::other)?;
    let begun = path.with_extension(format!("{:016x}", u64::from_be_bytes(chance)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
    // It appears under its name whole, or not at all.
    let mut is_new = true;
    let written = writeln!(file, "{}", make()).and_then(|()| file.sync_all()).and_then(|()| {
        match fs::hard_link(&begun, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is_new = false,
            Err(_) => fs::rename(&begun, path)?,
            Ok(()) => {}
        }
        Ok(())
    });
    let _gone_already = fs::remove_file(&begun);
    written?;
    read(path, most).map(|text| (text, is_new))
}

/// Whether a folder is ours alone: nobody else can have put anything into it.
pub fn is_private_folder(folder: &Path) -> io::Result<()> {
    let seen = fs::symlink_metadata(folder)?;
    if !seen.is_dir() {
        return Err(io::Error::other(format!("{} is no folder; delete it", folder.display())));
    }
    is_private(&seen).map_err(|error| io::Error::other(format!("the folder {}: {error}", folder.display())))
}

/// Does what reads or writes a disk, so that nothing else waits for it where there is more than one worker.
pub fn off_the_workers<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Why a file cannot be opened that way.
fn said(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            io::Error::other("it is a link; replace it with the file itself")
        }
        Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => io::Error::other("it is no file; delete it"),
        _ => error,
    }
}

/// Whether it is ours, and ours alone.
fn is_private(seen: &Metadata) -> io::Result<()> {
    if seen.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user; delete it"));
    }
    if seen.mode() & 0o077 != 0 {
        return Err(io::Error::other("others may use it; take their rights away (chmod go=), or delete it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_or_a_link_is_not_added_to_and_not_waited_for() {
        let folder = std::env::temp_dir().join(format!("trunkline-append-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, link, pipe) = (folder.join("file"), folder.join("link"), folder.join("pipe"));
        append(&file).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(append(&link).is_err() && append(&pipe).is_err() && append(&file).is_ok());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn another_users_file_is_not_read() {
        assert!(is_private(&fs::metadata("/proc/1").unwrap()).is_err(), "it is everybody's to look into");
        let path = std::env::temp_dir().join(format!("trunkline-private-{}", std::process::id()));
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        assert!(is_private(&fs::metadata(&path).unwrap()).is_ok());
        // Only root can give a file away.
        if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
            let refused = is_private(&fs::metadata(&path).unwrap()).unwrap_err();
            assert!(refused.to_string().contains("another user"), "{refused}");
        }
        fs::remove_file(&path).unwrap();
    }
}

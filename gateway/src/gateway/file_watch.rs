//! Tells when the files of the configuration hold something else. Folders are watched, not files: editors put another file in the place
//! of the old one, and a mounted ConfigMap swaps a link beside it. By inotify itself, which needs no dependency for these few calls.

use crate::config::source;
use crate::secrets::private;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, timeout};

/// A change is looked at once nothing has happened for so long, and after so long in any case.
const QUIET: Duration = Duration::from_millis(20);
const LOOKED_AT_WITHIN: Duration = Duration::from_millis(80);
/// A file that is gone or emptied may be back: whoever replaces it or writes it anew is given so long.
const GONE_FOR: Duration = Duration::from_millis(500);
/// So many links on the way to a file are followed.
const LINKS_MAX: usize = 16;
/// What happens in a folder where a file is written, replaced or taken away.
const HAPPENS: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The files, and the folders that lead to them.
pub(super) struct Watch {
    files: Vec<PathBuf>,
    events: pipe::Receiver,
    folders: BTreeMap<PathBuf, i32>,
    /// What the files held when they were last looked at.
    seen: Seen,
}

/// What each of the files holds, or why it cannot be read; `None` where it is not there, or has nothing in it.
type Seen = Vec<Option<[u8; 32]>>;

impl Watch {
    /// Watches from now on.
    pub(super) fn new(files: &[PathBuf]) -> io::Result<Self> {
        // It is read as a pipe is, and waited for in the same way.
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let events = pipe::Receiver::from_owned_fd_unchecked(events)?;
        let mut watch = Self { files: files.to_vec(), events, folders: BTreeMap::new(), seen: Vec::new() };
        watch.follow()?;
        watch.seen = look(&watch.files);
        Ok(watch)
    }

    /// These are the files from now on, as they are now.
    pub(super) fn set(&mut self, files: Vec<PathBuf>) {
        if self.files != files {
            self.files = files;
            // What cannot be watched now may be when something happens.
            let _ = self.follow();
            self.seen = look(&self.files);
        }
    }

    /// Resolves when the files hold something else than when this last resolved.
    pub(super) async fn changed(&mut self) -> io::Result<()> {
        loop {
            self.happened().await?;
            let latest = Instant::now() + LOOKED_AT_WITHIN;
            while Instant::now() < latest
                && let Ok(happened) = timeout(QUIET, self.happened()).await
            {
                happened?;
            }
            self.follow()?;
            let mut now = look(&self.files);
            let has_gone = |(now, before): (&Option<_>, &Option<_>)| now.is_none() && before.is_some();
            if now.iter().zip(&self.seen).any(has_gone) {
                sleep(GONE_FOR).await;
                self.follow()?;
                now = look(&self.files);
            }
            if now != self.seen {
                self.seen = now;
                return Ok(());
            }
        }
    }

    /// Resolves when anything happened in the folders.
    async fn happened(&self) -> io::Result<()> {
        let (mut room, mut is_any) = ([0; 4096], false);
        loop {
            match self.events.try_read(&mut room) {
                Ok(_) => is_any = true,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if is_any => return Ok(()),
                Err(_) => self.events.readable().await?,
            }
        }
    }

    /// Watches the folders that lead to the files now, and no others.
    fn follow(&mut self) -> io::Result<()> {
        let wanted: BTreeSet<_> = self.files.iter().flat_map(|file| folders(file)).collect();
        let mut watched = BTreeMap::new();
        for folder in wanted {
            // One that is not there may come: the one above it says so.
            if let Ok(number) = inotify::add_watch(&self.events, &folder, HAPPENS) {
                watched.insert(folder, number);
            }
        }
        if watched.is_empty() && !self.files.is_empty() {
            return Err(io::Error::other("none of the folders of the configuration can be watched"));
        }
        for number in self.folders.values().filter(|number| !watched.values().any(|one| one == *number)) {
            // A folder that has gone took its watch with it.
            let _ = inotify::remove_watch(&self.events, *number);
        }
        self.folders = watched;
        Ok(())
    }
}

/// The folders in which a change can make another file of this one: its own, and those of the links on the way to it.
fn folders(file: &Path) -> Vec<PathBuf> {
    let (mut found, mut path) = (Vec::new(), std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    for _ in 0..LINKS_MAX {
        let Some(folder) = path.parent().map(Path::to_owned) else { break };
        // Where the folder itself is reached by a link, that may be swapped.
        found.extend(folder.ancestors().filter(|up| up.is_symlink()).filter_map(|up| up.parent()).map(Path::to_owned));
        found.push(folder.clone());
        match path.read_link() {
            Ok(target) => path = folder.join(target),
            Err(_) => break,
        }
    }
    found
}

/// As the configuration is read: in bounds, and never from a pipe. A file that has nothing in it yet is about to be written.
fn look(files: &[PathBuf]) -> Seen {
    let look = |file: &PathBuf| match source::file::read(file) {
        Ok(text) if text.is_empty() => None,
        Ok(text) => Some(Sha256::digest(text).into()),
        Err(_) if !file.exists() => None,
        Err(why) => Some(Sha256::digest(why.to_string()).into()),
    };
    private::off_the_workers(|| files.iter().map(look).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;
    use std::fs;
    use std::os::unix::fs::symlink;

    async fn changed(watch: &mut Watch) {
        timeout(Duration::from_secs(60), watch.changed()).await.expect("it is told").unwrap();
    }

    /// Whether anything is told of what was done before this file was written.
    async fn is_untold(watch: &mut Watch, file: &Path) -> bool {
        let before = watch.seen.clone();
        fs::write(file, "the next").unwrap();
        changed(watch).await;
        let now = look(&watch.files);
        before != now && watch.seen == now
    }

    #[tokio::test]
    async fn a_file_is_followed_however_it_is_replaced() {
        let folder = Scratch::new();
        let file = folder.0.join("a.toml");
        fs::write(&file, "1").unwrap();
        let mut watch = Watch::new(std::slice::from_ref(&file)).unwrap();
        fs::write(&file, "2").unwrap();
        changed(&mut watch).await;
        // As editors do: beside it, and then in its place.
        fs::write(folder.0.join("a.toml~"), "3").unwrap();
        fs::rename(folder.0.join("a.toml~"), &file).unwrap();
        changed(&mut watch).await;
        // The same again, and what is beside it, is no change.
        fs::write(&file, "3").unwrap();
        fs::write(folder.0.join("b.toml"), "x").unwrap();
        assert!(is_untold(&mut watch, &file).await);
        fs::remove_file(&file).unwrap();
        changed(&mut watch).await;
        fs::write(&file, "4").unwrap();
        changed(&mut watch).await;
    }

    #[tokio::test]
    async fn a_link_that_is_swapped_on_the_way_is_seen() {
        let folder = Scratch::new();
        let version = |name: &str, text: &str| {
            fs::create_dir(folder.0.join(name)).unwrap();
            fs::write(folder.0.join(name).join("a.toml"), text).unwrap();
        };
        version("..1", "1");
        symlink("..1", folder.0.join("..data")).unwrap();
        symlink("..data/a.toml", folder.0.join("a.toml")).unwrap();
        let mut watch = Watch::new(&[folder.0.join("a.toml")]).unwrap();
        for next in ["..2", "..3"] {
            version(next, next);
            symlink(next, folder.0.join("..tmp")).unwrap();
            fs::rename(folder.0.join("..tmp"), folder.0.join("..data")).unwrap();
            changed(&mut watch).await;
        }
        // It is followed to where it is now, too.
        fs::write(folder.0.join("..3").join("a.toml"), "4").unwrap();
        changed(&mut watch).await;
    }
}

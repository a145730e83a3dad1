//! The folder of kept inventories: its files are ours alone, appear whole or not at all, and are bounded in number and size.

use crate::secrets::private;
use bytes::Bytes;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A larger inventory is not kept.
pub(super) const FILE_BYTES_MAX: u64 = 8 << 20;
/// So many files are kept, those that were used last.
const FILES_MAX: usize = 256;
/// Of these, so many are of one upstream, which has one for each era and set of declared capabilities.
const VARIANTS_MAX: usize = 8;
/// And so many bytes in all of them together.
const BYTES_MAX: u64 = 64 << 20;
/// What was begun and not finished for so long never will be.
const BEGUN_MAX: Duration = Duration::from_secs(60 * 60);
/// What names end in while they are being written.
const BEGUN: &str = ".begun";

/// Tells apart what this process begins.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// A folder of our own in that of the cache.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// In the folder of the cache; made when something is written.
    pub(super) fn new(cache: &Path) -> Self {
        Self(cache.join("inventories"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// What a file holds; `None` where there is none.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<Bytes>> {
        let Some((file, length)) = self.open(name)? else { return Ok(None) };
        // What was used last is kept longest; where that cannot be noted, it counts as older.
        let _ = file.set_modified(SystemTime::now());
        whole(file, length).map(Some)
    }

    /// The name and the text of the file that was used last of those whose names begin so. It does not count as used by this.
    pub(super) fn last(&self, begins: &str) -> io::Result<Option<(String, Bytes)>> {
        let own = self.files()?.into_iter().filter(|file| file.name.starts_with(begins) && !file.is_begun());
        let Some(Seen { name, .. }) = own.max_by_key(|file| file.used) else { return Ok(None) };
        let Some((file, length)) = self.open(&name)? else { return Ok(None) };
        Ok(Some((name, whole(file, length)?)))
    }

    fn open(&self, name: &str) -> io::Result<Option<(File, u64)>> {
        let (file, opened) = match private::open(&self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if opened.len() > FILE_BYTES_MAX {
            return Err(io::Error::other("it is too large"));
        }
        Ok(Some((file, opened.len())))
    }

    /// Writes a file, in place of what was there. Who reads meanwhile reads the one or the other. With the same beginning of their
    /// names are the others of its upstream.
    pub(super) fn write(&self, (begins, name): (&str, &str), text: &[u8]) -> io::Result<()> {
        if text.len() as u64 > FILE_BYTES_MAX {
            tracing::debug!(name, bytes = text.len(), "inventory too large for the cache");
            return Ok(());
        }
        if let Some(cache) = self.0.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
        }
        match DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => private::is_private_folder(&self.0)?,
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let begun = self.0.join(format!("{name}.{}.{number}{BEGUN}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&begun)?;
        // A file that a crash of the machine has cut is known by its digest: nothing waits for the disk.
        let written = file.write_all(text).and_then(|()| fs::rename(&begun, self.0.join(name)));
        if written.is_err() {
            let _nothing_more_to_do = fs::remove_file(&begun);
        }
        written?;
        self.prune(begins, name)
    }

    /// Deletes what was used longest ago, as far as there is too much, and never what was just written: another may bear the same
    /// time, since a file's clock is coarse, or a later one, since clocks are set back.
    fn prune(&self, begins: &str, written: &str) -> io::Result<()> {
        let mut files = self.files()?;
        files.sort_by_key(|file| (file.name != written, std::cmp::Reverse(file.used)));
        let (mut count, mut bytes, mut variants) = (0, 0, 0);
        for file in files {
            let is_left_over = match file.is_begun() {
                true => file.used.elapsed().is_ok_and(|age| age > BEGUN_MAX),
                false => {
                    (count, bytes) = (count + 1, bytes + file.bytes);
                    let is_variant = file.name.starts_with(begins);
                    variants += usize::from(is_variant);
                    count > FILES_MAX || bytes > BYTES_MAX || (is_variant && variants > VARIANTS_MAX)
                }
            };
            if is_left_over {
                // Another gateway may have been quicker.
                let _ = fs::remove_file(self.0.join(&file.name));
            }
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<Seen>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            // What is no file of ours, or has just gone, is left alone.
            let (Ok(name), Ok(seen)) = (entry.file_name().into_string(), entry.metadata()) else { continue };
            if seen.is_file() && (name.ends_with(".json") || name.ends_with(BEGUN)) {
                files.push(Seen { name, used: seen.modified()?, bytes: seen.len() });
            }
        }
        Ok(files)
    }
}

fn whole(file: File, length: u64) -> io::Result<Bytes> {
    let mut text = Vec::with_capacity(length as usize);
    file.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text.into())
}

/// A file that was seen.
struct Seen {
    name: String,
    used: SystemTime,
    bytes: u64,
}

impl Seen {
    fn is_begun(&self) -> bool {
        self.name.ends_with(BEGUN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Scratch;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_is_written_is_private_whole_and_read_again() {
        let scratch = Scratch::new();
        let folder = Folder::new(&scratch.0.join("a/cache"));
        assert_eq!(folder.read("k-1.json").unwrap(), None);
        folder.write(("k-", "k-1.json"), b"one").unwrap();
        folder.write(("k-", "k-1.json"), b"two").unwrap();
        assert_eq!(folder.read("k-1.json").unwrap().unwrap(), "two");
        assert_eq!((mode(folder.path()), mode(&folder.path().join("k-1.json"))), (0o700, 0o600));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        folder.write(("k-", "k-2.json"), b"three").unwrap();
        folder.write(("other-", "other-1.json"), b"four").unwrap();
        assert!(folder.write(("k-", "k-3.json"), &vec![b' '; FILE_BYTES_MAX as usize + 1]).is_ok());
        assert_eq!(folder.read("k-3.json").unwrap(), None);
    }

    #[test]
    fn what_others_could_have_put_there_is_not_read_and_nothing_is_written_to_it() {
        let scratch = Scratch::new();
        let folder = Folder::new(&scratch.0);
        folder.write(("k.", "k.json"), b"ours").unwrap();
        let path = folder.path().join("k.json");
        set_mode(&path, 0o640);
        assert!(folder.read("k.json").is_err(), "others can read it");
        set_mode(&path, 0o600);
        set_mode(folder.path(), 0o750);
        assert!(folder.read("k.json").is_err() && folder.write(("k.", "k.json"), b"x").is_err(), "the folder is open");
        set_mode(folder.path(), 0o700);
        let aside = scratch.0.join("aside");
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        assert!(folder.read("k.json").is_err(), "a link");
        folder.write(("k.", "k.json"), b"new").unwrap();
        assert_eq!((fs::read(&aside).unwrap(), fs::read(&path).unwrap()), (b"ours".to_vec(), b"new".to_vec()));
        fs::rename(folder.path(), scratch.0.join("real")).unwrap();
        symlink(scratch.0.join("real"), folder.path()).unwrap();
        assert!(
            folder.read("k.json").is_err() && folder.write(("k.", "k.json"), b"x").is_err(),
            "the folder is a link"
        );
        fs::remove_file(folder.path()).unwrap();
        fs::create_dir_all(folder.path().join("k.json")).unwrap();
        set_mode(folder.path(), 0o700);
        assert!(folder.read("k.json").is_err(), "no file");
        assert!(folder.write(("k.", "k.json"), b"x").is_err(), "it cannot take its place");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "and what was begun is gone");
    }

    #[test]
    fn one_upstream_keeps_few_variants_those_that_were_used_last() {
        let scratch = Scratch::new();
        let folder = Folder::new(&scratch.0);
        let is_there = |name: &str| folder.path().join(name).exists();
        folder.write(("other-", "other-1.json"), b"1").unwrap();
        for at in 0..VARIANTS_MAX {
            folder.write(("k-", &format!("k-{at}.json")), b"1").unwrap();
        }
        for name in (0..VARIANTS_MAX).map(|at| format!("k-{at}.json")).chain(["other-1.json".to_owned()]) {
            let older = SystemTime::now() - Duration::from_secs(if name == "k-1.json" { 70 } else { 60 });
            File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(older).unwrap();
        }
        folder.read("k-1.json").unwrap();
        let before = SystemTime::now() - Duration::from_secs(65);
        File::options().write(true).open(folder.path().join("k-2.json")).unwrap().set_modified(before).unwrap();
        folder.write(("k-", "k-new.json"), b"1").unwrap();
        assert_eq!(["k-1.json", "k-2.json", "k-3.json", "k-new.json"].map(is_there), [true, false, true, true]);
        assert!(is_there("other-1.json"), "of another upstream");
    }

    #[test]
    fn the_last_of_an_upstream_is_read_without_being_used() {
        let scratch = Scratch::new();
        let folder = Folder::new(&scratch.0);
        assert!(folder.last("k-").is_err(), "there is no folder");
        folder.write(("k-", "k-1.json"), b"one").unwrap();
        folder.write(("k-", "k-2.json"), b"two").unwrap();
        folder.write(("other-", "other-1.json"), b"three").unwrap();
        let at = |name: &str, seconds: u64| {
            let file = File::options().write(true).create(true).truncate(false).open(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        [("k-1.json", 9), ("k-2.json", 5), ("other-1.json", 20), ("k-3.json.1.1.begun", 30)]
            .into_iter()
            .for_each(|(name, seconds)| at(name, seconds));
        for _ in 0..2 {
            let (name, text) = folder.last("k-").unwrap().unwrap();
            assert_eq!((&*name, &*text), ("k-1.json", &b"one"[..]));
        }
        let used = fs::metadata(folder.path().join("k-1.json")).unwrap().modified().unwrap();
        assert_eq!(used, SystemTime::UNIX_EPOCH + Duration::from_secs(9));
        assert_eq!(folder.last("none-").unwrap(), None);
        set_mode(&folder.path().join("k-1.json"), 0o644);
        assert!(folder.last("k-").is_err(), "others can read it");
    }

    #[test]
    fn another_users_files_are_not_read() {
        let scratch = Scratch::new();
        let folder = Folder::new(&scratch.0);
        folder.write(("k.", "k.json"), b"ours").unwrap();
        // Only root can give a file away.
        if std::os::unix::fs::chown(folder.path().join("k.json"), Some(12_345), None).is_ok() {
            assert!(folder.read("k.json").unwrap_err().to_string().contains("another user"));
        }
    }

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let scratch = Scratch::new();
        let folder = Folder::new(&scratch.0);
        folder.write(("first.", "first.json"), b"1").unwrap();
        let age = |name: &str, seconds: u64| {
            let file = File::options().write(true).create(true).truncate(false).open(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
            file
        };
        age("first.json", 90_000);
        for at in 0..FILES_MAX {
            age(&format!("f{at}.json"), 10);
        }
        age("stale.begun", 7_200);
        age("fresh.begun", 5);
        age("not-ours.txt", 90_000);
        folder.write(("last.", "last.json"), b"1").unwrap();
        let is_there = |name: &str| folder.path().join(name).exists();
        assert_eq!(
            ["first.json", "last.json", "stale.begun", "fresh.begun", "not-ours.txt"].map(is_there),
            [false, true, false, true, true]
        );
        assert_eq!(folder.files().unwrap().iter().filter(|file| !file.is_begun()).count(), FILES_MAX);
        // One that is as large as all may be together leaves room for nothing else.
        age("large.json", 1).set_len(BYTES_MAX).unwrap();
        // Even if the clock was set back since: what was just written stays.
        let later = SystemTime::now() + Duration::from_secs(60);
        File::options().write(true).open(folder.path().join("large.json")).unwrap().set_modified(later).unwrap();
        folder.write(("last.", "last.json"), b"1").unwrap();
        assert_eq!(folder.files().unwrap().iter().filter(|file| !file.is_begun()).count(), 1);
        assert!(is_there("last.json"));
    }
}
